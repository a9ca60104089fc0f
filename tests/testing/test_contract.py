"""Every registered sampler, and every option that changes decisions, keeps the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from evalbudget import Cell, Design, Sampler
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats.samplers import EBBernstein, RatingKernel, RepeatSampler, Robin, RobinHood, Uniform
from evalbudget.testing import SamplerContract


class TestUniform(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return Uniform(design, seed=seed)


class TestRobinPilot(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return Robin(design, pilot=4, seed=seed)


class TestRobinGivenVariances(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return Robin(design, variances=[float(i % 3) for i in range(design.n_items)], seed=seed)


class TestRobinNoVariance(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return Robin(design, variances=[0.0] * design.n_items, objective="mean", seed=seed)


class TestRobinHood(SamplerContract):
    n_requests = 200

    def make(self, design: Design, seed: int) -> Sampler:
        return RobinHood(design, seed=seed)


class TestRobinHoodShortWarmUp(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return RobinHood(design, t0=3, seed=seed)


class EBContract(SamplerContract):
    options: ClassVar[dict[str, Any]]

    def make(self, design: Design, seed: int) -> Sampler:
        return EBBernstein(design, seed=seed, **self.options)


class TestEBBernstein(EBContract):
    options: ClassVar[dict[str, Any]] = {}


class TestEBBernsteinBudget(EBContract):
    options: ClassVar[dict[str, Any]] = {"budget": 60}  # and goes on beyond it


class TestEBBernsteinAdaptive(EBContract):
    options: ClassVar[dict[str, Any]] = {"hold_out": False}


class TestEBBernsteinMSE(EBContract):
    options: ClassVar[dict[str, Any]] = {"objective": "mse"}


class TestEBBernsteinMSEAdaptive(EBContract):
    options: ClassVar[dict[str, Any]] = {"objective": "mse", "hold_out": False}


class TestEBBernsteinMean(EBContract):
    options: ClassVar[dict[str, Any]] = {"objective": "mean", "warmup": 5}


class TestEBBernsteinMeanWeighted(EBContract):
    def make(self, design: Design, seed: int) -> Sampler:
        weights = [float(1 + i % 3) for i in range(design.n_items)]
        return EBBernstein(design, objective="mean", weights=weights, hold_out=False, seed=seed)


class TestEBBernsteinNoBonus(EBContract):
    options: ClassVar[dict[str, Any]] = {"bonus": 0.0, "max_failures": 1, "hold_out": False}


class OnRatings(RatingKernel):
    """Rounds what it is told, so that levels come again."""

    def _learn(self, cell: Cell, value: float) -> None:
        super()._learn(cell, float(round(3 * value)))


class RatingKernelContract(SamplerContract):
    sampler: ClassVar[type[RatingKernel]] = OnRatings
    options: ClassVar[dict[str, Any]]

    def make(self, design: Design, seed: int) -> Sampler:
        return self.sampler(design, seed=seed, **self.options)


class TestRatingKernel(RatingKernelContract):
    options: ClassVar[dict[str, Any]] = {"hold_out": False}


class TestRatingKernelHoldOut(RatingKernelContract):
    options: ClassVar[dict[str, Any]] = {"hold_out": True}


class TestRatingKernelBudget(RatingKernelContract):
    options: ClassVar[dict[str, Any]] = {"budget": 90, "objective": "mean"}


class TestRatingKernelMSE(RatingKernelContract):
    options: ClassVar[dict[str, Any]] = {"objective": "mse", "max_failures": 1}


class TestRatingKernelMean(RatingKernelContract):
    options: ClassVar[dict[str, Any]] = {"objective": "mean", "hold_out": False, "warmup": 2}


class TestRatingKernelNewLevelsAllTheTime(RatingKernelContract):
    sampler: ClassVar[type[RatingKernel]] = RatingKernel
    options: ClassVar[dict[str, Any]] = {"hold_out": True}


class TestRatingKernelManyLevels(RatingKernelContract):
    sampler: ClassVar[type[RatingKernel]] = RatingKernel
    options: ClassVar[dict[str, Any]] = {"warmup": 6, "hold_out": False}


REPEATS = [name for name, cls in plugins().samplers.items() if issubclass(cls, RepeatSampler)]


@pytest.fixture(params=REPEATS)
def registered(request: pytest.FixtureRequest) -> Callable[[Design, int], Sampler]:
    cls: Any = plugins().sampler(request.param)
    return lambda design, seed: cls(design, seed=seed)


class TestEveryRegistered(SamplerContract):
    """With its defaults, whoever brought it."""

    n_requests = 200

    @pytest.fixture(autouse=True)
    def _use(self, registered: Callable[[Design, int], Sampler]) -> None:
        self._make = registered

    def make(self, design: Design, seed: int) -> Sampler:
        return self._make(design, seed)
