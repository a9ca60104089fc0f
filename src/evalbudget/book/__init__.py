"""The book: a table of cells and one of calls under what buys, and the way in without a host."""

from evalbudget.book._book import LOST, USED_UP, Book, spent_in
from evalbudget.book._drive import Answer, Bought, drive

__all__ = ["LOST", "USED_UP", "Answer", "Book", "Bought", "drive", "spent_in"]
