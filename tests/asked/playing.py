"""Asks a sampler one request at a time against made-up scores, in any order of completion, without a host."""

from __future__ import annotations

import random
from collections.abc import Callable

from evalbudget._asked import AskedSampler
from evalbudget._version import __version__
from evalbudget.design import Cell, Reading
from evalbudget.journal import Header, Journal
from evalbudget.testing._play import Score, gaussian


def play(
    sampler: AskedSampler,
    n_requests: int,
    *,
    score: Score = gaussian,
    concurrency: int = 1,
    order: random.Random | None = None,
    cost: Callable[[Cell], float] = lambda cell: 1.0,
) -> Journal:
    """Ask until ``n_requests`` were handed out or the sampler stops, and answer all of them.

    Args:
        sampler: to play with; what is pending already is answered too.
        n_requests: in all, those of before included.
        score: of each cell.
        concurrency: requests in flight.
        order: which request in flight comes back next; None for the oldest.
        cost: of each cell, with or without a score.

    Returns:
        What happened here.
    """
    journal = Journal(Header.of(sampler, __version__))
    in_flight = list(sampler.pending)
    while True:
        while len(in_flight) < concurrency and sampler.asked < n_requests:
            asked = sampler.ask(1)
            if not asked:
                break
            for request in asked:
                in_flight.append(request)
                journal.ask(request)
        if not in_flight:
            return journal
        request = in_flight.pop(order.randrange(len(in_flight)) if order else 0)
        reading = Reading(request, score(request.cell), cost(request.cell))
        sampler.tell([reading])
        journal.tell(reading)
