"""What cannot be done is refused with the remedy, before anything is spent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import Task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import get_model
from inspect_ai.scorer import Scorer, mean
from inspect_ai.util import EarlyStopping
from tests.claims import variant
from tests.host_inspect.worlds import scoring

from evalbudget.cli.main import cli
from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget_inspect import budgeted, race
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.repeats.config import Config

WARMUP = Config.of(budget=99).fixed_repeats


words = scoring("words", lambda state: "quite good")
undeclared_values = scoring("undeclared_values", lambda state: {"a": 1})
two_values = scoring("two_values", lambda state: {"a": 1, "b": 0}, {"a": [mean()], "b": [mean()]})
any_values = scoring("any_values", lambda state: {"a": 1, "b": 0}, {"*": [mean()]})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budget": 0}, BudgetError, "above zero"),
        ({"budget": "-5"}, BudgetError, "above zero"),
        ({"budget": "0x"}, BudgetError, "above zero"),
        ({"budget": "many"}, BudgetError, "'many' is not an amount; write a number of scores (2000)"),
        ({"budget": "12.5"}, BudgetError, "whole number"),
        ({"budget": "$-20"}, BudgetError, "must be above zero"),
        ({"budget": None}, BudgetError, "no budget given"),
        ({"budget": 99, "sampler": "eb-bernstien"}, UnknownNameError, "Did you mean 'eb-bernstein'"),
        ({"budget": 99, "objective": "worst"}, EvalbudgetError, "Did you mean 'worst-item'"),
        ({"budget": 99, "repeat": "judges"}, UnknownNameError, "Did you mean 'judge'"),
        ({"budget": 99, "score": "judge_ratings"}, UnknownNameError, "Did you mean 'judge_rating'"),
        ({"budget": 99, "objectiv": "mean"}, UnknownNameError, "Did you mean 'objective'"),
        ({"budget": 99, "score_range": "10..1"}, InvalidInputError, "for example 1..10"),
        ({"budget": 99, "score_range": "low"}, InvalidInputError, "for example 1..10"),
    ],
)
def test_arguments(
    make_task: Any, options: dict[str, Any], error: type[EvalbudgetError], message: str
) -> None:
    with pytest.raises(error) as caught:
        budgeted(make_task(), **options)
    assert message in str(caught.value)


def test_tasks_that_cannot_be_budgeted(make_task: Any) -> None:
    with pytest.raises(InvalidInputError, match="has no scorer, so there are no scores"):
        budgeted(Task(dataset=[Sample(input="x")], name="bare"), budget=10)
    with pytest.raises(InvalidInputError, match="remove early_stopping from the task"):
        budgeted(make_task(early_stopping=_Stopper()), budget=10)
    with pytest.raises(InvalidInputError, match="it is budgeted twice"):
        budgeted(budgeted(make_task(), budget=50), budget=50)


class _Stopper(EarlyStopping):
    async def start_task(self, task: Any, samples: Any, epochs: int) -> str:
        return "stopper"

    async def schedule_sample(self, id: Any, epoch: int) -> None:  # noqa: A002
        return None

    async def complete_sample(self, id: Any, epoch: int, scores: Any) -> None:  # noqa: A002
        return None

    async def complete_task(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("budget", "host", "minimum"),
    [
        (8 * WARMUP - 1, {}, 8 * WARMUP),
        (63, {"epochs": 8}, 64),
        (63, {"epochs": 4, "retry_on_error": 1}, 64),
        ("1x", {}, 8 * WARMUP),
    ],
)
@pytest.mark.parametrize("tolerant", [True, variant(False)])
def test_a_budget_below_the_warmup_spends_nothing(
    make_task: Any, run: Any, budget: Any, host: dict[str, Any], minimum: int, tolerant: bool
) -> None:
    log = run(budgeted(make_task(), budget=budget, sampler="auto"), fail_on_error=not tolerant, **host)
    assert log.status == "error"
    assert log.error is not None
    assert f"Raise --budget to {minimum} or more" in log.error.message
    assert not log.stats.model_usage
    assert f"Raise --budget to {minimum}" in str(take_refusals()[0])


@pytest.mark.parametrize(
    ("judge", "score", "message"),
    [
        (words(), None, "'quite good', which is not a number and none of C, I, P, N"),
        (undeclared_values(), None, "name the one to allocate by with --score: undeclared_values.a"),
    ],
)
def test_scores_that_are_no_numbers(
    make_task: Any, run: Any, judge: Scorer, score: str | None, message: str
) -> None:
    task = make_task(scorer=judge) if judge is not None else None
    log = run(budgeted(task, budget=50, score=score), max_samples=1)
    assert log.status == "error"
    assert message in str(take_refusals()[0])
    assert sum(u.total_tokens for u in log.stats.model_usage.values()) <= 3 * 110  # soon


@pytest.mark.parametrize(
    ("judge", "score", "message"),
    [
        (two_values(), None, "several values; name the one to go by: --score two_values.a or --score two_"),
        (two_values(), "two_values.c", "'c' is none of them"),
        (any_values(), None, "--score any_values.KEY"),
    ],
)
@pytest.mark.parametrize("wrapped", [budgeted, race])
def test_scores_that_are_declared_to_be_several(
    make_task: Any, wrapped: Any, judge: Scorer, score: str | None, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        wrapped(make_task(scorer=judge), budget=50, score=score)


def test_duplicate_ids(make_task: Any, run: Any) -> None:
    task = make_task()
    samples = [Sample(id="same", input="x"), Sample(id="same", input="y")]
    task.dataset = MemoryDataset(samples)
    with pytest.raises((PrerequisiteError, InvalidInputError, ValueError), match=r"(?i)duplicate"):
        run(budgeted(task, budget=50))


def test_range_limit(make_task: Any, run: Any) -> None:
    with pytest.raises(PrerequisiteError, match="range"):
        run(budgeted(make_task(), budget=50), limit=(2, 5))


def test_recorded_scores_that_do_not_fit(make_task: Any, run: Any, tmp_path: Path) -> None:
    import numpy as np

    from evalbudget.backtest import RecordedScores

    file = tmp_path / "scores.npz"
    RecordedScores(np.ones((1, 2, 1, 3)), ("m",), ("item-0", "item-1"), ("anna",)).save(file)
    with pytest.raises(UnknownNameError, match="Did you mean 'anna'"):
        get_model("recorded/ana", file=str(file), memoize=False)
    with pytest.raises(InvalidInputError, match=r"file=scores\.npz"):
        get_model("recorded/anna", memoize=False)
    with pytest.raises(InvalidInputError, match="no-such"):
        get_model("recorded/anna", file=str(tmp_path / "no-such.npz"), memoize=False)
    anna = get_model("recorded/anna", file=str(file), memoize=False)
    log = run(budgeted(make_task(3), budget=30), model_roles={"grader": anna})
    assert log.status == "error"
    assert "unknown item in the recorded scores 'item-2'" in log.error.message


TWO_TASKS = """\
from inspect_ai import Task, task
from evalbudget_inspect.demo.story_rating import story_rating

