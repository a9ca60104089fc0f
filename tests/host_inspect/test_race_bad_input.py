"""What a race refuses, and whether the message says the remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate
from tests.host_inspect.race_tasks import attempts, board, model, quiz, run, three
from tests.host_inspect.worlds import scoring

from evalbudget.audits.store import AuditSettings
from evalbudget.cli.main import cli
from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget_inspect import leaderboard, race
from evalbudget_inspect.audits.registry_entry import prepared
from evalbudget_inspect.host.entries import MOST_ARMS
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.host.tasks import arguments_of_task
from evalbudget_inspect.races.command import run_race
from evalbudget_inspect.races.registry_entry import check_arms, parse_arm


def _refused(raced: Any, models: Any, log_dir: Path, *parts: str, **options: Any) -> None:
    """Every task of the race ends with the same refusal, which names what is wrong and what to do."""
    logs = run(raced, models, log_dir, **options)
    assert {log.status for log in logs} == {"error"}
    refusals = {str(ex) for ex in take_refusals()}
    assert len(refusals) == 1
    for part in parts:
        assert part in next(iter(refusals))


def _race(**options: Any) -> Task:
    return race(quiz(), **{"budget": 60, "sampler": "ucb-e", "batch": 4, **options})


SMALL = {"batch": 30, "budget": 89}
BELOW = ("minimum of 90", "--budget", "--batch")


@pytest.mark.parametrize(
    ("options", "skills", "host", "parts"),
    [
        pytest.param({}, "a", {}, ("needs two models", "simulated/a", "--model"), id="one model"),
        pytest.param({}, "aa", {"max_tasks": 2}, ("a is in this race twice", "--arm"), id="the same twice"),
        pytest.param({}, "abc", {"max_tasks": 2}, ("--max-tasks 3",), id="too few tasks at once"),
        pytest.param(SMALL, "abc", {}, BELOW, id="a budget below one batch each"),
        pytest.param(SMALL | {"sampler": "uniform"}, "abc", {}, BELOW, id="of uniform too"),
        pytest.param({"batch": 20}, "abc", {"retry_on_error": 2}, ("minimum of 62",), id="retries raise it"),
        pytest.param({}, "abc", {"epochs": 2}, ("--epochs is 2", "--epochs 1"), id="epochs"),
        pytest.param({}, "abc", {"score": False}, ("--no-score",), id="without scores"),
        pytest.param(
            {}, "abc", {"limit": 8, "sample_shuffle": True}, ("--sample-shuffle 42",), id="shuffled, no seed"
        ),
    ],
)
def test_what_cannot_race_is_refused(
    options: dict[str, Any], skills: str, host: dict[str, Any], parts: tuple[str, ...], tmp_path: Path
) -> None:
    models = [model(name, 0.5 + 0.1 * place) for place, name in enumerate(skills)]
    _refused(_race(**options), models, tmp_path, *parts, **host)


def test_models_whose_items_differ(tmp_path: Path) -> None:
    @task
    def own_items() -> Task:
        extra = [Sample(id="only-a", input="?", target="C")] if "a" in str(get_model())[-1:] else []
        samples = [Sample(id=f"item-{i}", input="?", target="C") for i in range(8)]
        right = match(location="exact")
        base = Task(dataset=MemoryDataset(samples + extra), solver=generate(), scorer=right, name="own")
        return race(base, budget=20, sampler="uniform")

    _refused(own_items, three(), tmp_path, "only-a", "same ids")


def test_two_races_of_the_same_name(tmp_path: Path) -> None:
    tasks = [_race(), _race(budget=50)]
    _refused(tasks, three(), tmp_path, "two different races", "different names", max_tasks=6)


def test_scores_outside_of_the_range(tmp_path: Path) -> None:
    rating = scoring("rating", lambda state: 7)
    raced = race(quiz(scorer=rating()), budget=60, sampler="ucb-e", batch=4)
    _refused(raced, three(), tmp_path, "'rating' gave 7", "--score-range")


@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        ({"budget": None}, BudgetError, "needs a budget"),
        ({"budget": "$0"}, BudgetError, "must be above zero"),
        ({"risk": 0.1}, BudgetError, "--risk is for a budget in money or tokens"),
        ({"sampler": "eb-bernstein"}, UnknownNameError, "sampler of models"),
        ({"sampler": "ucbe"}, UnknownNameError, "'ucb-e'"),
        ({"bach": 3}, UnknownNameError, "'batch'"),
        ({"batch": 0}, InvalidInputError, "1 item or more"),
        ({"sampler": "lucb", "delta": 2.0}, InvalidInputError, "delta"),
        ({"history": "nowhere.npz"}, InvalidInputError, "nowhere.npz does not exist"),
        ({"score": "other"}, UnknownNameError, "match"),
        ({"score_range": "3..1"}, InvalidInputError, "1..10"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], error: type[Exception], part: str) -> None:
    with pytest.raises(error, match=re.escape(part)):
        _race(**options)


def test_a_process_that_sees_only_some_of_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_EVAL_SET_SELECTION", "selection.json")
    with pytest.raises(InvalidInputError, match=r"spread over several .*Have them meet in a store"):
        _race()
    with pytest.raises(InvalidInputError, match=r"spread over several .*an audit goes on in batches"):
        prepared(quiz(), AuditSettings.of(store="x.sqlite", models=["a", "b"]), {})


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="nothing to race"):
        race({}, budget=10)
    same = quiz()
    with pytest.raises(InvalidInputError, match="under two names"):
        race({"a": same, "b": same}, budget=10)
    with pytest.raises(InvalidInputError, match="raced twice"):
        race(_race(), budget=10)
    with pytest.raises(InvalidInputError, match="given twice"):
        check_arms(["x=1", "x=1"])
    with pytest.raises(InvalidInputError, match="NAME=VALUE"):
        check_arms(["x"])
    with pytest.raises(InvalidInputError, match=str(MOST_ARMS)):
        check_arms([f"x={i}" for i in range(MOST_ARMS + 1)])
    assert parse_arm("prompt=a.txt,n-shots=3") == (
        "prompt=a.txt,n-shots=3",
        {"prompt": "a.txt", "n_shots": 3},
    )


@pytest.mark.parametrize(
    ("args", "arms", "part"),
    [
        (("--model", "a"), (), "there is only a"),
        ((), (), "there is none"),
        (("--model", "a,b,a"), (), "lists a twice"),
        (("--model", "a,b,c", "--max-tasks", "2"), (), "--max-tasks 3"),
        (("--model", "a", "--max-tasks", "2"), ("x=1", "x=2", "x=3"), "--max-tasks 3"),
        (("--model", "a"), ("x=1",), "two models or settings"),
    ],
)
def test_flags_are_checked_before_inspect_starts(
    args: Any, arms: Any, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(arguments: list[str]) -> int:
        raise AssertionError(arguments)

    monkeypatch.setattr("evalbudget_inspect.races.command.run_ours", never)
    file = tmp_path / "quiz.py"
    file.write_text("from inspect_ai import task\n")
    with pytest.raises(InvalidInputError) as caught:
        run_race("eval", [str(file), *args], {"budget": "60"}, arms)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        (
            "promt=terse",
            "--arm promt=terse: the task takes no argument 'promt'; it takes {0}. Did you mean '{1}'?",
        ),
        ("prompt=terse,xyz=1", "--arm prompt=terse,xyz=1: the task takes no argument 'xyz'; it takes {0}."),
    ],
)
def test_a_setting_that_the_task_does_not_take(arm: str, message: str, tmp_path: Path) -> None:
    quiz = str(Path(__file__).parents[2] / "examples" / "race_quiz.py")
    said = message.format("questions, prompt", "prompt")
    flags = ["--arm", "prompt=steps", "--arm", arm, "--budget", "9", "--log-dir", str(tmp_path / "logs")]
    refused = CliRunner().invoke(cli, ["inspect", "race", quiz, "--model", "simulated/elm", *flags])
    assert refused.exit_code == 2
    assert said in refused.output
    assert isinstance(refused.exception, SystemExit)
    with pytest.raises(PrerequisiteError) as caught:
        run(
            ["evalbudget_inspect/race_arm_1", "evalbudget_inspect/race_arm_2"],
            "simulated/elm",
            tmp_path / "logs",
            task_args={"task": quiz, "budget": 9, "evalbudget.arms": ["prompt=steps", arm]},
        )
    assert said in str(caught.value.message)
    assert not list(tmp_path.glob("logs/*"))


def test_any_setting_of_a_task_that_takes_any() -> None:
    assert arguments_of_task("evalbudget_inspect/budgeted") is None
    assert arguments_of_task("no_such_package/task") is None


def test_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(4)
    items = [f"item-{i}" for i in range(30)]
    ease = rng.normal(0, 2, 30)
    chance = 1 / (1 + np.exp(-rng.normal(0, 1, 12)[:, None] - ease))
    table = (rng.random(chance.shape) < chance).astype(np.float32)[:, :, None, None]
    names = {"models": [f"old-{i}" for i in range(12)], "raters": ["match"]}
    np.savez(tmp_path / "known.npz", scores=table, items=np.array(items), **names)
    np.savez(tmp_path / "other.npz", scores=table, items=np.array([f"x{i}" for i in range(30)]), **names)
    notes = []
    for file in ("known.npz", "other.npz"):
        raced = race(quiz(), budget=70, history=str(tmp_path / file), batch=4)
        logs = run(raced, three(), tmp_path / file.partition(".")[0])
        assert attempts(logs) == board(logs).spent <= 70
        notes.append(board(logs).notes)
    assert notes[0][0].startswith("history has 30 of the 30 items, of 12 models")
    assert notes[1][0].startswith("history ignored:")
    assert "0 of the 30 items" in notes[1][0]


def test_history_from_logs_is_of_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "logs"
    earlier = [model(f"old-{i}", 0.2 + 0.1 * i) for i in range(6)]
    run(quiz(8), earlier, folder)
    raced = race(quiz(8), budget=20, history=str(folder), batch=4)
    logs = run(raced, three(), folder)  # its own logs stand in the same folder, half written
    assert "of 6 models" in board(logs).notes[0]
    nothing = run(race(quiz(8, name="new"), budget=20, history=str(folder), batch=4), three(), folder)
    assert board(nothing).notes[0].startswith("history ignored:")


def test_logs_that_are_no_race() -> None:
    with pytest.raises(EvalbudgetError, match="none of these logs"):
        leaderboard([])
