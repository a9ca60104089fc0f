"""One worker of a book, as a process: tells what it was given and asks for more at once."""

from __future__ import annotations

import sys
import time

from evalbudget import Budget, Design, Reading, Request
from evalbudget.book import Book
from evalbudget.repeats.samplers import RobinHood
from evalbudget.store import Address

ITEMS = 1_000
LEASE = 3.0


def sampler() -> RobinHood:
    """The same in every worker."""
    return RobinHood(Design.of_items(ITEMS), t0=2, seed=1)


def opened(store: str, budget: int) -> Book:
    """As one more worker."""
    return Book(sampler(), Budget(budget), Address.parse(store), lease=LEASE)


def main() -> None:
    """``worker.py STORE BUDGET WIDTH``: width requests at a time."""
    store, budget, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    book = opened(store, budget)
    requests = book.trade((), width)
    while requests or not book.finished:
        if not requests:
            time.sleep(0.02)  # for what others have under way
        requests = book.trade([_read(request) for request in requests], width)
    book.close()


def _read(request: Request) -> Reading:
    cell = request.cell
    return Reading(request, (cell.item * 7_919 + cell.epoch * 104_729) % 1_000 / 1_000)


if __name__ == "__main__":
    main()
