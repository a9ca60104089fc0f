"""The closing summary: what a person reads, and what it must not say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from tests.repeats.estimates.worlds import of

from evalbudget import Allocation
from evalbudget.repeats._item_columns import item_columns
from evalbudget.repeats._mean_rows import describe_mean
from evalbudget.repeats._summary import Outcome, Summary, summarize
from evalbudget.repeats.estimates import ItemReadings, Strata
from evalbudget.run import LOST, UNANSWERED

FIXED: dict[str, Any] = {"allocation": Allocation.FIXED, "fixed_repeats": 2}


def _summary(
    items: list[list[float]],
    *,
    names: list[str] | None = None,
    bounds: tuple[float, float] | None = None,
    how: dict[str, Any] | None = None,
    **given: Any,
) -> Summary:
    table = of(items)
    how = {**(how or FIXED), "bounds": bounds}
    return summarize(
        Outcome(
            **{
                "task": "stories",
                "model": "openai/gpt-5",
                "names": names or [f"story-{i}" for i in range(len(items))],
                "table": table,
                "columns": item_columns(table, **how),
                "mean": describe_mean(table if table.value.size else None, **how),
                "budget": 100.0,
                "spent": float(table.value.size),
                "stop_reason": "budget used up",
                "bounds": bounds,
                **given,
            }
        )
    )


def _noisy(
    n_items: int = 8, repeats: int = 6, *, between: float = 2.0, within: float = 0.5
) -> list[list[float]]:
    rng = np.random.default_rng(3)
    return [rng.normal(rng.normal(6, between), within, repeats).tolist() for _ in range(n_items)]


def _text(summary: Summary, width: int = 80) -> str:
    return " ".join(" ".join(summary.lines(width)).split())


def test_the_first_sentence_is_the_estimate_with_its_interval_and_what_is_random() -> None:
    found = _summary(_noisy())
    rows = found.rows
    title, first, second = found.lines()[:3]
    assert title == "stories with openai/gpt-5"
    ends = f"{rows['lower']:.2f} to {rows['upper']:.2f}"
    assert first == f"Estimate {rows['estimate']:.2f}, 95% interval {ends}: items and repeats both random."
    ends = f"{rows['repeats_lower']:.2f} to {rows['repeats_upper']:.2f}"
    assert second == f"These 8 items asked again (only repeats random): {ends}."


def test_what_was_bought() -> None:
    text = _text(
        _summary(
            [*_noisy(), []],
            spent=57.0,
            failures={"TimeoutError": 2, "no score from 'judge'": 7},
            closed=["story-8"],
            how={"allocation": Allocation.ADAPTIVE, "fixed_repeats": 2},
        )
    )
    assert "Spent 57 of 100 scores" in text
    assert "Stopped budget used up" in text
    assert "Readings 48 of 8 items; 16 of them count for the estimate" in text
    assert "Failed 9 calls: 7 x no score from 'judge', 2 x TimeoutError" in text
    assert "Given up story-8" in text
    assert "1 item of 9 without a score: not in the estimate, which would be" in text
    assert "all count for the estimate" in _text(_summary(_noisy()))
    assert "Failed 3 calls: TimeoutError" in _text(_summary(_noisy(), failures={"TimeoutError": 3}))


def test_what_to_look_at_is_neither_what_an_error_cut_off_nor_what_is_lost() -> None:
    text = _text(_summary(_noisy(), failures={UNANSWERED: 9, "RuntimeError": 1, LOST: 20}))
    assert "1 of 49 calls gave no score; find out why first (above all: RuntimeError)" in text
    cut_off = _text(_summary(_noisy(), failures={UNANSWERED: 9}))
    assert "Next: 9 of 57 calls were cut off, or had no reply that the host could read" in cut_off
    assert "find out why" not in cut_off
    assert "find out why" not in _text(_summary(_noisy(), failures={LOST: 20}))


@pytest.mark.parametrize(
    ("more", "said"),
    [([], ", all equally often"), ([6.0], ", 3 to 4 each, as the budget goes"), ([6.0, 6.0], "")],
)
def test_that_the_default_was_as_plain_epochs_are_is_said(more: list[float], said: str) -> None:
    items = [[4.0, 5.0, 6.0, *more], [7.0, 7.0, 8.0], []]
    plain = of(items)
    phased = ItemReadings.of(plain.item, plain.epoch, plain.value, n_items=3, phase=np.zeros(plain.item.size))
    found = _summary(items, table=phased)
    assert f"Readings {6 + len(more)} of 2 items{said}; all count" in _text(found)
    assert found.alike == bool(said)
    assert not _summary(items).alike
    once = ItemReadings.of([0], [0], [1.0], n_items=2, phase=[0.0])
    assert not _summary([[1.0], []], table=once).alike


@pytest.mark.parametrize(
    ("second", "by_scores"),
    [
        ([1, 1, 1], False),  # one of each
        ([1, 0, 1], False),  # the budget ended there
        ([2, 2, 2], False),
        ([2, 1, 2], True),
        ([3, 1, 1], True),
        ([0, 0, 0], False),
    ],
)
def test_whether_counts_may_have_gone_by_scores(second: list[int], by_scores: bool) -> None:
    item = np.r_[[0, 0, 1, 1, 2, 2], np.repeat([0, 1, 2], second)]
    phase = np.r_[np.zeros(6), np.ones(sum(second))]
    order = np.argsort(item, kind="stable")
    epoch = np.concatenate([np.arange(2 + n) for n in second])
    table = ItemReadings.of(item[order], epoch, np.arange(item.size) % 2.0, phase=phase[order])
    assert table.may_follow_scores == by_scores
    assert table.without_phases().may_follow_scores == (np.ptp(second) > 0)
    if by_scores and np.ptp(second) == 1:
        assert not _summary([[0.0, 1.0]] * 3, table=table).alike


def test_items_known_least_well_come_first() -> None:
    items = [*_noisy(6), *_noisy(3, 2, within=3.0)]
    found = _summary(items)
    widths = [line.half_width for line in found.least_known]
    assert len(widths) == 5
    assert widths == sorted(widths, reverse=True)
    assert {line.name for line in found.least_known[:3]} == {"story-6", "story-7", "story-8"}
    never = _summary([*_noisy(4), []])
    assert never.least_known[0].name == "story-4"
    assert "story-4 - - 0" in _text(never)


@pytest.mark.parametrize("width", [60, 80])
def test_lines_fit_and_names_are_shortened_at_their_end_only(width: int) -> None:
    long, wide = "org/a-model-with-a-name-" + "that-goes-on-" * 8, "物語" * 30
    found = _summary(
        _noisy(5),
        names=[f"{wide}{i}" for i in range(5)],
        model=long,
        task="bench",
        failures={"a reason\nof two lines " * 9: 40},
        judged=True,
    )
    lines = found.lines(width)
    assert all(cell_len(line) <= width for line in lines), lines
    assert lines[0] == "bench"
    assert lines[1].startswith("  with org/a-model-with-a-name-")
    assert lines[1].endswith("…")
    assert sum(line.startswith("物語") and "…" in line for line in lines) == 5


def test_what_plain_epochs_would_have_needed() -> None:
    rng = np.random.default_rng(8)
    noisy = [rng.normal(5, 3, 60).tolist() for _ in range(2)]
    quiet = [rng.normal(5, 0.3, 8).tolist() for _ in range(10)]
    found = _summary([*noisy, *quiet])
    assert found.plain is not None
    assert not found.plain.as_good
    needed = f"about {found.plain.per_item} per item ({12 * found.plain.per_item} scores)"
    assert f"Plain epochs would have needed {needed}" in _text(found)
    wasted = _summary([rng.normal(5, 1, n).tolist() for n in [6, 60, 6, 60, 6, 60]])
    assert "Plain epochs would have done as well or better" in _text(wasted)
    assert _summary(_noisy()).plain is None  # it is plain epochs


def test_on_two_values_bought_in_phases_plain_epochs_are_compared_by_the_mean() -> None:
    item, epoch = [0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1]
    scores = [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    for phase, said in (([0, 0, 1, 1, 0, 0], True), ([np.nan] * 6, False)):
        table = ItemReadings.of(item, epoch, scores, n_items=2, phase=phase)
        found = _text(_summary([[0.0, 1.0], [1.0, 1.0]], table=table))
        assert ("for as small an error of the mean of these items" in found) == said
    alike = ItemReadings.of([0, 0, 1, 1], [0, 1, 0, 1], [0.0, 1.0, 1.0, 1.0], n_items=2, phase=[0] * 4)
    assert "Plain epochs" not in _text(_summary([[0.0, 1.0], [1.0, 1.0]], table=alike))


@pytest.mark.parametrize(
    ("items", "given", "advice"),
    [
        (_noisy(), {"judged": True}, "more items or a second judge (--judges) will do more"),
        (_noisy(), {}, "more items will do more for it than further repeats"),
        (_noisy(between=0.01, within=3.0), {}, "comes from repeats: a larger budget will help"),
        (_noisy(), {"failures": {"Timeout": 12}}, "12 of 60 calls gave no score; find out why first"),
        (_noisy(), {}, "Declare the range of the scores (--score-range LOW..HIGH)"),
        ([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]], {}, "Repeats of an item never differed"),
        ([[1.0, 2.0], [2.0, 3.0]], {}, "Add items: 2 items cannot speak for others."),
        ([[0.0, 0.0]] * 10, {}, "20 of 20 scores are 0: look at some answers first"),
    ],
)
def test_what_to_do_next(items: list[list[float]], given: dict[str, Any], advice: str) -> None:
    assert advice in _text(_summary(items, **given))


def test_no_advice_that_does_not_apply() -> None:
    text = _text(_summary(_noisy(), bounds=(-10.0, 30.0), judges=["a", "b"], judged=True))
    assert "--score-range" not in text
    assert "--judges" not in text
    assert "the mean of 2 judges' means" in text
    for few in ([[0.0, 0.0]] * 9, [[1.0, 1.0]] * 20, [[0.0, 0.0]] * 20 + [[0.0, 1.0]]):
        assert "scores are 0" not in _text(_summary(few))


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ([], "No estimate: nothing was scored."),
        (
            [[1.0, 3.0]],
            "Estimate 2.0 of 1 item, without an interval: an interval needs at least 3 items, and 1 item was "
            "scored.",
        ),
        (
            [[2.0, 2.0]] * 4,
            "Estimate 2.000 of 4 items, without an interval: all items have the same score, and the range of "
            "the scores is not declared.",
        ),
    ],
)
def test_without_an_interval_it_says_why(items: list[list[float]], sentence: str) -> None:
    text = _text(_summary(items))
    assert sentence in text
    assert "0.000" not in text
    assert "interval 2" not in text


def test_as_json() -> None:
    found = _summary(_noisy(), failures={"Timeout": 2})
    told = json.loads(json.dumps(found.as_json()))
    assert told["rows"]["items"] == 8
    assert isinstance(told["rows"]["items"], int)
    assert isinstance(told["spent"], int)
    assert told["least_known"][0]["interval"][0] < told["least_known"][0]["interval"][1]
    assert told["failures"] == {"Timeout": 2}
    assert told["next_steps"]
    assert told["rows"]["estimate"] == found.rows["estimate"]


def test_a_sample_of_all_that_can_be_scored_is_a_run_like_any_other() -> None:
    items = [[0.0, 1.0], [0.0], [1.0], [1.0, 1.0], [0.0, 1.0], []]
    drawn: dict[str, Any] = {"drawn": True, "closed": ["story-5"], "bounds": (0.0, 1.0)}
    strata = {"strata": Strata.of(None, 6), "given_up": [5], "allocation": Allocation.FIXED}
    mean = describe_mean(of(items), fixed_repeats=0, bounds=(0.0, 1.0), **strata)
    text = _text(_summary(items, mean=mean, **drawn))
    rows = mean.rows
    assert f"Estimate {rows['estimate']:.2f}, 95% interval {rows['lower']:.2f} to {rows['upper']:.2f}" in text
    assert "would have averaged" not in text
    assert "would halve that interval" not in text
    assert "of the estimate's variance comes from" in text
    assert "1 item of 6 without a score" in text


def test_scores_that_are_all_the_same_say_nothing_of_those_that_are_missing() -> None:
    items = [[12.5, 12.5], [12.5], [12.5], []]
    mean = describe_mean(of(items), fixed_repeats=0, allocation=Allocation.FIXED, given_up=[3])
    found = _summary(items, mean=mean, closed=["story-3"])
    assert "1 item of 4 without a score: not in the estimate." in _text(found)


def test_a_sample_says_of_which_items_it_speaks_where_some_were_given_up() -> None:
    items = [[0.0], [0.0], [0.0], [1.0], [], [], [], []]
    mean = describe_mean(
        of(items), allocation=Allocation.FIXED, fixed_repeats=0, strata=Strata.of(None, 8), given_up=[4, 5]
    )
    text = _text(_summary(items, mean=mean, drawn=True, strata="kind", in_vain=2))
    assert "one score of each item that can be scored would have averaged" in text
    assert "2 items of 8 without a score: not in the estimate; the values of kind weigh as drawn." in text
    found = _summary(items, mean=mean, drawn=True, in_vain=2)
    assert found.with_them == pytest.approx((1 / 6, 3 / 6))  # 1 to 3 right of 6
    assert "not in the estimate, which would be 0.17 to 0.50 with them." in _text(found)
    assert "7 of the 8 items would halve that interval" in _text(_summary(items, mean=mean, drawn=True))
    assert "8 items would halve" not in _text(_summary(items, mean=mean, drawn=True, in_vain=4))
    text = _text(_summary(items, mean=mean, drawn=True))
    assert "one score of each of the 8 items would have averaged" in text
    assert "without a score" not in text


@pytest.mark.parametrize(
    ("score", "bounds", "told"),
    [
        (0.0, None, (0.0, 0.4)),
        (0.0, (-1.0, 1.0), (-0.4, 0.4)),
        (0.5, (0.2, 0.8), (0.38, 0.62)),
        (7.0, None, None),
    ],
)
def test_what_items_without_a_score_could_do_where_all_others_score_the_same(
    score: float, bounds: tuple[float, float] | None, told: tuple[float, float] | None
) -> None:
    found = _summary([[score], [score], [score], [], []], bounds=bounds)
    assert found.without_score == 2
    assert found.with_them == (None if told is None else pytest.approx(told))
    assert ("which would be" in _text(found)) is (told is not None)


@pytest.mark.parametrize(
    ("items", "repeats", "value"), [(40, 4, 0.5), (12, 9, 0.4), (10, 3, 0.5), (9, 2, 1.0)]
)
def test_with_items_random_an_interval_is_never_narrower_than_of_these(
    items: int, repeats: int, value: float
) -> None:
    readings = ItemReadings.of(
        np.repeat(np.arange(items), repeats),
        np.tile(np.arange(repeats), items),
        np.full(items * repeats, value),
        n_items=items,
    )
    how = {"allocation": Allocation.FIXED, "fixed_repeats": repeats}
    rows = describe_mean(readings, bounds=(0.0, 1.0), **how).rows
    assert rows["lower"] <= rows["repeats_lower"] < rows["repeats_upper"] <= rows["upper"]
