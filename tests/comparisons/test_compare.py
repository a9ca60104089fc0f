"""Comparisons of what was scored: verdicts, clusters, several metrics, what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget.backtest import RecordedScores, TaskName, digest_of
from evalbudget.comparisons import Baseline, Outcome, compare, gate
from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.recorded._declared import Declared
from evalbudget.report import report
from evalbudget.statistics._clustered_mean import clustered_mean


def recorded(scores: Any, models: str = "ab", **more: Any) -> RecordedScores:
    table = np.asarray(scores, dtype=float)
    if table.ndim == 2:
        table = table[:, :, None, None]
    return RecordedScores(
        table,
        tuple(models[: len(table)]),
        more.pop("items", tuple(map(str, range(table.shape[1])))),
        more.pop("raters", tuple(f"r{i}" for i in range(table.shape[2]))),
        **more,
    )


def test_other_questions_under_the_same_ids_are_said_where_nothing_is_left_to_compare() -> None:
    asked = [
        {f"q{i}": digest_of(f"{words} {i}", "yes") for i in range(6)} for words in ("this law", "that cell")
    ]
    parts = [
        recorded(
            [[1.0, 0.0] * 3],
            model,
            items=tuple(own),
            declared=Declared.of([model], list(own), ["r0"], digests=own),
        )
        for model, own in zip("ab", asked, strict=True)
    ]
    with pytest.raises(InvalidInputError, match=r"6 of 6 ids of b hold another question than elsewhere"):
        compare(dict(zip("ab", parts, strict=True)))
    with pytest.raises(InvalidInputError, match=r"6 of 6 ids of b hold another question than elsewhere"):
        gate(Baseline.of(parts[0], name="a"), parts[1], margin=0.1)


def test_each_metric_has_decimals_of_its_own() -> None:
    rng = np.random.default_rng(1)
    accurate = rng.random((2, 40)) < [[0.9], [0.4]]
    table = np.stack([accurate, 500.0 * rng.random((2, 40)), 1e-4 * rng.random((2, 40))], axis=2)
    found = compare(recorded(table[..., None], raters=("acc", "tokens", "usd"), one_measure=False))
    shown = str(found.table())
    for row, places in zip(found.rows, (3, 0, 6), strict=True):
        assert f"{row.low:+.{places}f} to {row.high:+.{places}f}" in shown


def pair(difference: float, n: int = 200, seed: int = 0) -> Any:
    noise = np.random.default_rng(seed).normal(0, 0.1, n)
    return [0.5 + difference + noise - noise.mean(), np.full(n, 0.5)]


@pytest.mark.parametrize(
    ("difference", "margin", "outcome"),
    [
        (0.1, None, Outcome.FIRST),
        (-0.1, None, Outcome.SECOND),
        (0.005, None, Outcome.UNDECIDED),
        (0.005, 0.05, Outcome.EQUIVALENT),
        (0.03, 0.05, Outcome.EQUIVALENT),  # real, but too small to matter
        (0.045, 0.05, Outcome.FIRST),
        (0.005, 0.01, Outcome.UNDECIDED),
    ],
)
def test_verdicts(difference: float, margin: float | None, outcome: Outcome) -> None:
    found = compare(recorded(pair(difference)), margin=margin)
    (row,) = found.rows
    assert row.outcome is outcome
    assert row.difference == pytest.approx(difference)
    error = np.std(np.array(pair(difference)[0]), ddof=1) / math.sqrt(200)
    assert row.standard_error == pytest.approx(error)
    most = np.abs(np.array(pair(difference)[0]) - 0.5 - difference).max()
    half = 1.971957 * max(error, math.hypot(200 * error, math.sqrt(2.0) * most) / 202)
    assert (row.low, row.high) == pytest.approx((difference - half, difference + half), rel=1e-5)
    assert json.loads(found.to_json())["rows"][0]["verdict"] == row.verdict


def test_items_needed_decide_most_of_the_time() -> None:
    rng = np.random.default_rng(1)
    (row,) = compare(recorded(pair(0.005))).rows
    assert row.items_needed is not None
    decided = 0
    for _ in range(100):
        n = row.items_needed
        again = compare(recorded([0.505 + rng.normal(0, 0.1, n), np.full(n, 0.5)]))
        decided += again.rows[0].outcome is Outcome.FIRST
    assert 0.7 < decided / 100 < 0.9


@pytest.mark.parametrize(("margin", "apart"), [(None, 0.005), (0.012, 0.007), (0.008, 0.005)])
def test_items_needed_are_those_of_the_interval(margin: float | None, apart: float) -> None:
    scores = recorded(pair(0.005, n=100))
    (row,) = compare(scores, margin=margin).rows
    assert row.outcome is Outcome.UNDECIDED
    most = np.abs(scores.scores[0] - 0.505).max()

    def reach(n: int) -> float:
        error = row.standard_error * math.sqrt(100 / n)
        wide = max(error, math.hypot(n * error, math.sqrt(2.0) * most) / (n + 2))
        return float(student_t.ppf(0.975, 99 * n / 100) * wide + 0.8416212 * error)

    assert row.items_needed is not None
    assert reach(row.items_needed) <= apart < reach(row.items_needed - 1)


def test_items_that_all_differ_alike_say_how_many_more_would_decide() -> None:
    alike = recorded([np.ones(20), np.ones(20)])
    (row,) = compare(alike, margin=0.05).rows
    assert (row.outcome, row.items_needed) == (Outcome.UNDECIDED, 59)  # .95^59 < .05
    (more,) = compare(recorded([np.ones(59), np.ones(59)]), margin=0.05).rows
    assert more.outcome is Outcome.EQUIVALENT
    (apart,) = compare(recorded([np.ones(3), np.zeros(3)])).rows
    assert (apart.low, apart.high) == pytest.approx((2 * 0.05 ** (1 / 3) - 1, 1.0))
    (four,) = compare(recorded([np.ones(4), np.zeros(4)])).rows
    assert apart.items_needed == 5
    assert four.outcome is Outcome.UNDECIDED


def test_all_pairs_hold_at_once_and_against_asks_for_fewer() -> None:
    rng = np.random.default_rng(2)
    scores = recorded(rng.random((4, 100)), "abcd")
    every, one = compare(scores), compare(scores, against="c")
    assert len(every.rows) == 6
    assert [(row.first, row.second) for row in one.rows] == [("a", "c"), ("b", "c"), ("d", "c")]
    width = {(row.first, row.second): row.high - row.low for row in every.rows}
    (of_one,) = (row for row in one.rows if row.first == "a")
    assert of_one.high - of_one.low < width["a", "c"]
    assert "6 comparisons at once" in str(every.table())
    chosen = compare(scores, models=["a", "b"], against="d")
    assert [(row.first, row.second) for row in chosen.rows] == [("a", "d"), ("b", "d")]


def test_metrics_are_compared_one_by_one_and_judges_as_a_panel() -> None:
    rng = np.random.default_rng(3)
    table = rng.random((2, 50, 2, 1))
    table[0, :, 0] += 1.0
    metrics = compare(recorded(table, raters=("f1", "exact"), one_measure=False))
    assert [row.metric for row in metrics.rows] == ["f1", "exact"]
    assert metrics.rows[0].outcome is Outcome.FIRST
    assert metrics.rows[1].outcome is Outcome.UNDECIDED
    assert "2 comparisons at once" in str(metrics.table())
    with pytest.raises(InvalidInferenceError, match=r"different scales.*--score NAME"):
        compare(recorded(table, raters=("f1", "exact")))
    panel = compare(recorded(table, raters=("f1", "exact")), score_range=(0.0, 2.0))
    assert [row.metric for row in panel.rows] == ["panel"]
    assert panel.rows[0].difference == pytest.approx((table[0] - table[1]).mean())
    only = compare(recorded(table, raters=("f1", "exact")), scores=["exact"])
    assert [row.metric for row in only.rows] == ["exact"]


def test_clusters_make_errors_larger() -> None:
    labels = tuple(str(i // 10) for i in range(200))
    shift = np.repeat(np.random.default_rng(4).normal(0, 0.2, 20), 10)
    scores = recorded([0.5 + shift, np.full(200, 0.5)], categories=labels)
    alone, together = compare(scores).rows[0], compare(scores, cluster="document").rows[0]
    assert together.standard_error > 2.5 * alone.standard_error
    assert (together.clusters, together.items) == (20, 200)
    assert "clusters of items (document)" in compare(scores, cluster="document").label


def test_the_same_scores_everywhere_are_bounded_by_their_number() -> None:
    same = np.tile([0.0, 1.0], 300)
    found = compare(recorded([same, same]), margin=0.01)
    (row,) = found.rows
    # what is different on a share p of items is not seen on 600 of them with (1 - p)^600
    half = 1.0 - 0.05 ** (1 / 600)
    assert (row.low, row.high) == pytest.approx((-half, half))
    assert row.outcome is Outcome.EQUIVALENT
    assert compare(recorded([same, same])).rows[0].outcome is Outcome.UNDECIDED
    (rated,) = compare(recorded([5.0 + 2.0 * same, 5.0 + 2.0 * same])).rows
    assert (rated.low, rated.high) == pytest.approx((-2.0 * half, 2.0 * half))


def test_two_items_that_are_both_right_prove_nothing() -> None:
    (row,) = compare(recorded([[1.0, 1.0], [1.0, 1.0]]), margin=0.001).rows
    assert row.outcome is Outcome.UNDECIDED
    assert row.high == pytest.approx(1.0 - math.sqrt(0.05))
    (rated,) = compare(recorded([[7.0, 7.0], [7.0, 7.0]]), margin=0.001).rows  # nobody knows their range
    assert math.isnan(rated.low)


@pytest.mark.claim
@pytest.mark.parametrize(
    ("n", "margin", "expected"), [variant(1000, 0.005, 4), variant(400, 0.01, 1), (200, 0.02, 1)]
)
def test_rare_differences_are_not_equivalent_too_often(n: int, margin: float, expected: int) -> None:
    R = replications(75, 4000)
    rng = np.random.default_rng(5)
    failed = 0
    for _ in range(R):
        worse = (rng.random(n) >= margin).astype(float)
        (row,) = compare(recorded([worse, np.ones(n)]), margin=margin).rows
        failed += row.outcome is Outcome.EQUIVALENT
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


def test_levels_are_said_as_they_are() -> None:
    assert "99.5% interval" in compare(recorded(pair(0.1)), level=0.995).sentence


def test_only_shared_items_count() -> None:
    one = recorded([[1.0, 0.0, 1.0]], "a", items=("x", "y", "z"))
    other = recorded([[0.0, 0.0, 1.0]], "b", items=("y", "z", "w"))
    (row,) = compare({"one.csv": one, "other.csv": other}).rows
    assert (row.items, row.difference) == (2, pytest.approx(0.5))


def test_one_model_in_two_logs_goes_by_their_names() -> None:
    one, other = recorded([[1.0, 0.0, 1.0]], "a"), recorded([[0.0, 0.0, 1.0]], "a")
    (row,) = compare({"logs/before.eval": one, "logs/after.eval": other}).rows
    assert (row.first, row.second) == ("a (before)", "a (after)")
    (row,) = compare({"x/run.eval": one, "y/run.eval": other}).rows
    assert (row.first, row.second) == ("a (x/run.eval)", "a (y/run.eval)")


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (TaskName("quiz", "1"), TaskName("quiz", "2"), "different versions of the task"),
        (TaskName("quiz", "1"), TaskName("essay", "1"), "different tasks"),
    ],
)
def test_other_tasks_and_versions_are_refused_unless_they_are_the_same(
    first: TaskName, second: TaskName, told: str
) -> None:
    logs = {
        "a.eval": recorded([[1.0, 0.0, 1.0]], "a", task=first),
        "b.eval": recorded([[0.0, 0.0, 1.0]], "b", task=second),
    }
    with pytest.raises(InvalidInputError, match=told):
        compare(logs)
    assert len(compare(logs, across_tasks=True).rows) == 1


@pytest.mark.parametrize(
    ("scores", "asked", "told"),
    [
        (recorded([[1.0, 2.0]], "a"), {}, "needs two models, and there is only a"),
        (recorded([[1, 2], [3, 4]]), {"margin": 0.0}, "--margin 0 is no difference"),
        (recorded([[1, 2], [3, 4]]), {"margin": -0.1}, "--margin -0.1 is no difference"),
        (recorded([[1, 2], [3, 4]]), {"cluster": "document"}, "do not say which 'document'"),
        (recorded([[1, 2], [3, 4]], categories=("x", "x")), {"cluster": "c"}, "items belong to one"),
        (recorded([[1, np.nan], [np.nan, 4]]), {}, "scored on the same item"),
        (recorded([[1, 2], [3, 4]]), {"level": 1.5}, "level 1.5"),
    ],
)
def test_what_cannot_be_compared_is_refused(scores: RecordedScores, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        compare(scores, **asked)


@pytest.mark.parametrize("asked", [{"against": "x"}, {"models": ["x"]}, {"scores": ["x"]}])
def test_unknown_names_are_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError, match="'x'"):
        compare(recorded([[1, 2], [3, 4]]), **asked)


def test_one_item_proves_nothing() -> None:
    (row,) = compare(recorded([[1.0], [0.0]])).rows
    assert row.outcome is Outcome.UNDECIDED
    assert math.isnan(row.standard_error)
    assert row.items_needed is None


def test_a_sentence_says_all_of_two_models() -> None:
    assert compare(recorded(pair(0.1))).sentence.startswith("a is better: a less b is +0.1000, 95% interval")
    assert compare(recorded(pair(0.005))).sentence.startswith("Undecided: a less b is +0.0050")
    assert compare(recorded(pair(0.005)), margin=0.05).sentence.startswith("Equivalent within 0.05: a less b")


@pytest.mark.claim
@pytest.mark.parametrize(
    ("rare", "alike", "expected"),
    [(False, True, 1), variant(False, False, 1), variant(True, True, 0), (True, False, 5)],
)
def test_judges_with_few_scores_do_not_decide(rare: bool, alike: bool, expected: int) -> None:
    """Two models that are the same, each answer scored by one of three judges whose leniency differs.

    Where one judge has six of ninety scores, most of the error is that of its bias.
    """
    wrong, trials = 0, replications(100, 3000)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        taste = rng.normal(size=(90, 1)) + np.array([-1.0, 0.0, 1.0]) + 0.5 * rng.normal(size=(90, 3))
        judge = np.arange(90) % (2 if rare else 3)
        judge[:6] = 2 if rare else judge[:6]
        x = np.full((2, 90, 3, 1), np.nan)
        for model in range(2):
            said = taste + rng.normal(size=(90, 3))
            x[model, np.arange(90), judge, 0] = said[np.arange(90), judge]
            judge = judge if alike else judge[rng.permutation(90)]
        (row,) = compare(recorded(x), score_range=(-20.0, 20.0)).rows
        wrong += row.outcome is not Outcome.UNDECIDED
    binomial_claim(wrong, trials, at_most=0.05)
    pinned(wrong, expected)


def test_a_crossed_panel_of_clustered_items_is_compared_by_the_items_alone() -> None:
    rng = np.random.default_rng(4)
    passage = np.repeat(np.arange(10), 6)
    items = tuple(map(str, range(60)))
    shared = rng.normal(size=(2, 10))[:, passage, None, None]
    scores = shared + rng.normal(size=(2, 60, 3, 1))
    labels = {item: f"p{number}" for item, number in zip(items, passage, strict=True)}
    judges = ("x", "y", "z")
    declared = Declared.of(("a", "b"), items, judges, clusters=labels, cluster="passage")
    recorded = RecordedScores(scores, ("a", "b"), items, judges, declared=declared)
    (row,) = compare(recorded).rows
    expected = clustered_mean(scores[0].mean(axis=(1, 2)) - scores[1].mean(axis=(1, 2)), passage)
    assert row.standard_error == pytest.approx(expected.standard_error)
    for model in (0, 1):  # and each mean has the error between clusters, as the run prints it
        found = clustered_mean(scores[model].mean(axis=(1, 2)), passage)
        board = report(recorded)["leaderboard"].to_dict()["rows"]
        own = next(standing for standing in board if standing["model"] == "ab"[model])
        assert own["standard_error"] == pytest.approx(found.standard_error, rel=0.02)


def test_a_log_beside_its_copy_is_told() -> None:
    rng = np.random.default_rng(0)
    scores, other = (rng.random((2, 1, 30, 1, 4)) < 0.5).astype(float)
    three = recorded(np.concatenate([scores, scores, other]), "abc")
    (told,) = [note for note in compare(three).notes if "copy" in note]
    assert told == (
        "a and b have the same score on each of 30 items: if one log is a copy of the other, or both are of "
        "the same answers, nothing was compared."
    )
    kept = Baseline.of(recorded(scores, "a"), name="kept")
    verdict = gate(kept, recorded(scores, "b"), margin=0.5, score_range=(0, 1))
    assert "Baseline and candidate have the same score on each of 30 items" in " ".join(verdict.notes)
    assert not any("copy" in note for note in compare(recorded(np.ones((2, 30, 1, 4)))).notes)
