"""What a report says of answers that are missing, of scores that never differ, and of which way is better."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from tests.report.worlds import nothing_missing, recorded

from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import Outcome, Verdicts, compare
from evalbudget.doctor import diagnose
from evalbudget.doctor.checks._items_in_common import ItemsInCommon
from evalbudget.frames import Scores
from evalbudget.missing import Missing
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._how_bought import HowBought
from evalbudget.report import report
from evalbudget.report._categories import Categories, CategoryMean
from evalbudget.report._leaderboard import Leaderboard
from evalbudget.report._study import Study
from evalbudget.sampler import Allocation


def of(scores: np.ndarray, **more: object) -> RecordedScores:
    """One rater's, shape (models, items)."""
    return recorded(scores[:, :, None, None].astype(float), raters=("r",), **more)


def board(scores: RecordedScores, missing: Missing = Missing.WORST) -> Leaderboard:
    (found,) = report(scores, sections=(Leaderboard,), missing=missing).sections
    assert isinstance(found, Leaderboard)
    return found


def crashing(n: int = 60) -> RecordedScores:
    """The first model is right on half of the items, and crashed on the other half; the second has .6."""
    first = np.where(np.arange(n) < n // 2, 1.0, np.nan)
    return of(np.stack([first, (np.arange(n) % 5 < 3) * 1.0]))


def test_ranks_and_intervals_hold_whatever_the_missing_answers_would_have_been() -> None:
    found = board(crashing())
    rows = {row.model: row for row in found.rows}
    assert [(row.best_rank, row.worst_rank) for row in found.rows] == [(1, 2), (1, 2)]
    assert rows["m0"].low < 0.4
    assert rows["m0"].high == 1.0
    assert "30 of m0's answers are missing: intervals and verdicts hold whatever" in " ".join(found.notes)
    assert "leave all of them open" in found.label
    dropped = board(nothing_missing(crashing()))
    assert {row.model: row.best_rank for row in dropped.rows} == {"m0": 1, "m1": 2}
    assert "what the paired differences of all pairs together leave open" in dropped.label
    zero = {row.model: row for row in board(crashing(), Missing.ZERO).rows}
    assert (zero["m0"].estimate, zero["m0"].items) == (0.5, 60)
    left_out = {row.model: row for row in board(crashing(), Missing.DROP).rows}
    assert (left_out["m0"].estimate, left_out["m0"].worst_rank) == (1.0, 1)


def test_verdicts_say_whose_answers_keep_them_open() -> None:
    (found,) = report(crashing(), sections=(Verdicts,)).sections
    assert isinstance(found, Verdicts)
    (row,) = found.rows
    assert (row.outcome, row.if_dropped) == (Outcome.UNDECIDED, Outcome.SECOND)
    assert "undecided: 30 of m0's" in " ".join(str(found.tables()[0]).split())
    assert found.to_dict()["rows"][0]["missing"] == {"first": 0, "second": 30}


def test_readings_that_were_asked_again_are_not_missing() -> None:
    scores = of(np.ones((2, 30)))
    failed = np.full((2, 30, 1), 2, dtype=np.int64)
    again = replace(scores, failed=failed, purchases=(HowBought(Allocation.PHASED, 2),) * 2)
    assert not any("missing" in note for note in board(again).notes)
    assert any(
        "60 of m0's and 60 of m1's answers" in note for note in board(replace(scores, failed=failed)).notes
    )


@pytest.mark.parametrize(("value", "low", "high"), [(0.0, 0.0, 0.1372), (1.0, 0.8628, 1.0)])
def test_scores_that_never_differ_have_an_exact_interval_and_no_error(
    value: float, low: float, high: float
) -> None:
    scores = of(np.full((1, 25), value))
    (row,) = board(scores).rows
    assert (row.low, row.high) == pytest.approx((low, high), abs=1e-4)
    assert math.isnan(row.standard_error)
    assert any("its interval is exact for scores from 0 to 1" in note for note in board(scores).notes)
    frame = Scores(scores).models().to_dict("records")[0]
    assert (frame["lower"], frame["upper"]) == pytest.approx((low, high), abs=1e-4)
    assert frame["stderr"] != 0.0


def test_a_declared_range_gives_equal_ratings_an_interval() -> None:
    scores = of(np.full((1, 25), 5.0))
    assert math.isnan(board(scores).rows[0].low)
    declared = Declared.of(scores.models, scores.items, scores.raters, ranges={"r": (1.0, 5.0)})
    (row,) = board(replace(scores, declared=declared)).rows
    assert (row.low, row.high) == pytest.approx((1.0 + 4.0 * 0.8628, 5.0), abs=1e-3)


def test_the_lowest_leads_where_lower_is_better() -> None:
    rng = np.random.default_rng(3)
    scores = of((rng.random((3, 200)) < np.array([[0.5], [0.1], [0.8]])) * 1.0)
    declared = Declared.of(scores.models, scores.items, scores.raters, lower_is_better={"r": True})
    found = report(replace(scores, declared=declared), sections=(Leaderboard, Verdicts))
    leaders, verdicts = found.sections
    assert isinstance(leaders, Leaderboard)
    assert isinstance(verdicts, Verdicts)
    assert [(row.model, row.rank, row.best_rank, row.worst_rank) for row in leaders.rows] == [
        *(("m1", 1, 1, 1), ("m0", 2, 2, 2), ("m2", 3, 3, 3)),
    ]
    assert "the lowest mean is first" in leaders.label
    assert (verdicts.against, [row.outcome for row in verdicts.rows]) == ("m1", [Outcome.SECOND] * 2)
    assert "Lower is better." in verdicts.label


def test_every_column_is_there_on_80_columns() -> None:
    rng = np.random.default_rng(4)
    table = 1e4 * rng.random((3, 300))
    table[0, :30] = np.nan
    scores = of(
        table,
        models=("openai/gpt-5-with-a-long-name", "anthropic/claude", "google/gemini"),
        purchases=tuple(HowBought(Allocation.FIXED, 0, 1000.0 + m, 12.5) for m in range(3)),
    )
    console = Console(width=80)
    with console.capture() as shown:
        console.print(report(scores, sections=(Leaderboard, Verdicts)).table())
    text = shown.get()
    assert "…" not in text
    for name in ("rank", "model", "mean", "at once", "readings", "usd", "per $", "difference", "verdict"):
        assert name in text
    assert text.count("anthropic/claude") == 3


def test_declared_clusters_are_counted_as_the_draws() -> None:
    """Eight documents of ten questions: means, ranks, differences and comparisons all go by documents."""
    rng = np.random.default_rng(5)
    shift = np.repeat(rng.normal(0.0, 0.3, 8), 10)
    scores = of((rng.random((3, 80)) < np.array([[0.6], [0.5], [0.2]]) + shift) * 1.0)
    labels = {item: str(k // 10) for k, item in enumerate(scores.items)}
    declared = Declared.of(scores.models, scores.items, scores.raters, clusters=labels, cluster="document")
    clustered = replace(scores, declared=declared)
    alone, together = board(scores), board(clustered)
    assert together.rows[0].standard_error > 1.3 * alone.rows[0].standard_error
    assert "clusters of items (document; sampled, independent)" in together.label
    (verdicts,) = report(clustered, sections=(Verdicts,)).sections
    assert isinstance(verdicts, Verdicts)
    theirs = {(row.first, row.second): row for row in compare(clustered).rows}
    bounds = Study.of(clustered).pair_bounds
    for row in verdicts.pairs:
        a, b = int(row.first[1]), int(row.second[1])
        assert row.clusters == 8
        assert (bounds.low[a, b], bounds.high[a, b]) == pytest.approx((row.low, row.high))
        if (row.first, row.second) in theirs:
            other = theirs[row.first, row.second]
            assert (other.low, other.high) == pytest.approx((row.low, row.high))


def test_a_panel_of_which_one_judge_lacks_scores() -> None:
    rng = np.random.default_rng(4)
    truth = rng.random((2, 60)) < [[0.3], [0.5]]
    table = (truth[:, :, None] ^ (rng.random((2, 60, 2)) < 0.1)).astype(float)
    table[1, :10, 1] = np.nan
    lost = np.isnan(table).astype(np.int64)
    scores = recorded(table[..., None], raters=("j1", "j2"), failed=lost)
    found = board(scores)
    assert "10 of m1's answers are missing" in " ".join(found.notes)
    whole = board(scores, Missing.DROP)
    for row, dropped in zip(found.rows, whole.rows, strict=True):
        assert 0.0 <= row.low <= dropped.low < dropped.high <= row.high <= 1.0
        assert (row.high - row.low > dropped.high - dropped.low) == (row.model == "m1")


HARD = ("easy",) * 20 + ("hard",) * 20


def categories(scores: RecordedScores, missing: Missing = Missing.WORST) -> Categories:
    (found,) = report(scores, sections=(Categories,), missing=missing).sections
    assert isinstance(found, Categories)
    return found


def in_two(scores: np.ndarray, **more: object) -> RecordedScores:
    """20 easy items and 20 hard ones; who has no score failed."""
    failed = np.isnan(scores).astype(np.int64)[..., None]
    return of(scores, **({"categories": HARD, "failed": failed} | more))


def hard(found: Categories, model: str = "m0") -> CategoryMean:
    return next(row for row in found.rows if (row.model, row.category) == (model, "hard"))


def ends(row: CategoryMean) -> tuple[float, float, float, float]:
    return row.low, row.high, row.all_low, row.all_high


def with_missing(value: float = math.nan, models: int = 1, *, scale: float = 1.0) -> np.ndarray:
    """The first model has 15 of 20 easy items right, 12 of 14 hard ones, and ``value`` on 6 more of these."""
    scores = np.tile((np.arange(40) % 2) * 1.0, (models, 1))
    scores[0] = np.where(np.arange(40) % 20 < np.repeat([15, 12], 20), 1.0, 0.0)
    scores[0, 34:] = value
    return scale * scores


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("by_category", [False, True])
def test_a_category_holds_whatever_its_missing_answers_would_have_been(
    models: int, by_category: bool
) -> None:
    more = {"by_category": by_category}
    found = categories(in_two(with_missing(models=models), **more))
    row = hard(found)
    assert (row.items, row.missing, row.estimate) == (14, 6, pytest.approx(12 / 14))
    worst, best = (hard(categories(in_two(with_missing(value, models), **more))) for value in (0.0, 1.0))
    assert (row.low, row.all_low) == pytest.approx((worst.low, worst.all_low))
    dropped = hard(categories(in_two(with_missing(models=models), **more), Missing.DROP))
    assert row.high == pytest.approx(max(best.high, dropped.high))
    assert row.all_high == pytest.approx(max(best.all_high, dropped.all_high))
    assert row.low < dropped.low - 0.1
    zero = hard(categories(in_two(with_missing(models=models), **more), Missing.ZERO))
    assert (zero.items, zero.missing, ends(zero)) == (20, 6, pytest.approx(ends(worst)))
    whole = categories(in_two(with_missing(0.0, models), **more))
    for one, other in zip(found.rows, whole.rows, strict=True):
        assert (one.category == "hard" and one.model == "m0") or one == other


def test_a_category_has_the_interval_of_a_model_that_was_asked_nothing_else() -> None:
    scores = with_missing()
    alone = Study.of(in_two(scores[:, 20:], categories=None))
    own, at_once = alone.rows(0, 0.95), alone.rows(0, 0.975)
    row = hard(categories(in_two(scores)))
    assert (row.items, row.estimate, row.standard_error) == (own["items"], own["estimate"], own["stderr"])
    assert ends(row) == (own["lower"], own["upper"], at_once["lower"], at_once["upper"])
    tasks = Study.of(in_two(scores, by_category=True)).tasks
    assert alone.missing_note.startswith("6 of m0's answers are missing")
    assert [tasks[name].study.missing_note for name in ("easy", "hard")] == ["", alone.missing_note]


@pytest.mark.parametrize("models", [1, 2])
def test_a_task_that_nobody_answered_could_be_anything(models: int) -> None:
    scores = with_missing(models=models)
    scores[:, 20:] = math.nan

    def study(value: float | list[float] = math.nan, **more: object) -> Study:
        filled = np.where(np.isnan(scores), np.reshape(value, (-1, 1)), scores)
        return Study.of(in_two(filled, by_category=True), **more)  # type: ignore[arg-type]

    found = study().rows(0, 0.95)
    assert (found["items"], found["estimate"]) == (20, 0.75)
    assert found["lower"] == pytest.approx(study(0.0).rows(0, 0.95)["lower"])
    assert found["upper"] == pytest.approx(study(1.0).rows(0, 0.95)["upper"])
    zero = study(missing="zero").rows(0, 0.95)
    assert (zero["items"], zero["estimate"]) == (40, 0.375)
    alone = Study.of(of(scores[:, :20])).rows(0, 0.95)
    assert study(missing="drop").rows(0, 0.95) == alone
    if models > 1:
        low = study([0.0, 1.0]).pair_bounds.low[0, 1]
        assert study().pair_bounds.low[0, 1] == pytest.approx(low)
        (row,) = compare(in_two(scores, by_category=True)).rows
        assert row.low == pytest.approx(low)


def test_the_scale_of_a_task_that_nobody_answered_is_that_of_the_others() -> None:
    scores = with_missing(scale=5.0)
    scores[:, 20:] = math.nan
    study = Study.of(in_two(scores, by_category=True))
    assert study.missing_note.endswith(
        "from the lowest to the highest seen in their task, or in the others where nobody answered theirs."
    )
    easy, hard_ = (part.study for part in study.tasks.values())
    assert hard_.scale == easy.scale == (0.0, 5.0)
    (table,) = categories(in_two(with_missing(scale=5.0), by_category=True)).tables()
    assert "in their task." in " ".join(str(table).split())


def test_a_matrix_has_a_dash_where_nobody_answered() -> None:
    scores = with_missing(models=2)
    scores[:, 20:] = math.nan
    (table,) = categories(in_two(scores)).tables()
    assert str(table).splitlines()[2].split()[-1] == "-"


def test_tables_say_in_which_categories_answers_are_missing() -> None:
    one = categories(in_two(with_missing()))
    (table,) = one.tables()
    said = "6 of m0's answers in hard are missing: intervals and verdicts hold whatever they would have been"
    assert f"{said}, from 0 to 1." in " ".join(str(table).split())
    assert [line.split()[-2:] for line in str(table).splitlines()[1:4]] == [
        *(["items", "missing"], ["20", "0"], ["14", "6"]),
    ]
    assert one.to_dict()["notes"][0].startswith(said)
    assert one.to_dict()["rows"][1]["missing"] == 6
    scores = with_missing(models=5)
    for model in range(1, 5):
        scores[model, :model] = np.nan
    five = categories(in_two(scores))
    assert five.to_dict()["notes"][0].startswith(
        "6 of m0's answers in hard, 4 of m4's in easy, 3 of m3's in easy and 3 elsewhere are missing: "
    )
    assert " 1 of m1's answers in easy is missing: intervals and verdicts" in five.about_model("m1")[0].note
    assert (
        categories(in_two(scores), Missing.DROP)
        .to_dict()["notes"][0]
        .endswith(" are missing, and left out (--missing drop).")
    )
    whole = categories(in_two(with_missing(0.0)))
    assert "missing" not in str(whole.tables()[0])
    assert whole.to_dict()["notes"] == []


def test_a_cell_of_several_models_reaches_as_far_as_the_interval() -> None:
    found = categories(in_two(with_missing(models=2)))
    row = hard(found)
    assert row.estimate - row.all_low > row.all_high - row.estimate
    assert f"0.86 \u00b1{row.estimate - row.all_low:.2f}" in str(found.tables()[0])
    assert "\u00b1 (its wider side): all 4 means together" in " ".join(str(found.tables()[0]).split())


@pytest.mark.parametrize(("by_category", "low", "high"), [(False, 1.0, 9.0), (True, 3.0, 5.0)])
def test_what_a_missing_answer_could_be_is_seen_in_all_categories_and_in_one_task(
    by_category: bool, low: float, high: float
) -> None:
    scores = np.concatenate([np.linspace(1.0, 9.0, 20), np.linspace(3.0, 5.0, 20)])[None]
    more = {"by_category": by_category}
    gone = scores.copy()
    gone[0, 25:31] = np.nan
    row = hard(categories(in_two(gone, **more)))
    filled = [hard(categories(in_two(np.where(np.isnan(gone), end, gone), **more))) for end in (low, high)]
    assert (row.low, row.all_low) == pytest.approx((filled[0].low, filled[0].all_low))
    assert (row.high, row.all_high) == pytest.approx((filled[1].high, filled[1].all_high))


@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize("models", [1, 2])
def test_a_category_of_which_everything_is_missing_has_a_row(models: int, scale: float) -> None:
    scores = with_missing(models=models, scale=scale)
    scores[:, 20:] = np.nan
    found = report(in_two(scores))
    section = found["categories"]
    assert isinstance(section, Categories)
    for model in found.models:
        row = hard(section, model)
        assert (row.items, row.missing) == (0, 20)
        assert np.isnan([row.estimate, row.standard_error, *ends(row)]).all()
    easy = [row for row in section.rows if row.category == "easy"]
    assert all(row.low < row.estimate < row.high and row.missing == 0 for row in easy)
    assert found["leaderboard"].rows[0].low < easy[0].low


def test_equal_scores_of_a_category_leave_what_is_missing() -> None:
    scores = with_missing()
    scores[0, 20:34] = 1.0
    row = hard(categories(in_two(scores)))
    assert math.isnan(row.standard_error)
    filled = scores.copy()
    filled[0, 34:] = 0.0
    assert row.low == pytest.approx(hard(categories(in_two(filled))).low)
    assert row.high == 1.0
    unknown = np.where(scores == 1.0, 4.0, scores + 2.0)  # 2 or 4, and a range that nobody declares
    assert np.isnan(ends(hard(categories(in_two(unknown))))).all()


def test_what_was_not_to_be_asked_or_was_asked_again_is_not_missing_in_a_category() -> None:
    scores = in_two(with_missing())
    dropped = ends(hard(categories(scores, Missing.DROP)))
    asked = np.arange(40) < 34
    not_asked = nothing_missing(replace(scores, failed=None))
    phased = (HowBought(Allocation.PHASED, 1),)
    again = replace(not_asked, failed=np.where(asked, 2, 0)[None, :, None], purchases=phased)
    for exempt in (not_asked, again):
        row = hard(categories(exempt))
        assert (row.missing, ends(row)) == (0, pytest.approx(dropped))
    assert hard(categories(replace(again, failed=np.full((1, 40, 1), 2)))).low < dropped[0] - 0.1


def test_categories_count_the_declared_clusters_and_say_so() -> None:
    scores = in_two(with_missing(0.0))
    labels = {item: str(k // 4) for k, item in enumerate(scores.items)}
    declared = Declared.of(scores.models, scores.items, scores.raters, clusters=labels, cluster="document")
    found = categories(replace(scores, declared=declared))
    assert "clusters of items (document; sampled, independent)" in found.label
    assert hard(found).standard_error > 1.3 * hard(categories(scores)).standard_error


def test_a_model_without_any_score_is_named_and_may_have_any_rank() -> None:
    scores = np.stack([np.arange(60) % 5 < 1, np.arange(60) % 5 < 4, np.full(60, np.nan)]).astype(float)
    told = "m2 has no score: all 60 of its answers are missing"
    found = board(of(scores))
    ranks = [(row.model, row.best_rank, row.worst_rank) for row in found.rows]
    assert ranks == [("m1", 1, 2), ("m0", 2, 3)]
    assert found.notes[-1] == f"{told}. It may be better or worse than any other."
    left_out = board(of(scores), Missing.DROP)
    assert [row.worst_rank for row in left_out.rows] == [1, 2]
    assert left_out.notes[-1] == f"{told}, and left out (--missing drop)."
    assert [row.model for row in board(of(scores), Missing.ZERO).rows] == ["m1", "m0", "m2"]
    assert report(of(scores)).models == ("m0", "m1")
    assert not diagnose(of(scores), [ItemsInCommon]).findings
    not_asked = board(nothing_missing(of(scores)))
    assert not_asked.rows[0].worst_rank == 1
    assert not_asked.notes[-1] == "m2 has no score by r, and is left out."


def test_items_that_no_score_applies_to_are_outside_of_the_mean() -> None:
    scores = np.where(np.arange(60) < 40, np.arange(60) % 2, np.nan)[None].repeat(2, axis=0)
    outside = np.isnan(scores)[:, :, None]
    both = replace(of(scores), outside=outside, purchases=(HowBought(cost=60.0),) * 2)
    found = report(nothing_missing(both))
    assert "over all items like these 40; it does not apply to 20 others." in found["leaderboard"].label
    assert [row["failed"] for row in found["spent"].to_dict()["models"]] == [0, 0]
    assert not {f.title for f in diagnose(both, [ItemsInCommon]).findings}
    one = replace(both, scores=np.where(np.arange(2)[:, None] == 0, scores, 1.0)[:, :, None, None])
    assert "over all items like these 60." in report(one)["leaderboard"].label  # the other has a score there


def test_models_that_other_scorers_scored_are_not_on_other_items() -> None:
    scores = np.full((2, 40, 2, 1), np.nan)
    scores[0, :, 0], scores[1, :, 1] = 1.0, 0.0
    apart = nothing_missing(recorded(scores, one_measure=False, raters=("match", "includes")))
    titles = {(f.title, f.score) for f in diagnose(apart, [ItemsInCommon]).findings}
    assert titles == {("models were scored by different scorers", by) for by in ("match", "includes")}
    text = diagnose(apart, [ItemsInCommon]).findings[0].text
    assert text.startswith("m0: scored by match; m1 by includes.")
    assert "match: m1 has no score by match, and is left out." in report(apart)["metrics"].to_dict()["notes"]