@task
def one(stories: int = 3):
    return story_rating(stories)

@task
def two():
    return story_rating(4)
"""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"budget": 30}, "which task? Add -T task=my_task.py"),
        ({"task": "{dir}/none.py", "budget": 30}, "does not exist"),
        ({"task": "{dir}/two.py", "budget": 30}, "holds 2 tasks; name one: "),
        ({"task": "{dir}/empty.py", "budget": 30}, "no @task found"),
        ({"task": "{dir}/two.py@three", "budget": 30}, "three"),
        ({"task": "no_such_package/task", "budget": 30}, "no task found at 'no_such_package/task'"),
        ({"task": "{dir}/two.py@one"}, "no budget given"),
        ({"task": "{dir}/two.py@one", "budget": 30, "sampler": "unifrom"}, "Did you mean 'uniform'"),
    ],
)
def test_registry_entry(run: Any, tmp_path: Path, args: dict[str, Any], message: str) -> None:
    (tmp_path / "two.py").write_text(TWO_TASKS)
    (tmp_path / "empty.py").write_text("nothing = True\n")
    given = {k: v.format(dir=tmp_path) if isinstance(v, str) else v for k, v in args.items()}
    with pytest.raises(PrerequisiteError) as caught:
        run("evalbudget_inspect/budgeted", task_args=given)
    assert message in str(caught.value.message)


COLLIDES = """\
from inspect_ai import Task, task
from evalbudget_inspect.demo.story_rating import story_rating

@task
def collides(budget: str, stories: int = 9):
    assert budget == "mine"
    return story_rating(stories)
