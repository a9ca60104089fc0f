"""What a budgeted run found, in plain words: the last thing a person reads on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from evalbudget._fields import decimals
from evalbudget.budget import USED_UP, Unit, shown_amount
from evalbudget.exit_codes import ExitCode
from evalbudget.repeats._advice import next_steps
from evalbudget.repeats._mean_rows import whole_counts
from evalbudget.repeats._objective import Objective
from evalbudget.repeats._outcome import Outcome
from evalbudget.repeats._plain_epochs import PlainEpochs, plain_epochs, plain_epochs_of_mean
from evalbudget.repeats._sample_in_words import sample_in_words
from evalbudget.repeats._wording import WIDTH, aligned, count, shortened, wrapped
from evalbudget.shown import shown
from evalbudget.statistics._bounds import IntArray

SHOWN = ("estimate", "lower", "upper", "readings")
"""Of every item's columns."""
_MOST_ITEMS = 5
_MOST_REASONS = 3
_NAME = 40


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One item: its mean score, its 95% interval (both None where there is none) and its readings."""

    name: str
    score: float | None
    interval: tuple[float, float] | None
    readings: int

    @property
    def half_width(self) -> float:
        """Of the interval; infinite where there is none."""
        return np.inf if self.interval is None else (self.interval[1] - self.interval[0]) / 2


@dataclass(frozen=True, eq=False)
class Summary(Outcome):
    """What a budgeted run found; prints itself as text."""

    @property
    def rows(self) -> Mapping[str, float]:
        """The benchmark mean, as in a host's table."""
        return self.mean.rows

    @property
    def readings(self) -> int:
        """Scores that came back."""
        return int(self.table.value.size)

    @cached_property
    def by_reason(self) -> Mapping[str, int]:
        """How many calls gave no score, the most frequent reason first."""
        return dict(sorted(self.failures.items(), key=lambda reason: -reason[1]))

    @cached_property
    def least_known(self) -> tuple[ItemLine, ...]:
        """The items known least well, the worst first."""
        if self.drawn and self.table.counts.max(initial=0) < 2:
            return ()
        lines = [
            ItemLine(name, score, None if low is None or high is None else (low, high), n)
            for name, score, low, high, n in zip(
                self.names, *(self.columns[key] for key in SHOWN), strict=True
            )
        ]
        return tuple(sorted(lines, key=lambda line: (-line.half_width, line.readings))[:_MOST_ITEMS])

    @cached_property
    def plain(self) -> PlainEpochs | None:
        """What plain epochs would have needed; None if that is unknown, or if this run is plain epochs."""
        table = self.table
        if self.dear or not table.value.size or np.ptp(table.counts) <= 1:
            return None
        if table.knows_phases and not self.judges and np.unique(table.value).size == 2:
            return plain_epochs_of_mean(table)
        return plain_epochs(table)

    @cached_property
    def next_steps(self) -> tuple[str, ...]:
        """What to do next, a sentence each."""
        return tuple(next_steps(self, self.by_reason))

    @property
    def sample(self) -> str:
        """Which items were read, in words; empty where all were asked alike."""
        return sample_in_words(self.table.counts, self.strata) if self.drawn else ""

    @property
    def at_worst(self) -> tuple[float, float] | None:
        """The 95% interval whatever items without a score would score; None where there are none."""
        found = self.mean.at_worst
        return None if found is None else (found.low, found.high)

    @property
    def alike(self) -> bool:
        """Whether a sampler that goes by scores asked all that have one equally often, as plain epochs would.

        To one reading, where the budget ended among them.
        """
        read = self._counts
        if not self.table.knows_phases or read.size < 2 or read.min() < 2:
            return False
        return bool(np.ptp(read) == 0 or (np.ptp(read) == 1 and not self.table.may_follow_scores))

    @property
    def each(self) -> tuple[int, int]:
        """The fewest and the most readings of an item that has one."""
        return int(self._counts.min(initial=self.readings)), int(self._counts.max(initial=0))

    @property
    def _counts(self) -> IntArray:
        return self.table.counts[self.table.counts > 0]

    def as_json(self) -> dict[str, Any]:
        """As JSON values; counts are whole numbers."""
        return {
            "task": self.task,
            "model": self.model,
            "score": self.score,
            "unit": self.unit,
            "costs": [asdict(row) for row in self.costs],
            "wasted": self.wasted,
            "budget": None if self.budget is None else _number(self.budget),
            "spent": _number(self.spent),
            "readings": self.readings,
            "counted": self.mean.counted,
            "items": self.table.n_items,
            "failures": self.by_reason,
            "closed_items": list(self.closed),
            "failing": None if self.failing is None else asdict(self.failing),
            "stop_reason": self.stop_reason,
            "rows": whole_counts(self.rows),
            "no_interval": self.mean.no_interval,
            "judges": list(self.judges),
            "kept": self.kept,
            "least_known": [asdict(line) for line in self.least_known],
            "plain": None if self.plain is None else {**asdict(self.plain), "as_good": self.plain.as_good},
            "next_steps": self.next_steps,
            "sample": self.sample,
            "strata": self.strata if self.drawn else None,
            "cluster": self.cluster,
            "clusters": self.mean.clusters,
            "beside": list(self.beside),
            "processes": self.processes,
            "without_score": self.without_score,
            "with_them": self.with_them,
            "at_worst": self.at_worst,
            "cached": self.cached,
            "alike": self.alike,
            "items_read": self._counts.size,
            "each": self.each,
        }

    def lines(self, width: int = WIDTH) -> list[str]:
        """As lines of text.

        Args:
            width: none is longer, unless a single word is.
        """
        found = [*self._title(width), *self._estimate(width), "", *self._bought(width)]
        if self.readings and self.least_known:
            found += ["", *self._items(width)]
        if self.plain is not None:
            found += ["", *wrapped(_compared(self.plain, self.unit if not self.costs else "readings"), width)]
        if self.next_steps:
            found.append("")
            for step in self.next_steps:
                found += wrapped(step, width, first="Next: " if step is self.next_steps[0] else "Also: ")
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _title(self, width: int) -> list[str]:
        scored = f", scored by {self.score}" if self.score else ""
        whole = f"{self.task} with {self.model}{scored}"
        if len(whole) <= width:
            return [shown(whole)]
        rest = ["  " + shortened(f"with {self.model}", width - 2)]
        if scored:
            rest.append("  " + shortened(f"scored by {self.score}", width - 2))
        return [shortened(self.task, width), *rest]

    def _estimate(self, width: int) -> list[str]:
        rows, items = self.rows, count(int(self.rows.get("items", 0)), "item")
        if "estimate" not in rows:
            return ["No estimate: nothing was scored."]
        places = decimals([rows.get("stderr", rows.get("repeats_stderr", float("nan")))])
        value = f"Estimate {rows['estimate']:.{places}f}"
        if self.judges:
            value += f", the mean of {len(self.judges)} judges' means"
        if self.sample:
            found = self._of_sample(value, places, width)
        elif "lower" in rows:
            ends = _span(rows["lower"], rows["upper"], places)
            random = "items, answers and judging all" if self.kept else "items and repeats both"
            found = wrapped(f"{value}, 95% interval {ends}: {random} random{self._in_clusters}.", width)
        else:
            found = wrapped(f"{value} of {items}, without an interval: {self.mean.no_interval}.", width)
        if "repeats_lower" in rows:
            ends = _span(rows["repeats_lower"], rows["repeats_upper"], places)
            which = "This item" if rows["items"] == 1 else f"These {items}"
            again = "asked again (only repeats random)"
            if self.kept:
                which = "The answer to this item" if rows["items"] == 1 else f"The answers to these {items}"
                again = "scored again (only judging random)"
            found += wrapped(f"{which} {again}: {ends}.", width)
        if self.without_score:
            found += wrapped(f"{self.lacking(places)}.", width)
        return found

    def lacking(self, places: int) -> str:
        """Which items have no score, and what they could make of the estimate, as a clause."""
        what = f"; the values of {self.strata} weigh as drawn" if self.drawn and self.strata else ""
        if self.with_them is not None and self.with_them[0] < self.with_them[1]:
            what = f", which would be {_span(*self.with_them, places)} with them"
        if self.at_worst is not None:
            what += f"; the 95% interval {_span(*self.at_worst, places)} holds whatever they would score"
        missing = f"{count(self.without_score, 'item')} of {self.table.n_items:,} without a score"
        return f"{missing}: not in the estimate{what}"

    @property
    def _in_clusters(self) -> str:
        if self.mean.clusters is None:
            return ""
        return f", in {count(self.mean.clusters, 'cluster')} by {self.cluster!r}"

    def _of_sample(self, value: str, places: int, width: int) -> list[str]:
        rows = self.rows
        found = wrapped(f"{self.sample}.", width)
        if "full_lower" in rows:
            ends = _span(rows["full_lower"], rows["full_upper"], places)
            which = (
                "item that can be scored" if self.without_score else f"of the {self.table.n_items:,} items"
            )
            found += wrapped(f"{value}; one score of each {which} would have averaged {ends} (95%).", width)
            if "lower" in rows:
                ends = _span(rows["lower"], rows["upper"], places)
                random = f"items and repeats both random{self._in_clusters}"
                found += wrapped(f"Of all items like these ({random}): {ends}.", width)
        elif "lower" in rows:
            ends = _span(rows["lower"], rows["upper"], places)
            random = f"items and repeats both random{self._in_clusters}"
            found += wrapped(f"{value}, 95% interval {ends}: {random}.", width)
        else:
            found += wrapped(f"{value}, without an interval: {self.mean.no_interval}.", width)
        return found

    def _bought(self, width: int) -> list[str]:
        spent = self._amount(self.spent)
        if self.budget is not None:
            spent = f"{self._amount(self.spent, short=True)} of {self._amount(self.budget)}"
        counted = "; all count for the estimate" if self.readings else ""
        if self.mean.counted < self.readings:
            counted = f"; {self.mean.counted:,} of them count for the estimate"
        shared = f", of {self.processes:,} processes" if self.processes > 1 else ""
        pairs = [
            ("Spent", spent),
            ("Paid to", self._paid_to()),
            ("Stopped", self.stop_reason),
            (
                "Readings",
                f"{self.readings:,} of {count(self._counts.size, 'item')}{self._alike}{shared}{counted}",
            ),
            ("Cached", self._cached()),
            *(("Beside", sentence) for sentence in self.beside),
        ]
        if self.by_reason:
            first = list(self.by_reason.items())[:_MOST_REASONS]
            rest = sum(self.by_reason.values()) - sum(n for _, n in first)
            reasons = [f"{n:,} x {shortened(reason, 60)}" for reason, n in first]
            reasons += [f"{rest:,} x other"] if rest else []
            if len(self.by_reason) == 1:
                reasons = [shortened(first[0][0], 60)]
            pairs.append(("Failed", f"{count(sum(self.by_reason.values()), 'call')}: {', '.join(reasons)}"))
        if self.failing is not None:
            pairs.append(("Beware", f"{self.failing}."))
        if self.closed:
            named = [shortened(name, _NAME) for name in self.closed[:_MOST_ITEMS]]
            more = len(self.closed) - len(named)
            pairs.append(("Given up", ", ".join(named) + (f" and {more:,} more" if more else "")))
        found: list[str] = []
        for label, text in pairs:
            if text:
                found += wrapped(text, width, first=f"{label:<10}", rest=" " * 10)
        return found

    @property
    def _alike(self) -> str:
        least, most = self.each
        if not self.alike:
            return ""
        return ", all equally often" if least == most else f", {least} to {most} each, as the budget goes"

    def exit_code(self, until: str | None) -> ExitCode:
        """0 with an estimate, 3 where the budget did not do for what ``--until`` says, 4 without a score."""
        if not self.readings:
            return ExitCode.FAILED
        return ExitCode.UNDECIDED if until and self.stop_reason == USED_UP else ExitCode.DONE

    def _amount(self, amount: float, *, short: bool = False) -> str:
        if self.unit in (Unit.USD, Unit.TOKENS):
            told = shown_amount(amount, Unit(self.unit))
        else:
            told = shown_amount(amount, Unit.SCORES, counts=self.unit)
        return told.partition(" ")[0] if short else told

    def _cached(self) -> str:
        if not self.cached:
            return ""
        return f"{count(self.cached, 'answer')} out of the cache: given before, and no new readings"

    def _paid_to(self) -> str:
        parts = [
            f"{row.model}{f' as {row.role}' if row.role else ''} {self._amount(row.cost)} for "
            f"{count(row.calls, 'call')}"
            for row in self.costs
        ]
        unknown = sum(row.unknown for row in self.costs)
        if unknown:
            cost = self._amount(sum(row.unknown_cost for row in self.costs))
            parts.append(
                f"{count(unknown, 'call')} among them whose usage nobody said count as the most that they "
                f"can cost ({cost})"
            )
        if self.wasted:
            parts.append(f"{self._amount(self.wasted)} in all brought no reading")
        return "; ".join(parts)

    def _items(self, width: int) -> list[str]:
        places = decimals(line.half_width for line in self.least_known)
        rows = [
            (
                line.name,
                (
                    "-" if line.score is None else f"{line.score:.{places}f}",
                    "-" if line.interval is None else _span(*line.interval, places),
                    f"{line.readings:,}",
                ),
            )
            for line in self.least_known
        ]
        head = ("Known least well", "score", "95% interval", "readings")
        return aligned(head, rows, width)


def summarize(outcome: Outcome) -> Summary:
    """What a run found, from what its host knows."""
    return Summary(**{field.name: getattr(outcome, field.name) for field in fields(outcome)})


def _compared(plain: PlainEpochs, unit: str) -> str:
    what = "worst item" if plain.error is Objective.WORST_ITEM else "mean of these items"
    epochs = f"about {plain.per_item:,} per item ({plain.readings:,} {unit})"
    aim = f"for as small an error of the {what}"
    if plain.as_good:
        return f"Plain epochs would have done as well or better: {epochs} {aim}."
    return (
        f"Plain epochs would have needed {epochs} {aim} as after these {plain.bought:,}, if scores vary as "
        "they did here."
    )


def _span(low: float, high: float, places: int) -> str:
    return f"{low:.{places}f} to {high:.{places}f}"


def _number(value: float) -> float:
    return int(value) if float(value).is_integer() else value
