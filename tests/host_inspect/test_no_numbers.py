"""Scores that are no numbers: a word among numbers is no reading, a scorer of words is found out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai import eval_set
from inspect_ai.hooks import SampleEnd
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.scorer import Score
from inspect_ai.solver import TaskState
from tests.host_inspect.race_tasks import QUIET, model, quiz
from tests.host_inspect.race_tasks import run as run_race
from tests.host_inspect.worlds import scoring, solving

from evalbudget.errors import InvalidInputError
from evalbudget_inspect import budgeted, race
from evalbudget_inspect.host.current_run import RunHooks
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.host.score_values import Seen, mostly_words, score_to_float, why_unscored


def number_of(state: TaskState) -> int:
    """From an id such as item-3."""
    return int("".join(filter(str.isdigit, str(state.sample_id))))


sometimes = scoring(
    "sometimes", lambda state: "INVALID" if number_of(state) % 5 == 4 else float(state.epoch % 2)
)
never = scoring("never", lambda state: "quite good")
several = scoring("several", lambda state: {"right": 1, "wrong": 0})
lacking = scoring("lacking", lambda state: {"right": 1.0} if number_of(state) % 5 != 4 else {})


def test_a_word_among_numbers_is_a_reading_without_a_score(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(scorer=sometimes()), budget=60, sampler="uniform"))
    assert log.status == "success"
    values = [sample.scores["sometimes"].value for sample in log.samples]
    told = log.results.scores[0].metadata["evalbudget"]
    assert told["failures"] == {"scored 'INVALID', which is no number": values.count("INVALID")}
    assert told["readings"] == sum(value != "INVALID" for value in values)
    rows = {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}
    assert rows["estimate"] == pytest.approx(
        0.5, abs=0.1
    )  # every other answer is right; the host's own is less
    assert 0.0 < rows["lower"] < rows["upper"] < 1.0


def test_what_a_run_goes_on_with_it_estimates_by(make_task: Any, run: Any) -> None:
    few = scoring("few", lambda state: 1.0 if number_of(state) < 2 else "INVALID")
    log = run(budgeted(make_task(scorer=few()), budget=8, sampler="uniform"))
    assert log.status == "success"
    rows = {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}
    assert (rows["estimate"], log.results.scores[0].metadata["evalbudget"]["readings"]) == (1.0, 2)


@pytest.mark.parametrize(
    ("scorer", "score", "said", "most"),
    [
        (never, None, "'quite good', which is not a number", 3),
        (several, None, "name the one to allocate by with --score: several.right, several.wrong", 1),
        (several, "several.rihgt", "several.right, several.wrong", 3),
    ],
)
def test_what_never_is_a_number_costs_few_answers_however_many_run_at_once(
    make_task: Any,
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
    scorer: Any,
    score: str | None,
    said: str,
    most: int,
) -> None:
    async def takes_a_while(hooks: RunHooks, data: SampleEnd) -> None:
        await anyio.sleep(0.02)

    monkeypatch.setattr(RunHooks, "on_sample_end", takes_a_while)  # as a hook that writes somewhere
    log = run(budgeted(make_task(scorer=scorer()), budget=60, score=score), max_samples=8)
    assert log.status == "error"
    assert said in str(take_refusals()[0])
    assert sum(usage.total_tokens for usage in log.stats.model_usage.values()) <= most * 110


def test_an_answer_that_lacks_the_entry_is_a_reading_without_a_score(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(scorer=lacking()), budget=40, score="lacking.right", sampler="uniform"))
    assert log.status == "success"


def test_a_race_goes_on_after_a_word_and_not_without_any_number(tmp_path: Path) -> None:
    models = [model("a", 0.2), model("b", 0.9)]
    graded = scoring("graded", lambda state: "n/a" if number_of(state) % 7 == 6 else state.output.completion)
    logs = run_race(race(quiz(14, scorer=graded()), budget=24, sampler="uniform"), models, tmp_path / "some")
    assert {log.status for log in logs} == {"success"}
    logs = run_race(race(quiz(14, scorer=never()), budget=24, sampler="uniform"), models, tmp_path / "none")
    assert {log.status for log in logs} == {"error"}
    assert "which is not a number" in str(take_refusals()[0])


def test_a_race_that_goes_on_knows_the_numbers_that_came_before(tmp_path: Path) -> None:
    graded = scoring("graded", lambda state: "n/a" if number_of(state) >= 24 else state.output.completion)

    def raced() -> list[EvalLog]:
        task = race(quiz(30, scorer=graded()), budget=80, sampler="uniform", batch=10)
        arms = [model("a", 0.2), model("b", 0.9)]
        logs = eval_set(task, str(tmp_path), model=arms, **{**QUIET, "retry_attempts": 1})[1]
        return [read_eval_log(log.location) for log in logs]

    first = raced()
    assert {log.status for log in first} == {"success"}
    for log in first:  # cut off when the last attempts at what is no number were under way
        assert log.samples is not None
        cut = log.model_copy(update={"status": "cancelled", "results": None, "samples": log.samples[:32]})
        write_eval_log(cut, log.location)
    assert {log.status for log in raced()} == {"success"}


def test_what_is_read_of_a_score() -> None:
    assert math.isnan(score_to_float(Score(value="INVALID"), "s"))
    assert score_to_float(Score(value="0.5"), "s") == 0.5
    assert score_to_float(Score(value={"a": "C"}), "s", "a") == 1.0
    assert math.isnan(score_to_float(Score(value={"a": 1}), "s", "b"))
    for value, key in (("INVALID", None), ({"a": 1}, "b"), ({"a": "no idea"}, "a")):
        with pytest.raises(InvalidInputError):
            score_to_float(Score(value=value), "s", key, strict=True)
    with pytest.raises(InvalidInputError, match="several values"):
        score_to_float(Score(value={"a": 1}), "s")
    with pytest.raises(InvalidInputError, match="not a number"):
        score_to_float(Score(value=[1, 2]), "s")


def test_why_a_score_is_none() -> None:
    assert why_unscored(Score(value="INVALID"), None) == "scored 'INVALID', which is no number"
    assert why_unscored(Score(value={"a": "x" * 99}), "a") == f"scored {'x' * 30!r}, which is no number"
    assert why_unscored(Score(value={"a": 1}), "b") == "scored without 'b'"
    assert why_unscored(Score(value=math.nan), None) == "unscored"


def test_words_after_a_number_say_nothing_of_the_scorer() -> None:
    seen = Seen()
    assert math.isnan(seen.read(Score(value="INVALID"), "s", None))
    assert seen.read(Score(value=1.0), "s", None) == 1.0
    for _ in range(5):
        assert math.isnan(seen.read(Score(value="INVALID"), "s", None))
    assert seen.range(accuracy=True) == (0.0, 1.0)  # words are no scores
    seen = Seen()
    seen.read(Score(value=math.nan), "s", None)
    for value in ("INVALID", {"a": None}):
        assert math.isnan(seen.read(Score(value=value), "s", "a"))
    with pytest.raises(InvalidInputError):
        seen.read(Score(value="INVALID"), "s", None)


def test_a_scorer_that_mostly_gives_words_gives_no_numbers() -> None:
    """Letters, of which C is taken for a grade; or one number, and words from then on."""
    assert [numbers for numbers in range(8) if mostly_words(12, numbers)] == [0, 1, 2, 3, 4, 5]
    assert [words for words in range(5) if mostly_words(words, 0)] == [3, 4]
    assert [words for words in range(8, 12) if mostly_words(words, 1)] == [10, 11]
    seen = Seen()
    for letter in "CABDABDABD":
        seen.read(Score(value=letter), "s", None)
    with pytest.raises(InvalidInputError, match="not a number"):
        seen.read(Score(value="A"), "s", None)


def test_a_scorer_of_letters_that_only_stands_beside_has_no_row(make_task: Any, run: Any) -> None:
    letters = scoring("letters", lambda state: "ABCD"[number_of(state) % 4])
    fine = scoring("fine", lambda state: float(state.epoch % 2))
    task = make_task(8, scorer=[fine(), letters()])
    log = run(budgeted(task, budget=16, score="fine", sampler="uniform"))
    assert log.status == "success"
    names = {score.scorer for score in log.results.scores if "estimate" in score.metrics}
    assert names == {"fine"}


def test_limits_of_samples_are_not_used_up_by_waiting(make_task: Any, run: Any) -> None:
    slow = solving(lambda state: None, generates=True)
    task = make_task(8, solver=slow, scorer=sometimes())
    task.working_limit = 60
    log = run(budgeted(task, budget=16, sampler="uniform"), max_samples=8)
    assert log.status == "success"
    source = log.eval.config.working_limit
    assert source == 60
