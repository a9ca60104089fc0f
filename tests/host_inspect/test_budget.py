"""The budget is exact, whatever the host runs at once and whatever fails."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai import eval_async
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model
from inspect_ai.solver import Solver, TaskState, generate
from tests.claims import variant
from tests.host_inspect.race_tasks import run as run_all
from tests.host_inspect.worlds import solving

from evalbudget_inspect import budgeted
from evalbudget_inspect.host.not_run import NOT_RUN_AGAIN
from evalbudget_inspect.repeats import sample_source
from evalbudget_inspect.repeats.config import Config


def flaky(calls: Counter[str], *, first: int) -> Solver:
    """Fails the first so many attempts of every cell of the even items, and counts every attempt."""
    seen: Counter[tuple[str, int]] = Counter()

    def attempt(state: TaskState) -> None:
        key = (str(state.sample_id), state.epoch)
        seen[key] += 1
        calls[key[0]] += 1
        if int(key[0].removeprefix("item-")) % 2 == 0 and seen[key] <= first:
            raise RuntimeError("not now")

    return solving(attempt, generates=True)


@pytest.mark.parametrize(
    ("max_samples", "sampler"),
    [
        (1, "eb-bernstein"),
        variant(3, "uniform"),
        variant(None, "eb-bernstein"),
        (500, "uniform"),
        variant(500, "eb-bernstein"),
    ],
)
def test_spends_exactly_the_budget(
    make_task: Any, run: Any, cells: Any, diagnostics: Any, calls: Any, max_samples: int | None, sampler: str
) -> None:
    log = run(budgeted(make_task(), budget=35, sampler=sampler), max_samples=max_samples)
    assert log.status == "success"
    assert len(cells(log)) == len(set(cells(log))) == 35
    assert calls(log, "simulated/judge") == calls(log, "simulated/writer") == 35
    ours = diagnostics(log)
    assert ours["spent"] == ours["readings"] == ours["budget_scores"] == 35
    assert ours["stop_reason"] == "budget used up"


def test_noisy_items_are_asked_more(make_task: Any, run: Any, diagnostics: Any) -> None:
    table = diagnostics(run(budgeted(make_task(6), budget="12x"), max_samples=2))["per_item"]
    counts = dict(zip(table["id"], table["readings"], strict=True))
    assert min(counts[f"item-{i}"] for i in (0, 3)) > 1.4 * max(counts[f"item-{i}"] for i in (1, 2, 4, 5))


@pytest.mark.parametrize("backend", [variant("asyncio"), "trio"])
def test_both_async_backends_decide_alike(
    make_task: Any, run: Any, readings: Any, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", backend)
    log = run(budgeted(make_task(), budget=32, repeat="judge"), max_samples=1)
    assert log.status == "success"
    assert len(readings(log)) == 32


@pytest.mark.parametrize("epochs", [variant(1), variant(2), 6])
def test_epochs_are_minimum_repeats(make_task: Any, run: Any, diagnostics: Any, epochs: int) -> None:
    warmup = Config.of(budget=99).fixed_repeats
    ours = diagnostics(run(budgeted(make_task(), budget=56), epochs=epochs))
    assert sum(ours["per_item"]["readings"]) == 56
    assert min(ours["per_item"]["readings"]) >= max(warmup, epochs)
    assert ours["fixed_repeats"] == max(warmup, epochs)


def test_limit_and_sample_id_choose_the_items(make_task: Any, run: Any, cells: Any) -> None:
    limited = run(budgeted(make_task(), budget="4x"), limit=3)
    assert {item for item, _ in cells(limited)} == {"item-0", "item-1", "item-2"}
    assert len(cells(limited)) == 12
    chosen = run(budgeted(make_task(), budget="4x"), sample_id=["item-4", "item-6"])
    assert {item for item, _ in cells(chosen)} == {"item-4", "item-6"}
    assert len(cells(chosen)) == 8


def test_no_log_samples(make_task: Any, run: Any, metrics: Any, calls: Any) -> None:
    log = run(budgeted(make_task(6), budget=20), log_samples=False)
    assert log.status == "success"
    assert calls(log, "simulated/judge") == 20
    assert metrics(log)["readings"] == 20


@pytest.mark.parametrize(
    ("max_samples", "retry_on_error"), [variant(1, 0), variant(None, 0), variant(None, 1), (1, 2)]
)
def test_failing_samples_cost_and_never_exceed(
    make_task: Any, run: Any, readings: Any, diagnostics: Any, retry_on_error: int, max_samples: int | None
) -> None:
    attempts: Counter[str] = Counter()
    task = make_task(6, solver=flaky(attempts, first=1))
    log = run(
        budgeted(task, budget=36),
        fail_on_error=False,
        retry_on_error=retry_on_error,
        max_samples=max_samples,
    )
    assert log.status == "success"
    ours = diagnostics(log)
    assert sum(attempts.values()) == ours["spent"]
    assert ours["spent"] == 36
    assert ours["readings"] == len(readings(log))
    if retry_on_error == 0:
        assert ours["closed_items"] == ["item-0", "item-2", "item-4"]
        assert ours["failures"] == {"RuntimeError": ours["failed"]}
        assert all(attempts[item] < 9 for item in ours["closed_items"])
    else:
        assert set(ours["failures"]) <= {"RuntimeError", NOT_RUN_AGAIN}
        assert sum(ours["failures"].values()) == 36 - ours["readings"]  # each was a call
        assert ours["closed_items"] == []


@pytest.mark.parametrize("judges", [None, ["simulated/a", "simulated/b", "simulated/c"]])
def test_a_first_sample_that_fails_is_not_waited_for_by_those_it_queues_behind(
    make_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judges: list[str] | None
) -> None:
    """Until something is scored one sample runs at a time; one that is tried again lets go of its place."""
    monkeypatch.setattr(sample_source, "_TRIAL", math.inf)
    attempts: Counter[str] = Counter()
    task = budgeted(make_task(6, solver=flaky(attempts, first=1)), budget=18, judges=judges)

    async def evaluated() -> EvalLog:
        with anyio.fail_after(60):
            (log,) = await eval_async(
                task,
                model=get_model("simulated/writer", memoize=False),
                model_roles={"grader": get_model("simulated/judge", memoize=False)},
                log_dir=str(tmp_path),
                fail_on_error=False,
                retry_on_error=1,
                max_samples=2,
            )
        return log

    log = anyio.run(evaluated)
    assert log.status == "success"
    assert 17 <= sum(attempts.values()) <= 18


@pytest.mark.parametrize("repeat", ["generation", variant("judge")])
def test_a_judge_that_fails_or_cannot_be_parsed(
    make_task: Any, run: Any, readings: Any, cells: Any, diagnostics: Any, metrics: Any, repeat: str
) -> None:
    log = run(
        budgeted(make_task(), budget=56, repeat=repeat),
        judge={"fail": 0.15, "unparsed": 0.15},
        fail_on_error=False,
    )
    assert log.status == "success"
    ours = diagnostics(log)
    assert len(cells(log)) == ours["spent"] == 56
    assert ours["failed"] == 56 - len(readings(log)) > 0
    assert set(ours["failures"]) == {"RuntimeError", "unscored"}
    assert metrics(log)["readings"] == ours["readings"] == len(readings(log))


def test_nothing_but_failures_ends(make_task: Any, run: Any, diagnostics: Any, cells: Any) -> None:
    log = run(budgeted(make_task(4), budget=400), judge={"unparsed": 1.0})
    assert log.status == "success"
    ours = diagnostics(log)
    assert ours["readings"] == 0
    assert ours["closed_items"] == [f"item-{i}" for i in range(4)]
    assert ours["stop_reason"] == "every item closed after repeated failures"
    assert len(cells(log)) == ours["failed"] < 100


def test_scores_outside_the_declared_range_count_as_failed(
    make_task: Any, run: Any, readings: Any, diagnostics: Any, metrics: Any
) -> None:
    log = run(budgeted(make_task(), budget=48, score_range="2..9"))
    ours = diagnostics(log)
    inside = [value for _, _, value in readings(log) if 2 <= value <= 9]
    assert ours["readings"] == metrics(log)["readings"] == len(inside) < 48
    assert ours["failures"] == {"score outside the declared range": 48 - len(inside)}
    anytime = zip(ours["per_item"]["anytime_lower"], ours["per_item"]["anytime_upper"], strict=True)
    assert all(2 <= low < high <= 9 for low, high in anytime)


def test_several_models_each_have_their_own_budget(make_task: Any, tmp_path: Any) -> None:
    models = [get_model(f"simulated/{name}", memoize=False) for name in "abc"]
    roles = {"grader": get_model("simulated/judge", memoize=False)}
    logs = run_all(budgeted(make_task(4), budget=12), models, tmp_path, model_roles=roles)
    assert [log.eval.model for log in logs] == ["simulated/a", "simulated/b", "simulated/c"]
    for log in logs:
        assert log.status == "success"
        assert len(log.samples or []) == 12
        assert log.eval.task == "rating"
        assert log.eval.dataset.name == "stories"


def test_integer_ids_and_a_dataset_without_ids(make_task: Any, run: Any, cells: Any) -> None:
    log = run(budgeted(make_task(ids=[3, 1, 2]), budget=12))
    assert log.status == "success"
    assert len(set(cells(log))) == 12
    task = make_task()
    for sample in task.dataset:
        sample.id = None
    log = run(budgeted(task, budget=24))
    assert log.status == "success"
    assert len(set(cells(log))) == 24


def test_several_solvers_and_a_setup_of_the_tasks_own(make_task: Any, run: Any) -> None:
    seen: list[str] = []

    def note(what: str) -> Solver:
        return solving(lambda state: seen.append(what))

    async def clean(state: TaskState) -> None:
        seen.append("cleanup")

    task = make_task(2, solver=[note("solver"), generate()], setup=note("setup"), cleanup=clean)
    log = run(budgeted(task, budget=10), max_samples=1)
    assert log.status == "success"
    assert seen == ["setup", "solver", "cleanup"] * 10


def test_draining_a_task_ends_it(make_task: Any, run: Any, diagnostics: Any) -> None:
    from inspect_ai._control.eval_state import get_eval_state

    from evalbudget_inspect.host.current_run import current_run

    solved = 0

    def drain(state: TaskState) -> None:
        nonlocal solved
        solved += 1
        here = current_run.get()
        if solved == 20 and here is not None:
            running = get_eval_state(here.spec.eval_id)
            assert running is not None
            assert running.task_cancel is not None
            running.task_cancel.cancel_task("drain")

    log = run(budgeted(make_task(solver=solving(drain, generates=True)), budget=200), max_samples=2)
    assert solved <= 22
    ours = diagnostics(log)
    assert ours["stop_reason"] == "cancelled by the operator"
    assert ours["closed_items"] == []
    assert sum(ours["per_item"]["readings"]) == solved
