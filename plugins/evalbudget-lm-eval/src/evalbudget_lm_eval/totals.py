"""What a task's readings say: of the metric that drove the sampler, and of the others that are averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalbudget import Allocation
from evalbudget.estimators import ItemReadings
from evalbudget.repeats import BenchmarkMean, describe_mean
from evalbudget_lm_eval.book import Book
from evalbudget_lm_eval.judging.readings import Judged, judge_scores
from evalbudget_lm_eval.judging.rows import panel_rows
from evalbudget_lm_eval.ranges import known_range
from evalbudget_lm_eval.rows import Scored, readings_of
from evalbudget_lm_eval.scores import is_mean


@dataclass(frozen=True, slots=True, eq=False)
class TaskTotals:
    """One task of a budgeted run.

    Attributes:
        name: of the task.
        score: the host's key ``metric,filter`` of the metric that drove the sampler.
        documents: ids, in the host's order.
        table: readings of all of them.
        mean: the benchmark mean by that metric.
        bounds: the smallest and the largest possible score; None if unknown.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every document got whatever its scores were; of judges, if they scored.
        others: the mean by other metrics and filters that the host averages, by its keys.
        judged: one value per document where judges scored; empty where they did not.
        judges: their names.
    """

    name: str
    score: str
    documents: tuple[int, ...]
    table: ItemReadings
    mean: BenchmarkMean
    bounds: tuple[float, float] | None
    allocation: Allocation
    fixed_repeats: int
    others: Mapping[str, BenchmarkMean] = field(default_factory=dict)
    judged: Sequence[Judged] = ()
    judges: tuple[str, ...] = ()

    @property
    def means(self) -> dict[str, BenchmarkMean]:
        """Of all metrics, by the host's keys."""
        return {self.score: self.mean, **self.others}


def totals_of(book: Book) -> dict[str, TaskTotals]:
    """Every task of a run."""
    scored: dict[str, list[Scored]] = {name: [] for name in book.primed.names}
    for reading in book.journal.readings:
        if reading.value is not None:
            one = book.asked(reading.request)
            scored[one.task].append((one.doc_id, one.epoch, reading.value))
    return {name: _totals(book, name, own) for name, own in scored.items()}


def _totals(book: Book, name: str, scored: Sequence[Scored]) -> TaskTotals:
    primed, sampler, key = book.primed, book.sampler, book.scores[name]
    task, documents = primed.task(name), primed.documents(name)
    metric = key.partition(",")[0]
    bounds = book.config.score_range or known_range(task, metric, (value for *_, value in scored))
    table, fixed = readings_of(scored, documents), sampler.fixed_repeats
    values = [value for value in primed.values(name, key) if isinstance(value, Judged)]
    if values:
        # an answer of a task with repeats: is several responses, each judged for itself
        fixed *= primed.instances(name, documents[0])[0].repeats or 1
        how = {"allocation": sampler.allocation, "fixed_repeats": fixed}
        mean = panel_rows(values, bounds=bounds, **how)
        judges = judge_scores(values).judges
        return TaskTotals(name, key, documents, table, mean, bounds, **how, judged=values, judges=judges)
    how = {"allocation": sampler.allocation, "fixed_repeats": fixed}
    others = {}
    for other, seen in primed.numbers(name).items():
        own = [(document, epoch, seen.get((document, epoch))) for document, epoch, _ in scored]
        complete: list[Scored] = [(doc, epoch, value) for doc, epoch, value in own if value is not None]
        if other == key or len(complete) < len(scored) or not _is_averaged(task, other):
            continue
        range_ = known_range(task, other.partition(",")[0], (value for *_, value in complete))
        others[other] = describe_mean(readings_of(complete, documents), bounds=range_, **how)
    mean = describe_mean(table, bounds=bounds, **how)
    return TaskTotals(name, key, documents, table, mean, bounds, **how, others=others)


def _is_averaged(task: object, key: str) -> bool:
    aggregations = task.aggregation()  # type: ignore[attr-defined]  # the host is untyped
    metric = key.partition(",")[0]
    return metric not in aggregations or is_mean(aggregations[metric])  # as the host does with unknown ones
