"""What the log says against what evalbudget says of the log's samples."""

from __future__ import annotations

import math
from typing import Any

import pytest
from inspect_ai import score as host_score
from inspect_ai.log import EvalLog, recompute_metrics
from inspect_ai.scorer import Scorer, accuracy, mean, stderr, value_to_float
from tests.claims import variant
from tests.host_inspect.worlds import scoring

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.repeats.estimates import (
    ItemReadings,
    eb_wilson,
    mean_over_fixed_items,
    mean_over_sampled_items,
)
from evalbudget_inspect import budgeted
from evalbudget_inspect.demo.story_rating import judge_rating

OURS = {"estimate", "stderr", "lower", "upper", "repeats_stderr", "repeats_lower", "repeats_upper"}


length = scoring("length", lambda state: len(state.output.completion))
rubric = scoring(
    "rubric",
    lambda state: {"depth": state.epoch % 3, "style": len(state.output.completion) % 5},
    {"depth": [mean(), stderr()], "style": [mean()]},
)
wild_rubric = scoring("wild_rubric", lambda state: {"depth": state.epoch % 3, "style": 1}, {"*": [mean()]})
label = scoring("label", lambda state: "sounds fine", [])
graded = scoring("graded", lambda state: "CIPN"[state.epoch % 4], [accuracy()])
sometimes = scoring("sometimes", lambda state: None if state.epoch % 2 else 1.0)


def _table(
    readings: list[tuple[str, int, float]],
    names: list[str],
    phases: dict[tuple[str, int], int] | None = None,
) -> ItemReadings:
    return ItemReadings.of(
        [names.index(item) for item, _, _ in readings],
        [epoch - 1 for _, epoch, _ in readings],
        [value for _, _, value in readings],
        n_items=len(names),
        phase=None if phases is None else [phases[item, epoch] for item, epoch, _ in readings],
    )


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"sampler": "uniform"}, Allocation.FIXED),
        variant({"sampler": "robin", "pilot": 2}, Allocation.ADAPTIVE),
        ({}, Allocation.PHASED),
        variant({"sampler": "eb-bernstein"}, Allocation.PHASED),
    ],
)
def test_metrics_against_the_estimators(
    make_task: Any,
    run: Any,
    metrics: Any,
    readings: Any,
    phases: Any,
    diagnostics: Any,
    options: dict[str, Any],
    kind: Allocation,
) -> None:
    log: EvalLog = run(budgeted(make_task(), budget=41, **options), judge={"unparsed": 0.05})
    told, ours = metrics(log), diagnostics(log)
    logged = phases(log) if kind is Allocation.PHASED else None
    table = _table(readings(log), [f"item-{i}" for i in range(8)], logged)
    repeats = ours["fixed_repeats"]
    assert ours["allocation"] == kind.value
    again = mean_over_fixed_items(table, allocation=kind, fixed_repeats=repeats)
    sampled = mean_over_sampled_items(table, allocation=kind, fixed_repeats=repeats)
    interval, wider = again.confidence_interval(0.95), sampled.confidence_interval(0.95)
    assert sampled.standard_error > again.standard_error
    assert told["estimate"] == pytest.approx(sampled.value)
    assert told["lower"] == pytest.approx(wider.low)
    assert told["upper"] == pytest.approx(wider.high)
    assert told["repeats_stderr"] == pytest.approx(again.standard_error)
    assert told["repeats_lower"] == pytest.approx(interval.low)
    assert told["repeats_upper"] == pytest.approx(interval.high)
    assert told["items"] == 8
    assert told["readings"] == table.value.size
    assert log.results is not None
    stderrs = [s.metrics["stderr"].value for s in log.results.scores if "estimate" in s.metrics]
    assert stderrs == [pytest.approx(sampled.standard_error)]


def test_per_item_columns_against_the_samples(
    make_task: Any, run: Any, readings: Any, diagnostics: Any
) -> None:
    log = run(budgeted(make_task(), budget=56), judge={"unparsed": 0.05})
    columns = diagnostics(log)["per_item"]
    names = [f"item-{i}" for i in range(8)]
    assert columns["id"] == names
    found = readings(log)
    for i, name in enumerate(names):
        assert columns["readings"][i] == sum(item == name for item, _, _ in found)
    repeats = diagnostics(log)["fixed_repeats"]
    estimates = eb_wilson(_table(found, names), fixed_repeats=repeats)
    assert columns["estimate"] == pytest.approx(estimates.value.tolist(), abs=1e-5)
    assert columns["lower"] == pytest.approx(estimates.confidence_intervals(0.95).low.tolist(), abs=1e-5)


def test_every_score_says_its_epoch(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(3), budget=20))
    for sample in log.samples:
        ours = sample.scores["judge_rating"].metadata
        assert ours.keys() == {"evalbudget"}
        assert ours["evalbudget"].keys() == {"epoch", "phase"}
        assert ours["evalbudget"]["epoch"] == sample.epoch


def test_metrics_come_after_the_tasks_own_and_its_scorers_stay_as_they_were(
    make_task: Any, run: Any, metrics: Any
) -> None:
    from inspect_ai._util.registry import registry_info

    theirs = judge_rating()
    before = list(registry_info(theirs).metadata["metrics"])
    plain = make_task(4, scorer=theirs)
    log = run(budgeted(make_task(4, scorer=theirs), budget=30))
    assert registry_info(theirs).metadata["metrics"] == before
    assert log.results.scores[0].metrics.keys() == {"mean", "stderr"}
    assert metrics(log).keys() >= OURS
    unbudgeted = run(plain, epochs=2)
    assert "estimate" not in metrics(unbudgeted)


