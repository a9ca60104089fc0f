"""Every sampler that races models keeps the contract of samplers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from evalbudget import Design, Sampler
from evalbudget.hooks._plugins import plugins
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import (
    LUCB,
    UCBE,
    NaivePooling,
    PairedEProcess,
    Pulse,
    Race,
    SequentialHalving,
    SuccessiveRejects,
    UniformRacing,
    Visit,
)
from evalbudget.races.samplers._pooling import PoolingSampler
from evalbudget.testing import SamplerContract


class RacingContract(SamplerContract):
    n_models = 4
    n_items = 20
    asks_everything = False
    repeats = False
    score_range = (0.0, 1.0)
    sampler: ClassVar[Any]
    options: ClassVar[dict[str, Any]] = {"batch": 3}

    def make(self, design: Design, seed: int) -> Sampler:
        made: Sampler = self.sampler(design, seed=seed, **self.options)
        return made


class WithHistory(RacingContract):
    def make(self, design: Design, seed: int) -> Sampler:
        made: Sampler = self.sampler(design, predictor=history(design), seed=seed, **self.options)
        return made


class TestUniform(RacingContract):
    sampler = UniformRacing
    asks_everything = True


class TestUniformInALongStep(RacingContract):
    sampler = UniformRacing
    options: ClassVar[dict[str, Any]] = {"batch": 40, "max_failures": 1}
    asks_everything = True


class TestUCBE(RacingContract):
    sampler = UCBE


class TestUCBEOneAtATime(RacingContract):
    sampler = UCBE
    options: ClassVar[dict[str, Any]] = {"batch": 1, "a": 0.1, "max_failures": 1}


class TestUCBEOnAnotherScale(RacingContract):
    sampler = UCBE
    score_range = (-10.0, 10.0)
    options: ClassVar[dict[str, Any]] = {"batch": 7, "score_range": (-10.0, 10.0)}


class TestSuccessiveRejects(RacingContract):
    sampler = SuccessiveRejects
    n_models = 6
    options: ClassVar[dict[str, Any]] = {"budget": 100}


class TestSequentialHalving(RacingContract):
    sampler = SequentialHalving
    n_models = 6
    options: ClassVar[dict[str, Any]] = {"budget": 100, "max_failures": 1}


class TestLUCB(RacingContract):
    sampler = LUCB
    options: ClassVar[dict[str, Any]] = {"batch": 2, "delta": 0.5}


class TestLUCBWithMargin(RacingContract):
    sampler = LUCB
    options: ClassVar[dict[str, Any]] = {"batch": 5, "delta": 0.5, "margin": 0.8}


class TestNaivePooling(WithHistory):
    sampler = NaivePooling
    options: ClassVar[dict[str, Any]] = {"batch": 3, "tau": 2}


class TestPulse(WithHistory):
    sampler = Pulse
    options: ClassVar[dict[str, Any]] = {"batch": 3, "tau": 2}


class TestPulseOneAtATime(WithHistory):
    sampler = Pulse
    options: ClassVar[dict[str, Any]] = {"batch": 1, "tau": 5, "a": 0.1}


class TestPulseAsPublished(WithHistory):
    sampler = Pulse
    options: ClassVar[dict[str, Any]] = {"batch": 3, "tau": 2, "t0": 2, "coefficient": "published"}


class TestRace(RacingContract):
    sampler = Race
    options: ClassVar[dict[str, Any]] = {"batch": 8, "first": 2}


class TestRaceUntilProved(RacingContract):
    sampler = Race
    options: ClassVar[dict[str, Any]] = {"batch": 4, "delta": 0.1, "until_proved": True, "max_failures": 1}


class TestRaceUntilProvedWithHistory(WithHistory):
    sampler = Race
    options: ClassVar[dict[str, Any]] = {"anchors": 5, "until_proved": True}


class TestVisit(WithHistory):
    sampler = Visit
    options: ClassVar[dict[str, Any]] = {"batch": 3}
    asks_everything = True


class TestVisitWithoutHistory(RacingContract):
    sampler = Visit
    options: ClassVar[dict[str, Any]] = {"batch": 1, "max_failures": 1}
    asks_everything = True


class TestVisitUntilPrecise(WithHistory):
    sampler = Visit
    options: ClassVar[dict[str, Any]] = {"half_width": 0.2, "tau": 0.1}


class TestPairedEProcess(RacingContract):
    sampler = PairedEProcess
    options: ClassVar[dict[str, Any]] = {}


class TestRaceWithHistory(WithHistory):
    sampler = Race
    options: ClassVar[dict[str, Any]] = {"batch": 8, "anchors": 5}


def history(design: Design) -> FactorModel:
    rng = np.random.default_rng(3)
    V = np.column_stack([np.ones(design.n_items), rng.standard_normal(design.n_items)])
    return FactorModel.of_factors(V, design.items, rng.standard_normal((20, 2)))


class TestEveryRegistered(RacingContract):
    """With its defaults, whoever brought it."""

    n_items = 60
    n_requests = 200

    @pytest.fixture(autouse=True, params=sorted(plugins().racers))
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._class: Any = plugins().racers[request.param]

    def make(self, design: Design, seed: int) -> Sampler:
        needs = {"predictor": history(design)} if issubclass(self._class, PoolingSampler) else {}
        return self._class(design, seed=seed, **needs)
