"""Further estimators: what a run refuses for what they need, and their rows."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import pytest

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.estimate import ConfidenceInterval, Estimate
from evalbudget.repeats import describe_mean
from evalbudget.repeats.estimates import (
    Estimator,
    ItemReadings,
    Need,
    estimator_rows,
    mean_over_sampled_items,
)

READINGS = ItemReadings.of([0, 0, 1, 1, 2, 2], [0, 1] * 3, [1.0, 2.0, 3.0, 5.0, 4.0, 4.0])


class Largest(Estimator):
    """The largest score there is."""

    name = "largest-score"

    def estimate(self, readings: ItemReadings, bounds: tuple[float, float] | None) -> Estimate:
        """Without an error, and with an interval that is open above."""
        found = mean_over_sampled_items(readings, allocation=Allocation.FIXED, bounds=bounds)
        most = float(readings.value.max())
        return replace(
            found,
            value=most,
            standard_error=math.nan,
            interval=lambda level: ConfidenceInterval(most - level, math.inf),
        )


class Broken(Largest):
    """Raises."""

    name = "broken"

    def estimate(self, readings: ItemReadings, bounds: tuple[float, float] | None) -> Estimate:
        """Never."""
        raise ZeroDivisionError("by zero")


class Leaving(Largest):
    """Ends the process."""

    name = "leaving"

    def estimate(self, readings: ItemReadings, bounds: tuple[float, float] | None) -> Estimate:
        """Never."""
        raise SystemExit(3)


def test_rows_are_what_is_defined_after_those_of_the_mean() -> None:
    how = {"allocation": Allocation.FIXED, "fixed_repeats": 2}
    plain = describe_mean(READINGS, **how)  # type: ignore[arg-type]
    found = describe_mean(READINGS, estimators=[Largest], level=0.9, **how)  # type: ignore[arg-type]
    assert list(found.rows)[-2:] == ["largest_score", "largest_score_lower"]
    assert found.rows["largest_score"] == 5.0
    assert found.rows["largest_score_lower"] == pytest.approx(4.1)
    assert list(found.rows)[:-2] == list(plain.rows)
    assert describe_mean(None, estimators=[Largest], **how).rows == {"items": 0.0, "readings": 0.0}  # type: ignore[arg-type]


def test_one_that_fails_loses_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        rows = estimator_rows([Broken, Leaving, Largest], READINGS, (0.0, 5.0), 0.95)
    assert list(rows) == ["largest_score", "largest_score_lower"]
    assert "estimator 'broken' has no rows: ZeroDivisionError: by zero" in caplog.text
    assert "estimator 'leaving' has no rows: SystemExit: 3" in caplog.text


@pytest.mark.parametrize(
    ("needs", "allocation", "bounds", "missing"),
    [
        ({Need.PHASES}, Allocation.PHASED, None, None),
        ({Need.PHASES}, Allocation.ADAPTIVE, None, Need.PHASES),
        ({Need.PHASES}, Allocation.FIXED, None, Need.PHASES),
        ({Need.EVEN}, Allocation.FIXED, None, None),
        ({Need.EVEN}, Allocation.PHASED, None, Need.EVEN),
        ({Need.RANGE, Need.EVEN}, Allocation.FIXED, (0.0, 1.0), None),
        ({Need.RANGE, Need.EVEN}, Allocation.FIXED, None, Need.RANGE),
        (set(), Allocation.ADAPTIVE, None, None),
    ],
)
def test_what_is_missing(
    needs: set[Need], allocation: Allocation, bounds: tuple[float, float] | None, missing: Need | None
) -> None:
    class Asks(Largest):
        name = "asks"

    Asks.needs = frozenset(needs)
    assert Asks.missing(allocation, bounds) is missing


@pytest.mark.parametrize("name", ["estimate", "stderr", "lower-half", "repeats", "", "a b", "1st", "all-of"])
def test_names_of_other_rows_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="rows of another number"):
        type("Named", (Largest,), {"name": name})
