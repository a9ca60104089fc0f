"""``evalbudget lm-eval audit``: from the first answers to the verdict, and what it refuses."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.host_lm_eval.judged_worlds import write_judged
from tests.host_lm_eval.race_worlds import KIND, Racer, fresh_racers, is_right
from tests.host_lm_eval.test_race_command import EVALBUDGET, environment
from tests.host_lm_eval.worlds import broken_off, write_task, written_in

import warm
from evalbudget.audits.store import AuditStore, weigh
from evalbudget.cli.main import cli
from evalbudget.store import Address
from evalbudget_lm_eval.audits.arm import AuditArm
from loopback import Asked, Server, rating
from postgresql_server import Server as PostgreSQL

SKILLS = {"good": 0.9, "bad": 0.4}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_tasks_only: None) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    write_task(tmp_path / "tasks", n=200)
    with fresh_racers():
        yield


def arms(**more: Any) -> list[str]:
    told = "".join(f",{name}={value}" for name, value in more.items())
    return [
        f"--arm={name}={KIND}:skill={skill},seed={seed}{told if name == 'bad' else ''}"
        for seed, (name, skill) in enumerate(SKILLS.items())
    ]


def run(*more: str, store: str = "a.sqlite", models: list[str] | None = None) -> Result:
    given = [*(arms() if models is None else models), "--tasks", "numbers", "--include_path", "tasks"]
    return CliRunner().invoke(cli, ["lm-eval", "audit", store, *given, *more])


def label_all(path: str = "a.sqlite") -> int:
    """People label what is wanted: whether the number is right."""
    with AuditStore.open(path) as store:
        wanted = set(weigh(store).wanted)
        tasks = [task for task in store.draws.tasks() if task.draw in wanted]
        for task in tasks:
            store.labels.add(task.draw, float(task.response == task.item), "ann")
        return len(tasks)


def test_the_same_command_goes_on_until_the_verdict() -> None:
    first = run()
    assert first.exit_code == 3, first.output
    assert "labels wanted" in first.output
    assert "  evalbudget audit serve a.sqlite\nthen the same command again" in first.output
    asked = Counter(Racer.asked)
    assert asked
    assert max(asked.values()) == 1
    again = run()
    assert again.exit_code == 3
    assert Counter(Racer.asked) == asked  # nothing to do before people have labelled

    with AuditStore.open("a.sqlite") as store:
        assert store.design.models == ("good", "bad")
        assert store.design.items[:2] == ("0", "1")
        assert store.design.judge is not None
        assert store.design.judge["score"] == "exact_match,none"
        assert store.command.startswith("evalbudget lm-eval audit a.sqlite --arm=good=")
        task = store.draws.tasks()[0]
        assert task.prompt == f"say {task.item} please"
        model = list(SKILLS).index(store.design.models[store.draws.all()[task.draw].model])
        right = is_right(model, list(SKILLS.values())[model], int(task.item))
        assert task.response == (task.item if right else "?")
        assert store.draws.opinion(task.draw).score == float(right)

    refusal = run("--sampler_option", "delta=0.2")
    assert refusal.exit_code == 2
    assert "delta: 0.2 here, 0.05 there" in refusal.stderr
    assert Counter(Racer.asked) == asked

    for _ in range(9):
        if label_all() == 0:
            break
        last = run()
    assert last.exit_code == 0, last.output
    assert "good is the best" in last.output
    assert max(Counter(Racer.asked).values()) == 1  # nobody was asked anything twice


def test_answers_are_kept_in_a_database_where_the_store_is_in_one(
    postgresql: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, paid = f"{postgresql.url}#answers_of_lm_eval", Counter[tuple[int, int]]()
    shutil.copytree("tasks", tmp_path / "elsewhere" / "tasks")
    few = ("--sampler_option", "items=30")
    while (done := run(*few, models=arms(stops_at=30), store=store)).exit_code == 130:
        paid += Counter(Racer.asked)
        Racer.asked.clear()
        monkeypatch.chdir(tmp_path / "elsewhere")  # as on another machine
    assert done.exit_code == 3, done.output
    paid += Counter(Racer.asked)
    assert paid.total() > 30
    assert max(paid.values()) == 1
    address = shlex.quote(str(Address.parse(store)))
    assert f"  evalbudget audit serve {address}\nthen the same command again" in done.output
    assert label_all(store) > 0
    assert "bad was" in run(*few, models=arms(), store=store).stderr  # another model by its arguments
    refusal = run(*few, "--budget", "$5", models=arms(stops_at=30), store=store)
    assert "was begun without a budget in money or tokens" in " ".join(refusal.stderr.split())
    assert [each.name for each in Path().iterdir()] == ["tasks"]


def test_what_was_answered_is_kept_at_ctrl_c() -> None:
    assert run(models=arms(stops_at=30)).exit_code == 130
    before = Counter(Racer.asked)
    assert sum(row.kind == "said" for row in written_in("a.answers.db")) == before.total()
    done = run(models=arms(stops_at=0))
    assert done.exit_code == 2  # another model by its arguments
    assert "bad was" in done.stderr
    Racer.asked.clear()


def test_a_policy_audits_by_run_and_the_store_is_in_the_output_folder() -> None:
    command = ["run", *arms(), "--tasks", "numbers", "--include_path", "tasks", "--sampler", "human-only"]
    done = CliRunner().invoke(cli, ["lm-eval", *command, "--output_path", "out"])
    assert done.exit_code == 3, done.output
    with AuditStore.open("out/audit.sqlite") as store:
        assert store.design.policy == "human-only"
        assert store.design.judge is None
        assert {str(draw.judge) for draw in store.draws.all()} == {"nan"}


def errors(folder: Path) -> None:
    """A task whose score is 1 where the answer is wrong."""
    metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": False}]
    written = write_task(folder, n=200, metric_list=metrics) / "numbers.yaml"
    written.write_text(written.read_text() + "process_results: !function own.process\n")
    (folder / "own.py").write_text(
        "def process(doc, results):\n    return {'acc': float(results[0] != str(doc['number']))}\n"
    )


@pytest.mark.parametrize("flags", [(), ("--lower_is_better",)])
def test_the_lowest_is_the_best_where_the_task_says_so(tmp_path: Path, flags: tuple[str, ...]) -> None:
    errors(tmp_path / "tasks")
    last = run(*flags)
    assert last.exit_code == 3, last.output
    for _ in range(9):
        with AuditStore.open("a.sqlite") as store:
            wanted = set(weigh(store).wanted)
            for task in store.draws.tasks():
                if task.draw in wanted:
                    store.labels.add(task.draw, float(task.response != task.item), "ann")
        if not wanted:
            break
        last = run(*flags)
    assert "Good is the best" in last.output or "good is the best" in last.output
    with AuditStore.open("a.sqlite") as store:
        assert str(store.design.scale) == "0 or 1, lower is better"
        good, bad = weigh(store).models
        assert (good.value or 0.0) < (bad.value or 0.0)
        assert (good.low or 0.0) <= (good.value or 0.0) <= (good.high or 0.0)


def test_a_direction_that_the_task_contradicts_is_refused() -> None:
    refused = run("--lower_is_better")
    assert refused.exit_code == 2
    assert "--lower-is-better contradicts it: leave it out" in refused.stderr
    assert not Racer.asked


def test_a_document_that_fails_twice_is_labelled_as_it_is() -> None:
    done = run("--sampler_option", "items=6", models=arms(breaks="3"))
    assert done.exit_code == 3, done.output
    asked = Counter(Racer.asked)
    assert asked[1, 3] == 2
    assert asked.total() == 13
    with AuditStore.open("a.sqlite") as store:
        answers = [store.draws.answer(3, model) for model in (0, 1)]
    assert [a is not None and a.response.startswith("(no answer: ConnectionError") for a in answers] == [
        False,
        True,
    ]


def scored_by(folder: Path, code: str) -> None:
    """A task whose own code scores answers."""
    metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    written = write_task(folder, n=12, metric_list=metrics) / "numbers.yaml"
    written.write_text(written.read_text() + "process_results: !function own.process\n")
    (folder / "own.py").write_text(f"def process(doc, results):\n    return {{'acc': {code}}}\n")


def test_an_answer_that_the_task_cannot_score_is_labelled_without_a_score(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scored_by(tmp_path / "tasks", "1.0 / (doc['number'] != 5)")
    done = run("--sampler_option", "items=8")
    assert done.exit_code == 3, done.output
    assert max(Counter(Racer.asked).values()) == 1
    assert "of arm good 0 documents have no answer after repeated failures, and 1 answers no" in caplog.text
    with AuditStore.open("a.sqlite") as store:
        answer = store.draws.answer(5, 0)
        assert answer is not None
        assert answer.response == ("5" if is_right(0, 0.9, 5) else "?")
        assert math.isnan(next(d.judge for d in store.draws.all() if (d.item, d.model) == (5, 0)))


def test_answers_that_a_broken_task_did_not_score_are_scored_once_it_is_mended(tmp_path: Path) -> None:
    scored_by(tmp_path / "tasks", "1 / 0")
    broken = run("--sampler_option", "items=8")
    assert broken.exit_code == 2
    assert "the task cannot score what good said (ZeroDivisionError" in broken.stderr
    before = Counter(Racer.asked)
    assert before.total() == 1  # found at the first answer
    scored_by(tmp_path / "tasks", "float(results[0] == str(doc['number']))")
    assert run("--sampler_option", "items=8").exit_code == 3
    assert max(Counter(Racer.asked).values()) == 1


def test_an_answer_whose_judge_failed_is_scored_once_more_and_not_bought_again(tmp_path: Path) -> None:
    scored_by(tmp_path / "tasks", "once(doc['number'])")
    code = tmp_path / "tasks" / "own.py"
    seen = f"SEEN = {str(tmp_path / 'seen')!r}\n"
    once = """
