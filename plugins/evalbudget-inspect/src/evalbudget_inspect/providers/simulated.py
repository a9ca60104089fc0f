"""``simulated/<name>``: a judge whose ratings have stated means and variances."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from inspect_ai.model import GenerateConfig, ModelAPI, modelapi

from evalbudget.errors import InvalidInputError
from evalbudget_inspect.providers.reply import TEMPLATE, AskedCell, OfflineModel


@modelapi(name="simulated")
def simulated() -> type[ModelAPI]:
    """The simulated judge."""
    return SimulatedJudge


class SimulatedJudge(OfflineModel):
    """Replies with a normal, rounded and clipped rating, or a Bernoulli one.

    A sample's own metadata ``simulated_mean`` and ``simulated_sd`` go before ``mean`` and ``sd``; the mean
    may be a mapping from model names to means. The rating depends on (seed, name, sample id, epoch) alone.

    Args:
        model_name: any name; it is part of the seed.
        base_url: not used.
        api_key: not used.
        config: not used.
        mean: of the ratings; with ``bernoulli`` the probability of 1.
        sd: their standard deviation before rounding.
        low: smallest rating; None for no limit.
        high: largest rating; None for no limit.
        step: ratings are multiples of it; 0 for no rounding.
        bernoulli: reply 1 or 0.
        fail: share of calls that raise an error.
        unparsed: share of replies that no scorer can parse.
        seed: of the ratings.
        template: of the reply; ``{value}`` is the rating, ``{grade}`` C, P or I for 1, 0.5 or 0.
        latency: seconds to wait before replying.

    Raises:
        InvalidInputError: a share outside 0..1 or a negative sd.
    """

    provider = "simulated"

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
        *,
        mean: float = 0.0,
        sd: float = 1.0,
        low: float | None = None,
        high: float | None = None,
        step: float = 0.0,
        bernoulli: bool = False,
        fail: float = 0.0,
        unparsed: float = 0.0,
        seed: int = 0,
        template: str = TEMPLATE,
        latency: float = 0.0,
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, config, template, latency)
        for name, share in (("fail", fail), ("unparsed", unparsed)):
            if not 0.0 <= share <= 1.0:
                raise InvalidInputError(f"simulated/{model_name}: {name} is {share:g}; give a share in 0..1")
        if sd < 0:
            raise InvalidInputError(f"simulated/{model_name}: sd is {sd:g}; give 0 or more")
        self._mean, self._sd, self._low, self._high, self._step = mean, sd, low, high, step
        self._bernoulli, self._fail, self._unparsed = bernoulli, fail, unparsed
        self._seed = seed

    def _rating(self, cell: AskedCell) -> float | None:
        key = f"{self._seed}\0{self.model_name}\0{cell.item}\0{cell.epoch}"
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]))
        luck = rng.random()
        if luck < self._fail:
            raise RuntimeError(f"simulated failure on sample {cell.item}, epoch {cell.epoch}")
        return None if luck < self._fail + self._unparsed else self._rate(cell, rng)

    def _rate(self, cell: AskedCell, rng: np.random.Generator) -> float:
        stated = cell.metadata.get("simulated_mean", self._mean)
        if isinstance(stated, Mapping):
            stated = stated.get(self.model_name, self._mean)
        mean = float(str(stated))
        if self._bernoulli:
            return float(rng.random() < mean)
        value = rng.normal(mean, float(str(cell.metadata.get("simulated_sd", self._sd))))
        if self._step > 0:
            value = round(value / self._step) * self._step
        return (
            float(np.clip(value, self._low, self._high))
            if self._low is not None or self._high is not None
            else value
        )
