"""What a purchase of preferences says at its end."""

from __future__ import annotations

import pytest

from evalbudget.budget import Budget
from evalbudget_pairwise import PairwisePurchase


@pytest.mark.parametrize("until_proved", [True, False])
def test_intervals_of_a_run_that_stops_by_itself_are_said_to_be_too_narrow(until_proved: bool) -> None:
    bought = PairwisePurchase((), None, Budget(10), 0, {}, "the budget is used up", 0, until_proved)
    assert ("somewhat too narrow" in " ".join(bought.lines())) is until_proved
