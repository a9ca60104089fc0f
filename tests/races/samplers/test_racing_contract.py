"""Every sampler that races models keeps the contract of samplers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.claims import only, variant
from tests.races.worlds import factors

from evalbudget import Design, Sampler
from evalbudget.hooks._plugins import plugins
from evalbudget.races.samplers import (
    LUCB,
    UCBE,
    NaivePooling,
    Pulse,
    Race,
    RacingSampler,
    SequentialHalving,
    SuccessiveRejects,
    UniformRacing,
    Visit,
)
from evalbudget.races.samplers._pooling import PoolingSampler
from evalbudget.testing import SamplerContract
from evalbudget.testing._contract import SCORES

# a cell is read once, and its score is cut to the range: the other shapes are 0 here, or like these
SHAPES = {"all-zero", "all-equal", "ties-everywhere", "huge-and-tiny", "tiny"}


class RacingContract(SamplerContract):
    n_models = 4
    n_items = 20
    asks_everything = False
    score_range = (0.0, 1.0)

    @pytest.mark.parametrize("score", only(SHAPES, SCORES))
    def test_any_finite_scores_are_taken(self, score: Any) -> None:
        super().test_any_finite_scores_are_taken(score)


HISTORY = "with a history"
"""Among options: to be given one, though it can do without."""

CASES: dict[str, tuple[type[RacingSampler], dict[str, Any]]] = {
    "uniform": (UniformRacing, {"batch": 3}),
    "uniform in a long round": (UniformRacing, {"batch": 40}),
    "UCB-E": (UCBE, {"batch": 3}),
    "UCB-E one at a time": (UCBE, {"batch": 1, "a": 0.1}),
    "UCB-E on another scale": (UCBE, {"batch": 7, "score_range": (-10.0, 10.0)}),
    "successive rejects": (SuccessiveRejects, {"budget": 100}),
    "sequential halving": (SequentialHalving, {"budget": 100}),
    "LUCB": (LUCB, {"batch": 2, "delta": 0.5}),
    "LUCB with a margin": (LUCB, {"batch": 5, "delta": 0.5, "margin": 0.8}),
    "naive pooling": (NaivePooling, {"batch": 3, "tau": 2}),
    "pulse": (Pulse, {"batch": 3, "tau": 2}),
    "pulse one at a time": (Pulse, {"batch": 1, "tau": 5, "a": 0.1}),
    "pulse as published": (Pulse, {"batch": 3, "tau": 2, "t0": 2, "coefficient": "published"}),
    "race": (Race, {"batch": 8, "first": 2}),
    "race until proved": (Race, {"batch": 4, "delta": 0.1, "until_proved": True}),
    "race until proved with a history": (Race, {"anchors": 5, "until_proved": True}),
    "race with a history": (Race, {"batch": 8, "anchors": 5}),
    "visit": (Visit, {"batch": 1}),
    "visit with a history": (Visit, {"batch": 3, HISTORY: True}),
    "visit until precise": (Visit, {"half_width": 0.2, "tau": 0.1, HISTORY: True}),
}


def with_history(cls: type[RacingSampler], options: dict[str, Any], design: Design) -> dict[str, Any]:
    """The options, and the predictor of those that cannot do without one."""
    needs = issubclass(cls, PoolingSampler) or "anchors" in options or HISTORY in options
    options = {name: value for name, value in options.items() if name != HISTORY}
    return {**options, **({"predictor": factors(design.items)} if needs else {})}


# with other settings than its defaults, each that takes another way; the rest are variants of these
OTHER_WAYS = {
    "UCB-E on another scale",
    "successive rejects",
    "sequential halving",
    "LUCB with a margin",
    "pulse as published",
    "race until proved",
    "race with a history",
}


class TestRacing(RacingContract):
    @pytest.fixture(autouse=True, params=[case if case in OTHER_WAYS else variant(case) for case in CASES])
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._class, self._options = CASES[request.param]
        self.asks_everything = self._class in (UniformRacing, Visit) and "half_width" not in self._options
        self.score_range = self._options.get("score_range", (0.0, 1.0))
        self.n_models = 6 if "budget" in self._options else 4

    def make(self, design: Design, seed: int) -> Sampler:
        return self._class(design, seed=seed, **with_history(self._class, self._options, design))


class TestEveryRegistered(RacingContract):
    """With its defaults, whoever brought it."""

    @pytest.mark.parametrize("score", only({"all-equal", "huge-and-tiny"}, SCORES))
    def test_any_finite_scores_are_taken(self, score: Any) -> None:
        super().test_any_finite_scores_are_taken(score)

    @pytest.fixture(autouse=True, params=sorted(plugins().racers))
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._class: Any = plugins().racers[request.param]

    def make(self, design: Design, seed: int) -> Sampler:
        return self._class(design, seed=seed, **with_history(self._class, {}, design))
