"""What a run would buy and cost, before any call is made: ``--dry-run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evalbudget.budget import Budget, Unit, shown_amount
from evalbudget.shown import shown


@dataclass(frozen=True, slots=True)
class Forecast:
    """One run, as far as it is known before it starts.

    Attributes:
        task: its name.
        model: that is evaluated.
        sampler: that decides.
        items: of the task.
        budget: None where there is none.
        minimum: readings that the sampler needs before it can choose.
        most: readings that the run buys at most; None where only money ends it.
        call: what one call costs at most, in units of the budget; None where a call is 1.
        reading: what one reading cost on average in earlier runs of this task and model, in units of the
            budget; None where there were none.
        seconds: that one reading took on average in earlier runs; None where there were none.
        risk: the accepted chance that the last calls exceed a budget in money or tokens.
        sample: a random sample of the items is read.
        strata: field of the items that it is drawn in proportion to; None for none.
        notes: what else to know before it starts, a clause each.
    """

    task: str
    model: str
    sampler: str
    items: int
    budget: Budget | None
    minimum: int
    most: int | None
    call: float | None = None
    reading: float | None = None
    seconds: float | None = None
    risk: float = 0.0
    sample: bool = False
    strata: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def expected(self) -> int | None:
        """Readings that the budget buys at the cost of earlier runs; None where that is not known."""
        if self.budget is None or self.budget.unit is Unit.SCORES:
            return self.most
        if not self.reading:
            return None
        bought = int(self.budget.amount / self.reading)
        return bought if self.most is None else min(bought, self.most)

    @property
    def minutes(self) -> float | None:
        """That the expected readings take; None where it is not known how long one takes."""
        if self.seconds is None or self.expected is None:
            return None
        return self.expected * self.seconds / 60.0

    @property
    def rows(self) -> Mapping[str, str]:
        """What there is to say, by its name."""
        unit = Unit.SCORES if self.budget is None else self.budget.unit
        found = {
            "Task": f"{self.task} with {self.model}",
            "Items": f"{self.items:,}",
            "Sampler": self.sampler,
            "Budget": "none" if self.budget is None else str(self.budget),
            "At least": f"{self.minimum:,} {'reading' if self.minimum == 1 else 'readings'}, before "
            f"{self.sampler} can choose",
        }
        if self.sample:
            found["Reads"] = self._reads
        if self.call is not None:
            found["A call"] = f"{shown_amount(self.call, unit)} at most"
            found["At least"] += f" ({shown_amount(self.minimum * self.call, unit)} at most, one call each)"
        if self.reading is not None:
            found["A reading"] = f"{shown_amount(self.reading, unit)} on average in earlier runs"
        if self.expected is not None:
            found["Expected"] = f"{self.expected:,} readings"
        elif unit is not Unit.SCORES:
            found["Expected"] = "not known before the first readings: no earlier run of this task and model"
        if self.minutes is not None:
            found["Time"] = f"about {max(self.minutes, 0.1):,.1f} minutes, as fast as earlier runs"
        if self.budget is not None:
            found["At most"] = at_most(self.budget, self.risk)
        if self.notes:
            found["Beware"] = "; ".join(self.notes)
        return found

    @property
    def _reads(self) -> str:
        """Which items, where a sample of them is drawn."""
        alike = "" if self.strata is None else f", in proportion to {self.strata}"
        if self.most is None:
            return f"a random sample of the items, once each{alike}, as large as the budget pays for"
        if self.most >= self.items:
            return f"every item once before any is read again{alike}"
        return f"{self.most:,} of the {self.items:,} items at random, once each{alike}"

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        budget = None if self.budget is None else self.budget.amount
        unit = None if self.budget is None else self.budget.unit.value
        known = {**asdict(self), "budget": budget, "unit": unit}
        return {**known, "expected": self.expected, "minutes": self.minutes}

    def __str__(self) -> str:
        width = max(map(len, self.rows)) + 2
        return "\n".join(f"{name:<{width}}{shown(text)}" for name, text in self.rows.items())


def at_most(budget: Budget, risk: float) -> str:
    """What a run spends at most, and what ``--risk`` changes about that."""
    if not risk:
        return f"{budget}, whatever happens"
    chance = f"a chance of {100 * risk:g}% (--risk)"
    return f"{budget}, but for {chance} that the calls under way at the end cost more"