"""


def test_the_tasks_own_arguments_may_be_named_like_ours(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "collides.py"
    file.write_text(COLLIDES)
    prefixed = {"evalbudget.task": str(file), "evalbudget.budget": 24, "evalbudget.sampler": "uniform"}
    log = run("evalbudget_inspect/budgeted", task_args={**prefixed, "budget": "mine", "stories": 3})
    assert log.status == "success"
    assert len(log.samples) == 24


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--budget", "$5"], "no price is known for simulated/w, simulated/j"),
        (["--sampler", "uniform"], "--sampler needs a --budget"),
        (["--sampler-option", "levels=3"], "--sampler-option needs a --budget"),
        (["--budget", "40", "--sampler", "unifrm"], "Did you mean 'uniform'"),
        (["--budget", "40", "--repeat", "judg"], "Did you mean 'judge'"),
        (["--budget", "40", "--sampler-option", "warmup"], "is not NAME=VALUE"),
        (["--budget", "40", "--score", "nope"], "unknown score 'nope'"),
        (["--budget", "40", "--limit", "2-5"], "--limit 2-5: inspect takes no range"),
        (
            ["--budget", "40", "--sample-id", "999"],
            "999: no sample of the task has such an id",
        ),
        (["--budget", "40", "--limit=-5"], "--limit -5 is no number of samples; --limit N takes"),
        (["--budget", "40", "--limit", "2-5", "--dry-run"], "name the samples (--sample-id ID,ID,...)"),
        (["--budget", "40", "--limit", "2-5", "--sampler", "pulse"], "or --limit N for the first N"),
        (["--budget", "5", "--sampler", "auto"], f"Raise --budget to {6 * WARMUP} or more"),
    ],
)
def test_command_line_exits_with_2(task_file: Path, tmp_path: Path, args: list[str], message: str) -> None:
    command = ["inspect", "eval", str(task_file), "--model", "simulated/w", *args]
    result = CliRunner().invoke(cli, [*command, "--model-role", "grader=simulated/j", "--display", "none"])
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_of_several_tasks_none_is_paid_for_where_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.dataset import Sample\n"
        "from inspect_ai.scorer import match\n"
        "def made(**more): return Task(dataset=[Sample(input='1', target='1')] * 9, **more)\n"
        "@task\n"
        "def scored(): return made(scorer=match())\n"
        "@task\n"
        "def bare(): return made()\n"
    )
    command = ["inspect", "eval", str(tmp_path / "both.py"), "--model", "mockllm/model", "--budget", "4x"]
    result = CliRunner().invoke(cli, [*command, "--log-dir", str(tmp_path / "logs"), "--display", "none"])
    assert result.exit_code == 2, result.output
    assert "task 'bare' has no scorer" in result.output
    assert not list(tmp_path.glob("logs/*.eval"))


def test_a_log_that_is_not_there_cannot_go_on() -> None:
    result = CliRunner().invoke(cli, ["inspect", "eval-retry", "logs/none.eval"])
    assert result.exit_code == 2, result.output
    assert "there is no log logs/none.eval" in result.output


def test_a_log_goes_on_by_the_name_that_the_host_gave_it(
    make_task: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host keeps what a killed run has not yet logged by the resolved name of its log."""
    log = run(make_task())
    write_eval_log(log, str(tmp_path / "logs" / "a.eval"))
    (tmp_path / "here").mkdir()
    (tmp_path / "there").symlink_to(tmp_path / "logs")
    monkeypatch.chdir(tmp_path / "here")
    given: list[list[str]] = []
    monkeypatch.setattr("evalbudget_inspect.host.run_host.run_host", lambda args: given.append(args) or 0)
    absolute = str(tmp_path / "there" / "a.eval")
    for name in ("../logs/a.eval", "../there/a.eval", absolute):
        done = CliRunner().invoke(cli, ["inspect", "eval-retry", name, "--log-dir", "../logs"])
        assert done.exit_code == 0, done.output
    written = str(tmp_path.resolve() / "logs" / "a.eval")
    assert [args[1] for args in given] == [written, written, absolute]
    assert given[0][2:] == ["--log-dir", "../logs"]


def test_a_log_whose_task_is_gone_cannot_go_on(make_task: Any, run: Any, tmp_path: Path) -> None:
    log = run(make_task())
    spec = log.eval.model_copy(update={"task_file": "gone.py"})
    write_eval_log(log.model_copy(update={"eval": spec, "status": "cancelled"}), str(tmp_path / "a.eval"))
    result = CliRunner().invoke(cli, ["inspect", "eval-retry", str(tmp_path / "a.eval")])
    assert result.exit_code == 2, result.output
    assert "Error: Task file 'gone.py' not found; the run goes on where its task is" in result.output


def test_refusals_are_shown_without_a_traceback(
    make_task: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []
    # what the host is about to draw; with other displays it draws the same
    monkeypatch.setattr("inspect_ai._display.rich.display.tasks_results", lambda t: shown.extend(t) or "")
    run(budgeted(make_task(), budget=5, sampler="auto"))
    run(race(make_task(), budget=5))
    assert [str(task.result.exc_value).split(",")[0][:18] for task in shown] == [
        "budget of 5 scores",
        "a race needs two m",
    ]
    for task in shown:
        assert task.result.traceback is None
        assert task.result.exc_value.__context__ is task.result.exc_value.__cause__ is None
    run(budgeted(make_task(), budget=50), judge={"fail": 1.0})
    assert shown[-1].result.traceback is not None  # other errors are the host's to show


def test_settings_that_nobody_types_are_options_and_unknown() -> None:
    with pytest.raises(UnknownNameError, match="option of sampler 'auto' 'panel'"):
        Config.of(budget=30, panel="x")
    assert Config.of(budget=30, sampler="", repeat=False, seed=0.0) == Config.of(budget=30)
    assert Config.of(budget=30, sampler=False) == Config.of(budget=30)
