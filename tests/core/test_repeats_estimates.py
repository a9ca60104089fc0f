"""What a host prints of one model's readings."""

from __future__ import annotations

from evalbudget import Allocation
from evalbudget.estimators import ItemReadings, mean_over_sampled_items
from evalbudget.repeats import mean_estimates


def test_intervals_of_a_mean_stay_on_the_declared_scale() -> None:
    readings = ItemReadings.of([0, 0, 1, 1, 2, 2], [0, 1] * 3, [1.0, 1.0, 1.0, 0.0, 1.0, 1.0], n_items=3)
    how = {"allocation": Allocation.FIXED, "fixed_repeats": 2}
    free = mean_over_sampled_items(readings, **how).confidence_interval(0.95)
    assert free.high > 1.0
    found = mean_estimates(readings, bounds=(0.0, 1.0), **how)
    assert found["sampled_items_upper"] == 1.0
    assert found["upper"] <= 1.0
    assert found["lower"] >= 0.0
    assert mean_estimates(readings, **how)["sampled_items_upper"] == free.high
