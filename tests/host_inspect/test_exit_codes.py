"""How commands on inspect end without what they were asked for, and what is on standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import read_eval_log
from tests.claims import variant
from tests.host_inspect.worlds import UNWATCHED

from evalbudget.cli.main import cli

QUIZ = str(Path(__file__).parents[2] / "examples" / "race_quiz.py")
MODELS = ("--model", "simulated/alder,simulated/elm", "-M", "bernoulli=true")
TASKS = """
from anyio import sleep
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, metric, score_reducer, scorer
from inspect_ai.solver import generate, solver

@score_reducer
def only_one():
    def reduce(scores):
        if len(scores) > 1:
            raise ValueError("one score [only]")
        return scores[0]
    return reduce

@scorer(metrics=[accuracy()])
def coin():
    async def score(state, target):
        return Score(value=float(state.epoch % 2))
    return score

@solver
def nothing():
    async def solve(state, generate):
        return state
    return solve

@solver
def fails():
    async def solve(state, generate):
        if state.sample_id % 2:
            raise RuntimeError("sandbox timeout")
        return state
    return solve

def made(**options):
    given = {"solver": nothing(), "scorer": coin(), **options}
    return Task([Sample(input="?", id=i) for i in range(8)], **given)

@task
def once():
    return made(epochs=Epochs(1, only_one()))

@metric
def breaks():
    def of(scores):
        if len(scores) > 7:
            raise ValueError("no [number]")
        return 0.0
    return of

@scorer(metrics=[accuracy(), breaks()])
def odd():
    async def score(state, target):
        return Score(value=float(state.epoch % 2))
    return score

@task
def broken():
    return made(scorer=odd(), name="bro\\nken")

@task
def plain():
    return made()

@task
def asks():
    return made(solver=generate())

@task
def failing():
    return made(solver=fails())

@solver
def stumbles():
    async def solve(state, generate):
        await sleep({3: 0.2}.get(state.sample_id, 0.0 if state.sample_id < 3 else 30.0))
        if state.sample_id == 3:
            raise RuntimeError("sandbox timeout")
        return state
    return solve

@task
def stumbling():
    return made(solver=stumbles())
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.py").write_text(TASKS)
    return "tasks.py"


def run(*words: str) -> Result:
    return CliRunner(env=UNWATCHED).invoke(cli, ["inspect", *words, "--log-dir", "logs"])


def test_a_run_that_inspect_ends_in_an_error_is_not_done(file: str) -> None:
    done = run("eval", f"{file}@broken", "--model", "mockllm/model", "--budget", "24", "--display", "none")
    assert done.exit_code == 4
    assert r"bro\nken with mockllm/model ended with status error: ValueError('no [number]')" in done.stderr
    assert done.stdout == ""


def test_a_reducer_that_fails_takes_its_own_rows_only(file: str) -> None:
    done = run("eval", f"{file}@once", "--model", "mockllm/model", "--budget", "24", "--display", "none")
    assert done.exit_code == 0


def test_samples_that_failed_too_often_for_fail_on_error_are_said(file: str) -> None:
    flags = ("--model", "mockllm/model", "--budget", "8", "--fail-on-error", "0.1", "--display", "none")
    done = run("eval", f"{file}@failing", *flags)
    assert done.exit_code == 4
    assert "failing with mockllm/model ended with status error: 4 of 8 samples ended in" in done.stderr
    assert run("eval", f"{file}@failing", *flags[:4], "--no-fail-on-error", *flags[6:]).exit_code == 0


def test_what_was_under_way_when_an_error_ended_the_run_is_spent(file: str) -> None:
    flags = ("--model", "mockllm/model", "--budget", "24", "--display", "plain")
    done = run("eval", f"{file}@stumbling", *flags)
    assert done.exit_code == 4
    (log,) = map(read_eval_log, map(str, Path("logs").glob("*.eval")))
    begun, scored = len(log.samples or []), sum(bool(sample.scores) for sample in log.samples or [])
    assert begun > scored + 4
    text = " ".join(done.stdout.split())
    assert f"Spent {begun} of 24 scores Stopped by an error; {begun - scored - 1} under way cut off" in text
    assert f"Readings {scored} of " in text
    assert "find out why first (above all: RuntimeError)" in text  # not what that cut off
    told = CliRunner().invoke(cli, ["report", "logs", "--json", "-"])
    (spent,) = json.loads(told.stdout)["spent"]["models"]
    assert (spent["counted"] + spent["not_counted"], spent["failed"]) == (scored, begun - scored)


def test_what_the_log_of_a_broken_run_has_is_in_its_summary(file: str) -> None:
    done = run("eval", f"{file}@broken", "--model", "mockllm/model", "--budget", "24", "--display", "plain")
    (log,) = map(read_eval_log, map(str, Path("logs").glob("*.eval")))
    scored = sum(bool(sample.scores) for sample in log.samples or [])
    assert f"Readings {scored} of 8 items" in " ".join(done.stdout.split())


def test_no_model_is_not_done_and_an_unknown_one_is_refused(file: str) -> None:
    assert run("eval", f"{file}@asks", "--budget", "8", "--display", "none").exit_code == 4
    for command in (("eval", "--model", "nobody/a"), ("race", "--model", "nobody/a,nobody/b")):
        done = run(command[0], f"{file}@asks", *command[1:], "--budget", "8")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "nobody" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_goal_that_the_budget_did_not_do_for_is_undecided() -> None:
    race = ("race", QUIZ, *MODELS, "--budget", "12", "--json", "-")
    assert run(*race, "--until-proved").exit_code == 3
    known = ("eval", QUIZ, "--model", "simulated/elm", *MODELS[2:], "--limit", "3", "--budget", "9")
    known += ("--display", "none", "--score-range", "0..1")
    assert run(*known).exit_code == 0
    assert run(*known, "--until", "item±0.01").exit_code == 3


@pytest.mark.parametrize("display", [variant(()), ("--display", "rich")])
def test_json_on_standard_output_is_json_alone(display: tuple[str, ...]) -> None:
    race = run("race", QUIZ, *MODELS, "--budget", "12", "--json", "-", *display)
    assert (race.exit_code, json.loads(race.stdout)["spent"]) == (0, 12)
    gate = ("gate", QUIZ, "--model", "simulated/elm", *MODELS[2:], "--baseline-model", "simulated/alder")
    gated = run(*gate, "--margin", "0.5", "--budget", "20", "--json", "-", *display)
    assert json.loads(gated.stdout)["exit_code"] == gated.exit_code
    evaluated = run("eval", QUIZ, "--budget", "30", "--json", "-", *display)
    assert (evaluated.exit_code, evaluated.stdout) == (2, "")
    assert "takes no file; what a run found is in its log: evalbudget report LOG --json -" in evaluated.stderr


def test_a_refusal_in_the_run_is_printed_once(file: str) -> None:
    (Path(file)).write_text(TASKS.replace("float(state.epoch % 2)", "{'a': 1.0, 'b': 0.0}"))
    done = run("eval", f"{file}@plain", "--model", "mockllm/model", "--budget", "8")
    assert done.exit_code == 2
    assert (done.stdout.count("several values"), done.stderr.count("several values")) == (0, 1)
    assert "Traceback" not in done.output
