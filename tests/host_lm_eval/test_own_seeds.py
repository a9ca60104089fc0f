"""Every call sends a seed of its own if its model's class sends any, and no round takes longer for it."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.registry import get_model
from lm_eval.models.openai_completions import LocalChatCompletion
from lm_eval.tasks import TaskManager
from tests.host_lm_eval.money_worlds import PaidServer, price_file
from tests.host_lm_eval.worlds import (
    Seedless,
    chat_model,
    load,
    numbered,
    simple_evaluate,
    write_task,
    written_in,
)

from evalbudget_lm_eval import budgeted, race
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.seeds import seed_of
from loopback import GARBLED, Fault, Server

STOCK: dict[str, Any] = {"until": ["\n"], "do_sample": True, "temperature": 1.0}


def seeds_sent(server: Server) -> dict[int, list[Any]]:
    """By document, in the order of arrival."""
    found = defaultdict(list)
    for one in server.served:
        for prompt in one.body.get("prompt") or [one.body["messages"][-1]["content"]]:
            found[int(prompt.rsplit("say ", 1)[1].split()[0])].append(one.body.get("seed"))
    return dict(found)


def own(document: int, epoch: int, first: int = 1234, run: str = "") -> int:
    """What is sent with an answer."""
    return seed_of(first, run, f"numbers:{document}:{epoch}", (0, 0))


def ask(lm: Any, folder: Path, first: int = 0, **more: Any) -> None:
    tasks = load(write_task(folder, n=4, generation_kwargs=STOCK | more))
    with PrimedTasks(lm, tasks, apply_chat_template=isinstance(lm, LocalChatCompletion)) as primed:
        primed.run(numbered([("numbers", 1)] * 4 + [("numbers", 2)] * 4, first))


def test_all_of_a_round_are_sent_at_once(tmp_path: Path, server: Server) -> None:
    server.gather(8)
    ask(chat_model(server, num_concurrent=8), tmp_path)
    assert server.most_at_once == 8
    sent = {number: sorted(seeds) for number, seeds in seeds_sent(server).items()}
    assert sent == {document: sorted(own(document, epoch) for epoch in range(4)) for document in (1, 2)}


def test_what_is_sent_again_has_the_same_seed_and_a_run_that_goes_on_others(
    tmp_path: Path, server: Server
) -> None:
    server.fail(500, times=1, after=1)
    ask(chat_model(server, max_retries=2, seed=5), tmp_path, first=2)
    one, two = ([own(document, epoch, 5) for epoch in range(2, 6)] for document in (1, 2))
    assert seeds_sent(server) == {1: [one[0], one[1], *one[1:]], 2: two}


def test_no_two_calls_share_one(tmp_path: Path, server: Server) -> None:
    """Nor do documents with the same text, or the calls of the host's own repeats."""
    folder = write_task(tmp_path / "tasks", n=6, repeats=3, doc_to_text="say 1 please")
    with budgeted(budget="12x", sampler="uniform", journal=tmp_path / "j.db"):
        simple_evaluate(folder, chat_model(server), apply_chat_template=True)
    sent = [seed for seeds in seeds_sent(server).values() for seed in seeds]
    assert len(set(sent)) == len(sent) > 6 * 3


def test_runs_that_keep_nothing_share_none_and_nothing_is_asked_twice_with_one(
    tmp_path: Path, server: Server
) -> None:
    folder = write_task(tmp_path / "tasks", n=4)
    server.fail(GARBLED, times=3, after=3)
    server.fail(400, times=9, after=8)
    for _ in range(2):
        with budgeted(budget="4x", sampler="uniform", journal="none"):
            simple_evaluate(folder, chat_model(server, max_retries=2), apply_chat_template=True)
    answered = [one.body["seed"] for one in server.served if one.billed and one.status == 200]
    assert len(set(answered)) == len(answered) > 16


def test_arms_of_a_race_share_none_and_another_race_has_others(tmp_path: Path, server: Server) -> None:
    folder = write_task(tmp_path / "tasks", n=6)
    options: dict[str, Any] = {"sampler": "uniform", "budget": 12, "apply_chat_template": True}
    options |= {"task_manager": TaskManager(include_path=str(folder), include_defaults=False)}
    options |= {"score": "exact_match"}
    arms = {name: ("local-chat-completions", server.args_of(name)) for name in "ab"}
    for journal in (str(tmp_path / "one"), str(tmp_path / "two"), None, None):  # the last two keep nothing
        race(arms, "numbers", journal=journal, **options)
    sent = [seed for seeds in seeds_sent(server).values() for seed in seeds]
    assert len(set(sent)) == len(sent) == 48


