"""Money in replays: which budgets there are, and when a reading may begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalbudget.budget import Budget, Unit
from evalbudget.errors import BudgetError
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._means import mean_of_known

_SLACK = 1e-9  # of sums that are rounded


class Purse:
    """What is left of a budget in money, where a reading's cost is known only when it is there.

    A reading begins if what is left covers the dearest so far.
    So the budget is exceeded, at most, by what the last reading is dearer than all before it.

    Args:
        amount: dollars.
    """

    def __init__(self, amount: float) -> None:
        self.amount = amount
        self.spent = 0.0
        self.dearest = 0.0

    @property
    def affords_another(self) -> bool:
        """Whether a reading may begin."""
        left, slack = self.amount - self.spent, _SLACK * self.amount
        return left > slack and left + slack >= self.dearest

    def pay(self, cost: float) -> None:
        """A reading is there."""
        self.spent += cost
        self.dearest = max(self.dearest, cost)


def refuse_tokens(text: str | int | Budget, budget: Budget, counts: str) -> None:
    """Refuse tokens, which no recording tells.

    Args:
        text: what the user wrote.
        budget: what it means.
        counts: how a budget in scores is written.

    Raises:
        BudgetError: the budget is in tokens.
    """
    if budget.unit is Unit.TOKENS:
        raise BudgetError(
            f"budget {text!s} is {budget}, and recorded scores tell what readings cost in dollars; write "
            f"money ('$5'), or {counts}"
        )


def mean_costs(
    scores: NDArray[np.floating], costs: NDArray[np.floating] | None, text: str | int | Budget, counts: str
) -> FloatArray:
    """What a recorded score of each cell costs on average in dollars; the last axis is of repeats.

    Args:
        scores: recorded; NaN where nothing was.
        costs: of each, of the same shape; None where none is known.
        text: the budget in money that the user wrote.
        counts: how a budget in scores is written.

    Raises:
        BudgetError: a score does not say what it cost.
    """
    there = ~np.isnan(scores)
    known = np.zeros_like(there) if costs is None else there & ~np.isnan(costs)
    if costs is None or known.sum() < there.sum():
        without, n = int((there & ~known).sum()), int(there.sum())
        raise BudgetError(
            f"budget {text!s} is money, and {without:,} of {n:,} recorded scores do not say what they cost; "
            "add a column cost with the dollars of each reading to a .csv (an array costs, of the shape of "
            f"scores, to an .npz), or write {counts}"
        )
    return mean_of_known(np.where(there, costs, np.nan))
