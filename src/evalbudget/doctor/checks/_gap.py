"""Is who leads proved, with so many items?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from evalbudget.comparisons import Outcome, compare
from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind

_MOST = 60  # models whose pairs are all compared


class Gap(Check):
    """A lead that these items do not prove; all pairs are compared at one error rate."""

    name = "gap"

    def examine(self, case: Case) -> Iterable[Finding]:
        """The first two, and how many neighbours in the ranking are told apart."""
        recorded, order = case.recorded, list(case.study.order)
        if len(order) < 2:
            return
        chosen = [recorded.models[m] for m in order[:_MOST]]
        found = compare(recorded, models=chosen, level=case.level)
        rows = {frozenset((row.first, row.second)): row for row in found.rows}
        neighbours = [rows[frozenset(pair)] for pair in pairwise(chosen)]
        apart = sum(row.outcome in (Outcome.FIRST, Outcome.SECOND) for row in neighbours)
        top = neighbours[0]
        lead = abs(top.difference)
        places = max(2, -int(np.floor(np.log10(max(lead, 1e-6)))) + 1)
        ends = (top.low, top.high) if top.difference >= 0 else (-top.high, -top.low)
        numbers = {"lead": lead, "low": ends[0], "high": ends[1], "proved": apart, "pairs": len(neighbours)}
        ranks = f" Of {len(neighbours)} neighbours in the ranking, {apart} are told apart."
        of_all = f" (of all {len(found.rows):,} pairs at once)" if len(found.rows) > 1 else ""
        told = (
            f"{chosen[0]} is {lead:.{places}f} ahead of {chosen[1]} on the {top.items:,} items of both, "
            f"{case.level:.0%} interval {ends[0]:+.{places}f} to {ends[1]:+.{places}f}{of_all}"
        )
        ranks = ranks if len(neighbours) > 1 else ""
        if top.outcome in (Outcome.FIRST, Outcome.SECOND):
            yield Finding(self.name, Kind.FINE, "who is best is proved", f"{told}.{ranks}", "", numbers)
            return
        needed = ""
        if top.items_needed:
            needed = f" About {_rounded(top.items_needed):,} items like these would prove a lead as large."
        yield Finding(
            self.name,
            Kind.PROBLEM,
            "too few items for the lead",
            f"{told}: not proved.{needed}{ranks}",
            "Call it a tie, or buy more items for the first ones only: evalbudget race --until-proved. "
            "evalbudget compare shows every pair.",
            numbers | ({} if top.items_needed is None else {"items_needed": top.items_needed}),
        )


def _rounded(items: int) -> int:
    """To two digits that mean something."""
    return int(float(f"{items:.1e}"))