def test_documents_do_not_draw_the_same_numbers(tmp_path: Path) -> None:
    """On a server that honours seeds as many of a hundred answers are yes as there should be."""

    def coin(asked: Any) -> str:
        return "yes" if random.Random(asked.seed).random() < 0.6 else "no"

    folder = write_task(tmp_path / "tasks", n=100, doc_to_target="yes")
    with (
        PaidServer(answer=coin) as server,
        budgeted(budget="4x", sampler="uniform", journal=tmp_path / "j.db"),
    ):
        simple_evaluate(folder, chat_model(server, num_concurrent=20), apply_chat_template=True)
    said = defaultdict(list)
    for row in written_in(tmp_path / "j.db"):
        if row.kind == "came":
            said[row.asked.epoch].append(row.what[0][0]["resps"][0][0])
    assert sorted(said) == [0, 1, 2, 3]
    for answers in said.values():  # less than 45 or more than 75 of 100 in one of 200 runs
        assert 45 <= answers.count("yes") <= 75


def test_processes_with_seeds_of_their_own_buy_no_copies(tmp_path: Path, server: Server) -> None:
    folder = write_task(tmp_path / "tasks", n=4)
    for budget, seed in (("2x", 5), ("4x", 4)):
        with budgeted(budget=budget, sampler="uniform", journal=tmp_path / "j.db"):
            simple_evaluate(folder, chat_model(server, seed=seed), apply_chat_template=True)
    assert all(len(set(seeds)) == len(seeds) == 4 for seeds in seeds_sent(server).values())


@pytest.mark.parametrize("budget", ["6x", "$0.3"])
def test_a_reply_is_of_the_repeat_whose_seed_was_sent_whoever_failed_beside_it(
    tmp_path: Path, budget: str
) -> None:
    prices = price_file(tmp_path) if "$" in budget else None
    with PaidServer(answer=lambda asked: f"the answer to {asked.seed}", latency=0.01) as server:
        failed = set()

        def fails_once(body: dict[str, Any]) -> Fault | None:
            asked = body["messages"][-1]["content"], body["seed"]
            if asked in failed or random.Random(str(asked)).random() > 0.2:
                return None
            failed.add(asked)
            return Fault("late and broken", status=500, delay=0.03)

        server.disturb = fails_once
        model = chat_model(server, num_concurrent=32, max_retries=1)
        options: dict[str, Any] = {"budget": budget, "prices": prices, "sampler": "uniform"}
        with budgeted(**options, journal=tmp_path / "j.db"):
            folder = write_task(tmp_path / "tasks", n=10)
            simple_evaluate(folder, model, apply_chat_template=True, gen_kwargs={"max_gen_toks": 20})
    said = defaultdict(list)
    for row in written_in(tmp_path / "j.db"):
        if row.kind == "came":
            said[row.asked.doc_id].append((row.asked.epoch, row.what[0][0]["resps"][0][0]))
    assert failed
    assert len(said) == 10 or prices is not None  # money may end before a document whose call failed
    assert said
    for document, answers in said.items():
        assert answers == [
            (epoch, f"the answer to {own(document, epoch, run='j.db 0')}") for epoch, _ in answers
        ]


def test_calls_of_several_prompts_leave_it_to_the_server(tmp_path: Path, server: Server) -> None:
    args = {"model": "m", "base_url": server.completions, "tokenizer_backend": "none"}
    ask(get_model("local-completions").create_from_arg_obj(args, {"batch_size": 4}), tmp_path)
    assert [len(one.body["prompt"]) for one in server.served] == [4, 4]
    assert seeds_sent(server) == {1: [None] * 4, 2: [None] * 4}


@pytest.mark.parametrize(
    ("kind", "given", "sent"),
    [
        (LocalChatCompletion, {"seed": 7}, 7),
        (LocalChatCompletion, {"temperature": 0.0}, 1234),
        (Seedless, {}, None),
    ],
)
def test_a_seed_of_the_user_stands_and_none_is_sent_for_nothing(
    tmp_path: Path, server: Server, kind: Any, given: dict[str, Any], sent: int | None
) -> None:
    ask(kind(**server.args_of("m")), tmp_path, **given)
    assert seeds_sent(server) == {1: [sent] * 4, 2: [sent] * 4}


@pytest.mark.parametrize("budget", ["3x", "$0.2"])
def test_runs_send_them_whatever_they_count(tmp_path: Path, budget: str) -> None:
    prices = price_file(tmp_path) if "$" in budget else None
    with PaidServer() as server, budgeted(budget=budget, prices=prices, sampler="uniform"):
        folder, lm = write_task(tmp_path / "tasks", n=4), chat_model(server, num_concurrent=4)
        simple_evaluate(folder, lm, apply_chat_template=True, gen_kwargs={"max_gen_toks": 20})
    for seeds in seeds_sent(server).values():
        assert len(set(seeds)) == len(seeds) > 2


def test_another_run_in_the_same_folder_sends_others_and_the_same_elsewhere_the_same(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = write_task(tmp_path / "tasks", n=4)
    found = []
    for where, budget in (("a", "2x"), ("a", "3x"), ("b", "2x")):
        (tmp_path / where).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / where)
        server.served.clear()
        with budgeted(budget=budget, sampler="uniform"):
            simple_evaluate(tasks, chat_model(server), apply_chat_template=True)
        found.append({seed for seeds in seeds_sent(server).values() for seed in seeds})
    assert found[0].isdisjoint(found[1])
    assert found[0] == found[2]
