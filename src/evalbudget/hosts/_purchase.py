"""A run's book as its host sees it: what every host counts, and says, of what was bought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from evalbudget.budget import Budget
from evalbudget.cells import CAME
from evalbudget.design import Reading
from evalbudget.repeats import RepeatConfig
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.run import Bill

if TYPE_CHECKING:
    from evalbudget.book import Book

_FREE = 20  # times as many readings in a row as there are items, and none cost anything
_REASONS = 5  # why calls failed, the most frequent first


class HostPurchase:
    """One sampler and its book; a host adds how cells are asked and what they are called there.

    Attributes:
        config: what the user asked for.
        budget: of the run.
        bill: that calls are on, where the budget is in money or tokens; None where it counts scores.
        sampler: that decides what is asked.
    """

    config: RepeatConfig
    budget: Budget
    bill: Bill | None
    sampler: RepeatSampler
    _free = 0
    """Readings in a row that cost nothing."""

    @property
    def book(self) -> Book:
        """Of all processes, told of all that came back."""
        raise NotImplementedError

    @property
    def is_shared(self) -> bool:
        """Other processes may take part."""
        return self.config.store is not None

    @property
    def spent(self) -> float:
        """In units of the budget, by earlier runs too."""
        return self.book.spent if self.bill is None else self.bill.spent

    @property
    def n_read(self) -> int:
        """How many scores there are."""
        return int(np.count_nonzero(self.book.cells().state == CAME))

    @property
    def closed(self) -> list[str]:
        """Items that were given up, by their names in the book."""
        return [self.sampler.design.items[cell.item] for cell in self.book.closed]

    def as_json(self, failures: Mapping[str, int], useful: float) -> dict[str, Any]:
        """Where the budget went, as JSON values.

        Args:
            failures: how often each reason occurred to pay and read nothing, the most frequent first.
            useful: what readings cost, in units of the budget.
        """
        capped = None if self.config.budget is None else int(self.budget.amount)
        return {
            "budget_scores": capped if self.bill is None else None,
            "spent": self.spent,
            "readings": self.n_read,
            "failed": sum(failures.values()),
            "failures": dict(list(failures.items())[:_REASONS]),
            "closed_items": self.closed,
            "stop_reason": self.stop_reason,
            "allocation": self.sampler.allocation.value,
            "fixed_repeats": self.sampler.fixed_repeats,
            **self._paid(useful),
        }

    def _paid(self, useful: float) -> dict[str, Any]:
        if self.bill is None:
            return {}
        costs = [asdict(row) for row in self.bill.rows]
        known = {"costs": costs, "wasted": self.bill.wasted(useful), "over": self.bill.over}
        return {"unit": self.budget.unit.value, "budget_amount": self.budget.amount, **known}

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        return self.book.stop_reason

    def _stop_if_free(self, reading: Reading, unit: str) -> None:
        """Ask nothing more where a budget in money is not spent by very many readings in a row.

        Args:
            reading: that came.
            unit: in which the budget would end.
        """
        if reading.value is not None:
            self._free = 0 if reading.cost else self._free + 1
        if self._free >= max(100, _FREE * self.sampler.design.n_items) and not self.book.stopped:
            self.book.stop(f"the last {self._free:,} readings cost nothing; give the budget in {unit}")
