from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from scipy.stats import t as student_t
from tests.report.worlds import nothing_missing, panel, recorded

from evalbudget import Allocation
from evalbudget.backtest import HowBought, RecordedScores
from evalbudget.comparisons import Outcome, Verdicts, compare
from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.judges.estimates import (
    JudgeScores,
    judge_biases,
    panel_mean,
    variance_components,
)
from evalbudget.recorded._declared import Declared
from evalbudget.repeats.estimates import ItemReadings, mean_over_sampled_items
from evalbudget.report import SECTIONS, Items, Section, Study, page, report
from evalbudget.report._categories import Categories
from evalbudget.report._components import Components
from evalbudget.report._judges import Judges
from evalbudget.report._leaderboard import Leaderboard
from evalbudget.report._reference import AgainstReference
from evalbudget.report._self_preference import SelfPreferences
from evalbudget.tables import NotedTable


def one_rater(scores: np.ndarray) -> RecordedScores:
    return recorded(scores, raters=("r",))


def section(found: Any, cls: type[Any]) -> Any:
    (one,) = [s for s in found.sections if isinstance(s, cls)]
    return one


def test_one_rater_against_the_estimator() -> None:
    x = panel(judges=1, repeats=3)
    x[1, 4, 0] = np.nan
    x[2, 7, 0, 1:] = np.nan
    board = section(report(nothing_missing(one_rater(x)), level=0.9), Leaderboard)
    assert [row.model for row in board.rows] == ["m2", "m1", "m0"]
    for row in board.rows:
        item, epoch = np.nonzero(~np.isnan(x[int(row.model[1]), :, 0]))
        readings = ItemReadings.of(item, epoch, x[int(row.model[1]), item, 0, epoch], n_items=40)
        theirs = mean_over_sampled_items(readings, allocation=Allocation.FIXED)
        own, everyone = theirs.confidence_interval(0.9), theirs.confidence_interval(1 - 0.1 / 3)
        assert (row.estimate, row.standard_error) == pytest.approx((theirs.value, theirs.standard_error))
        assert (row.low, row.high) == pytest.approx((own.low, own.high))
        assert (row.all_low, row.all_high) == pytest.approx((everyone.low, everyone.high))
        assert (row.items, row.readings) == (39 if row.model == "m1" else 40, readings.value.size)


@pytest.mark.parametrize(
    ("lost", "said"), [(0, "4 readings per item."), (1, "3 to 5 readings per item, 4 on average.")]
)
def test_how_often_items_were_read_is_said_as_it_is(lost: int, said: str) -> None:
    x = panel(models=1, judges=1, repeats=4 + lost)
    if lost:
        x[0, 0, 0, 3:] = np.nan
        x[0, 2:, 0, 4] = np.nan
    (table,) = section(report(nothing_missing(one_rater(x))), Leaderboard).tables()
    assert f"40 items. {said}" in str(table.note)


def test_a_level_near_one_is_not_shown_as_certainty() -> None:
    found = report(recorded(panel()), level=0.999)
    told = f"{found.table()} {page(found)}"
    assert "99.9% interval" in told
    assert "99.9% at once" in told
    assert "100%" not in told.partition("<style>")[0] + told.partition("</style>")[2]


def test_differences_of_one_rater_are_paired_by_item() -> None:
    x = panel(judges=1, repeats=2)
    x[1, 4, 0] = np.nan
    for against, comparisons, other in ((None, 3, 2), ("m0", 2, 0)):
        found = section(report(nothing_missing(one_rater(x)), against=against), Verdicts)
        assert (found.against, found.comparisons) == (f"m{other}", comparisons)
        for row in found.rows:
            difference = np.mean(x[int(row.first[1]), :, 0], axis=1) - x[other, :, 0].mean(axis=1)
            difference = difference[~np.isnan(difference)]
            n = difference.size
            assert n == (39 if row.first == "m1" else 40)
            error = difference.std(ddof=1) / np.sqrt(n)
            assert (row.difference, row.standard_error) == pytest.approx((difference.mean(), error))
            off = np.abs(difference - difference.mean()).max()
            reach = max(error, math.hypot(n * error, math.sqrt(2) * off) / (n + 2))
            half = reach * student_t.ppf(1 - 0.025 / comparisons, n - 1)
            assert (row.low, row.high) == pytest.approx((row.difference - half, row.difference + half))
            assert row.items == n


