"""The book: a table of cells and one of calls under what buys, and the way in without a host."""

from evalbudget.book._book import USED_UP, Book
from evalbudget.book._drive import Answer, Bought, drive
from evalbudget.book._opening import spent_in
from evalbudget.book._statements import LOST

__all__ = ["LOST", "USED_UP", "Answer", "Book", "Bought", "drive", "spent_in"]
