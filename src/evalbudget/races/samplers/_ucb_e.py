"""UCB-E: the batch goes to the model with the largest upper bound."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.samplers._base import BatchOptions, RacingSampler, Step
from evalbudget.statistics._bounds import FloatArray


class UCBE(RacingSampler):
    r"""One batch of every model, then one batch at a time to :math:`\arg\max_i \bar S_i + \sqrt{a/|O_i|}`.

    Args:
        a: width of the bonus, on scores in [0, 1].
        common: see RacingSampler.

    Raises:
        InvalidInputError: a negative ``a``; see also RacingSampler.

    References:
        Audibert, Bubeck & Munos (2010), Best arm identification in multi-armed bandits; as the baseline of
        arXiv 2605.10405 with a = 1 and batches of 64.
    """

    name = "ucb-e"

    def __init__(self, design: Design, *, a: float = 1.0, **common: Unpack[BatchOptions]) -> None:
        if not (math.isfinite(a) and a >= 0):
            raise InvalidInputError(f"ucb-e got a={a}; give 0 or more")
        super().__init__(design, paired=False, options={"a": a}, **common)
        self.a = a

    def _plan(self) -> Step | None:
        return self._largest(self._index)

    def _index(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(self._means() + np.sqrt(self.a / self._n_read), dtype=np.float64)