def test_panel_against_the_estimators() -> None:
    x = panel()
    x[0, 3, 1] = np.nan
    found = report(recorded(x))
    names = ("j0", "j1", "j2", "j3")
    table = [JudgeScores.from_table(x[m], judges=names) for m in range(3)]
    for row in section(found, Leaderboard).rows:
        theirs = panel_mean(table[int(row.model[1])])
        assert (row.estimate, row.standard_error) == pytest.approx((theirs.value, theirs.standard_error))
    for row in section(found, Verdicts).rows:
        theirs = panel_mean(JudgeScores.from_table(x[int(row.first[1])] - x[2], judges=names))
        assert (row.difference, row.standard_error) == pytest.approx(
            (theirs.value, theirs.standard_error), rel=0.02
        )


def even(judges: int) -> np.ndarray:
    return panel(models=5, judges=judges)


def uneven() -> np.ndarray:
    """One of three judges has few of the scores, so that much of the error is that of its bias."""
    x = panel(models=5, judges=3, repeats=1)
    judge = np.where(np.arange(40) < 4, 2, np.arange(40) % 2)
    x[:, judge[:, None] != np.arange(3)] = np.nan
    return x


def other_judges() -> np.ndarray:
    x = panel(models=5, judges=3)
    x[4, :, 0] = np.nan
    return x


@pytest.mark.parametrize("x", [even(1), even(3), uneven(), other_judges()])
def test_verdicts_are_those_of_compare_and_ranks_follow_from_them(x: np.ndarray) -> None:
    x[0] += 0.45
    x[3, :5] = np.nan
    found = report(recorded(x))
    verdicts, board = section(found, Verdicts), section(found, Leaderboard)
    theirs = {(row.first, row.second): row for row in compare(recorded(x)).rows}
    assert len(verdicts.pairs) == len(theirs) == 10
    bounds = Study(recorded(x)).pair_bounds
    better = dict.fromkeys(found.models, 0)
    for row in verdicts.pairs:
        same = (row.first, row.second) in theirs
        other = theirs[(row.first, row.second) if same else (row.second, row.first)]
        low, high = (other.low, other.high) if same else (-other.high, -other.low)
        assert row.difference == pytest.approx(other.difference if same else -other.difference)
        assert (row.low, row.high) == pytest.approx((low, high))
        assert (row.verdict, row.items_needed) == (other.verdict, other.items_needed)
        place = int(row.first[1]), int(row.second[1])
        assert (bounds.low[place], bounds.high[place]) == pytest.approx((row.low, row.high))
        better[row.second] += row.outcome is Outcome.FIRST
    assert {row.model: row.best_rank - 1 for row in board.rows} == better
    assert Outcome.UNDECIDED in {row.outcome for row in verdicts.pairs}


def test_the_error_of_a_rare_judges_bias_is_counted() -> None:
    """Worked by hand: what the panel's own error has beyond the items' is added, for both models."""
    x = uneven()[:2]
    (row,) = compare(recorded(x)).rows
    study = Study(recorded(x))
    means = study.all_item_means
    items = np.var(means[0] - means[1], ddof=1) / 40
    extra = [study.mean(m).standard_error ** 2 - np.var(means[m], ddof=1) / 40 for m in (0, 1)]
    assert min(extra) > 0.0
    assert sum(extra) > items
    assert row.standard_error == pytest.approx(math.sqrt(items + sum(extra)))
    degrees = [39.0, *(study.mean(m).details["degrees"] for m in (0, 1))]
    parts = [items, *extra]
    df = sum(parts) ** 2 / sum(part**2 / d for part, d in zip(parts, degrees, strict=True))
    off = means[0] - means[1] - row.difference
    reach = max(
        row.standard_error, math.hypot(40 * row.standard_error, math.sqrt(2) * np.abs(off).max()) / 42
    )
    assert row.high - row.difference == pytest.approx(reach * student_t.ppf(0.975, df))


