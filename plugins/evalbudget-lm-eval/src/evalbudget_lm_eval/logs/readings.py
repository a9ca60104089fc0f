"""A log's scores as columns: one entry for each that was made, or should have been."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalbudget import Allocation
from evalbudget.backtest import Bought, HowBought, LogColumns
from evalbudget.design import LARGEST
from evalbudget_lm_eval.host.answers import PHASE
from evalbudget_lm_eval.host.logfiles import SamplesFile
from evalbudget_lm_eval.logs.documents import Documents
from evalbudget_lm_eval.logs.log import Log, Record, readings
from evalbudget_lm_eval.logs.metrics import Metrics, is_number
from evalbudget_lm_eval.logs.missing import Missing
from evalbudget_lm_eval.run.costs_in_records import PaidAnswers

_Score = tuple[str, int, float, str]
"""Who scored, which answer of the document (from 0), the score (nan if it failed), and why there is none."""
_ACCOUNT = {"allocation", "score", "readings", "failed"}
"""Of the block of a run of ours: what says how it bought, of which tasks, and what it paid for."""


@dataclass(slots=True)
class Readings:
    """Of all logs so far.

    Attributes:
        documents: their names.
        judged: judges scored, whose readings count; else metrics.
        by_filter: metrics go by their names and those of their filters.
        only: the host's ``metric,filter`` that are read; None for all.
        apart: raters go by their tasks, too.
        columns: one entry for each reading.
        metrics: of the logs, by rater.
        filters: of the metrics, by rater.
    """

    documents: Documents
    judged: bool
    by_filter: bool
    only: frozenset[str] | None
    apart: bool = False
    columns: LogColumns = field(default_factory=LogColumns)
    metrics: dict[str, list[Metrics]] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=dict)
    _asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    _unscored: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _paid: PaidAnswers = field(default_factory=PaidAnswers)
    _runs: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    _bought: dict[str, dict[str, Bought]] = field(default_factory=dict)
    _files: dict[tuple[str, str], list[SamplesFile]] = field(default_factory=dict)

    def add(self, log: Log, model: str, metrics: Metrics, missing: Missing) -> None:
        """Add a log's.

        Args:
            log: to add.
            model: that it evaluated, by its name and settings.
            metrics: of the log.
            missing: documents that it should have.
        """
        known = self._runs.setdefault((model, log.file.task), {})
        number = known.setdefault(log.file.run, len(known))
        raters: dict[str, str] = {}
        here: set[tuple[str, int]] = set()
        epochs = calls = 0
        answered = self._scored_by_judges(log)
        for record in log.records:
            item = self.documents.see(log, record)
            read = [
                (self._named(log, rater), epoch, value, why)
                for rater, epoch, value, why in (
                    _said(record) if self.judged else self._scores(log, metrics, record)
                )
            ]
            for rater, epoch, value, why in read:
                epochs, calls = max(epochs, epoch + 1), calls + 1
                raters.setdefault(rater, str(record["filter"]))
                here.add((rater, int(record["doc_id"])))
                self._asked[model, rater] += 1
                self._unscored[model, rater, why] += math.isnan(value)
                if math.isnan(value) and record["doc_id"] in answered:
                    continue
                self.columns.phases.append(_phase(record))
                self._reading(log, model, (number, epoch), item, rater, value)
                self.columns.costs.append(self._paid.cost(log.file, int(record["doc_id"]), epoch))
            for rater in () if self.judged else self._outside(metrics, record):
                self.columns.outside.add(len(self.columns.scores))
                epoch = int(record.get("epoch", 0))
                self._reading(log, model, (number, epoch), item, self._named(log, rater), math.nan)
                self.columns.phases.append(math.nan)
                self.columns.costs.append(math.nan)
        if not self.judged:
            calls = len({(record["doc_id"], record.get("epoch", 0)) for record in log.records})
        called = {int(record["doc_id"]) for record in log.records} if self.judged else set()
        for place, (rater, chosen) in enumerate((raters or self._expected(log, metrics)).items()):
            self.metrics.setdefault(rater, []).append(metrics)
            self.filters.setdefault(rater, chosen)
            lost = () if self.judged and place else missing.documents.get(chosen, ())  # one judge's turn
            lacking = set(lost) - called - {document for by, document in here if by == rater}
            for document in sorted(lacking):
                epochs = max(epochs, 1)
                self._reading(log, model, (number, 0), self.documents.name(log, document), rater, math.nan)
                self.columns.phases.append(math.nan)
                self.columns.costs.append(math.nan)
        logs = self._bought.setdefault(model, {})
        bought = how_bought(log.file, log.records, epochs, cost=float(calls))
        logs[log.file.run] = _with(logs.get(log.file.run), bought)
        self._files.setdefault((model, log.file.run), []).append(log.file)

    def unscored(self) -> Iterator[str]:
        """Sentences on answers that came back without a score."""
        for (model, rater, why), n in self._unscored.items():
            if n:
                asked = self._asked[model, rater]
                answers = "1 answer" if asked == 1 else f"{asked:,} answers"
                yield f"{n:,} of {answers} of {model} came back without a score by {rater} ({why}): missing."

    def bought(self, model: str) -> dict[str, Bought]:
        """How each run of a model was bought."""
        return {run: self._in_all(self._files[model, run], own) for run, own in self._bought[model].items()}

    def _in_all(self, files: Sequence[SamplesFile], counted: Bought) -> Bought:
        """With what a run of ours paid for by its own account, in which is what failed and what was lost.

        Of some of a run's tasks nobody knows what they cost, if any call failed.
        """
        block = files[0].block or {}
        if not block.keys() >= _ACCOUNT or files[0].shared is not None:
            return counted
        whole = {file.task for file in files} == set(block["score"])
        if not whole and not block["failed"]:
            return counted
        cost = float(block["readings"] + block["failed"]) if whole else None
        return Bought(replace(counted.purchase, cost=cost), counted.epochs)

    def _scored_by_judges(self, log: Log) -> set[object]:
        """Documents with a judge's score in a run of ours, which asked again what another judge failed on."""
        if not self.judged or "allocation" not in (log.file.block or {}):
            return set()
        return {
            record["doc_id"]
            for record in log.records
            for *_, value, _ in _said(record)
            if not math.isnan(value)
        }

    def _scores(self, log: Log, metrics: Metrics, record: Record) -> Iterator[_Score]:
        """A record's metrics that are averaged; nan where one has no score and should have."""
        chosen, own = str(record["filter"]), record.get("metrics") or ()
        for metric in metrics.names:
            if metric not in own and not metrics.is_owed(metric, chosen):
                continue
            value = record.get(metric)
            if metrics.is_outside(metric, value) or not self._reads(metrics, metric, chosen):
                continue
            score = float(value) if is_number(value) and abs(value) <= LARGEST else math.nan
            why = _what(value) if metric in own else "its record has none"
            yield self._rater(metric, chosen), int(record.get("epoch", 0)), score, why

    def _outside(self, metrics: Metrics, record: Record) -> Iterator[str]:
        """Metrics that a record is outside of."""
        chosen, own = str(record["filter"]), record.get("metrics") or ()
        for metric in metrics.names:
            if (metric, chosen) not in metrics.scored:
                continue
            unasked = metric not in own and not metrics.is_owed(metric, chosen)
            lacks = unasked or metrics.is_outside(metric, record.get(metric))
            if lacks and self._reads(metrics, metric, chosen):
                yield self._rater(metric, chosen)

    def _expected(self, log: Log, metrics: Metrics) -> dict[str, str]:
        """The raters of a log without records, by what its results name."""
        rows = log.file.about("results")
        keys = [key for key in (rows if isinstance(rows, Mapping) else ()) if "," in key]
        named = [key.split(",", 1) for key in keys if is_number(rows[key])]
        return {
            self._named(log, self._rater(metric, chosen)): chosen
            for metric, chosen in named
            if not self.judged and metrics.listed(metric) and self._reads(metrics, metric, chosen)
        }

    def _reads(self, metrics: Metrics, metric: str, chosen: str) -> bool:
        return metric not in metrics.left_out and (self.only is None or f"{metric},{chosen}" in self.only)

    def _named(self, log: Log, rater: str) -> str:
        return f"{log.file.task}/{rater}" if self.apart else rater

    def _rater(self, metric: str, chosen: str) -> str:
        return f"{metric},{chosen}" if self.by_filter else metric

    def _reading(
        self, log: Log, model: str, answer: tuple[int, int], item: str, rater: str, value: float
    ) -> None:
        columns = self.columns
        columns.items.append(item)
        columns.scores.append(value)
        columns.models.append(model)
        columns.raters.append(rater)
        columns.repeats.append(answer)
        generation = answer
        if log.kept:  # a judge's second score of it counts as one of another
            again = columns.again.get((f"{log.file.path}", item, rater), 0)
            columns.again[f"{log.file.path}", item, rater] = again + 1
            generation = (answer[0], again)
        columns.generations.append(generation)
        columns.logs.append(log.file.run)
        columns.epochs.append(answer[1] + 1)


