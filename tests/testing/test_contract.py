"""Every registered sampler, and every option that changes decisions, keeps the contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.claims import only, variant

from evalbudget import Cell, Design, Sampler
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats.samplers import (
    Auto,
    EBBernstein,
    RatingKernel,
    RepeatSampler,
    Robin,
    RobinHood,
)
from evalbudget.testing import SamplerContract
from evalbudget.testing._contract import SCORES


def robin_given_variances(design: Design, seed: int) -> Sampler:
    return Robin(design, variances=[float(i % 3) for i in range(design.n_items)], seed=seed)


def robin_without_variance(design: Design, seed: int) -> Sampler:
    return Robin(design, variances=[0.0] * design.n_items, objective="mean", seed=seed)


def eb_bernstein_with_item_weights(design: Design, seed: int) -> Sampler:
    weights = [float(1 + i % 3) for i in range(design.n_items)]
    return EBBernstein(design, objective="mean", weights=weights, seed=seed)


CASES: dict[str, Callable[..., Sampler]] = {  # other than the defaults, which are tested below
    "robin with a pilot": partial(Robin, pilot=4),
    "robin given variances": robin_given_variances,
    "robin without variance": robin_without_variance,
    "robin-hood, short warm-up": partial(RobinHood, t0=3),
    "eb-bernstein, mse": partial(EBBernstein, objective="mse"),
    "eb-bernstein, mean": partial(EBBernstein, objective="mean", warmup=5),
    "eb-bernstein, mean with weights": eb_bernstein_with_item_weights,
    "rating-kernel": RatingKernel,
    "rating-kernel, budget": partial(RatingKernel, budget=90, objective="mean"),
    "rating-kernel, beyond a budget": partial(RatingKernel, budget=60),
    "rating-kernel, mse": partial(RatingKernel, objective="mse"),
    "rating-kernel, many levels": RatingKernel,
    "auto on ratings": Auto,
    "auto, too small a budget for phases": partial(Auto, budget=11),
}
ON_RATINGS = {case for case in CASES if case.startswith(("rating-kernel", "auto"))} - {
    "rating-kernel, many levels"
}


# each that takes another way than the defaults; the rest are variants of these
OTHER_WAYS = {
    "robin given variances",
    "robin-hood, short warm-up",
    "eb-bernstein, mean with weights",
    "rating-kernel, budget",
    "rating-kernel, many levels",
    "auto on ratings",
    "auto, too small a budget for phases",
}


class TestOptions(SamplerContract):
    @pytest.fixture(autouse=True, params=[case if case in OTHER_WAYS else variant(case) for case in CASES])
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._make, self._rounds = CASES[request.param], request.param in ON_RATINGS

    def make(self, design: Design, seed: int) -> Sampler:
        return self._make(design, seed=seed)

    def score(self, cell: Cell) -> float:
        score = super().score(cell)
        return float(round(3 * score)) if self._rounds else score


class Until(Auto):
    """Runs until items are known, which takes scores in a range."""

    def __init__(self, design: Design, *, seed: int) -> None:
        super().__init__(design, seed=seed)
        self.stop_when_known(0.01, (-1e30, 1e30))


class TestUntil(SamplerContract):
    n_requests = 60

    def make(self, design: Design, seed: int) -> Sampler:
        return Until(design, seed=seed)


REPEATS = [name for name, cls in plugins().samplers.items() if issubclass(cls, RepeatSampler)]


class Registered:
    """With its defaults, whoever brought it."""

    @pytest.fixture(autouse=True, params=REPEATS)
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._make: Any = plugins().sampler(request.param)
        self.n_requests = 180 if request.param == "robin-hood" else 90  # which reads each item 20 times first

    def make(self, design: Design, seed: int) -> Sampler:
        return self._make(design, seed=seed)


class TestEveryRegistered(Registered, SamplerContract):
    # that each way of theirs reckons with all of them is shown above
    @pytest.mark.parametrize("score", only({"all-equal", "late-surprise", "huge-and-tiny"}, SCORES))
    def test_any_finite_scores_are_taken(self, score: Any) -> None:
        super().test_any_finite_scores_are_taken(score)
