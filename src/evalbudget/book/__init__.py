"""The book: a table of cells and one of calls under what buys, and the way in without a host."""

from evalbudget.book._book import Book
from evalbudget.book._calls import Called, Unread
from evalbudget.book._drive import Answer, Bought, drive
from evalbudget.book._opening import (
    Told,
    begin_anew,
    end_well,
    keep_lacking,
    lacking_in,
    paid_in,
    spent_in,
    told_in,
    was_killed,
)
from evalbudget.book._statements import LOST
from evalbudget.book._tables import ALONE, BESIDE_LOGS, BILL, PAID_CALLS
from evalbudget.book._turn import Turn

__all__ = [
    "ALONE",
    "BESIDE_LOGS",
    "BILL",
    "LOST",
    "PAID_CALLS",
    "Answer",
    "Book",
    "Bought",
    "Called",
    "Told",
    "Turn",
    "Unread",
    "begin_anew",
    "drive",
    "end_well",
    "keep_lacking",
    "lacking_in",
    "paid_in",
    "spent_in",
    "told_in",
    "was_killed",
]
