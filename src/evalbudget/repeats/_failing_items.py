"""Whether calls fail on some items more than on others, whose scores may then be other than those read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Reading
from evalbudget.outage import is_down
from evalbudget.repeats._wording import shortened
from evalbudget.statistics._bounds import FloatArray, IntArray

_EVIDENCE = 20.0
"""E-values from here on are told: wrongly in at most one of so many runs."""

_BLOCK = 50  # readings
_RATES = (0.01, 0.03, 0.1, 0.3, 0.6)
_SPREADS = (0.5, 4.0)
_EXCEPTIONS = (0.05, 0.2)
_ALIKE = 50.0
_NAMED = 3
_NAME = 40


@dataclass(frozen=True, slots=True)
class FailingItems:
    """Items on which calls fail more than chance explains.

    Attributes:
        names: those that fail most beyond their share, the worst first, at most three.
        failed: readings of each that failed.
        calls: all readings of each that were paid.
        items: items of which readings failed.
        of: items that were asked.
        e_value: evidence against all items failing alike.
    """

    names: tuple[str, ...]
    failed: tuple[int, ...]
    calls: tuple[int, ...]
    items: int
    of: int
    e_value: float

    def __str__(self) -> str:
        worst = ", ".join(
            f"{shortened(name, _NAME)} ({failed:,} of {calls:,})"
            for name, failed, calls in zip(self.names, self.failed, self.calls, strict=True)
        )
        return (
            f"calls fail on some items more than on others (on {self.items:,} of {self.of:,}; most on "
            f"{worst}), so what fails may score differently from what is read"
        )


def asked_in_vain(readings: Iterable[Reading]) -> set[int]:
    """Items of which every paid call failed; what cost nothing was not asked."""
    paid = [reading for reading in readings if reading.cost > 0.0]
    scored = {reading.request.cell.item for reading in paid if reading.value is not None}
    return {reading.request.cell.item for reading in paid} - scored


def failing_items(readings: Sequence[Reading], names: Sequence[str]) -> FailingItems | None:
    r"""Test whether paid calls fail on all items alike.

    The e-value is what alternatives say of the failures, over the most that can be said if all items fail
    alike at any moment: at one rate in each block b of 50 readings, and always while a server is down,

    .. math:: E = \frac1J \sum_j \prod_i m_j(x_i, a_i) \Big/
              \prod_b \max_p \, p^{x_b} (1-p)^{a_b - x_b} ,

    with x of a readings failed, where those of a block leave out 8 or more failures in a row, and marginal
    likelihoods m_j of rates that differ: beta distributions about several means, and ones close to a mean
    with a few items that may have any rate. It holds whenever it is read, and whichever items are asked
    because others, or the same ones, failed.

    Args:
        readings: of one model, in the order in which they came; what cost nothing was not asked.
        names: of all items.

    Returns:
        Which items, where E >= 20: wrongly with probability at most .05 if all fail alike as said. None where
        that may be.

    References:
        Wasserman, Ramdas and Balakrishnan (2020), universal inference.
    """
    paid = [reading for reading in readings if reading.cost > 0.0]
    item = np.array([reading.request.cell.item for reading in paid], dtype=np.int64)
    bad = np.array([reading.value is None for reading in paid], dtype=bool)
    if not 0 < int(bad.sum()) < bad.size:
        return None
    asked = np.bincount(item, minlength=len(names))
    failed = np.bincount(item[bad], minlength=len(names))
    evidence = log_e_value(asked, failed, bad)
    if evidence < np.log(_EVIDENCE):
        return None
    excess = failed - asked * (int(bad.sum()) / bad.size)
    worst = [int(i) for i in np.argsort(-excess, kind="stable")[:_NAMED] if excess[i] > 0.0]
    return FailingItems(
        tuple(names[i] for i in worst),
        tuple(int(failed[i]) for i in worst),
        tuple(int(asked[i]) for i in worst),
        int(np.count_nonzero(failed)),
        int(np.count_nonzero(asked)),
        float(np.exp(min(evidence, 700.0))),
    )


def log_e_value(asked: IntArray, failed: IntArray, bad: NDArray[np.bool_]) -> float:
    """Logarithm of the e-value of :func:`failing_items`.

    Args:
        asked: readings of each item, shape (n_items,).
        failed: of them, same shape.
        bad: whether each reading failed, in their order, shape (n_readings,).
    """
    from scipy.special import betaln, logsumexp, xlogy

    def likelihood(a: float, b: float) -> FloatArray:
        return np.asarray(betaln(failed + a, asked - failed + b) - betaln(a, b), dtype=np.float64)

    anything = likelihood(1.0, 1.0)
    said: list[float] = []
    for rate in _RATES:
        said += [float(likelihood(rate * k, (1.0 - rate) * k).sum()) for k in _SPREADS]
        alike = likelihood(rate * _ALIKE, (1.0 - rate) * _ALIKE)
        said += [
            float(np.logaddexp(np.log1p(-few) + alike, np.log(few) + anything).sum()) for few in _EXCEPTIONS
        ]
    ends = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]])))  # of rows of failures, in pairs
    down = np.zeros(bad.size, dtype=bool)
    for start, end in ends.reshape(-1, 2).tolist():
        down[start:end] = is_down(end - start)
    block = np.flatnonzero(~down) // _BLOCK
    a, x = np.bincount(block), np.bincount(block, bad[~down])
    a, x = a[a > 0], x[a > 0]
    common = float((xlogy(x, x / a) + xlogy(a - x, 1.0 - x / a)).sum())
    return float(logsumexp(said) - np.log(len(said)) - common)
