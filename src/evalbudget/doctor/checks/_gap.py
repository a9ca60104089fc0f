"""Is who leads proved, with so many items?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from evalbudget._fields import percent
from evalbudget.comparisons import Comparison, Outcome, compare
from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind
from evalbudget.repeats._wording import count

_MOST = 60  # models whose pairs are all compared
_NOTHING = 1e-12


class Gap(Check):
    """A lead that these items do not prove; all pairs are compared at one error rate."""

    name = "gap"

    def examine(self, case: Case) -> Iterable[Finding]:
        """Whether the leader beats everybody, and how many neighbours in the ranking are told apart."""
        recorded, order = case.recorded, list(case.study.order)
        if len(order) < 2:
            return
        chosen = [recorded.models[m] for m in order[:_MOST]]
        found = compare(recorded, models=chosen, level=case.level)
        rows = {frozenset((row.first, row.second)): row for row in found.rows}
        neighbours = [rows[frozenset(pair)] for pair in pairwise(chosen)]
        apart = sum(row.outcome in (Outcome.FIRST, Outcome.SECOND) for row in neighbours)
        lower = case.study.lower_is_better
        leads = [rows[frozenset((chosen[0], rival))] for rival in chosen[1:]]
        leads = [row if row.first == chosen[0] else row.swapped for row in leads]
        shared = [lead for lead in leads if lead.items]
        if not shared:
            yield Finding(
                Kind.PROBLEM,
                "nobody can be compared with the first",
                f"{chosen[0]} has the {'lowest' if lower else 'highest'} mean, and shares no item with any "
                "other model.",
                "Score all models on the same items.",
            )
            return
        ahead = {lead: lead.swapped if lower else lead for lead in shared}
        nearest = min(shared, key=lambda lead: np.nan_to_num(ahead[lead].low, nan=-math.inf))
        size = ahead[nearest].difference
        numbers: dict[str, float] = {
            "lead": size,
            "low": ahead[nearest].low,
            "high": ahead[nearest].high,
            "proved": apart,
            "pairs": len(neighbours),
        }
        of_all = f" (of all {len(found.rows):,} pairs at once)" if len(found.rows) > 1 else ""
        told = f"{_told(nearest, ahead[nearest], case.level)}{of_all}"
        ranks = f" Of {len(neighbours)} neighbours in the ranking, {apart} are told apart."
        ranks = ranks if len(neighbours) > 1 else ""
        if all(lead.outcome is Outcome.FIRST for lead in leads):
            yield Finding(Kind.FINE, "who is best is proved", f"{told}.{ranks}", "", numbers)
            return
        needed = nearest.items_needed
        if size < 0.0:
            title = "the ranking by means and the paired comparison disagree"
        elif nearest.is_open_by_missing:
            title = "answers are missing, which leaves the lead open"
        elif size <= _NOTHING:
            title = "the first ones are level"
        else:
            title = "too few items for the lead"
        more = f" About {_rounded(needed):,} items like these would prove a lead as large." if needed else ""
        yield Finding(
            Kind.PROBLEM,
            title,
            f"{told}: not proved.{more}{ranks}",
            "Call it a tie, or buy more items for the first ones only: evalbudget inspect race "
            "--until-proved, lm-eval race. evalbudget compare shows every pair.",
            numbers | ({} if needed is None else {"items_needed": needed}),
        )


def _told(lead: Comparison, ahead: Comparison, level: float) -> str:
    """How far the first is ahead, in words; numbers of ``ahead`` are above 0 where it is the better one."""
    size = ahead.difference
    places = 2 - math.floor(math.log10(abs(size))) if abs(size) > _NOTHING else 2
    places = min(max(places, 2), 6)
    apart = f"{abs(size):.{places}f} {'behind' if size < 0.0 else 'ahead of'} {lead.second}"
    text = f"{lead.first} is {apart} on the {count(lead.items, 'item')} of both"
    if not math.isfinite(ahead.low):
        return f"{text}, without an interval"
    return f"{text}, {percent(level)} interval {ahead.low:+.{places}f} to {ahead.high:+.{places}f}"


def _rounded(items: int) -> int:
    """To two digits that mean something."""
    return int(float(f"{items:.1e}"))
