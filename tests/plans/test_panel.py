"""Plans from a pilot of several judges: which prices count, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.plans import plan

JUDGES = ("gpt", "haiku", "mini")
PRICES = (0.4, 0.2, 0.1)


def pilot(*, silent: bool = False, **more: Any) -> RecordedScores:
    rng = np.random.default_rng(0)
    items = rng.normal(size=(60, 1, 1)) + rng.normal(size=(60, 1, 3))
    table = items + np.array([0.5, -0.3, -0.2])[:, None] + rng.normal(size=(60, 3, 3))
    table[:, 2] = np.nan if silent else table[:, 2]
    return RecordedScores(table[None], ("m",), tuple(map(str, range(60))), JUDGES, **more)


def paid(*prices: float) -> RecordedScores:
    """With costs about these prices, not all of them known."""
    costs = np.array(prices)[None, None, :, None] * np.array([0.5, 1.5, np.nan])
    return pilot(costs=np.broadcast_to(costs, (1, 60, 3, 3)).copy())


def cost_of_all(recorded: RecordedScores, **given: Any) -> float:
    """What one answer costs that all judges score."""
    row = plan(recorded, half_width=0.3, **given).to_dict()["plans"][0]
    assert row["strategy"] == "all"
    return float(row["cost"] / row["items"] / row["generations"])


def test_prices_are_given_or_the_pilots_or_one() -> None:
    assert cost_of_all(paid(*PRICES)) == pytest.approx(0.7)
    assert cost_of_all(paid(0.4, 0.2, 0.0)) == pytest.approx(3.0)
    assert cost_of_all(pilot()) == pytest.approx(3.0)
    assert cost_of_all(paid(*PRICES), generation_price=2.0) == pytest.approx(5.0)
    given = dict(zip(JUDGES, (1.0, 2.0, 3.0), strict=True))
    assert cost_of_all(paid(*PRICES), judge_prices=given) == pytest.approx(6.0)
    silent = pilot(silent=True)
    assert cost_of_all(silent, judge_prices=given) == pytest.approx(3.0)
    with pytest.raises(InvalidInputError, match="no entry for judge 'mini'"):
        plan(pilot(), half_width=0.3, judge_prices={"gpt": 1.0, "haiku": 2.0})


def test_the_pilots_prices_are_said() -> None:
    told = " ".join(str(plan(paid(*PRICES), half_width=0.3, source="logs")).split())
    assert "What a score cost in logs, its answer included: gpt $0.40, haiku $0.20, mini $0.10" in told
    assert "priced asks gpt" in told  # beside what was said before
    assert "its answer included" not in str(plan(pilot(), half_width=0.3))


def test_priced_as_is_relative_to_the_cheapest_by_variance() -> None:
    found = plan(
        pilot(), half_width=0.3, judge_prices=dict(zip(JUDGES, (4.0, 2.0, 1.0), strict=True))
    ).to_dict()
    priced = found["priced_as"]
    assert min(priced.values()) == 1.0
    row = next(row for row in found["plans"] if row["strategy"] == "priced")
    shares = np.array([1 / np.sqrt(priced[judge]) for judge in JUDGES])
    assert np.array(row["shares"]) == pytest.approx(shares / shares.sum(), abs=0.01)


def test_what_lies_on_one_scale_is_told_with_its_share() -> None:
    found = plan(pilot(), half_width=0.3)
    told = found.to_dict()
    assert (told["judges"], told["judges_silent"], told["items"]) == (list(JUDGES), [], 60)
    for row in told["components"]:
        assert row["lower"] <= row["variance"] <= row["upper"]
        assert f"{row['variance']:.4g}" in str(found)
        assert f"{row['share']:.0%}" in str(found)
    dropped = replace(pilot(), scores=np.where(np.arange(60)[:, None, None] < 1, np.nan, pilot().scores))
    dropped.scores[0, 0, 0] = 1.0
    assert plan(dropped, half_width=0.3).to_dict()["items_dropped"] == 1
    assert "1 items with missing scores dropped" in str(plan(dropped, half_width=0.3))
