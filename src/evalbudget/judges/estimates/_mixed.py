r"""The mixed model behind every judge-corrected estimate: judges fixed, items random.

.. math:: x_s = \mu_{l(s)} + a_{b(s)} + e_s, \quad
          V_b = \sigma^2\bigl[(1-\rho) I + \rho J\bigr]

within a block b (an item, or a generation where several judges score each). With :math:`\rho \to 1` the
judges' deviations are the two-way least squares within blocks; with one score per block they are the
judges' means. In between, both kinds of information count: an item scored once still tells of its judge, and
judges that share no items are compared through their means.

The model only gives the weights. Standard errors come from what is left of every item (a sandwich clustered
by item), so a heavy-tailed item, a noisy judge or an interaction is in them; the model says by how much the
fit has shrunk those residuals, and how many degrees of freedom they are worth.

References:
    Patterson and Thompson (1971), REML and the recovery of inter-block information.
    Chung et al. (2013), Psychometrika 78: a weak prior keeps variance ratios off the boundary.
    Bell and McCaffrey (2002), Survey Methodology 28: degrees of freedom of clustered standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from evalbudget.judges.estimates._scores import JudgeScores
from evalbudget.statistics._bounds import FloatArray, IntArray

_GRID = np.linspace(-7.0, 12.0, 20)  # of logit(rho)
SMALL = 20_000  # entries of a table up to which numpy is several times quicker than scipy.sparse
_STEPS = 18  # golden section, to 2e-4 of logit(rho)


@dataclass(frozen=True, slots=True)
class Error:
    """Squared standard error of a contrast.

    Attributes:
        own: from the items' residuals, unbiased where the model holds.
        degrees: of freedom of ``own`` (Satterthwaite); 0 if the residuals say nothing.
        model: what the model says, on n_scores - n_judges degrees.
    """

    own: float
    degrees: float
    model: float


@dataclass(frozen=True, eq=False)
class MixedFit:
    """A fitted model; build it with :meth:`of`.

    Attributes:
        panel: the scores; every judge has some.
        block: number of the block of each score, shape (n_scores,).
        rho: correlation of two scores of a block, judges taken out.
        mu: level of each judge, shape (K,).
        inverse: covariance of mu in units of the variance of a score, shape (K, K).
        variance: of a score by one judge; nan without degrees of freedom.
    """

    panel: JudgeScores
    block: IntArray
    rho: float
    mu: FloatArray
    inverse: FloatArray
    variance: float

    @classmethod
    @lru_cache(maxsize=1)  # all that is said of a panel asks for the fit of the same scores
    def of(cls, panel: JudgeScores, *, rho: float | None = None) -> MixedFit:
        """Fit by REML, with a weak Beta(1.5, 1.5) prior on rho.

        Args:
            panel: every judge has scores.
            rho: taken for known; None estimates it.
        """
        numbers = panel.generation if panel.is_crossed else panel.item
        _, block = np.unique(numbers, return_inverse=True)
        sums = _Sums.of(panel, block)
        if rho is None:
            rho = sums.best_rho()
        inverse, shift, squares = sums.solve(rho)
        degrees = panel.value.size - panel.n_judges
        variance = max(squares, 0.0) / degrees if degrees > 0 else float("nan")
        return cls(panel, block, rho, sums.mean + shift, inverse, variance)

    @property
    def gamma(self) -> FloatArray:
        """Deviations of the judges from their mean, shape (K,)."""
        return np.asarray(self.mu - self.mu.mean())

    @property
    def degrees(self) -> int:
        """Of freedom that the scores have beyond the judges."""
        return self.panel.value.size - self.panel.n_judges

    @cached_property
    def residual(self) -> FloatArray:
        """Scores less their judge's level."""
        return np.asarray(self.panel.value - self.mu[self.panel.judge])

    @cached_property
    def contrasts(self) -> FloatArray:
        """Column l is what weighs the judges' normal equations for gamma_l, shape (K, K)."""
        return np.asarray(self.inverse - self.inverse.mean(axis=1, keepdims=True))

    @cached_property
    def _items(self) -> tuple[IntArray, IntArray]:
        """Number of the item of each score, and of each block."""
        _, item = np.unique(self.panel.item, return_inverse=True)
        of_block = np.zeros(int(self.block.max(initial=-1)) + 1, dtype=np.int64)
        of_block[self.block] = item
        return item, of_block

    @cached_property
    def pull(self) -> FloatArray:
        """Share of its block's sum that is taken off every score, shape (n_scores,)."""
        size = np.bincount(self.block)
        return np.asarray((self.rho / (1.0 - self.rho + size * self.rho))[self.block])

    def weights(self, per_judge: FloatArray) -> FloatArray:
        """V^-1 X a: the weight of every score in the estimate a' X' V^-1 x. Shape (n_scores,)."""
        own = per_judge[self.panel.judge]
        shared = np.bincount(self.block, own)[self.block]
        return np.asarray((own - self.pull * shared) / (1.0 - self.rho))

    def panel_weights(self, weight: FloatArray) -> FloatArray:
        """Weights of the mean of ``weight``, adding up to 1, over judge-corrected scores.

        The judges' weights are 1/K each then: what is too much of one is taken out as gammahat.
        """
        share = np.bincount(self.panel.judge, weight, self.panel.n_judges)
        return np.asarray(weight - self.weights(self.inverse @ (share - share.mean())))

    def error(self, weight: FloatArray) -> Error:
        r"""Error of :math:`\sum_s c_s x_s`.

        With r_i what is left of item i, u_i = c_i' r_i has variance
        :math:`W_{ii} = c_i' V_i c_i - g_i' A^{-1} g_i`, g_i = X_i' c_i. Then

        .. math:: \sum_i u_i^2 \; \frac{\sum_i c_i' V_i c_i}{\mathrm{tr} W}, \quad
                  \nu = \frac{(\mathrm{tr} W)^2}{\mathrm{tr} W^2}

        which are s_r^2/n on n - 1 degrees in crossed designs, and the pooled variance on n - K where every
        item has one score.
        """
        item, of_block = self._items
        n, K, rho = int(item.max()) + 1, self.panel.n_judges, self.rho
        left = np.bincount(item, weight * self.residual, n)
        shared = np.bincount(self.block, weight)
        spread = (1.0 - rho) * np.bincount(item, weight * weight, n)
        spread += rho * np.bincount(of_block, shared * shared, n)
        per_judge = counted(weight, item, self.panel.judge, (n, K))
        spreading = counted(weight * spread[item], item, self.panel.judge, (n, K))
        heavy = dense(per_judge.T @ spreading)
        pulled = self.inverse @ dense(per_judge.T @ per_judge)
        total = float(spread.sum())
        trace = total - float(np.trace(pulled))
        square = float((spread**2).sum() - 2.0 * (self.inverse * heavy).sum() + (pulled * pulled.T).sum())
        model = total * self.variance
        if not (trace > 1e-9 * total and square > 0.0):
            return Error(float("nan"), 0.0, model)
        return Error(float((left**2).sum()) * total / trace, trace * trace / square, model)

    def sandwich(self) -> FloatArray:
        """Variance of every gammahat_l from the items' residuals as they are, shape (K,)."""
        item, _ = self._items
        shared = np.bincount(self.block, self.residual)[self.block]
        score = (self.residual - self.pull * shared) / (1.0 - self.rho)
        draws = counted(score, item, self.panel.judge, (int(item.max()) + 1, self.panel.n_judges))
        gram = dense(draws.T @ draws)
        return np.asarray(((gram @ self.contrasts) * self.contrasts).sum(axis=0))


