"""One worker of a shared purchase, as a process: tells what it was given and asks for more at once."""

from __future__ import annotations

import sys
import time

from evalbudget import Budget, Design, Reading, Request
from evalbudget.repeats.samplers import RobinHood
from evalbudget.run import SharedPurchase

ITEMS = 1_000
LEASE = 3.0


def sampler() -> RobinHood:
    """The same in every worker."""
    return RobinHood(Design.of_items(ITEMS), seed=1)


def main() -> None:
    """``worker.py STORE BUDGET WIDTH``: width requests at a time."""
    store, budget, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    purchase = SharedPurchase(sampler(), Budget(budget), store, lease=LEASE)
    requests = purchase.buy(width)
    while requests or not purchase.finished:
        if not requests:
            time.sleep(0.02)  # for what others have under way
        requests = purchase.trade([_read(request) for request in requests], width)
    purchase.close()


def _read(request: Request) -> Reading:
    cell = request.cell
    return Reading(request, (cell.item * 7_919 + cell.epoch * 104_729) % 1_000 / 1_000)


if __name__ == "__main__":
    main()
