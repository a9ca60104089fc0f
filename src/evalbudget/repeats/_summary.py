"""What a budgeted run found, in plain words: the last thing a person reads on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from evalbudget.budget import USED_UP, Unit, shown_amount
from evalbudget.exit_codes import ExitCode
from evalbudget.repeats._advice import next_steps
from evalbudget.repeats._failing_items import FailingItems
from evalbudget.repeats._mean_rows import whole_counts
from evalbudget.repeats._objective import Objective
from evalbudget.repeats._outcome import Outcome
from evalbudget.repeats._plain_epochs import PlainEpochs, plain_epochs, plain_epochs_of_mean
from evalbudget.repeats._sample_in_words import sample_in_words
from evalbudget.repeats._wording import WIDTH, count, decimals, padded, shortened, wrapped
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.run import BillRow
from evalbudget.shown import shown

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


@dataclass(frozen=True, slots=True)
class Summary:
    """What a budgeted run found; prints itself as text.

    Attributes:
        task: its name.
        model: what was evaluated.
        score: whose scores these are; empty if there is only one.
        unit: what a budget of 1 buys, in the plural; ``usd`` and ``tokens`` for money and tokens.
        costs: what was paid for, by model and role; empty where the budget counts scores.
        wasted: of what was spent, for what brought no reading, in units of the budget.
        budget: None where there was none.
        spent: of it.
        readings: scores that came back.
        counted: of those, how many the estimate rests on.
        items: of the benchmark.
        failures: how many calls gave no score, by reason, most frequent first.
        closed_items: items that failed too often to be asked again.
        failing: items on which calls fail more than chance explains; None where they may fail at random.
        stop_reason: why nothing more was asked.
        rows: the benchmark mean, as in a host's table.
        no_interval: why it has no interval; None where it has.
        judges: that took turns.
        kept: all readings of an item are of one answer.
        least_known: the items known least well, the worst first.
        plain: what plain epochs would have needed; None if that is unknown, or if this run is plain epochs.
        next_steps: what to do next, a sentence each.
        sample: which items were read, in words; empty where all were asked alike.
        strata: field in proportion to whose values they were drawn; None for none.
        cluster: field by which items come in clusters; None where they are independent of each other.
        clusters: of the items that were scored; None likewise.
        beside: what the host's own rows are of, a sentence each, where it is not what the estimate is of.
        processes: that shared the budget; all is of all of them.
        without_score: items that are not in the estimate though they were asked, or were to be.
        with_them: what the estimate would be if they scored the lowest, and the highest; None where there are
            none, or strata weigh.
        at_worst: the 95% interval whatever they would score, as reports print it; None where there are none.
        cached: readings of answers that came out of the host's cache.
        alike: a sampler that goes by scores asked all items that have a score equally often, as plain epochs
            would have; to one reading where the budget ended among them.
        items_read: items with a reading.
        each: the fewest and the most readings of one of these.
    """

    task: str
    model: str
    score: str
    unit: str
    costs: tuple[BillRow, ...]
    wasted: float
    budget: float | None
    spent: float
    readings: int
    counted: int
    items: int
    failures: Mapping[str, int]
    closed_items: tuple[str, ...]
    failing: FailingItems | None
    stop_reason: str
    rows: Mapping[str, float]
    no_interval: str | None
    judges: tuple[str, ...]
    kept: bool
    least_known: tuple[ItemLine, ...]
    plain: PlainEpochs | None
    next_steps: tuple[str, ...]
    sample: str = ""
    strata: str | None = None
    cluster: str | None = None
    clusters: int | None = None
    beside: tuple[str, ...] = ()
    processes: int = 1
    without_score: int = 0
    with_them: tuple[float, float] | None = None
    at_worst: tuple[float, float] | None = None
    cached: int = 0
    alike: bool = False
    items_read: int = 0
    each: tuple[int, int] = (0, 0)

    def as_json(self) -> dict[str, Any]:
        """As JSON values; counts are whole numbers."""
        return {
            **asdict(self),
            "rows": whole_counts(self.rows),
            "budget": None if self.budget is None else _number(self.budget),
            "spent": _number(self.spent),
            "plain": None if self.plain is None else {**asdict(self.plain), "as_good": self.plain.as_good},
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
            found = wrapped(f"{value} of {items}, without an interval: {self.no_interval}.", width)
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
        what = f"; the values of {self.strata} weigh as drawn" if self.strata else ""
        if self.with_them is not None:
            what = f", which would be {_span(*self.with_them, places)} with them"
        if self.at_worst is not None:
            what += f"; the 95% interval {_span(*self.at_worst, places)} holds whatever they would score"
        missing = f"{count(self.without_score, 'item')} of {self.items:,} without a score"
        return f"{missing}: not in the estimate{what}"

    @property
    def _in_clusters(self) -> str:
        if self.clusters is None:
            return ""
        return f", in {count(self.clusters, 'cluster')} by {self.cluster!r}"

    def _of_sample(self, value: str, places: int, width: int) -> list[str]:
        rows = self.rows
        found = wrapped(f"{self.sample}.", width)
        if "full_lower" in rows:
            ends = _span(rows["full_lower"], rows["full_upper"], places)
            which = "item that can be scored" if self.without_score else f"of the {self.items:,} items"
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
            found += wrapped(f"{value}, without an interval: {self.no_interval}.", width)
        return found

    def _bought(self, width: int) -> list[str]:
        spent = self._amount(self.spent)
        if self.budget is not None:
            spent = f"{self._amount(self.spent, short=True)} of {self._amount(self.budget)}"
        counted = "; all count for the estimate" if self.readings else ""
        if self.counted < self.readings:
            counted = f"; {self.counted:,} of them count for the estimate"
        shared = f", of {self.processes:,} processes" if self.processes > 1 else ""
        pairs = [
            ("Spent", spent),
            ("Paid to", self._paid_to()),
            ("Stopped", self.stop_reason),
            (
                "Readings",
                f"{self.readings:,} of {count(self.items_read, 'item')}{self._alike}{shared}{counted}",
            ),
            ("Cached", self._cached()),
            *(("Beside", sentence) for sentence in self.beside),
        ]
        if self.failures:
            first = list(self.failures.items())[:_MOST_REASONS]
            rest = sum(self.failures.values()) - sum(n for _, n in first)
            reasons = [f"{n:,} x {shortened(reason, 60)}" for reason, n in first]
            reasons += [f"{rest:,} x other"] if rest else []
            if len(self.failures) == 1:
                reasons = [shortened(first[0][0], 60)]
            pairs.append(("Failed", f"{count(sum(self.failures.values()), 'call')}: {', '.join(reasons)}"))
        if self.failing is not None:
            pairs.append(("Beware", f"{self.failing}."))
        if self.closed_items:
            named = [shortened(name, _NAME) for name in self.closed_items[:_MOST_ITEMS]]
            more = len(self.closed_items) - len(named)
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
        cells = [
            (
                "-" if line.score is None else f"{line.score:.{places}f}",
                "-" if line.interval is None else _span(*line.interval, places),
                f"{line.readings:,}",
            )
            for line in self.least_known
        ]
        head = ("score", "95% interval", "readings")
        widths = [max(len(h), *(len(row[i]) for row in cells)) for i, h in enumerate(head)]
        room = max(20, width - sum(widths) - 2 * len(widths))
        names = ["Known least well", *(shortened(line.name, room) for line in self.least_known)]
        first = max(map(cell_len, names))
        found = []
        for name, row in zip(names, [head, *cells], strict=True):
            numbers = "  ".join(f"{text:>{w}}" for text, w in zip(row, widths, strict=True))
            found.append(f"{padded(name, first)}  {numbers}")
        return found


def summarize(outcome: Outcome) -> Summary:
    """What a run found, from what its host knows."""
    failures = dict(sorted(outcome.failures.items(), key=lambda reason: -reason[1]))
    read = outcome.table.counts[outcome.table.counts > 0]
    return Summary(
        task=outcome.task,
        model=outcome.model,
        score=outcome.score,
        unit=outcome.unit,
        costs=tuple(outcome.costs),
        wasted=outcome.wasted,
        budget=outcome.budget,
        spent=outcome.spent,
        readings=int(outcome.table.value.size),
        counted=outcome.mean.counted,
        items=outcome.table.n_items,
        failures=failures,
        closed_items=tuple(outcome.closed),
        failing=outcome.failing,
        stop_reason=outcome.stop_reason,
        rows=outcome.mean.rows,
        no_interval=outcome.mean.no_interval,
        judges=tuple(outcome.judges),
        kept=outcome.kept,
        least_known=()
        if outcome.drawn and outcome.table.counts.max(initial=0) < 2
        else _least_known(outcome),
        plain=_plain(outcome),
        next_steps=tuple(
            next_steps(
                outcome.mean,
                table=outcome.table,
                failures=failures,
                bounds=outcome.bounds,
                range_flag=outcome.range_flag,
                judges_flag=outcome.judges_flag if outcome.judged and not outcome.judges else "",
                drawn=outcome.drawn,
                in_vain=outcome.in_vain,
            )
        ),
        sample=sample_in_words(outcome.table.counts, outcome.strata) if outcome.drawn else "",
        strata=outcome.strata if outcome.drawn else None,
        cluster=outcome.cluster,
        clusters=outcome.mean.clusters,
        beside=tuple(outcome.beside),
        processes=outcome.processes,
        without_score=outcome.without_score,
        with_them=outcome.with_them,
        at_worst=None if (worst := outcome.mean.at_worst) is None else (worst.low, worst.high),
        cached=outcome.cached,
        alike=outcome.table.knows_phases and _is_alike(outcome.table),
        items_read=read.size,
        each=(int(read.min()), int(read.max())) if read.size else (0, 0),
    )


def _is_alike(table: ItemReadings) -> bool:
    """Whether several items were read several times, and equally often but for where the budget ended."""
    read = table.counts[table.counts > 0]
    if read.size < 2 or read.min() < 2:
        return False
    return bool(np.ptp(read) == 0 or (np.ptp(read) == 1 and not table.may_follow_scores))


def _plain(outcome: Outcome) -> PlainEpochs | None:
    table = outcome.table
    if not table.value.size or np.ptp(table.counts) <= 1:  # then these were plain epochs
        return None
    if table.knows_phases and not outcome.judges and np.unique(table.value).size == 2:
        return plain_epochs_of_mean(table)
    return plain_epochs(table)


def _least_known(outcome: Outcome) -> tuple[ItemLine, ...]:
    columns = outcome.columns
    lines = [
        ItemLine(name, score, None if low is None or high is None else (low, high), n)
        for name, score, low, high, n in zip(
            outcome.names,
            *(columns[key] for key in SHOWN),
            strict=True,
        )
    ]
    return tuple(sorted(lines, key=lambda line: (-line.half_width, line.readings))[:_MOST_ITEMS])


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