def once(number):
    with open(SEEN, "a+") as file:
        file.write(f"{number} ")
        file.seek(0)
        times = file.read().split().count(str(number))
    return float("nan") if number == 3 and times < 3 or number == 4 else 1.0
"""
    code.write_text(seen + once + code.read_text())
    done = run("--sampler_option", "items=8")
    assert done.exit_code == 3, done.output
    assert max(Counter(Racer.asked).values()) == 1
    with AuditStore.open("a.sqlite") as store:
        judged = {(d.item, d.model): d.judge for d in store.draws.all()}
    assert judged[2, 0] == 1.0
    assert judged[3, 1] == 1.0  # the third and fourth time
    assert math.isnan(judged[4, 0])
    assert math.isnan(judged[4, 1])
    assert Counter((tmp_path / "seen").read_text().split())["4"] == 4


def test_another_judge_scores_none_of_the_old_one_s_answers(tmp_path: Path) -> None:
    assert run("--sampler_option", "items=8").exit_code == 3
    Path("a.sqlite").unlink()
    write_task(tmp_path / "tasks", n=200, metadata={"version": 2.0})
    done = run("--sampler_option", "items=8")
    assert done.exit_code == 2
    assert "a.answers.db holds answers to other questions" in done.stderr


def test_an_outage_costs_no_document_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Racer._answer

    def down(self: Racer, prompt: str, kwargs: dict[str, Any]) -> str:
        if self.seed == 1 and len(Racer.asked) > 12:
            Racer.asked.append((1, -1))
            raise ConnectionError("the server went away")
        return answer(self, prompt, kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Racer, "_answer", down)
        for _ in range(2):
            done = run("--sampler_option", "items=10")
            assert done.exit_code == 2
            assert "arm bad answers nothing (ConnectionError: the server went away)" in done.stderr
    assert run("--sampler_option", "items=10").exit_code == 3
    with AuditStore.open("a.sqlite") as store:
        responses = [store.draws.answer(item, 1) for item in range(10)]
    assert not any(one is None or one.response.startswith("(no answer") for one in responses)


def test_a_model_that_cannot_be_loaded_is_said() -> None:
    done = run(models=arms(breaks="load"))
    assert done.exit_code == 2
    assert "arm bad cannot be loaded (RuntimeError: no such weights); mend it" in done.stderr


def test_keys_are_in_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "hunter2hunter2"
    given = arms(api_key=key, token=key, auth_token=key)
    header = ["--arm", f'third={KIND}:{{"seed": 3, "header": {{"Authorization": "Bearer {key}"}}}}']
    done = run("--sampler_option", "items=6", models=[*given, *header])
    assert done.exit_code == 3, done.output
    assert key not in done.output + done.stderr
    for path in Path.cwd().rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path


def test_a_model_that_answers_nothing_ends_it_and_the_other_is_not_asked_again() -> None:
    done = run(models=arms(breaks="always"))
    assert done.exit_code == 2
    assert "arm bad answers nothing (ConnectionError: the server went away); mend it" in done.stderr
    before = Counter(Racer.asked)
    assert sum(n for (model, _), n in before.items() if model == 1) <= 9
    with AuditStore.open("a.sqlite") as store:
        assert len(store.draws.all()) == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--labels-from", "exact_match"], "computes all scores of an answer at once"),
        (["--output_path=out"], "the answers are kept with STORE"),
        (["--budget", "20x"], "has no meaning in an audit; the labels it may ask for: --max_labels"),
        (["--until_proved"], "--until_proved has no meaning in an audit"),
        (["--model", "hf"], "--model is not for several models"),
        (["--judge", "bleu"], "bleu"),
        (["--sampler", "race"], "--sampler race keeps no audit store"),
        (["--score_range", "5..6"], "exact_match,none of document"),
        (["--sampler_option", "store=x"], "store is no option of an audit's sampler"),
        (["--sampler_option", "n_models=3"], "n_models is no option of an audit's sampler"),
        (["--sampler_option", "items=abc"], "items is abc; give a whole number"),
        (["--sampler_option", "labels_from=x"], "labels_from is not an option of the sampler"),
        (["--output_pat", "out"], "the answers are kept with STORE"),
        (["--keep", "0"], "--keep is 0"),
    ],
)
def test_what_is_refused(more: list[str], message: str) -> None:
    done = run(*more)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert len(Racer.asked) <= 1  # a score off the scale is found at the first


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("store", "message"),
    [("no/a.sqlite", "the folder no does not exist; create it first"), ("tasks", "tasks is a folder; name")],
)
def test_a_place_that_no_store_can_have_is_refused(store: str, message: str, more: tuple[str, ...]) -> None:
    done = run(*more, store=store)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert Racer.asked == []


def test_answers_that_nobody_can_read_are_refused(tmp_path: Path) -> None:
    choice = {"output_type": "multiple_choice", "doc_to_choice": ["a", "b"], "doc_to_target": 0}
    write_task(tmp_path / "tasks", "choice", **choice, metric_list=[{"metric": "acc"}])
    done = CliRunner().invoke(
        cli, ["lm-eval", "audit", "a.sqlite", *arms(), "--tasks", "choice", "--include_path", "tasks"]
    )
    assert done.exit_code == 2
    assert "models say nothing that people could label" in done.stderr
    assert run(store="--arm").exit_code == 2
    write_task(tmp_path / "tasks", n=12, repeats=3)
    several = run()
    assert several.exit_code == 2
    assert "people would label one of them" in several.stderr


def test_killed_it_buys_nothing_twice_and_judges_are_known(server: Server, tmp_path: Path) -> None:
    judged = rating()
    server.answer = lambda asked: judged(asked) if asked.model == "judge" else said(asked)
    server.hold(25)
    judge = f"local-chat-completions:{server.chat_args('judge')}"
    write_judged(tmp_path / "judged", [judge], n=40, rotation="single")
    models = [f"--arm={name}=local-chat-completions:{server.chat_args(name)}" for name in ("m", "n")]
    command = [
        *(sys.executable, "-c", EVALBUDGET, "lm-eval", "audit", "b.sqlite", *models, "--tasks", "essays"),
        *("--include_path", "judged", "--apply_chat_template", "--score_range", "1.0..5.0"),
    ]
    options: dict[str, Any] = {"host": "lm-eval", "cwd": tmp_path, "env": {**os.environ, **environment()}}
    with warm.Popen(command, **options) as process:
        while not server.held and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    server.release()
    done = warm.run(command, **options)
    assert done.returncode == 3, done.stdout + done.stderr
    bought = Counter((one.model, one.prompt) for one in server.served)
    assert sum(n - 1 for n in bought.values()) <= 2  # what was under way at the kill
    with AuditStore.open(tmp_path / "b.sqlite") as store:
        known = json.dumps(store.design.judge)
        assert "judges' judges" in known
        assert "judge" in known
        assert store.draws.tasks()[0].prompt.startswith("Write about topic")


def test_what_a_judge_said_in_vain_it_is_not_made_to_say_again(server: Server, tmp_path: Path) -> None:
    """Of what is judged once more, whether or not the command was stopped before."""
    judged = rating()
    server.answer = lambda asked: (
        said(asked) if asked.model != "judge" else "Hm." if asked.luck < 0.4 else judged(asked)
    )
    judge = f"local-chat-completions:{server.chat_args('judge')}"
    write_judged(tmp_path / "judged", [judge], n=12, rotation="single", gen_kwargs={"temperature": 1})
    models = [f"--arm={name}=local-chat-completions:{server.chat_args(name)}" for name in ("m", "n")]
    given = ["--tasks", "essays", "--include_path", "judged", "--apply_chat_template"]
    command = ["lm-eval", "audit", "c.sqlite", *models, *given, "--score_range", "1.0..5.0"]
    with broken_off(AuditArm, "_keep", at=15):
        assert CliRunner().invoke(cli, command).exit_code not in (0, 3)
    assert CliRunner().invoke(cli, command).exit_code == 3
    asked = [(one.prompt, one.body["seed"]) for one in server.served if one.model == "judge"]
    assert len(set(asked)) == len(asked) > len({prompt for prompt, _ in asked}) == 24
    assert max(Counter(prompt for prompt, _ in asked).values()) == 2


def said(asked: Asked) -> str:
    return f"An essay by {asked.model}, {asked.luck:.3f}."
