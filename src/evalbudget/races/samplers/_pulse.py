"""PULSE: predictions corrected by inverse propensities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.races.prediction._coefficient import Coefficient, clipped
from evalbudget.races.prediction._corrections import corrected
from evalbudget.races.samplers._pooling import Pooled, PoolingOptions, PoolingSampler
from evalbudget.races.samplers._rounds import Table, draws_of
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Pulsed(Pooled):
    """Of every model: whether cells failed, sums over its batches of corrections and estimates, how many."""

    has_failures: BoolArray
    corrections: FloatArray
    thetas: FloatArray
    batches_of: FloatArray


class Pulse(PoolingSampler):
    r"""The published method: the plain average of one unbiased estimate per batch.

    .. math:: \theta_t = \frac1n \Big[\sum_{O} S + \lambda \sum_{U} \hat S
              + \sum_{\text{batch}} \frac{S - \lambda \hat S}{\pi}\Big], \quad \pi = \frac{b}{|U|}

    with O and U the items seen and unseen before the batch. Lambda goes by the corrections of the model's
    earlier batches, in one of the two ways that
    :class:`~evalbudget.races.prediction._coefficient.Coefficient` says:
    ``published`` is literal, with the first estimate the plain mean of the first batch; ``corrected`` turns
    the sign round, so that lambda estimates the least-squares slope of S on its prediction. Failed cells are
    taken out of n, U and the batch.

    Args:
        coefficient: the rule for lambda, ``corrected`` or ``published``.
        common: see PoolingSampler; t0 is the published T_0, which is 1 in the experiments.

    Raises:
        UnknownNameError: no such rule.
        InvalidInputError: see PoolingSampler.

    References:
        arXiv 2605.10405.
    """

    name = "pulse"
    note_kinds: ClassVar[tuple[type, ...]] = (Pulsed,)
    _common = PoolingOptions

    def __init__(
        self, design: Design, *, coefficient: str = Coefficient.CORRECTED, **common: Unpack[PoolingOptions]
    ) -> None:
        self.coefficient = Coefficient.named(coefficient)
        super().__init__(design, **common)
        self.options["coefficient"] = self.coefficient.value

    def start(self, **more: Any) -> Any:
        """No batches yet."""
        corrections, thetas, batches_of = np.zeros((3, self._n_models))
        return super().start(
            has_failures=np.zeros(self._n_models, dtype=bool),
            corrections=corrections,
            thetas=thetas,
            batches_of=batches_of,
            **more,
        )

    def _learn_batch(self, table: Table, note: Any, model: int, item: IntArray, position: int) -> None:
        scores, predicted = table.scores(model, item), note.past[model][-1][0]
        if note.has_failures[model] or np.isnan(scores).any():  # what failed changes every earlier estimate
            note.has_failures[model] = True
            theta = corrected(draws_of(table, note, model), self.coefficient).theta
            if theta.size:
                note.estimate[model] = theta.mean()
            return
        score, f = float(scores.sum()), float(predicted.sum())
        left = self._n_items - position
        weight = left / item.size
        lam = self._weight_of_predictions(note, model, item.size, left)
        theta_t = (
            table.total[model] - score + lam * note.unseen_sum[model] + weight * (score - lam * f)
        ) / self._n_items
        note.corrections[model] += self.coefficient.correction(score, f, lam, weight)
        note.thetas[model] += theta_t
        note.batches_of[model] += 1
        note.estimate[model] = note.thetas[model] / note.batches_of[model]

    def _weight_of_predictions(self, note: Any, model: int, size: int, left: int) -> float:
        """Lambda of a batch of ``size`` items out of ``left`` that the model has not seen."""
        k = note.batches_of[model]
        if not k:
            return self.coefficient.first
        F, Phi = float(note.unseen_sum[model]), float(note.unseen_sum_sq[model])
        return clipped(F, Phi, left, float(note.corrections[model] / k))