def test_models_that_different_judges_scored_are_compared_by_those_of_both() -> None:
    """A lenient judge of one of them makes no difference between models that are the same."""
    x = panel(models=2, judges=3)
    x[1] = x[0]
    x[1, :, 2] += 5.0
    x[0, :, 2] = np.nan
    (row,) = section(report(recorded(x)), Verdicts).rows
    assert (row.difference, row.outcome) == (pytest.approx(0.0, abs=1e-9), Outcome.UNDECIDED)
    x[1, :, :2] = np.nan
    found = section(report(recorded(x)), Verdicts)
    assert found.rows[0].items == 0


def test_judges_and_components_of_one_model_are_the_estimators() -> None:
    x = panel(models=1)
    found = report(recorded(x))
    scores = JudgeScores.from_table(x[0], judges=("j0", "j1", "j2", "j3"))
    biases = judge_biases(scores)
    bounds = biases.confidence_intervals(0.95)
    rows = {row.judge: row for row in section(found, Judges).rows}
    for j, name in enumerate(biases.judges):
        row = rows[name]
        assert (row.bias, row.all_low, row.all_high) == pytest.approx(
            (biases.value[j], bounds.low[j], bounds.high[j])
        )
        assert row.mean == pytest.approx(x[0, :, j].mean())
    assert [row.judge for row in section(found, Judges).rows] == ["j3", "j2", "j1", "j0"]
    components = variance_components(scores, bootstrap=200)
    for row, component in zip(section(found, Components).rows, components.components, strict=True):
        assert (row.source, row.variance) == (component.name, pytest.approx(component.value))
        assert row.low < row.high
    assert sum(row.share for row in section(found, Components).rows) == pytest.approx(1)
    with pytest.raises(UnknownNameError, match=r"unknown section 'judge'. Did you mean 'judges'"):
        found["judge"]
    assert found["judges"] is section(found, Judges)


def test_biases_over_models_are_not_moved_by_the_models_means() -> None:
    x = panel(models=3)
    apart = x + np.array([0.0, 50.0, -50.0])[:, None, None, None]
    ours, theirs = (section(report(recorded(y)), Judges) for y in (x, apart))
    for a, b in zip(ours.rows, theirs.rows, strict=True):
        assert (a.bias, a.standard_error) == pytest.approx((b.bias, b.standard_error))
    mean = x.mean(axis=(0, 1, 3))
    assert {row.judge: row.bias for row in ours.rows} == pytest.approx(
        {f"j{j}": mean[j] - mean.mean() for j in range(4)}
    )


def test_a_design_that_cannot_tell_sources_apart_says_so() -> None:
    found = section(report(recorded(panel(repeats=1))), Components)
    assert [row.identified for row in found.rows] == [False, False, True]
    assert "not identified" in found.label
    assert "item + generation" in [row.source for row in found.rows]


def test_ranks_follow_from_the_differences() -> None:
    rng = np.random.default_rng(1)
    items = rng.normal(size=50)
    noise = rng.normal(scale=0.1, size=(4, 50))
    x = (items + np.array([0.0, 5.0, 5.0, 9.0])[:, None] + noise)[:, :, None, None]
    rows = {row.model: row for row in section(report(one_rater(x)), Leaderboard).rows}
    found = {model: (row.best_rank, row.worst_rank) for model, row in rows.items()}
    assert found == {"m3": (1, 1), "m1": (2, 3), "m2": (2, 3), "m0": (4, 4)}


