"""PULSE's lambda as in the authors' code, which differs from their text, and between the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evalbudget.races.prediction._coefficient import clipped
from evalbudget.races.samplers import Pulse, Table
from evalbudget.races.samplers._pulse import Pulsed
from evalbudget.statistics._bounds import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Forgetful(Pulsed):
    """Also how many batches of each model Zbar leaves out."""

    forgotten: FloatArray


class AuthorsPulse(Pulse):
    r"""``pulse`` with the rule of github.com/elad-tolo/pulse-llm-eval (d9a01db).

    .. math:: \lambda = \mathrm{clip}\Big(1 - \frac{F \bar Z}{\frac{1 - \pi}\pi \Phi + F^2}, 0, 1\Big)

    Zbar is the mean of :math:`\sum (S - \lambda \hat S)/\pi` over the batches since the last refit; lambda is
    1 while there is none, or where Zbar is not positive. To be built with ``coefficient="published"``, which
    makes the first batch's 0.
    """

    name = "pulse-authors-code"

    note_kinds = (Forgetful,)

    def start(self, **more: Any) -> Any:
        """Nothing is left out."""
        return super().start(forgotten=np.zeros(self._n_models), **more)

    def _refit(self, table: Table, note: Any, model: int) -> None:
        super()._refit(table, note, model)
        self._forget(note, model)

    def _forget(self, note: Any, model: int) -> None:
        note.corrections[model] = 0.0
        note.forgotten[model] = note.batches_of[model]

    def _weight_of_predictions(self, note: Any, model: int, size: int, left: int) -> float:
        if not note.batches_of[model]:
            return self.coefficient.first
        k = note.batches_of[model] - note.forgotten[model]
        mean = float(note.corrections[model] / k) if k else 0.0
        return self._rule(float(note.unseen_sum[model]), float(note.unseen_sum_sq[model]), size, left, mean)

    def _rule(self, F: float, Phi: float, size: int, left: int, mean_correction: float) -> float:
        return code_coefficient(F, Phi, size / left, mean_correction)


class LoopPulse(AuthorsPulse):
    """``pulse`` by the formula of the text, with Zbar over the batches of the loop, not the first one."""

    name = "pulse-loop-steps"

    def _forget(self, note: Any, model: int) -> None:
        if note.fitted[model] == 1:  # the refit after the first batches
            super()._forget(note, model)

    def _rule(self, F: float, Phi: float, size: int, left: int, mean_correction: float) -> float:
        return clipped(F, Phi, left, mean_correction)


def code_coefficient(F: float, Phi: float, pi: float, mean_correction: float) -> float:
    """Lambda of a batch, from the sums of the unseen predictions and of their squares."""
    if mean_correction <= 0.0:
        return 1.0
    return min(1.0, max(0.0, 1.0 - F * mean_correction / ((1.0 - pi) / pi * Phi + F**2)))
