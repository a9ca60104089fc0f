"""What was paid for is never lost, whatever ends a run."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lm_eval.evaluator
import pytest
from tests.claims import variant
from tests.host_lm_eval.worlds import (
    EVALBUDGET,
    CoinModel,
    bought_in,
    broken_off,
    chat_model,
    environment,
    simple_evaluate,
    write_task,
)

import evalbudget
import warm
from evalbudget.errors import JournalError
from evalbudget.run import UNANSWERED
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.run.kept import Kept
from loopback import Server

STOCK = lm_eval.evaluator.evaluate
ROOT = Path(__file__).parents[2]


def _start(folder: Path, log: Path, seconds: float) -> warm.Popen:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return warm.Popen(
        [sys.executable, "-m", "tests.host_lm_eval.killed", str(folder), str(log), str(seconds), "60"],
        host="lm-eval",
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _calls(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def _when(log: Path, calls: int, process: warm.Popen) -> None:
    deadline = time.monotonic() + 120
    while _calls(log) < calls:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_and_interrupted_runs_go_on_to_exactly_the_budget(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=12)
    log = tmp_path / "calls.jsonl"

    process = _start(folder, log, 0.04)
    _when(log, 27, process)  # in the middle of a round
    process.send_signal(signal.SIGKILL)
    process.communicate()
    killed_at = _calls(log)
    assert 27 <= killed_at < 60

    process = _start(folder, log, 0.04)
    _when(log, killed_at + 6, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "host state restored: True" in out
    assert "run the same command" in err
    (journal,) = Path("evalbudget-journals").glob("*.db")
    # every answer the model gave is in the file, but for one that was being given or written
    assert bought_in(journal).spent >= _calls(log) - 2

    process = _start(folder, log, 0.0)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told = json.loads(out.splitlines()[-1])
    assert told["evalbudget"]["spent"] == told["evalbudget"]["readings"] == told["samples"] == 60
    assert _calls(log) - 60 <= 2
    assert told["evalbudget"]["journal"] == str(journal)

    # scores of this model depend on the document alone, so the same was bought as without interruption
    with budgeted(sampler="eb-bernstein", budget=60, journal="whole.db"):
        whole = simple_evaluate(folder, CoinModel(noise=False), rounds=10)
    assert bought_in("whole.db").requests == bought_in(journal).requests
    for part in ("results", "evalbudget"):
        ours, theirs = whole[part], told[part]
        for name in ("journal", "rounds"):
            ours.pop(name, None)
            theirs.pop(name, None)
    for found in (whole, told):
        del found["evalbudget"]["summary"]["model"], found["evalbudget"]["summary"]["text"]  # they name it
    assert json.loads(json.dumps(whole["evalbudget"], default=str)) == told["evalbudget"]
    assert whole["results"] == told["results"]


def test_a_run_in_phases_goes_on_in_its_phase_also_with_a_larger_budget(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=20)
    with (
        broken_off(Kept, "hear", at=170),  # in the fourth phase, which would have ended with the budget
        pytest.raises(KeyboardInterrupt),
        budgeted(budget=300, journal="j.db"),
    ):
        simple_evaluate(folder, CoinModel(seed=1))
    begun = bought_in("j.db").requests
    assert {request.phase for request in begun} == {0, 1, 2, 3}
    with budgeted(budget=700, journal="j.db"):
        block = simple_evaluate(folder, CoinModel(seed=2))["evalbudget"]
    asked = bought_in("j.db").requests
    assert asked[: len(begun)] == begun
    assert len({request.cell for request in asked}) == len(asked) == block["readings"] == 700
    assert block["phase_sizes"] == [2, 2, 4, 7, 15, 5]  # what was planned stands


def _model(server: Server, **more: Any) -> Any:
    return chat_model(server, max_retries=1, **more)


CHAT = {"apply_chat_template": True, "gen_kwargs": {"seed": None}}
SMALLER: dict[str, Any] = {"sampler": "uniform", "journal": "j.db"}


@pytest.mark.parametrize("concurrent", [1, 4])
def test_a_round_that_breaks_off_keeps_what_was_answered(
    tmp_path: Path, server: Server, concurrent: int
) -> None:
    folder = write_task(tmp_path / "tasks", n=8)
    server.fail(500, after=21, times=math.inf)
    with pytest.raises(Exception, match=r"500|RetryError"), budgeted(budget=60, **SMALLER):
        simple_evaluate(folder, _model(server, num_concurrent=concurrent), rounds=24, **CHAT)
    assert lm_eval.evaluator.evaluate is STOCK
    answered = sum(one.status == 200 for one in server.served)
    assert answered >= 21
    before = bought_in("j.db").spent
    assert before == answered  # what was on its way when one failed was waited for; errors cost nothing

    server._failures.clear()
    with budgeted(budget=60, **SMALLER):
        results = simple_evaluate(folder, _model(server, num_concurrent=concurrent), rounds=24, **CHAT)
    assert sum(one.status == 200 for one in server.served) == answered + 60 - before
    block = results["evalbudget"]
    assert (block["spent"], block["closed_items"]) == (60, [])
    assert block["readings"] == len(results["samples"]["numbers"]) == 60 - block["failed"]


@pytest.mark.parametrize(
    ("concurrent", "number", "code"),
    [
        variant(1, signal.SIGKILL, -signal.SIGKILL),
        (4, signal.SIGKILL, -signal.SIGKILL),
        variant(1, signal.SIGTERM, 130),
        (4, signal.SIGINT, 130),
    ],
)
def test_a_command_that_was_killed_goes_on_to_its_budget(
    tmp_path: Path, server: Server, concurrent: int, number: int, code: int
) -> None:
    folder = write_task(tmp_path / "tasks", n=6)
    server.latency = 0.02
    server.hold(10)
    model = server.chat_args("m", max_retries=1, num_concurrent=concurrent)
    flags = [
        *("lm-eval", "run", "--model", "local-chat-completions", "--model_args", model, "--tasks", "numbers"),
        *("--include_path", str(folder), "--apply_chat_template", "--output_path", "out", "--budget", "36"),
        *("--gen_kwargs", "temperature=1.0,seed=None", "--sampler", "uniform", "--log_samples"),
    ]
    command = [sys.executable, "-c", EVALBUDGET, *flags]
    with (tmp_path / "log").open("w") as log:
        files: dict[str, Any] = {"env": environment(), "stdout": log, "stderr": log}
        fresh = number == signal.SIGINT
        process = (
            subprocess.Popen(command, **files) if fresh else warm.Popen(command, host="lm-eval", **files)
        )
        deadline = time.monotonic() + 120
        while server.held < concurrent:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        server.release()
        assert process.wait() == code, (tmp_path / "log").read_text()
    said = (tmp_path / "log").read_text()
    waits = number != signal.SIGKILL
    assert ("are waited for" in said) == waits or concurrent == 1  # between two calls nothing is on its way
    assert "Traceback" not in said
    done = warm.run(command, host="lm-eval", env=environment())
    assert done.returncode == 0, done.stderr
    (path,) = Path("out").glob("*/results_*.json")
    block = json.loads(path.read_text())["evalbudget"]
    answered = sum(one.status == 200 for one in server.served)
    assert block["spent"] == 36
    assert block["failed"] == sum(block["failures"].values()) <= (0 if waits else concurrent)
    assert set(block["failures"]) <= {UNANSWERED}
    assert "find out why" not in block["summary"]["text"]
    assert answered <= 36  # what was under way counts as spent
    assert block["readings"] == 36 - block["failed"] <= answered
    assert len(list(Path("out/evalbudget-journals").glob("*.db"))) == 1
    rows, (row,) = json.loads(path.read_text())["results"]["numbers"], evalbudget.read("out").estimate().rows
    told = [rows[f"exact_match{ending},none"] for ending in ("", "_lower", "_upper")]
    assert [row.estimate, row.low, row.high] == pytest.approx(told, abs=1e-12)


def test_a_smaller_budget_holds_for_what_was_asked_before(tmp_path: Path, server: Server) -> None:
    """Of what an earlier run asked and did not get, only what the new budget pays is sent."""
    folder = write_task(tmp_path / "tasks", n=8)
    server.fail(500, after=18, times=math.inf)
    with pytest.raises(Exception, match=r"500|RetryError"), budgeted(budget=60, **SMALLER):
        simple_evaluate(folder, _model(server), rounds=24, **CHAT)
    journal = bought_in("j.db")
    assert journal.spent == 18
    assert len(journal.pending) > 2
    server._failures.clear()
    with budgeted(budget=20, **SMALLER):
        block = simple_evaluate(folder, _model(server), rounds=24, **CHAT)["evalbudget"]
    assert sum(one.status == 200 for one in server.served) <= 20 == block["spent"]
    with budgeted(budget=60, **SMALLER):  # and the others are not lost
        block = simple_evaluate(folder, _model(server), rounds=24, **CHAT)["evalbudget"]
    assert sum(one.status == 200 for one in server.served) <= 60 == block["spent"]
    journal = bought_in("j.db")
    assert journal.pending == ()
    assert len({reading.request.cell for reading in journal.readings}) == 60


def test_a_round_that_one_document_breaks_off_loses_no_other_answer(tmp_path: Path, server: Server) -> None:
    folder = write_task(tmp_path / "tasks", n=24)
    server.answer = lambda asked: time.sleep(0.05) or "7"
    server.fail(400, times=math.inf, when=lambda body: "say 15 " in body["messages"][-1]["content"])
    with budgeted(sampler="uniform", budget=96):
        results = simple_evaluate(folder, _model(server, num_concurrent=8), rounds=24, **CHAT)
    block = results["evalbudget"]
    answered = sum(one.status == 200 for one in server.served)
    assert block["spent"] == 96
    assert answered == block["readings"] == 96 - block["failed"]  # none was lost on its way
    # one round broke off: from then on the document was asked by itself, and only it was given up
    assert block["closed_items"] == ["numbers:15"]
    assert sum(one.status == 400 for one in server.served) == 1 + block["failed"] <= 5


def test_calls_that_an_interrupt_cut_off_count(tmp_path: Path, server: Server) -> None:
    folder = write_task(tmp_path / "tasks", n=24)
    arguments: dict[str, Any] = {"sampler": "uniform", "budget": 72, "journal": "j.db"}
    server.answer = lambda asked: time.sleep(0.05) or "7"
    with broken_off(Kept, "hear", at=10), pytest.raises(KeyboardInterrupt), budgeted(**arguments):
        simple_evaluate(folder, _model(server, num_concurrent=8), **CHAT)
    assert lm_eval.evaluator.evaluate is STOCK
    with budgeted(**arguments):
        block = simple_evaluate(folder, _model(server, num_concurrent=8), **CHAT)["evalbudget"]
    assert block["spent"] == 72
    assert sum(one.status == 200 for one in server.served) <= 72, (
        block["failures"],
        [s.status for s in server.served],
    )
    (reason,) = block["failures"]
    assert reason == UNANSWERED
    assert 0 < block["failures"][reason] <= 9  # eight at once, and one whose answer was not kept
    assert block["closed_items"] == []


def test_a_server_that_is_not_there_costs_nothing(tmp_path: Path, server: Server) -> None:
    folder = write_task(tmp_path / "tasks", n=20)
    model = _model(server, num_concurrent=8)
    model.base_url = "http://127.0.0.1:9/v1/chat/completions"
    with (
        pytest.raises(Exception, match="Cannot connect"),
        budgeted(sampler="uniform", budget=60, journal="j.db"),
    ):
        simple_evaluate(folder, model, **CHAT)
    assert bought_in("j.db").spent == 0


def test_a_document_that_cannot_be_answered_costs_its_tries_and_no_more(
    tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_task(tmp_path / "tasks", n=8)
    server.fail(500, times=math.inf, when=lambda body: "say 5 " in body["messages"][-1]["content"])
    with budgeted(sampler="uniform", budget=40):
        results = simple_evaluate(folder, _model(server), rounds=8, **CHAT)
    block = results["evalbudget"]
    assert block["closed_items"] == ["numbers:5"]
    assert "1 of 8 documents were given up after repeated failures (numbers:5)" in caplog.text
    assert (block["spent"], block["failed"], block["readings"]) == (40, 3, 37)
    assert 5 not in block["tasks"]["numbers"]["doc_id"]
    assert sum(one.status == 200 for one in server.served) == 37


def test_journals_of_other_runs_are_refused(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=6)
    with budgeted(budget=30, journal="j.db"):
        simple_evaluate(folder, CoinModel())
    for arguments, host, message in [
        ({"seed": 1}, {}, "seed = 0 there, 1 here"),
        ({"sampler": "uniform"}, {}, r"sampler = 'auto' there, 'uniform' here.*choose another --journal"),
        ({}, {"limit": 5}, "prompts = "),
        ({}, {"num_fewshot": 1, "system_instruction": "Be brief."}, "prompts = "),
    ]:
        with (
            pytest.raises(JournalError, match=message),
            budgeted(**{"budget": 30, "journal": "j.db", **arguments}),
        ):
            simple_evaluate(folder, CoinModel(), **host)
    for attribute, value in {"peft": "adapter", "model_args": {"model": "m", "seed": 1}}.items():
        other = CoinModel()
        setattr(other, attribute, value)
        with pytest.raises(JournalError, match="model = "), budgeted(budget=30, journal="j.db"):
            simple_evaluate(folder, other)


def test_of_documents_that_take_several_calls_a_kill_costs_what_was_under_way(
    tmp_path: Path, server: Server
) -> None:
    folder = write_task(tmp_path / "tasks", n=3, repeats=4)
    server.hold(14)
    model = server.chat_args("m", max_retries=1, num_concurrent=3)
    command = [
        *(sys.executable, "-c", EVALBUDGET, "lm-eval", "run", "--model", "local-chat-completions"),
        *("--model_args", model, "--tasks", "numbers", "--include_path", str(folder), "--budget", "36"),
        *("--apply_chat_template", "--output_path", "out", "--gen_kwargs", "temperature=1.0,seed=None"),
        *("--sampler", "uniform"),
    ]
    process = warm.Popen(command, host="lm-eval", env=environment(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while server.held < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    server.release()
    process.wait()
    done = warm.run(command, host="lm-eval", env=environment())
    assert done.returncode == 0, done.stderr
    (path,) = Path("out").glob("*/results_*.json")
    block = json.loads(path.read_text())["evalbudget"]
    assert block["failures"] == {UNANSWERED: 3}
    assert 33 <= block["spent"] <= 36
    assert block["readings"] == 8  # four calls each: of the 33 that are left one is too few
    assert sum(one.status == 200 for one in server.served) <= 36
