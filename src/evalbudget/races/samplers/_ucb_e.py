"""UCB-E: the batch goes to the model with the largest upper bound."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.samplers._base import BatchOptions, RacingSampler
from evalbudget.races.samplers._rounds import Round, Stop, Table
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

    def plan(self, table: Table, last: Any) -> Round | Stop:
        """A batch of the model with the largest upper bound."""

        def index() -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.asarray(table.means + np.sqrt(self.a / table.n_read), dtype=np.float64)

        return self.one_by_one(table, self.resumed(table, last), index)
