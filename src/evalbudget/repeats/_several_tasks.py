"""The closing summary of several tasks that share one budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from evalbudget._fields import decimals
from evalbudget.errors import InvalidInputError
from evalbudget.repeats._groups import describe_group
from evalbudget.repeats._mean_rows import BenchmarkMean, whole_counts
from evalbudget.repeats._outcome import Outcome
from evalbudget.repeats._summary import SHOWN, Summary, summarize
from evalbudget.repeats._wording import aligned, count, shortened, wrapped
from evalbudget.repeats.estimates import ItemReadings

_MOST_TASKS = 12
_REASONS = 3
_GROUP = " (group)"


@dataclass(frozen=True, slots=True)
class Part:
    """One of the tasks, or a group of them.

    Attributes:
        name: of it.
        rows: its mean, as in a host's table.
        no_interval: why it has no interval; None where it has.
        is_group: it is made of tasks.
        known: every item that can be scored was read, while of others a sample was.
        lacking: which of its items have no score, and what holds whatever they would; empty where all have.
    """

    name: str
    rows: Mapping[str, float]
    no_interval: str | None
    is_group: bool
    known: bool = False
    lacking: str = ""


@dataclass(frozen=True, eq=False)
class SharedSummary(Summary):
    """What a budgeted run of several tasks found; prints itself as text.

    ``rows`` are those of the mean over all items of all tasks, on which the advice rests.

    Attributes:
        parts: the groups, then the tasks.
    """

    parts: tuple[Part, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As JSON values; counts are whole numbers."""
        parts = [asdict(part) | {"rows": whole_counts(part.rows)} for part in self.parts]
        return super().as_json() | {"parts": parts}

    def _title(self, width: int) -> list[str]:
        return [shortened(f"{self.task} with {self.model}, which share one budget", width)]

    def _estimate(self, width: int) -> list[str]:
        shown = self.parts[:_MOST_TASKS]
        prefix = "full_" if any("full_lower" in part.rows for part in shown) else ""
        places = decimals(part.rows.get("stderr", float("nan")) for part in shown)
        rows = [
            (
                part.name + _GROUP * part.is_group,
                (
                    f"{part.rows['estimate']:.{places}f}" if "estimate" in part.rows else "-",
                    _interval(part, prefix, places),
                    f"{part.rows['items']:,.0f}",
                    f"{part.rows['readings']:,.0f}",
                ),
            )
            for part in shown
        ]
        head = ("", "estimate", "95% interval", "items", "readings")
        found = aligned(head, rows, width, most=_named)
        more = len(self.parts) - len(shown)
        if more:
            found.append(f"{count(more, 'further task')} in the table above")
        random = "Items, answers and judging are all" if self.kept else "Items and repeats are both"
        said = f"{random} random; which tasks there are is given."
        if prefix:
            which = "item that can be scored, kinds weighted as drawn," if self.without_score else "item"
            said = f"Intervals are of what one score of each {which} would have averaged."
        if self.cluster is not None:
            said += f" Items come in clusters by {self.cluster!r}."
        found += wrapped(said, width)
        if self.sample:
            found = [*wrapped(f"{self.sample}.", width), *found]
        lacking = [part for part in self.parts if part.lacking]
        for part in lacking[:_REASONS]:
            found += wrapped(f"{part.name}: {part.lacking}.", width)
        if len(lacking) > _REASONS:
            found.append(f"{count(len(lacking) - _REASONS, 'further task')} with items that have no score.")
        without = [part for part in self.parts if part.no_interval is not None]
        for part in without[:_REASONS]:
            found += wrapped(f"{part.name} without an interval: {part.no_interval}.", width)
        if len(without) > _REASONS:
            found.append(f"{count(len(without) - _REASONS, 'further task')} without an interval.")
        return found