def test_identical_models_and_constant_scores_claim_nothing() -> None:
    x = np.ones((3, 10, 1, 1))
    x[2, ::2] = 0.0
    x[1] = x[0]
    found = report(one_rater(x))
    board, differences = section(found, Leaderboard), section(found, Verdicts)
    assert [row.rank for row in board.rows] == [1, 1, 3]
    assert math.isnan(board.rows[0].standard_error)
    assert 0.5 < board.rows[0].low < board.rows[0].high == 1.0
    assert [(r.best_rank, r.worst_rank) for r in board.rows] == [(1, 2), (1, 2), (3, 3)]
    assert any(
        "all items score the same; its interval is exact for scores from 0 to 1" in n for n in board.notes
    )
    assert differences.rows[0].outcome is Outcome.UNDECIDED
    low, high = differences.rows[0].low, differences.rows[0].high
    assert 0.0 < high == -low < 0.5  # ten items alike do not show that all are
    assert str(differences.rows[0].difference) == "0.0"
    assert json.loads(found.to_json())["leaderboard"]["rows"][0]["standard_error"] is None
    rated = section(report(one_rater(6.0 + np.where(x == 1.0, 1.0, 1.0))), Leaderboard)
    assert math.isnan(rated.rows[0].low)
    assert any("proves no interval" in note for note in rated.notes)


@pytest.mark.parametrize(
    ("clusters", "categories", "said"),
    [
        ([0, 0, 1, 1, 2, 2], None, "all clusters have the same mean; its interval is exact"),
        (None, [0, 1, 0, 1, 0, 1], "all items of a task score the same; its interval is exact"),
    ],
    ids=["clusters", "tasks"],
)
def test_scores_that_differ_are_not_said_to_be_the_same(
    clusters: list[int] | None, categories: list[int] | None, said: str
) -> None:
    scores = one_rater(np.tile([0.0, 1.0], 3)[None, :, None, None])
    labels = None if clusters is None else dict(zip(scores.items, map(str, clusters), strict=True))
    found = replace(
        scores,
        declared=Declared.of(scores.models, scores.items, scores.raters, clusters=labels, cluster="doc"),
        categories=None if categories is None else tuple(map(str, categories)),
        by_category=categories is not None,
    )
    notes = " ".join(section(report(found), Leaderboard).notes)
    assert said in notes
    assert "all items score the same" not in notes


def bought(x: np.ndarray, *purchases: HowBought, **options: Any) -> RecordedScores:
    return recorded(x, purchases=purchases, **options)


def test_readings_bought_because_of_scores_do_not_count() -> None:
    x = panel(models=2, judges=1, repeats=6)
    epochs = np.broadcast_to(np.arange(6)[::-1], x.shape)  # order of purchase, not of the array
    adaptive = HowBought(Allocation.ADAPTIVE, 2, cost=300.0, usd=1.5)
    source = bought(x, adaptive, HowBought(), epochs=epochs)
    found = report(source)
    rows = {row.model: row for row in section(found, Leaderboard).rows}
    assert rows["m0"].estimate == pytest.approx(x[0, :, 0, 4:].mean())
    assert rows["m1"].estimate == pytest.approx(x[1].mean())
    assert (rows["m0"].readings, rows["m0"].readings_recorded, rows["m0"].cost) == (80, 240, 300.0)
    (difference,) = section(found, Verdicts).rows
    assert abs(difference.difference) == pytest.approx(abs(x[0, :, 0, 4:].mean() - x[1].mean()))
    assert rows["m0"].per_usd == pytest.approx(1 / (1.5 * rows["m0"].standard_error ** 2))
    assert rows["m1"].per_usd is None
    text = str(found.table())
    assert "Per $: precision per dollar" in " ".join(text.split())
    assert "80 of 240 readings count, the first 2 of each item" in " ".join(text.split())
    with pytest.raises(InvalidInferenceError, match="every reading of model 'm0' was bought because of"):
        report(bought(x, HowBought(Allocation.ADAPTIVE, 0), HowBought(), epochs=epochs))


def test_phased_readings_all_count_and_items_are_means_over_phases() -> None:
    """Worked by hand: with 2 readings of each item, then 2.5 on average, phases weigh 4/9 and 5/9."""
    x = panel(models=2, judges=1, repeats=5)
    x[0, ::2, 0, 4:] = np.nan
    phases = np.broadcast_to([0.0, 0.0, 1.0, 1.0, 1.0], x.shape)
    found = report(bought(x, HowBought(Allocation.PHASED, 2), HowBought(), phases=phases))
    rows = {row.model: row for row in section(found, Leaderboard).rows}
    first, second = x[0, :, 0, :2].mean(axis=1), np.nanmean(x[0, :, 0, 2:], axis=1)
    means = np.array([first * 4 / 9 + second * 5 / 9, x[1, :, 0].mean(axis=1)])
    for model in (0, 1):
        row = rows[f"m{model}"]
        assert row.estimate == pytest.approx(means[model].mean())
        assert row.standard_error == pytest.approx(means[model].std(ddof=1) / np.sqrt(40))
    assert rows["m0"].readings == int((~np.isnan(x[0])).sum())
    (difference,) = section(found, Verdicts).rows
    assert abs(difference.difference) == pytest.approx(abs((means[0] - means[1]).mean()))
    assert "m0: adaptive repeats; all readings count" in " ".join(str(found.table()).split())