def test_several_scorers_all_get_metrics(make_task: Any, run: Any, metrics: Any, diagnostics: Any) -> None:
    task = make_task(4, scorer=[length(), rubric(), wild_rubric(), label(), graded(), judge_rating()])
    log = run(budgeted(task, budget=40, score="judge_rating"))
    assert log.status == "success"
    assert log.results is not None
    for name in ("length", "graded", "judge_rating", "depth", "style"):
        assert math.isfinite(metrics(log, name)["estimate"]), name
    assert (metrics(log)["readings"], metrics(log)["items"]) == (40, 4)
    assert "estimate" not in metrics(log, "label")
    assert diagnostics(log, "judge_rating")["score"] == "judge_rating"
    assert "per_item" in diagnostics(log, "judge_rating")
    assert "per_item" not in diagnostics(log, "length")


@pytest.mark.parametrize(
    ("scorers", "score", "drives"),
    [
        ([graded(), length()], None, "graded"),
        variant([length(), graded()], "graded", "graded"),
        ([length(), rubric()], "rubric.depth", "rubric.depth"),
        ([label(), wild_rubric()], "wild_rubric.depth", "wild_rubric.depth"),
    ],
)
def test_which_score_drives(
    make_task: Any, run: Any, scorers: list[Scorer], score: str | None, drives: str
) -> None:
    log = run(budgeted(make_task(4, scorer=scorers), budget=20, score=score))
    assert log.status == "success"
    columns = [
        s.metadata["evalbudget"]
        for s in log.results.scores
        if s.metadata and "per_item" in s.metadata["evalbudget"]
    ]
    assert columns
    values: dict[str, list[float]] = {}
    for sample in log.samples:
        kept = sample.scores[drives.partition(".")[0]]
        value = kept.value["depth"] if "." in drives else value_to_float()(kept.value)
        values.setdefault(str(sample.id), []).append(value)
    for entry in columns:
        assert entry["score"] == drives
        for name, count in zip(entry["per_item"]["id"], entry["per_item"]["readings"], strict=True):
            assert count == len(values[name])


def test_a_scorer_without_a_score_for_some(make_task: Any, run: Any, diagnostics: Any) -> None:
    log = run(budgeted(make_task(3, scorer=sometimes()), budget=24))
    assert log.status == "success"
    ours = diagnostics(log, "sometimes")
    assert ours["failures"] == {"no score from 'sometimes'": ours["failed"]}
    assert ours["readings"] + ours["failed"] == ours["spent"] == 24


@pytest.mark.parametrize(
    "reducer", [variant("mean"), variant("max"), ["mean", "mode"], "at_least_2", variant("pass_at_2")]
)
def test_epoch_reducers_of_the_task(make_task: Any, run: Any, metrics: Any, reducer: Any) -> None:
    from inspect_ai import Epochs

    log = run(budgeted(make_task(3), budget=20), epochs=Epochs(3, reducer))
    assert log.status == "success"
    assert metrics(log)["readings"] == 20


def test_metrics_given_to_the_task(make_task: Any, run: Any, metrics: Any) -> None:
    log = run(budgeted(make_task(3, metrics=[mean()]), budget=20))
    assert metrics(log)["readings"] == 20
    grouped = make_task(3, scorer=rubric(), metrics={"depth": [mean()]})
    log = run(budgeted(grouped, budget=20, score="rubric.depth"))
    assert log.status == "success"
    assert metrics(log, "depth")["readings"] == 20


def test_one_reading_per_item_has_metrics(make_task: Any, run: Any, metrics: Any) -> None:
    log = run(budgeted(make_task(3), budget=3, sampler="uniform"))
    assert log.status == "success"
    told = metrics(log)
    assert told["readings"] == 3
    assert all(math.isfinite(value) for value in told.values())


def test_the_host_computes_our_metrics_again(make_task: Any, run: Any, metrics: Any) -> None:
    log = run(budgeted(make_task(4), budget=30))
    told = metrics(log)
    again = log.model_copy(deep=True)
    recompute_metrics(again)
    assert metrics(again)["estimate"] == pytest.approx(told["estimate"])
    assert metrics(again)["upper"] == pytest.approx(told["upper"])


def test_a_budgeted_log_can_be_scored_by_another_scorer(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(4), budget=30))
    scored = host_score(log, length(), action="append", display="none")
    assert scored.status == "success"
    assert all("length" in (s.scores or {}) for s in scored.samples or [])


def test_further_estimators_have_rows(make_task: Any, run: Any, metrics: Any, diagnostics: Any) -> None:
    pytest.importorskip("evalbudget_example")
    log: EvalLog = run(budgeted(make_task(n=12), budget=48, sampler="uniform", estimators="median"))
    told = metrics(log)
    assert told["median_lower"] < told["median"] < told["median_upper"]
    assert set(told) >= OURS
    assert diagnostics(log)["estimators"] == ["median"]
    recompute_metrics(log)
    assert metrics(log)["median"] == told["median"]


def test_an_estimator_that_needs_what_a_sampler_does_not_have_is_refused(make_task: Any) -> None:
    pytest.importorskip("evalbudget_example")
    with pytest.raises(InvalidInputError, match="needs every item asked equally often, and sampler 'auto'"):
        budgeted(make_task(), budget=61, estimators=["median"])
    with pytest.raises(UnknownNameError, match=r"unknown estimator 'medain'\. Did you mean 'median'"):
        budgeted(make_task(), budget=61, estimators="medain")
    with pytest.raises(InvalidInputError, match="--estimators are of scores by one judge"):
        budgeted(make_task(), budget="4x", estimators="median", judges="mockllm/a,mockllm/b")
