"""The contract of an estimator, as tests to inherit."""
# the names of the tests say what they test

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from evalbudget.estimate import Estimate
from evalbudget.repeats.estimates import Estimator, ItemReadings

_BOUNDS = (0.0, 10.0)


class EstimatorContract:
    """What every estimator must do; inherit in a class named ``Test...`` and set :attr:`estimator`.

    Attributes:
        estimator: the class.
        n_items: of the benchmark that it is tested on.
        repeats: of every item.
    """

    estimator: ClassVar[type[Estimator]]
    n_items: ClassVar[int] = 40
    repeats: ClassVar[int] = 4

    def readings(self, seed: int = 0, spread: float = 1.0) -> ItemReadings:
        """Scores from 0 to 10, of every item equally many, in one phase."""
        rng = np.random.default_rng(seed)
        item = np.repeat(np.arange(self.n_items), self.repeats)
        epoch = np.tile(np.arange(self.repeats), self.n_items)
        score = 5.0 + spread * (rng.standard_normal(self.n_items)[item] + rng.standard_normal(item.size))
        phase = np.zeros(item.size)
        return ItemReadings.of(item, epoch, np.clip(score, *_BOUNDS), n_items=self.n_items, phase=phase)

    def estimate(self, readings: ItemReadings) -> Estimate:
        """What it says of readings whose range is known."""
        return self.estimator().estimate(readings, _BOUNDS)

    def test_the_value_lies_in_its_interval_which_widens_with_the_level(self) -> None:
        for seed in range(5):
            found = self.estimate(self.readings(seed))
            narrow, wide = found.confidence_interval(0.8), found.confidence_interval(0.99)
            assert wide.low <= narrow.low <= found.value <= narrow.high <= wide.high

    def test_it_says_the_same_again_and_changes_nothing(self) -> None:
        readings = self.readings()
        before = readings.value.copy()
        one, other = self.estimate(readings), self.estimate(readings)
        assert (one.value, one.n, one.target) == (other.value, other.n, other.target)
        assert one.confidence_interval() == other.confidence_interval()
        assert np.array_equal(before, readings.value)

    def test_items_have_no_order(self) -> None:
        readings = self.readings()
        turned = self.n_items - 1 - readings.item
        other = ItemReadings.of(
            turned, readings.epoch, readings.value, n_items=self.n_items, phase=readings.phase
        )
        one, two = self.estimate(readings), self.estimate(other)
        assert math.isclose(one.value, two.value, rel_tol=1e-9)
        low, high = one.confidence_interval().low, two.confidence_interval().low
        assert math.isclose(low, high, rel_tol=1e-9)

    def test_it_says_what_it_is_about(self) -> None:
        found = self.estimate(self.readings())
        assert found.target
        assert found.method
        assert found.random
        assert found.n == self.n_items * self.repeats

    def test_equal_scores_and_few_items_are_no_error(self) -> None:
        self.estimate(self.readings(spread=0.0)).confidence_interval()
        few = ItemReadings.of([0, 1], [0, 0], [1.0, 2.0], n_items=3, phase=[0.0, 0.0])
        self.estimate(few).confidence_interval()
