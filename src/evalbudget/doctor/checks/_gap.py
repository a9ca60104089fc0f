"""Is who leads proved, with so many items?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from evalbudget.comparisons import Comparison, Outcome, compare
from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind

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
        leads = [_Lead(rows[frozenset((chosen[0], rival))], chosen[0], lower) for rival in chosen[1:]]
        shared = [lead for lead in leads if lead.row.items]
        if not shared:
            yield Finding(
                self.name,
                Kind.PROBLEM,
                "nobody can be compared with the first",
                f"{chosen[0]} has the {'lowest' if lower else 'highest'} mean, and shares no item with any "
                "other model.",
                "Score all models on the same items.",
            )
            return
        nearest = min(shared, key=lambda lead: lead.low if math.isfinite(lead.low) else -math.inf)
        numbers: dict[str, float] = {
            "lead": nearest.size,
            "low": nearest.low,
            "high": nearest.high,
            "proved": apart,
            "pairs": len(neighbours),
        }
        of_all = f" (of all {len(found.rows):,} pairs at once)" if len(found.rows) > 1 else ""
        told = f"{nearest.told(case.level)}{of_all}"
        ranks = f" Of {len(neighbours)} neighbours in the ranking, {apart} are told apart."
        ranks = ranks if len(neighbours) > 1 else ""
        if all(lead.is_proved for lead in leads):
            yield Finding(self.name, Kind.FINE, "who is best is proved", f"{told}.{ranks}", "", numbers)
            return
        needed = nearest.row.items_needed
        if nearest.size < 0.0:
            title = "the ranking by means and the paired comparison disagree"
        elif nearest.row.is_open_by_missing:
            title = "answers are missing, which leaves the lead open"
        elif nearest.size <= _NOTHING:
            title = "the first ones are level"
        else:
            title = "too few items for the lead"
        more = f" About {_rounded(needed):,} items like these would prove a lead as large." if needed else ""
        yield Finding(
            self.name,
            Kind.PROBLEM,
            title,
            f"{told}: not proved.{more}{ranks}",
            "Call it a tie, or buy more items for the first ones only: evalbudget inspect race "
            "--until-proved, "
            "lm-eval race. evalbudget compare shows every pair.",
            numbers | ({} if needed is None else {"items_needed": needed}),
        )


@dataclass(frozen=True)
class _Lead:
    """Of the first in the ranking, over one other model; above 0 where it is the better one."""

    row: Comparison
    leader: str
    lower_is_better: bool

    @property
    def _is_first(self) -> bool:
        return self.row.first == self.leader

    @property
    def _sign(self) -> float:
        return 1.0 if self._is_first != self.lower_is_better else -1.0

    @property
    def size(self) -> float:
        return self._sign * self.row.difference

    @property
    def low(self) -> float:
        return self.row.low if self._sign > 0 else -self.row.high

    @property
    def high(self) -> float:
        return self.row.high if self._sign > 0 else -self.row.low

    @property
    def is_proved(self) -> bool:
        return self.row.outcome is (Outcome.FIRST if self._is_first else Outcome.SECOND)

    def told(self, level: float) -> str:
        """In words."""
        rival = self.row.second if self._is_first else self.row.first
        places = 2 - math.floor(math.log10(abs(self.size))) if abs(self.size) > _NOTHING else 2
        places = min(max(places, 2), 6)
        ahead = f"{abs(self.size):.{places}f} {'behind' if self.size < 0.0 else 'ahead of'} {rival}"
        items = f"{self.row.items:,} item{'s' * (self.row.items != 1)}"
        text = f"{self.leader} is {ahead} on the {items} of both"
        if not math.isfinite(self.low):
            return f"{text}, without an interval"
        return f"{text}, {level:.0%} interval {self.low:+.{places}f} to {self.high:+.{places}f}"


def _rounded(items: int) -> int:
    """To two digits that mean something."""
    return int(float(f"{items:.1e}"))