@pytest.mark.parametrize("allocation", [Allocation.ADAPTIVE, Allocation.PHASED])
def test_panels_bought_because_of_scores(allocation: Allocation) -> None:
    x = panel(models=2, repeats=4)
    x[0, ::2, :, 2:] = np.nan
    purchase = HowBought(allocation, 2)
    found = report(bought(x, purchase, HowBought(), epochs=np.broadcast_to(np.arange(4), x.shape)))
    names = ("j0", "j1", "j2", "j3")
    scores = JudgeScores.from_table(x[0], judges=names)
    theirs = panel_mean(scores, allocation=allocation, fixed_repeats=2)
    rows = {row.model: row for row in section(found, Leaderboard).rows}
    assert (rows["m0"].estimate, rows["m0"].standard_error) == pytest.approx(
        (theirs.value, theirs.standard_error)
    )
    assert rows["m0"].readings == (320 if allocation is Allocation.ADAPTIVE else 480)
    (difference,) = section(found, Verdicts).rows
    assert difference.items == 40
    if allocation is Allocation.ADAPTIVE:
        assert abs(difference.difference) == pytest.approx(abs(x[0, :, :, :2].mean() - x[1].mean()))
    judges = section(found, Judges)
    assert sum(row.scores for row in judges.rows) == 320 + 640  # only what was bought whatever the scores


def test_self_preference_shows_where_a_judge_is_a_model() -> None:
    x = panel(models=4, repeats=1)
    x[1, :, 1] += 2.0
    judges = ("p/m0", "p/m1", "other", "else")
    found = section(report(recorded(x, raters=judges)), SelfPreferences)
    own = {row.judge: row for row in found.rows}
    assert set(own) == {"p/m0", "p/m1"}
    assert own["p/m1"].low > 1.0
    assert own["p/m0"].high < own["p/m1"].low
    assert not [s for s in report(recorded(x)).sections if isinstance(s, SelfPreferences)]


def test_categories_against_their_items() -> None:
    x = panel(judges=1)
    labels = tuple("ab"[k % 2] for k in range(40))
    found = section(report(recorded(x, raters=("r",), categories=labels)), Categories)
    assert [(r.model, r.category) for r in found.rows] == [
        (m, c) for m in ("m2", "m1", "m0") for c in ("a", "b")
    ]
    for row in found.rows:
        at = "ab".index(row.category)
        assert row.estimate == pytest.approx(x[int(row.model[1]), at::2].mean())
        assert row.all_low < row.low < row.estimate < row.high < row.all_high
    assert "all 6 means" in found.label
    alike = np.where(np.array(labels) == "a", 1.0, x[0, :, 0, 0])[None, :, None, None]
    rows = section(report(recorded(alike, raters=("r",), categories=labels)), Categories).rows
    assert [math.isnan(row.standard_error) for row in rows] == [True, False]
    many = tuple(f"a long category {k % 9}" for k in range(40))
    tables = section(report(recorded(x, raters=("r",), categories=many)), Categories).tables()
    assert len(tables) > 1
    assert all(len(line) <= 80 for t in tables for line in str(t).splitlines())


