"""A repeat asks, and scores, what the first epoch did."""

from __future__ import annotations

from typing import Any

import anyio
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, ModelName
from inspect_ai.scorer import accuracy, choice
from inspect_ai.solver import TaskState, multiple_choice
from tests.host_inspect.worlds import scoring, solving

from evalbudget_inspect import budgeted
from evalbudget_inspect.repeats.kept_generation import KeptGenerations

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


coin = scoring("coin", lambda state: "C" if state.epoch % 2 else "I", [accuracy()])
rating = scoring("rating", lambda state: 4.0 + state.epoch % 3)


def test_images_reach_every_epoch_also_when_the_log_leaves_them_out(make_task: Any, run: Any) -> None:
    seen: list[str] = []

    def look(state: TaskState) -> None:
        (message,) = state.messages
        seen.extend(part.image for part in message.content if isinstance(part, ContentImage))

    task = make_task(2, solver=solving(look), scorer=rating())
    for sample in task.dataset:
        sample.input = [ChatMessageUser(content=[ContentText(text="What is it?"), ContentImage(image=PIXEL)])]
    log = run(budgeted(task, budget=12), log_images=False)
    assert log.status == "success"
    assert seen == [PIXEL] * 12


def test_the_score_range_is_that_of_the_scores_that_drive(make_task: Any, run: Any) -> None:
    task = make_task(4, scorer=[rating(), coin()])
    log = run(budgeted(task, sampler="uniform", budget=16, score_range="1..10"))
    found = {s.name: s.metrics for s in log.results.scores if "estimate" in s.metrics}
    assert found["coin"]["estimate"].value == 0.5
    assert found["rating"]["upper"].value <= 10.0


def test_repeated_judges_see_the_choices_as_the_solver_marked_them(make_task: Any, run: Any) -> None:
    task = make_task(3, solver=multiple_choice(), scorer=[rating(), choice()])
    for sample in task.dataset:
        sample.choices, sample.target = ["no", "yes"], "B"
    log = run(budgeted(task, repeat="judge", budget=15, sampler="uniform"), writer={"template": "ANSWER: B"})
    assert [s.scores["choice"].value for s in log.samples] == ["C"] * 15


def test_a_broken_generation_is_not_kept(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(), repeat="judge", budget=60), score_on_error=True)
    assert log.status == "error"
    assert "drop one of them" in log.error.message


def test_a_sandbox_that_is_gone_is_not_looked_into(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(sandbox="local"), repeat="judge", budget=60))
    assert log.status == "error"
    assert "drop --repeat judge, or the task's sandbox" in log.error.message


def test_an_epoch_whose_time_ran_out_while_it_waited_has_nothing_to_score() -> None:
    def state(epoch: int) -> TaskState:
        return TaskState(ModelName("simulated/writer"), "item", epoch, "question", [])

    async def main() -> None:
        kept = KeptGenerations()
        first, second, third = state(1), state(2), state(3)
        await kept.enter(first)
        with anyio.move_on_after(0.01) as limit:
            await kept.enter(second)
        assert limit.cancelled_caught
        assert not kept.keep(second)
        kept.leave(second)
        first.output.completion = "the answer"
        assert kept.keep(first)
        assert kept.keep(first)  # a second scorer of the same epoch
        kept.leave(first)
        await kept.enter(third)
        assert kept.keep(third)
        assert third.output.completion == "the answer"
        assert third.completed

    anyio.run(main)


def test_no_score_is_refused(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(), budget=60), score=False, max_samples=1)
    assert log.status == "error"
    assert "drop --no-score" in log.error.message
    assert len(log.samples) <= 2


def test_deterministic_repeats_are_noticed_with_one_sample_at_a_time(
    make_task: Any, run: Any, warnings_of_plugin: list[str]
) -> None:
    task = make_task(6)
    for sample in task.dataset:
        sample.metadata = {"simulated_mean": 3.0, "simulated_sd": 0.0}
    run(budgeted(task, budget=24), max_samples=1)
    assert any("deterministic" in message for message in warnings_of_plugin)
