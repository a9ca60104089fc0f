"""repeat=judge: one generation per item, however often it is scored."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import get_model
from inspect_ai.solver import Solver, TaskState
from tests.claims import variant
from tests.host_inspect.worlds import retried, solving

from evalbudget_inspect import budgeted


def once_in_a_while(failing: set[tuple[str, int]], ran: Counter[str]) -> Solver:
    """Generates, leaves something in store and metadata, and fails in the given cells."""

    def attempt(state: TaskState) -> None:
        item = str(state.sample_id)
        ran[item] += 1
        if (item, state.epoch) in failing:
            raise RuntimeError("no answer")
        state.store.set("draft", f"{item} of epoch {state.epoch}")
        state.metadata["draft"] = state.epoch

    return solving(attempt, generates=True)


@pytest.mark.parametrize(("max_samples", "epochs"), [variant(1, 3), (3, 1), variant(None, 3)])
def test_each_item_is_generated_once(
    make_task: Any, run: Any, calls: Any, cells: Any, max_samples: int | None, epochs: int
) -> None:
    log = run(budgeted(make_task(6), budget=26, repeat="judge"), max_samples=max_samples, epochs=epochs)
    assert log.status == "success"
    assert calls(log, "simulated/writer") == 6
    assert calls(log, "simulated/judge") == len(set(cells(log))) == 26
    answers = {str(s.id): s.output.completion for s in log.samples}
    for sample in log.samples:
        assert sample.output.completion == answers[str(sample.id)]
        assert sample.messages[-1].text == answers[str(sample.id)]


@pytest.mark.parametrize(
    ("max_samples", "retry_on_error"), [(1, 1), variant(3, 0), (None, 0), variant(None, 1)]
)
def test_a_generation_that_fails_passes_the_turn_on(
    make_task: Any, run: Any, readings: Any, max_samples: int | None, retry_on_error: int
) -> None:
    ran: Counter[str] = Counter()
    failing = {("item-0", 1), ("item-0", 2), ("item-2", 1)}
    log = run(
        budgeted(make_task(4, solver=once_in_a_while(failing, ran)), budget=24, repeat="judge"),
        max_samples=max_samples,
        epochs=3,
        fail_on_error=False,
        retry_on_error=retry_on_error,
    )
    assert log.status == "success"
    assert ran["item-1"] == ran["item-3"] == 1
    assert 1 <= ran["item-2"] <= 2 + retry_on_error
    assert 1 <= ran["item-0"] <= 3 + 2 * retry_on_error
    assert sum(ran.values()) - 4 + len(readings(log)) == 24
    kept = {str(s.id): s.store["draft"] for s in log.samples if s.error is None}
    for sample in log.samples:
        if sample.error is None:
            assert sample.store["draft"] == kept[str(sample.id)]
            assert sample.metadata["draft"] == int(kept[str(sample.id)].rpartition(" ")[2])


@pytest.mark.parametrize("max_samples", [variant(1), None])
def test_a_retry_does_not_generate_again(
    task_file: Path, run: Any, calls: Any, cells: Any, max_samples: int | None
) -> None:
    # the judge fails so often that the run does not survive it, but every item is generated
    failed = run(
        "evalbudget_inspect/budgeted",
        task_args={"task": str(task_file), "budget": 36, "repeat": "judge"},
        judge={"fail": 0.2, "seed": 5},
        fail_on_error=4,
        max_samples=max_samples,
    )
    assert failed.status == "error"
    assert calls(failed, "simulated/writer") == 6
    answered = {str(s.id) for s in failed.samples if s.error is None}
    again = retried(failed, max_samples=max_samples)
    new = [s for s in again.samples if s.uuid not in {old.uuid for old in failed.samples}]
    generated = [s for s in new if "simulated/writer" in s.model_usage]
    assert answered
    assert not answered & {str(s.id) for s in generated}
    assert len(cells(again)) == len(set(cells(again)))


def test_a_cached_or_cold_judge_is_warned_about(
    make_task: Any, run: Any, warnings_of_plugin: list[str]
) -> None:
    from inspect_ai.model import CachePolicy, GenerateConfig

    cold = get_model(
        "simulated/cold",
        config=GenerateConfig(temperature=0, cache=CachePolicy(per_epoch=False)),
        sd=0.0,
        mean=2.0,
        memoize=False,
    )
    task = make_task()
    for sample in task.dataset:
        sample.metadata = {"simulated_sd": 0.0, "simulated_mean": float(str(sample.id)[-1])}
    run(budgeted(task, budget=40, repeat="judge"), model_roles={"grader": cold})
    text = "\n".join(warnings_of_plugin)
    assert "temperature 0" in text
    assert "--model-role" in text
    assert "per_epoch=True" in text
    assert "all repeats of each of 8 items gave the same score" in text


def test_a_cold_model_with_repeat_generation_is_warned_about(
    make_task: Any, run: Any, warnings_of_plugin: list[str]
) -> None:
    cold = get_model("simulated/cold", memoize=False)
    run(budgeted(make_task(), budget=40), model=cold, temperature=0.0, model_roles=None, limit=3)
    assert "Set --temperature above 0, or use --repeat judge" in "\n".join(warnings_of_plugin)
