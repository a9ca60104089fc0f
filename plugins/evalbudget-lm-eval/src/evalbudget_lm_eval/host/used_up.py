"""What is raised where the budget does not pay for a call."""

from __future__ import annotations

from evalbudget.budget import Budget, shown_amount
from evalbudget.errors import BudgetError


class UsedUpError(BudgetError):
    """A call was not sent: at the most that it can cost it does not fit into what is left of the budget.

    Args:
        cap: the budget.
    """

    def __init__(self, cap: Budget | str) -> None:
        super().__init__(f"the budget of {cap} is used up")


def check_pays(budget: Budget, what: str, most: float) -> None:
    """Refuse a budget that does not pay for this.

    Raises:
        BudgetError: it is below.
    """
    if most > budget.amount:
        raise BudgetError(
            f"a budget of {budget} is below what {what} can cost here: {shown_amount(most, budget.unit)}. "
            "Raise --budget to that or more, or limit the length of replies: --gen_kwargs max_gen_toks=..., "
            "and gen_kwargs: {max_gen_toks: ...} of judges"
        )
