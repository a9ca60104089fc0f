"""What a panel says, in the rows of every host: which scores count for what, and how calls are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges._config import PanelConfig
from evalbudget.judges._panel import Call, PanelRows
from evalbudget.judges.estimates import (
    Bias,
    JudgeScores,
    component_rows,
    cost_rows,
    judge_biases,
    judge_mean_over_sampled_items,
    panel_mean,
    short_names,
)
from evalbudget.judges.schedules._panel import parse_prices
from evalbudget.statistics._exact_share import exact_share
from evalbudget.statistics._means import known_mean

AB = ("a", "b")
NAN = math.nan


def calls(item: Any, epoch: Any, judge: Any, value: Any, weight: Any = None) -> list[Call]:
    columns = [np.asarray(column).tolist() for column in (item, epoch, judge, value)]
    weights = [NAN] * len(columns[0]) if weight is None else np.asarray(weight).tolist()
    return [Call(*row) for row in zip(*columns, weights, strict=True)]


def scores_of(given: Sequence[Call], judges: Sequence[str] = AB) -> JudgeScores:
    return JudgeScores.of(*list(zip(*given, strict=True))[:4], judges=judges)


def rotated(items: int = 6, epochs: int = 4, seed: int = 1) -> list[Call]:
    """Two judges in turn."""
    item, epoch = np.repeat(np.arange(items), epochs), np.tile(np.arange(epochs), items)
    value = np.random.default_rng(seed).normal(5, 1, items * epochs)
    return calls(item, epoch, (item + epoch) % 2, value)


def test_a_panel_has_the_same_rows() -> None:
    rng = np.random.default_rng(5)
    item, epoch = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    judge = (item + epoch) % 2
    given = calls(item, epoch, judge, 0.3 * item + 0.5 * judge + rng.normal(0, 0.2, 24))
    total = panel_mean(scores_of(given))
    rows = PanelRows(given, AB).mean.rows
    assert rows["estimate"] == total.value
    assert rows["stderr"] == total.standard_error > rows["repeats_stderr"]
    assert rows["lower"] < rows["repeats_lower"] < rows["estimate"] < rows["repeats_upper"] < rows["upper"]
    assert PanelRows(given, AB, bounds=(0.0, 1.3)).mean.rows["upper"] == 1.3


@pytest.mark.claim
def test_a_panel_asked_again_stays_within_its_repeats_interval() -> None:
    """20 items x 6 scores by 3 judges in turn: repeats_lower and repeats_upper hold the items' true mean."""
    worlds = replications(100, 3000)
    rng = np.random.default_rng(11)
    item, epoch = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    judge = (item + epoch) % 3
    missed = 0
    for _ in range(worlds):
        truth, bias = rng.normal(5, 1, 20), rng.normal(0, 0.5, 3)
        value = truth[item] + bias[judge] + rng.normal(0, 0.7, item.size)
        rows = PanelRows(calls(item, epoch, judge, value), ["a", "b", "c"]).mean.rows
        missed += not rows["repeats_lower"] <= truth.mean() + bias.mean() <= rows["repeats_upper"]
    pinned(missed, 3)
    binomial_claim(missed, worlds, at_most=0.05)


def test_a_panel_whose_judges_never_vary_does_not_claim_equal_scores() -> None:
    found = PanelRows(calls([0, 1, 2, 3], [0] * 4, [0, 1, 0, 1], [5.0, 4.0, 5.0, 4.0]), AB).mean
    assert found.rows["estimate"] == 4.5
    assert found.no_interval == "no two scores of the same judge differ"


def test_a_panel_counts_what_counts() -> None:
    given = rotated()
    assert PanelRows(given, AB, allocation=Allocation.ADAPTIVE, fixed_repeats=2).mean.counted == 12


def test_nothing_said() -> None:
    for given in ([], [Call(0, 0, 1, NAN)]):
        found = PanelRows(given, AB)
        assert found.mean.rows == {"items": 0.0, "readings": 0.0}
        assert math.isnan(found.estimate.value)
        assert all(math.isnan(bias.value) for bias in found.biases(fixed=True).values())
        assert found.components == {}


def test_a_baseline_has_the_raw_mean() -> None:
    given = rotated()[:-3]  # unequal counts, so that the two means differ
    raw = PanelRows(given, AB, weighs_judges=False)
    assert raw.estimate.value == judge_mean_over_sampled_items(scores_of(given)).value
    assert raw.estimate.value != PanelRows(given, AB).estimate.value