def test_reference_bias_is_paired_and_clustered_by_item() -> None:
    x = panel(models=2, repeats=1)
    rng = np.random.default_rng(3)
    truth = x.mean(axis=2) - 1.0 + 0.1 * rng.normal(size=(2, 40, 2))
    truth[0, :5] = np.nan
    found = section(report(recorded(x, reference=truth)), AgainstReference)
    assert [row.judge for row in found.rows] == ["j0", "j1", "j2", "j3", "mean of the panel"]
    assert not found.odd
    difference = x[:, :, 2, 0] - np.nanmean(np.where(np.isnan(truth), 0, truth), axis=2)
    difference[0, :5] = np.nan
    per_item = np.nanmean(difference, axis=0)
    assert found.rows[2].bias == pytest.approx(per_item.mean())
    assert found.rows[2].standard_error == pytest.approx(per_item.std(ddof=1) / np.sqrt(40))
    assert found.rows[4].low < 1.0 < found.rows[4].high
    assert found.rows[4].correlation > 0.9
    other = section(report(recorded(x, reference=truth * 100)), AgainstReference)
    assert other.odd
    assert "on another scale" in other.label


def test_several_recordings_side_by_side() -> None:
    x = panel(judges=1)
    first = one_rater(x)
    parts = {
        "a.npz": first.select(model="m0"),
        "b.npz": replace(
            first.select(model="m2"), items=tuple(reversed(first.items)), scores=x[2:, ::-1].copy()
        ),
    }
    found = report(parts)
    whole = report(first, models=["m0", "m2"])
    assert found.to_dict()["leaderboard"] == whole.to_dict()["leaderboard"]
    assert found.to_dict()["differences"] == whole.to_dict()["differences"]
    apart = report({"a": first, "b": first}).models
    assert apart == ("m0 (a)", "m1 (a)", "m2 (a)", "m0 (b)", "m1 (b)", "m2 (b)")
    others = replace(first, models=("x", "y", "z"), items=tuple(f"k{i}" for i in range(40)))
    with pytest.raises(InvalidInputError, match="no items in common"):
        report({"a": first, "b": others})
    raters = replace(first, models=("x", "y", "z"), raters=("q",))
    with pytest.raises(InvalidInputError, match="no raters in common"):
        report({"a": first, "b": raters})
    with pytest.raises(InvalidInputError, match="nothing to report on"):
        report({})


def test_different_scales_are_refused_or_rescaled() -> None:
    x = panel()
    x[:, :, 0] *= 10
    with pytest.raises(InvalidInferenceError, match=r"--rater NAME.*--rescale"):
        report(recorded(x))
    rows = section(report(recorded(x), rescale=True), Leaderboard).rows
    assert all(0 < row.estimate < 1 for row in rows)
    assert section(report(recorded(x), rater="j0"), Leaderboard).raters == ("j0",)


def test_bad_names_and_missing_scores() -> None:
    x = panel()
    with pytest.raises(UnknownNameError, match=r"unknown model in --against 'm'. Did you mean"):
        report(recorded(x), against="m")
    with pytest.raises(UnknownNameError, match="unknown model 'n0'"):
        report(recorded(x), models=["n0"])
    with pytest.raises(InvalidInputError, match="given twice"):
        report(recorded(x), models=["m0", "m0"])
    with pytest.raises(InvalidInputError, match="level 95"):
        report(recorded(x), level=95)
    x[1] = np.nan
    with pytest.raises(InvalidInferenceError, match=r"'m1' has no score: all 40 .*leave that model out"):
        report(recorded(x), against="m1")
    assert [row.model for row in section(report(recorded(x)), Leaderboard).rows] == ["m2", "m0"]
    y = panel()
    y[1, :, 0] = np.nan
    notes = section(report(recorded(y)), Leaderboard).notes
    assert any("m1 was not scored by j0" in note for note in notes)


def test_models_without_shared_items_have_no_difference() -> None:
    x = panel(models=2, judges=1)
    x[0, :20], x[1, 20:] = np.nan, np.nan
    for scores in (one_rater(x), recorded(np.repeat(x, 2, axis=2))):
        found = report(scores)
        (row,) = section(found, Verdicts).rows
        assert (row.items, row.outcome) == (0, Outcome.UNDECIDED)
        assert math.isnan(row.difference)
        assert "-" in str(found.table())


