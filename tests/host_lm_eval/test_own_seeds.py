"""Every repeat sends a seed of its own if its model's class sends any, and no round takes longer for it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.registry import get_model
from lm_eval.models.openai_completions import LocalChatCompletion
from tests.host_lm_eval.money_worlds import PaidServer, price_file
from tests.host_lm_eval.worlds import chat_model, load, numbered, simple_evaluate, write_task

from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from loopback import Server

SEEDS = {1: [1234, 1235, 1236, 1237], 2: [1234, 1235, 1236, 1237]}
STOCK: dict[str, Any] = {"until": ["\n"], "do_sample": True, "temperature": 1.0}


def seeds_sent(server: Server) -> dict[int, list[Any]]:
    """By document, in the order of arrival."""
    found = defaultdict(list)
    for one in server.served:
        for prompt in one.body.get("prompt") or [one.body["messages"][-1]["content"]]:
            found[int(prompt.rsplit("say ", 1)[1].split()[0])].append(one.body.get("seed"))
    return dict(found)


def ask(lm: Any, folder: Path, first: int = 0, **more: Any) -> None:
    tasks = load(write_task(folder, n=4, generation_kwargs=STOCK | more))
    with PrimedTasks(lm, tasks, apply_chat_template=isinstance(lm, LocalChatCompletion)) as primed:
        primed.run(numbered([("numbers", 1)] * 4 + [("numbers", 2)] * 4, first))


def test_all_of_a_round_are_sent_at_once(tmp_path: Path, server: Server) -> None:
    server.gather(8)
    ask(chat_model(server, num_concurrent=8), tmp_path)
    assert server.most_at_once == 8
    assert {number: sorted(seeds) for number, seeds in seeds_sent(server).items()} == SEEDS


def test_what_is_sent_again_has_the_same_seed_and_a_run_that_goes_on_others(
    tmp_path: Path, server: Server
) -> None:
    server.fail(500, times=1, after=1)
    ask(chat_model(server, max_retries=2, seed=5), tmp_path, first=2)
    assert seeds_sent(server) == {1: [7, 8, 8, 9, 10], 2: [7, 8, 9, 10]}


def test_no_call_of_several_prompts_has_one_twice(tmp_path: Path, server: Server) -> None:
    args = {"model": "m", "base_url": server.completions, "tokenizer_backend": "none"}
    ask(get_model("local-completions").create_from_arg_obj(args, {"batch_size": 4}), tmp_path)
    assert [len(one.body["prompt"]) for one in server.served] == [2, 2, 2, 2]
    assert seeds_sent(server) == SEEDS


class Seedless(LocalChatCompletion):  # type: ignore[misc]
    """Of a service that knows no seeds, as Anthropic's."""

    def _create_payload(self, *given: Any, seed: int = 0, **named: Any) -> dict[str, Any]:
        payload = dict(super()._create_payload(*given, seed=None, **named))
        return {name: value for name, value in payload.items() if name != "seed" or value is not None}


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
        assert sorted(seeds) == [*range(1234, 1234 + len(seeds))]
        assert len(seeds) > 2
