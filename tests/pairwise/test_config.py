"""Budgets of comparisons: what is accepted before anything is read, and what it comes to."""

from __future__ import annotations

import pytest

from evalbudget.errors import BudgetError
from evalbudget_pairwise import PairwiseConfig


@pytest.mark.parametrize(("budget", "calls"), [("20%", 24), ("2x", 120), ("40", 40), (None, 120)])
def test_a_budget_is_a_number_of_calls(budget: str | None, calls: int) -> None:
    config = PairwiseConfig(budget=budget, until_proved=budget is None)
    assert config.resolve_budget(60, 2).amount == calls


@pytest.mark.parametrize("budget", ["0", "-3", "$5", "some"])
def test_what_is_no_number_of_calls_is_refused_at_once(budget: str) -> None:
    with pytest.raises(BudgetError):
        PairwiseConfig(budget=budget)