def how_bought(file: SamplesFile, records: Sequence[Record], epochs: int, *, cost: float) -> Bought:
    """How a run's answers were bought; of one of ours without its results only the first ones may count."""
    block, allocation, fixed = file.block, Allocation.FIXED, 0
    sizes: tuple[float, ...] = ()
    if block is not None and "allocation" in block:
        judged = (block.get("judges") or {}).get(
            file.task
        ) or block  # where each response is judged for itself
        allocation, fixed = Allocation(block["allocation"]), int(judged["fixed_repeats"])
        sizes = tuple(map(float, block.get("phase_sizes", ())))
    elif block is not None:  # a race: how many documents a model was asked followed from its scores
        allocation = Allocation.ADAPTIVE
    elif any("epoch" in record for record in records):
        allocation, fixed = Allocation.ADAPTIVE, 1
    return Bought(HowBought(allocation, fixed, cost=cost, phase_sizes=sizes), epochs)


def _with(before: Bought | None, more: Bought) -> Bought:
    """Several tasks of one run, which had one budget."""
    if before is None:
        return more
    cost = (before.purchase.cost or 0.0) + (more.purchase.cost or 0.0)
    fixed = min(before.purchase.fixed_repeats, more.purchase.fixed_repeats)
    return Bought(replace(more.purchase, fixed_repeats=fixed, cost=cost), max(before.epochs, more.epochs))


def _what(value: object) -> str:
    """What stands in place of a score."""
    if value is None:
        return "null"
    return f"{value:g}" if isinstance(value, int | float) else f"a {type(value).__name__}"


def _said(record: Record) -> Iterator[_Score]:
    for reading in readings(record):
        why = "a reply without a number on the scale" if reading.error is None else "its call failed"
        yield reading.judge, reading.epoch, math.nan if reading.score is None else reading.score, why


def _phase(record: Mapping[str, Any]) -> float:
    """In which the answer was bought; nan if there was none, or it is not known."""
    phase = record.get(PHASE)
    return math.nan if phase is None else float(phase)