def counted(value: FloatArray, row: IntArray, column: IntArray, shape: tuple[int, int]) -> Any:
    """A table with every value added to its cell: numpy's if it is small, else a sparse one."""
    if shape[0] * shape[1] <= SMALL:
        return np.bincount(row * shape[1] + column, value, shape[0] * shape[1]).reshape(shape)
    from scipy.sparse import coo_array  # takes longer to import than the rest of evalbudget

    return coo_array((value, (row, column)), shape=shape).tocsr()


def dense(table: Any) -> FloatArray:
    """Numpy's, whichever kind it is of."""
    return np.asarray(table if isinstance(table, np.ndarray) else table.toarray())


@dataclass(frozen=True, eq=False)
class _Sums:
    """What the likelihood needs of the scores, blocks of one size together.

    Attributes:
        counts: scores per judge, shape (K,).
        mean: of each judge, shape (K,).
        squares: sum of the squared deviations from them.
        size: of blocks, ascending, shape (S,).
        blocks: how many there are of each size, same shape.
        meets: how often two judges score one block, for each size, shape (S, K, K).
        totals: per judge, sum over its scores of the block's total deviation, shape (S, K).
        total_squares: sum over blocks of their squared total deviation, shape (S,).
    """

    counts: FloatArray
    mean: FloatArray
    squares: float
    size: IntArray
    blocks: IntArray
    meets: FloatArray
    totals: FloatArray
    total_squares: FloatArray

    @classmethod
    def of(cls, panel: JudgeScores, block: IntArray) -> _Sums:
        K, counts = panel.n_judges, panel.counts.astype(np.float64)
        mean = np.bincount(panel.judge, panel.value, K) / counts
        left = panel.value - mean[panel.judge]
        size = np.bincount(block)
        total = np.bincount(block, left)
        x = counted(np.ones(block.size), block, panel.judge, (size.size, K))
        sizes = np.unique(size)
        meets, totals, squares = np.zeros((sizes.size, K, K)), np.zeros((sizes.size, K)), np.zeros(sizes.size)
        for number, m in enumerate(sizes.tolist()):
            rows = np.flatnonzero(size == m)
            part = x[rows]
            meets[number] = dense(part.T @ part)
            totals[number] = part.T @ total[rows]
            squares[number] = float((total[rows] ** 2).sum())
        return cls(
            counts, mean, float((left * left).sum()), sizes, np.bincount(size)[sizes], meets, totals, squares
        )

    def _normal(self, rho: float) -> tuple[FloatArray, FloatArray, float]:
        pull = rho / (1.0 - rho + self.size * rho)
        matrix = (np.diag(self.counts) - np.tensordot(pull, self.meets, 1)) / (1.0 - rho)
        right = -(pull @ self.totals) / (1.0 - rho)
        return matrix, right, (self.squares - float(pull @ self.total_squares)) / (1.0 - rho)

    def solve(self, rho: float) -> tuple[FloatArray, FloatArray, float]:
        """Covariance of mu in units of a score's variance, mu less the judges' means, squares left."""
        matrix, right, squares = self._normal(rho)
        inverse = np.linalg.inv(matrix)
        inverse = (inverse + inverse.T) / 2.0
        shift = inverse @ right
        return inverse, shift, squares - float(right @ shift)

    def _loss(self, logit: float) -> float:
        """-2 log posterior of rho, up to a constant."""
        rho = 1.0 / (1.0 + np.exp(-logit))
        matrix, right, squares = self._normal(rho)
        squares -= float(right @ np.linalg.solve(matrix, right))
        degrees = float(self.counts.sum()) - self.counts.size
        of_blocks = (self.size - 1) * np.log(1.0 - rho) + np.log(1.0 - rho + self.size * rho)
        fit = float(self.blocks @ of_blocks) + float(np.linalg.slogdet(matrix)[1])
        return float(fit + degrees * np.log(max(squares, 1e-300)) - np.log(rho * (1.0 - rho)))

    def best_rho(self) -> float:
        """REML, penalised; 1/2 where no block has two scores or nothing is left beyond the judges."""
        if self.size[-1] < 2 or self.counts.sum() <= self.counts.size or not self.squares > 0.0:
            return 0.5
        losses = [self._loss(logit) for logit in _GRID.tolist()]
        best = int(np.argmin(losses))
        low, high = float(_GRID[max(best - 1, 0)]), float(_GRID[min(best + 1, _GRID.size - 1)])
        ratio = (np.sqrt(5.0) - 1.0) / 2.0
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = self._loss(left), self._loss(right)
        for _ in range(_STEPS):
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - ratio * (high - low)
                at_left = self._loss(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + ratio * (high - low)
                at_right = self._loss(right)
        return float(1.0 / (1.0 + np.exp(-(low + high) / 2.0)))
