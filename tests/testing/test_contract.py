"""Every registered sampler, and every option that changes decisions, keeps the contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from evalbudget import Cell, Design, Sampler
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats.samplers import EBBernstein, RatingKernel, RepeatSampler, Robin, RobinHood, Uniform
from evalbudget.testing import SamplerContract


class OnRatings(RatingKernel):
    """Rounds what it is told, so that levels come again."""

    def _learn(self, cell: Cell, value: float) -> None:
        super()._learn(cell, float(round(3 * value)))


def robin_given_variances(design: Design, seed: int) -> Sampler:
    return Robin(design, variances=[float(i % 3) for i in range(design.n_items)], seed=seed)


def robin_without_variance(design: Design, seed: int) -> Sampler:
    return Robin(design, variances=[0.0] * design.n_items, objective="mean", seed=seed)


def eb_bernstein_with_item_weights(design: Design, seed: int) -> Sampler:
    weights = [float(1 + i % 3) for i in range(design.n_items)]
    return EBBernstein(design, objective="mean", weights=weights, hold_out=False, seed=seed)


CASES: dict[str, Callable[..., Sampler]] = {
    "uniform": Uniform,
    "robin with a pilot": partial(Robin, pilot=4),
    "robin given variances": robin_given_variances,
    "robin without variance": robin_without_variance,
    "robin-hood": RobinHood,
    "robin-hood, short warm-up": partial(RobinHood, t0=3),
    "eb-bernstein": EBBernstein,
    "eb-bernstein beyond a budget": partial(EBBernstein, budget=60),
    "eb-bernstein, adaptive": partial(EBBernstein, hold_out=False),
    "eb-bernstein, mse": partial(EBBernstein, objective="mse"),
    "eb-bernstein, mse, adaptive": partial(EBBernstein, objective="mse", hold_out=False),
    "eb-bernstein, mean": partial(EBBernstein, objective="mean", warmup=5),
    "eb-bernstein, mean with weights": eb_bernstein_with_item_weights,
    "eb-bernstein, no bonus": partial(EBBernstein, bonus=0.0, hold_out=False),
    "rating-kernel": partial(OnRatings, hold_out=False),
    "rating-kernel, held out": partial(OnRatings, hold_out=True),
    "rating-kernel, budget": partial(OnRatings, budget=90, objective="mean"),
    "rating-kernel, mse": partial(OnRatings, objective="mse"),
    "rating-kernel, mean": partial(OnRatings, objective="mean", hold_out=False, warmup=2),
    "rating-kernel, new levels all the time": partial(RatingKernel, hold_out=True),
    "rating-kernel, many levels": partial(RatingKernel, warmup=6, hold_out=False),
}


class TestOptions(SamplerContract):
    @pytest.fixture(autouse=True, params=CASES)
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._make = CASES[request.param]
        if self._make is RobinHood:  # twenty readings of each item come first
            self.n_requests = 200

    def make(self, design: Design, seed: int) -> Sampler:
        return self._make(design, seed=seed)


REPEATS = [name for name, cls in plugins().samplers.items() if issubclass(cls, RepeatSampler)]


class TestEveryRegistered(SamplerContract):
    """With its defaults, whoever brought it."""

    n_requests = 200

    @pytest.fixture(autouse=True, params=REPEATS)
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._make: Any = plugins().sampler(request.param)

    def make(self, design: Design, seed: int) -> Sampler:
        return self._make(design, seed=seed)
