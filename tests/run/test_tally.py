"""What was paid and not read is told by its reason."""

from __future__ import annotations

from evalbudget import Cell, Reading, Request
from evalbudget.run import RUN_AGAIN, UNANSWERED, Tally


def test_what_is_paid_and_not_read_is_among_the_failures() -> None:
    tally = Tally()
    tally.count(Reading(Request(0, Cell()), 1.0))
    tally.count(Reading(Request(1, Cell()), None, error="TimeoutError"))
    tally.count(Reading(Request(2, Cell()), None, 0.0))
    assert tally.failures == {"TimeoutError": 1}
    for cost in (2.0, 0.5, 1 / 3, 1.0, -1.0):
        tally.lose(cost)
    tally.lose(1.0, RUN_AGAIN)
    assert tally.failures == {UNANSWERED: 3, "TimeoutError": 1, RUN_AGAIN: 1}  # 2.83 are three calls
    assert next(iter(tally.failures)) == UNANSWERED  # the most frequent first
    assert (tally.readings, tally.failed) == (1, 1)  # of the readings


def test_what_was_given_back_is_no_failure() -> None:
    tally = Tally()
    for cost in (1 / 3, 1 / 3, 1 / 3, -1 / 3, -1 / 3, -1 / 3):
        tally.lose(cost)
    assert tally.failures == {}