def share_budget(
    outcomes: Sequence[Outcome],
    *,
    groups: Mapping[str, BenchmarkMean],
    spent: float,
    failures: Mapping[str, int],
    closed: Sequence[str],
) -> SharedSummary:
    """What a run of several tasks found.

    Args:
        outcomes: of each task, at least two; the budget, why it stopped and what fails are the same in all.
        groups: means of groups of these tasks, by name.
        spent: by all of them.
        failures: of all of them.
        closed: items of all of them that failed too often to be asked again.

    Raises:
        InvalidInputError: fewer than two tasks.
    """
    if len(outcomes) < 2:
        raise InvalidInputError(f"{len(outcomes)} tasks share no budget; give two or more, or use summarize")
    one = outcomes[0]
    mean = describe_group(
        {outcome.task: outcome.mean for outcome in outcomes},
        {outcome.task: _items(outcome) for outcome in outcomes},
        whole={outcome.task: float(outcome.table.n_items) for outcome in outcomes},
    )
    known = all(outcome.bounds is not None for outcome in outcomes)
    whole = replace(
        one,
        task=f"{len(outcomes)} tasks",
        names=[name for outcome in outcomes for name in outcome.names],
        table=joined([outcome.table for outcome in outcomes]),
        columns={key: [x for outcome in outcomes for x in outcome.columns[key]] for key in SHOWN},
        mean=replace(mean, counted=sum(outcome.mean.counted for outcome in outcomes)),
        spent=spent,
        failures=failures,
        closed=closed,
        bounds=one.bounds if known else None,
        judges=(),
        judged=False,
        kept=all(outcome.kept for outcome in outcomes),
        score="",
        in_vain=sum(outcome.in_vain for outcome in outcomes),
    )
    return SharedSummary(
        **{field.name: getattr(whole, field.name) for field in fields(whole)},
        parts=(
            *(_part(name, group, is_group=True) for name, group in groups.items()),
            *(
                replace(_part(outcome.task, outcome.mean, is_group=False), lacking=_lacking(outcome))
                for outcome in outcomes
            ),
        ),
    )


def _items(outcome: Outcome) -> float:
    """That a task counts for: all of them where a sample is for all, else those that have a score."""
    return float(outcome.table.n_items if outcome.drawn else outcome.mean.rows["items"])


def _part(name: str, mean: BenchmarkMean, *, is_group: bool) -> Part:
    found = Part(name, mean.rows, mean.no_interval, is_group, mean.is_full_run)
    if not is_group or mean.at_worst is None:
        return found
    places = decimals([mean.rows.get("stderr", float("nan"))])
    ends = f"{mean.at_worst.low:.{places}f} to {mean.at_worst.high:.{places}f}"
    return replace(found, lacking=f"the 95% interval {ends} holds whatever items without a score would score")


def _lacking(outcome: Outcome) -> str:
    found = summarize(outcome)
    return found.lacking(decimals([found.rows.get("stderr", float("nan"))])) if found.without_score else ""


def _named(name: str, room: int) -> str:
    """Shortened but for what says that it is a group."""
    plain = name.removesuffix(_GROUP)
    return shortened(plain, room - len(_GROUP)) + name[len(plain) :]


def _interval(part: Part, prefix: str, places: int) -> str:
    if f"{prefix}lower" in part.rows:
        return f"{part.rows[f'{prefix}lower']:.{places}f} to {part.rows[f'{prefix}upper']:.{places}f}"
    return f"{part.rows['estimate']:.{places}f}, all read" if prefix and part.known else "-"


def joined(tables: Sequence[ItemReadings]) -> ItemReadings:
    """Readings of disjoint items as one table, in this order."""
    first = np.cumsum([0, *(table.n_items for table in tables)])
    return ItemReadings.of(
        np.concatenate([table.item + start for table, start in zip(tables, first[:-1], strict=True)]),
        np.concatenate([table.epoch for table in tables]),
        np.concatenate([table.value for table in tables]),
        n_items=int(first[-1]),
        cost=sum(table.cost for table in tables),
    )
