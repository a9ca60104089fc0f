"""PULSE's lambda as in the authors' code, which differs from their text, and between the two."""

from __future__ import annotations

import numpy as np

from evalbudget.races.prediction._coefficient import clipped
from evalbudget.races.samplers import Pulse


class AuthorsPulse(Pulse):
    r"""``pulse`` with the rule of github.com/elad-tolo/pulse-llm-eval (d9a01db).

    .. math:: \lambda = \mathrm{clip}\Big(1 - \frac{F \bar Z}{\frac{1 - \pi}\pi \Phi + F^2}, 0, 1\Big)

    Zbar is the mean of :math:`\sum (S - \lambda \hat S)/\pi` over the batches since the last refit; lambda is
    1 while there is none, or where Zbar is not positive. To be built with ``coefficient="published"``, which
    makes the first batch's 0.
    """

    name = "pulse-authors-code"

    def _prepare(self) -> None:
        super()._prepare()
        self._forgotten = np.zeros(self._n_models)  # batches of each model that Zbar leaves out

    def _refit(self, model: int, drawn: int) -> None:
        super()._refit(model, drawn)
        self._forget(model)

    def _forget(self, model: int) -> None:
        self._corrections[model] = 0.0
        self._forgotten[model] = self._batches_of[model]

    def _weight_of_predictions(self, model: int, size: int, left: int) -> float:
        if not self._batches_of[model]:
            return self.coefficient.first
        k = self._batches_of[model] - self._forgotten[model]
        mean = float(self._corrections[model] / k) if k else 0.0
        return self._rule(float(self._unseen_sum[model]), float(self._unseen_sum_sq[model]), size, left, mean)

    def _rule(self, F: float, Phi: float, size: int, left: int, mean_correction: float) -> float:
        return code_coefficient(F, Phi, size / left, mean_correction)


class LoopPulse(AuthorsPulse):
    """``pulse`` by the formula of the text, with Zbar over the batches of the loop, not the first one."""

    name = "pulse-loop-steps"

    def _forget(self, model: int) -> None:
        if self._fitted[model] == 1:  # the refit after the first batches
            super()._forget(model)

    def _rule(self, F: float, Phi: float, size: int, left: int, mean_correction: float) -> float:
        return clipped(F, Phi, left, mean_correction)


def code_coefficient(F: float, Phi: float, pi: float, mean_correction: float) -> float:
    """Lambda of a batch, from the sums of the unseen predictions and of their squares."""
    if mean_correction <= 0.0:
        return 1.0
    return min(1.0, max(0.0, 1.0 - F * mean_correction / ((1.0 - pi) / pi * Phi + F**2)))