def test_labels_say_what_is_claimed() -> None:
    found = report(recorded(panel()), level=0.9)
    for name in ("leaderboard", "differences", "judges"):
        label = found.to_dict()[name]["label"]
        for part in ("Random: items", "repeats", "fixed-n", "asymptotic", "90%", "Bonferroni"):
            assert part in label, (name, part)
    assert "all 3 pairs, since the leader was found" in found.to_dict()["differences"]["label"]
    chosen = report(recorded(panel()), against="m0").to_dict()["differences"]["label"]
    assert "these 2 comparisons" in chosen
    assert "no intervals" in found.to_dict()["components"]["label"]


def test_tables_fit_80_columns_and_names_are_not_markup() -> None:
    x = panel(models=2)
    names = ("a/very-long-provider/and-a-very-long-model-name-2026-01-01", "[red]b[/red]")
    text = str(report(recorded(x, models=names)).table())
    assert "[red]b[/red]" in text
    assert max(len(line) for line in text.splitlines()) <= 80


@dataclass(frozen=True)
class Broken(Section):
    name: ClassVar[str] = "broken"

    @classmethod
    def of(cls, study: Study) -> Self | None:
        raise RuntimeError("no luck")

    def tables(self) -> tuple[NotedTable, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {}


def test_a_section_that_breaks_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    found = report(recorded(panel()), sections=[*SECTIONS, Broken])
    assert [s.name for s in found.sections][-3:] == ["items", "least_known", "sources"]
    assert "section 'broken' failed" in caplog.text


@pytest.mark.parametrize(("scale", "known"), [(1.0, True), (2.0, False)])
def test_intervals_of_zeros_and_ones_stay_between_them(scale: float, known: bool) -> None:
    rng = np.random.default_rng(3)
    scores = (rng.random((3, 12, 1, 2)) < np.array([0.5, 0.93, 2.0])[:, None, None, None]).astype(float)
    found = report(replace(one_rater(scale * scores), categories=tuple("ab" * 6)))
    rows = [*section(found, Leaderboard).rows, *section(found, Categories).rows]
    ends = np.array([[row.low, row.high, row.all_low, row.all_high] for row in rows])
    assert (np.nanmax(ends) <= scale) == known
    board = section(found, Leaderboard).rows
    inside = [r.low < r.estimate < r.high for r in board]
    assert inside == [False, True, True]  # the scores of the first are all equal


def test_items_are_counted_by_variance_and_by_mean() -> None:
    scores = np.full((1, 20, 1, 3), np.nan)
    scores[0, :, 0, 0] = scores[0, :, 0, 1] = np.arange(20) / 10
    scores[0, 10:, 0, 2] = scores[0, 10:, 0, 1]
    scores[0, 18, 0] = (0.0, 3.0, 0.0)  # mean 1, variance 3
    scores[0, 19, 0] = (4.0, 2.0, np.nan)  # mean 3, variance 2
    found = Items.of(Study(recorded(scores)))
    assert found is not None
    assert (found.items, found.repeats, found.never_vary) == (20, 2.0, 0.9)
    assert found.held_by_most_variable == 1.0  # two of twenty
    assert found.variance_counts == (18, 0, 0, 0, 0, 1, 0, 1)
    assert (found.variance_edges[0], found.variance_edges[-1]) == (0.0, 3.0)
    assert sum(found.mean_counts) == 20
    assert found.mean_edges[-1] == 3.0
    text = str(found.table())
    assert "20 items with 2 scores each (median); 90% of them never varied." in " ".join(text.split())
    scores[0, 18:, 0] = 1.0
    still = Items.of(Study(recorded(scores)))
    assert still is not None
    assert still.label.endswith("Repeats teach nothing here.")
    assert json.dumps(still.to_dict() | {"held_by_most_variable": None})
    assert Items.of(Study(recorded(scores[..., :1]))) is None


def test_a_model_with_repeats_beside_one_without() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 20, 1, 1)) + rng.normal(size=(2, 20, 3, 2))
    scores[0, :, :, 1] = np.nan
    table = RecordedScores(scores, ("once", "twice"), tuple(map(str, range(20))), ("x", "y", "z"))
    found = report(replace(table, one_generation=True)).to_dict()["components"]
    assert len(found["models"]) == len(found["left_out"]) == 1
