"""What is raised where the budget does not pay for a call."""

from __future__ import annotations

from evalbudget.budget import Budget
from evalbudget.errors import BudgetError


class UsedUpError(BudgetError):
    """A call was not sent: at the most that it can cost it does not fit into what is left of the budget.

    Args:
        cap: the budget.
    """

    def __init__(self, cap: Budget | str) -> None:
        super().__init__(f"the budget of {cap} is used up")