def test_scores_bought_because_of_others_tell_nothing_of_the_judges_variance() -> None:
    given = rotated()
    found = PanelRows(given, AB, allocation=Allocation.ADAPTIVE, fixed_repeats=2)
    first = scores_of([call for call in given if call.epoch < 2])
    assert found.components == component_rows(first)
    assert found.components != component_rows(scores_of(given))
    for fixed, scores in ((True, first), (False, scores_of(given))):
        biases = judge_biases(scores)
        assert list(found.biases(fixed=fixed)) == ["a", "b"]
        assert [bias.value for bias in found.biases(fixed=fixed).values()] == biases.value.tolist()
        errors = [bias.standard_error for bias in found.biases(fixed=fixed).values()]
        assert errors == biases.standard_error.tolist()


def test_phases_count_under_phased_allocation_only() -> None:
    item, epoch = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    value = np.random.default_rng(3).normal(0, 1, 12)
    given = calls(item, epoch, (item + epoch) % 2, value, np.array([0.0, 0.0, 1.0] + [0.0, 1.0, 1.0] * 3))
    how: dict[str, Any] = {"allocation": Allocation.PHASED, "fixed_repeats": 1}
    found = PanelRows(given, AB, **how)
    *columns, phase = zip(*given, strict=True)
    scores = JudgeScores.of(*columns, judges=AB, phase=phase)
    assert found.estimate.value == panel_mean(scores, **how).value
    bare = [call._replace(phase=NAN) for call in given]
    assert PanelRows(bare, AB).estimate.value == PanelRows(given, AB).estimate.value != found.estimate.value


def test_of_a_kept_generation_a_judges_second_score_is_of_another() -> None:
    # one answer, scored by a, b, b, a in epochs 0 to 3
    given = [Call(0, 0, 0, 1.0), Call(0, 1, 1, 2.0), Call(0, 2, 1, 4.0), Call(0, 3, 0, 3.0)]
    found = PanelRows(given, AB, kept=True)
    assert found.scores.epoch.tolist() == [0, 0, 1, 1]
    assert found.scores.value.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert found.by_epoch.epoch.tolist() == [0, 1, 2, 3]
    assert PanelRows(given, AB).scores.epoch.tolist() == [0, 1, 2, 3]


def test_failed_calls_of_a_kept_generation_come_after_its_scores() -> None:
    """Logs do not say whose they were, and must give the same rows."""
    given = [Call(0, 0, 0, NAN), Call(0, 1, 1, 2.0), Call(0, 2, 0, 1.0)]
    found = PanelRows(given, AB, kept=True).scores
    assert (found.epoch.tolist(), found.failed.tolist()) == ([0, 0], [1, 0])


def test_items_without_a_call_count_where_they_are_known() -> None:
    assert PanelRows(rotated(3), AB).corrected.n_items == 3
    assert PanelRows(rotated(3), AB, n_items=5).corrected.counts.tolist() == [4, 4, 4, 0, 0]


def test_what_holds_for_failed_calls_says_by_which_range() -> None:
    given = [call._replace(score=NAN) if call.item == 0 else call for call in rotated()]
    told = PanelRows(given, AB, asks_again=False).missing
    least, most = (f"{end(call.score for call in given if call.item):.4g}" for end in (min, max))
    assert told.startswith("4 of 24 calls have no score; the 95% interval ")
    assert told.endswith(f" would have scored from {least} to {most}, the lowest and the highest seen")
    known = PanelRows(given, AB, asks_again=False, bounds=(0.0, 10.0)).missing
    assert known.endswith(" holds whatever they would have scored")


def test_the_score_of_an_answer_is_the_mean_of_what_was_read() -> None:
    assert known_mean([1.0, None, 4.0, NAN]) == 2.5
    assert math.isnan(known_mean([None, NAN]))
    assert math.isnan(known_mean([]))


def test_costs_by_judge() -> None:
    scores = PanelRows([Call(0, 0, 0, 1.0), Call(1, 0, 1, NAN), Call(2, 0, 0, 2.0)], AB).scores
    assert cost_rows(scores) == {"a": {"calls": 2, "failed": 0}, "b": {"calls": 1, "failed": 1}}
    told = cost_rows(scores, calls=[4, 1], prices=[0.5, 3.0])
    assert told == {
        "a": {"calls": 4, "failed": 0, "price": 2.0},
        "b": {"calls": 1, "failed": 1, "price": 3.0},
    }


def test_a_silent_judge_has_no_bias() -> None:
    three = ("a", "b", "c")
    biases = PanelRows(rotated(), three).biases(fixed=True)
    assert biases["a"].value == -biases["b"].value != 0.0
    assert all(map(math.isnan, biases["c"]))
    alone = PanelRows(calls([0, 1], [0, 0], [0, 0], [1.0, 2.0]), AB).biases(fixed=True)
    assert all(isinstance(bias, Bias) and math.isnan(bias.value) for bias in alone.values())


