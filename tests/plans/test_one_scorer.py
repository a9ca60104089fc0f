"""Plans from a pilot of one scorer, against the formulas worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, t

from evalbudget.backtest import Declared, RecordedScores
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.plans import plan
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._cluster_excess import ClusterExcess

N = 12


def pilot(*, noise: float = 1.0, spread: float = 1.0, repeats: int = 3, **more: Any) -> RecordedScores:
    """Items with one to three scores, and one without any."""
    rng = np.random.default_rng(5)
    table = spread * rng.normal(size=(N, 1)) + noise * rng.normal(size=(N, repeats))
    table[0, 1:] = table[1, 2:] = np.nan
    table = np.vstack([table, np.full(repeats, np.nan)])
    names = ("m",), tuple(map(str, range(N + 1))), ("gpt",)
    return RecordedScores(table[None, :, None, :], *names, **more)


def variances(recorded: RecordedScores) -> tuple[float, float, FloatArray]:
    """Of items' true means, of one score, and the items' means."""
    own = [row[~np.isnan(row)] for row in recorded.scores[0, :, 0]]
    own = [row for row in own if row.size]
    within = sum(((row - row.mean()) ** 2).sum() for row in own) / sum(row.size - 1 for row in own)
    means = np.array([row.mean() for row in own])
    between = means.var(ddof=1) - within * np.mean([1 / row.size for row in own])
    return max(float(between), 0.0), float(within), means


@pytest.mark.parametrize("noise", [1.0, 8.0])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_items_and_scores_of_each_for_a_half_width(noise: float, level: float) -> None:
    found = plan(pilot(noise=noise), half_width=0.5, level=level, judge_prices={"gpt": 3.0}).to_dict()
    between, within, _ = variances(pilot(noise=noise))
    assert (between == 0.0) == (noise == 8.0)
    assert found["variance_of_items"] == pytest.approx(between)
    assert found["variance_of_repeats"] == pytest.approx(within)
    assert found["items"] == N
    quantile, upper = t.ppf((1 + level) / 2, N - 1), (N - 1) / chi2.ppf(0.2, N - 1)
    assert [row["scores_per_item"] for row in found["plans"]] == [1, 2, 4]
    for row in found["plans"]:
        r = row["scores_per_item"]
        variance = between + within / r
        assert row["items"] == math.ceil(variance * (quantile / 0.5) ** 2)
        assert row["items_upper"] == math.ceil(variance * upper * (quantile / 0.5) ** 2)
        assert row["calls"] == row["items"] * r
        assert row["cost"] == pytest.approx(3.0 * row["calls"])
        assert row["half_width"] == pytest.approx(quantile * math.sqrt(variance / row["items"]))


def test_what_money_buys() -> None:
    found = plan(pilot(), usd=31.0, judge_prices={"gpt": 2.0}, generation_price=1.0).to_dict()["plans"]
    assert [(row["items"], row["items_upper"], row["cost"]) for row in found] == [
        (10, 10, 30.0),
        (5, 5, 30.0),
        (2, 2, 24.0),
    ]
    capped = plan(pilot(), usd=31.0, judge_prices={"gpt": 3.0}, max_items=4).to_dict()["plans"]
    assert [row["items"] for row in capped] == [4, 4, 2]
    few = plan(pilot(), usd=12.0, judge_prices={"gpt": 3.0}).to_dict()["plans"]
    assert [(row["scores_per_item"], row["items"]) for row in few] == [(1, 4), (2, 2)]
    with pytest.raises(InvalidInferenceError, match="the money does not buy two scores"):
        plan(pilot(), usd=5.9, judge_prices={"gpt": 3.0})


def test_repeats_may_do_where_there_are_too_few_items() -> None:
    noisy = pilot(noise=8.0)
    by_repeats = {
        row["scores_per_item"]: row["items"] for row in plan(noisy, half_width=2.0).to_dict()["plans"]
    }
    found = plan(noisy, half_width=2.0, max_items=by_repeats[2]).to_dict()["plans"]
    assert [row["scores_per_item"] for row in found] == [2, 4]
    with pytest.raises(
        InvalidInferenceError, match=f"more than the {by_repeats[4] - 1:,} items of --max-items"
    ):
        plan(noisy, half_width=2.0, max_items=by_repeats[4] - 1)
    assert {row["items"] for row in plan(noisy, half_width=100.0).to_dict()["plans"]} == {2}
    assert {row["items_upper"] for row in plan(noisy, half_width=100.0).to_dict()["plans"]} == {2}


def test_single_scores_show_no_noise() -> None:
    found = plan(pilot(repeats=1), half_width=0.5)
    (row,) = found.to_dict()["plans"]
    spread = np.nanvar(pilot(repeats=1).scores, ddof=1)
    assert row["items"] == math.ceil(spread * (t.ppf(0.975, N - 1) / 0.5) ** 2)
    assert found.to_dict()["variance_of_repeats"] is None
    assert "does not show what repeats gain" in str(found)
    assert "does not show" not in str(plan(pilot(), half_width=0.5))
    assert "like the pilot's 12" in " ".join(str(found).split())
    same = replace(pilot(), scores=np.repeat(pilot().scores[..., :1], 2, axis=3))
    assert [row["scores_per_item"] for row in plan(same, half_width=0.5).to_dict()["plans"]] == [1]


def test_the_price_is_given_or_the_pilots_or_one() -> None:
    costs = np.full((1, N + 1, 1, 3), np.nan)
    costs[0, :3, 0, 0] = 0.1, 0.2, 0.6
    paid = replace(pilot(), costs=costs)
    for recorded, given, price in (
        (paid, {}, 0.3),
        (paid, {"judge_prices": {"gpt": 2.0}}, 2.0),
        (paid, {"generation_price": 0.5}, 1.5),
        (pilot(), {}, 1.0),
        (replace(pilot(), costs=costs * 0.0), {}, 1.0),
    ):
        row = plan(recorded, half_width=0.5, **given).to_dict()["plans"][0]
        assert row["cost"] == pytest.approx(price * row["calls"])


@pytest.mark.parametrize("amount", [0.0, -1.0, math.inf, math.nan])
def test_amounts_that_are_none(amount: float) -> None:
    with pytest.raises(InvalidInputError, match=r"--half-width .*: give a number above 0"):
        plan(pilot(), half_width=amount)
    with pytest.raises(InvalidInputError, match=r"--usd .*: give a number above 0"):
        plan(pilot(), usd=amount)


def test_pilots_that_show_nothing() -> None:
    with pytest.raises(InvalidInferenceError, match="has 1 items with a score; a plan needs two"):
        plan(pilot().part(items=np.array([0, N])), half_width=0.5)
    assert plan(pilot().part(items=np.array([0, 3, N])), half_width=0.5).to_dict()["items"] == 2
    with pytest.raises(InvalidInferenceError, match="have the same score"):
        plan(replace(pilot(), scores=np.ones_like(pilot().scores)), half_width=0.5)


def clustered(labels: list[str], **drawn: float) -> RecordedScores:
    one = pilot(**drawn)
    named = dict(zip(one.items, labels, strict=True))
    return replace(
        one, declared=Declared.of(*(one.models, one.items, one.raters), clusters=named, cluster="by")
    )


def test_clusters_add_to_the_variance_and_take_degrees() -> None:
    labels = [f"c{i // 3}" for i in range(N)] + ["c0"]
    found = plan(clustered(labels), half_width=0.5)
    between, within, means = variances(pilot())
    excess = ClusterExcess.of(means, np.arange(N) // 3)
    told = found.to_dict()
    assert told["variance_of_items"] == pytest.approx(max(between + excess.added, 0.0))
    assert (told["cluster"], told["clusters"]) == ("by", 4)
    assert told["design_effect"] == pytest.approx(excess.effect)
    quantile, row = t.ppf(0.975, excess.degrees), told["plans"][1]
    assert row["items"] == math.ceil((told["variance_of_items"] + within / 2) * (quantile / 0.5) ** 2)
    upper = excess.degrees / chi2.ppf(0.2, excess.degrees)
    assert row["items_upper"] == math.ceil(
        (told["variance_of_items"] + within / 2) * upper * (quantile / 0.5) ** 2
    )
    assert "Items come in clusters (by): 4 in the pilot" in " ".join(str(found).split())
    with pytest.raises(InvalidInferenceError, match=r"all items of .* are of one cluster \(by\)"):
        plan(clustered(["c0"] * N + ["c1"]), half_width=0.5)  # the other cluster has no score


def test_clusters_that_are_alike_take_away_no_more_than_there_is() -> None:
    _, _, means = variances(pilot(noise=8.0))
    place = np.argsort(np.argsort(means))
    labels = [f"c{min(at, N - 1 - at)}" for at in place.tolist()]  # the smallest with the largest
    assert ClusterExcess.of(means, np.minimum(place, N - 1 - place)).added < 0.0
    found = plan(clustered([*labels, "c0"], noise=8.0), half_width=2.0).to_dict()
    assert found["variance_of_items"] == 0.0
    assert 0.0 < found["design_effect"] < 1.0


def test_money_buys_more_of_what_is_cheap_and_is_shown_in_full() -> None:
    assert plan(pilot(), usd=4.0, judge_prices={"gpt": 0.5}).to_dict()["plans"][0]["items"] == 8
    assert "10,000" in str(plan(pilot(), usd=10_000.0, judge_prices={"gpt": 1000.0}))


def test_small_variances_and_two_scores_of_an_item_are_enough() -> None:
    found = plan(pilot(noise=0.1, spread=0.1, repeats=2), half_width=0.05).to_dict()
    between, within, _ = variances(pilot(noise=0.1, spread=0.1, repeats=2))
    assert found["variance_of_items"] == pytest.approx(between)
    assert found["variance_of_repeats"] == pytest.approx(within)


def test_two_clusters_are_enough_and_none_need_be_declared() -> None:
    assert plan(clustered(["c0"] * 6 + ["c1"] * (N - 5)), half_width=0.5).to_dict()["clusters"] == 2
    one = pilot()
    found = plan(replace(one, declared=Declared.of(one.models, one.items, one.raters)), half_width=0.5)
    assert "cluster" not in found.to_dict()
    assert found.to_dict()["plans"] == plan(one, half_width=0.5).to_dict()["plans"]


def test_progress_is_told_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    plan(pilot(), item_half_width=2.0, samplers=["uniform"], progress=lambda *at: seen.append(at))
    assert seen
    assert seen[-1][0] == seen[-1][1]
