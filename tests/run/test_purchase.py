"""What a purchase says it paid for and read nothing of."""

from __future__ import annotations

from evalbudget import Budget, Design, Reading
from evalbudget.repeats.samplers import Uniform
from evalbudget.run import RUN_AGAIN, UNANSWERED, Purchase


def _purchase(**more: object) -> Purchase:
    return Purchase(Uniform(Design(items=("a", "b")), seed=0), Budget(20), **more)  # type: ignore[arg-type]


def test_what_is_paid_and_not_read_is_among_the_failures() -> None:
    purchase = _purchase()
    first, second, third = purchase.buy(3)
    purchase.tell(Reading(first, 1.0))
    purchase.fail(second, "TimeoutError")
    purchase.abandon(third)
    assert purchase.tally.failures == {"TimeoutError": 1}
    for cost in (2.0, 0.5, 1 / 3, 1.0, -1.0):
        purchase.pay(cost)
    purchase.pay(1.0, RUN_AGAIN)
    assert purchase.tally.failures == {UNANSWERED: 3, "TimeoutError": 1, RUN_AGAIN: 1}  # 2.83 are three calls
    assert next(iter(purchase.tally.failures)) == UNANSWERED  # the most frequent first
    assert purchase.tally.spent == purchase.ledger.spent
    assert (purchase.tally.readings, purchase.tally.failed) == (1, 1)  # of the readings


def test_what_was_given_back_is_no_failure() -> None:
    purchase = _purchase()
    for cost in (1 / 3, 1 / 3, 1 / 3, -1 / 3, -1 / 3, -1 / 3):
        purchase.pay(cost)
    assert purchase.tally.failures == {}


def test_what_earlier_runs_bought_is_counted() -> None:
    purchase = _purchase()
    first, second = purchase.buy(2)
    purchase.tell(Reading(first, 1.0))
    purchase.fail(second, None)
    again = _purchase(journal=purchase.journal)
    assert again.tally == purchase.tally
    assert again.tally.failures == {"no score": 1}