def test_short_names() -> None:
    assert short_names(["openai/gpt-5", "google/gemini"]) == ["gpt-5", "gemini"]
    assert short_names(["openai/m", "azure/m", "x/a[1]"]) == ["openai_m", "azure_m", "a_1_"]


def test_prices_go_to_the_rotation_that_goes_by_them() -> None:
    dear = PanelConfig(AB, "priced", (1.0, 100.0))
    assert np.bincount(dear.schedule([str(i) for i in range(40)]).assign().judge).tolist() == [36, 4]
    assert PanelConfig(AB, "cyclic", (1.0, 100.0)).schedule(["x"]).name == "cyclic"
    assert PanelConfig(AB, "all").calls_per_generation == 2
    assert (PanelConfig(AB).weighs_judges, PanelConfig(AB, "random").weighs_judges) == (True, False)


@pytest.mark.parametrize(
    ("judges", "rotation", "error", "says"),
    [
        (("a",), "cyclic", InvalidInputError, "at least 2 judges"),
        (("a", "a"), "cyclic", InvalidInputError, "more than once"),
        (AB, "cylic", UnknownNameError, "cyclic"),
    ],
)
def test_panels_that_are_none(
    judges: tuple[str, ...], rotation: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        PanelConfig(judges, rotation)


def test_prices_as_typed() -> None:
    how = {"wrong": "no price: {entry!r}", "twice": "{judge!r} twice"}
    assert parse_prices(["a=1", " b/x=y=.5 "], **how) == {"a": 1.0, "b/x=y": 0.5}
    for entry in ("a", "a=", "=1", "1", "a=cheap"):
        with pytest.raises(InvalidInputError, match=f"no price: '{entry}'"):
            parse_prices([entry], **how)
    with pytest.raises(InvalidInputError, match="'a' twice"):
        parse_prices(["a=1", "a=2"], **how)


def _judged(value: Callable[[int, int], float], n: int = 24, *, epochs: int = 2) -> list[Call]:
    """Two judges in turn, one call for each epoch."""
    return [Call(i, e, (i + e) % 2, value(i, e)) for i in range(n) for e in range(epochs)]


def test_clusters_add_to_the_error_of_a_panel() -> None:
    rng = np.random.default_rng(6)
    means, noise, lenient = rng.normal(size=6), rng.normal(scale=0.3, size=(24, 2)), (0.2, -0.2)
    calls = _judged(lambda i, e: means[i // 4] + noise[i, e] + lenient[(i + e) % 2])
    plain = PanelRows(calls, ["a", "b"])
    clustered = PanelRows(calls, ["a", "b"], clusters=np.arange(24) // 4)
    alone = PanelRows(calls, ["a", "b"], clusters=np.arange(24))
    assert clustered.mean.rows["estimate"] == plain.mean.rows["estimate"]
    assert clustered.mean.rows["stderr"] > 1.6 * plain.mean.rows["stderr"]
    assert alone.mean.rows == pytest.approx(plain.mean.rows)
    assert clustered.mean.clusters == 6
    for row in ("repeats_lower", "repeats_upper"):
        assert clustered.mean.rows[row] == plain.mean.rows[row]
    few = PanelRows(calls, ["a", "b"], clusters=np.arange(24) // 12).mean
    assert few.no_interval == "an interval needs at least 3 clusters, and the items are of 2 clusters"


@pytest.mark.claim
@pytest.mark.parametrize("epochs", [1, variant(3)])
def test_intervals_of_a_panel_over_clusters_cover(epochs: int) -> None:
    rng = np.random.default_rng(epochs)
    missed, trials = 0, replications(48, 3_000)
    for _ in range(trials):
        p, lenient = rng.normal(size=10), (0.5, -0.5)
        draws = rng.normal(scale=0.5, size=(40, epochs))
        calls = _judged(
            lambda i, e: p[i // 4] + draws[i, e] + lenient[(i + e) % 2],  # noqa: B023
            40,
            epochs=epochs,
        )
        rows = PanelRows(calls, ["a", "b"], clusters=np.arange(40) // 4).mean.rows
        missed += not rows["lower"] <= 0.0 <= rows["upper"]
    binomial_claim(missed, trials, at_most=0.07)


def test_equal_scores_of_a_panel_have_an_exact_interval() -> None:
    calls = _judged(lambda _i, _e: 5.0, 25)
    found = PanelRows(calls, ["a", "b"], bounds=(1.0, 5.0)).mean
    assert found.rows["upper"] == 5.0
    assert found.rows["lower"] == pytest.approx(1 + 4 * exact_share(25, 25, 0.95)[0])
    assert "stderr" not in found.rows
    assert PanelRows(calls, ["a", "b"]).mean.no_interval is not None
