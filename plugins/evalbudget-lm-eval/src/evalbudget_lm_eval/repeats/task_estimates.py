"""What a task's readings say: of the metric that drove the sampler, and of the others that are averaged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypedDict

from evalbudget import Allocation
from evalbudget.judges import PanelRows
from evalbudget.repeats import BenchmarkMean, Repeat, asked_in_vain, describe_mean, item_columns
from evalbudget.repeats.estimates import ItemReadings, Strata
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.driving_metric import applies_to_some, is_mean
from evalbudget_lm_eval.judges.readings import Judged
from evalbudget_lm_eval.judges.rows import panel_rows
from evalbudget_lm_eval.repeats.account import Account
from evalbudget_lm_eval.repeats.purchase import RepeatPurchase
from evalbudget_lm_eval.repeats.ranges import known_range


class Scored(NamedTuple):
    """One reading.

    Attributes:
        document: its id.
        epoch: ordinal of the repeat, from 0.
        value: the score.
        phase: in which it was bought; nan if there were none.
    """

    document: int
    epoch: int
    value: float
    phase: float


class _How(TypedDict):
    allocation: Allocation
    fixed_repeats: int


class _Drawn(TypedDict):
    strata: Strata | None
    given_up: Sequence[int]
    in_vain: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class TaskTotals:
    """One task of a budgeted run.

    Attributes:
        name: of the task.
        score: the host's key ``metric,filter`` of the metric that drove the sampler.
        documents: ids, in the host's order.
        table: readings of all of them; where judges take turns, with their deviations taken out.
        columns: every document's count, estimate and intervals.
        mean: the benchmark mean by that metric.
        bounds: the smallest and the largest possible score; None if unknown.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every document got whatever its scores were; of judges, if they scored.
        others: the mean by other metrics and filters that the host averages, by its keys.
        panel: what judges said; None where they did not score.
        drawn: the documents that were read are a random sample.
        in_vain: ids of documents that were asked and have no score.
    """

    name: str
    score: str
    documents: tuple[int, ...]
    table: ItemReadings
    columns: Mapping[str, Any]
    mean: BenchmarkMean
    bounds: tuple[float, float] | None
    allocation: Allocation
    fixed_repeats: int
    others: Mapping[str, BenchmarkMean] = field(default_factory=dict)
    panel: PanelRows | None = None
    drawn: bool = False
    in_vain: tuple[int, ...] = ()

    @property
    def means(self) -> dict[str, BenchmarkMean]:
        """Of all metrics, by the host's keys."""
        return {self.score: self.mean, **self.others}


def totals_of(book: RepeatPurchase, account: Account) -> dict[str, TaskTotals]:
    """Every task of a run."""
    scored: dict[str, list[Scored]] = {name: [] for name in book.primed.names}
    for one, reading in account.scored.items():
        if reading.value is not None:
            scored[one.task].append(Scored(one.doc_id, one.epoch, reading.value, account.phases[one]))
    in_vain = {book.documents[item] for item in asked_in_vain(account.readings)}
    return {
        name: replace(
            _totals(book, account, name, own, in_vain),
            in_vain=tuple(doc for task, doc in in_vain if task == name),
        )
        for name, own in scored.items()
    }


def readings_of(
    scored: Sequence[Scored], documents: Sequence[int], phase_sizes: Sequence[float]
) -> ItemReadings:
    """What was read of these documents, in their order; phases as large as in the whole run."""
    index = {document: i for i, document in enumerate(documents)}
    return ItemReadings.of(
        [index[one.document] for one in scored],
        [one.epoch for one in scored],
        [one.value for one in scored],
        n_items=len(index),
        phase=[one.phase for one in scored],
        phase_sizes=phase_sizes,
    )


def _totals(
    book: RepeatPurchase,
    account: Account,
    name: str,
    scored: Sequence[Scored],
    in_vain: Collection[tuple[str, int]],
) -> TaskTotals:
    primed, sampler, key = book.primed, book.sampler, book.scores[name]
    task, documents = primed.task(name), primed.documents(name)
    metric = key.partition(",")[0]
    bounds = book.config.score_range or known_range(task, metric, [one.value for one in scored])
    sizes = account.phase_sizes
    table, fixed = readings_of(scored, documents, sizes), sampler.fixed_repeats
    values = primed.values(name, key)
    if any(isinstance(value, Judged) for value in values):
        # an answer of a task with repeats: is several responses, each judged for itself
        return _judged(
            book, account, name, values, bounds, primed.instances(name, documents[0])[0].repeats or 1
        )
    how: _How = {"allocation": sampler.allocation, "fixed_repeats": fixed}
    closed = set(book.given_up)
    drawn: _Drawn = {
        "strata": None if book.strata is None else book.strata[name],
        "given_up": [i for i, document in enumerate(documents) if (name, document) in closed],
        "in_vain": [i for i, document in enumerate(documents) if (name, document) in in_vain],
    }
    clusters = None if book.clusters is None else book.clusters[name]
    others = {}
    for other, seen in primed.numbers(name).items():
        if other == key or not _is_averaged(task, other):
            continue
        complete = [
            one._replace(value=seen[one.document, one.epoch])
            for one in scored
            if (one.document, one.epoch) in seen
        ]
        outside = _outside(task, other, scored, complete)
        if outside is None:
            continue
        range_ = known_range(task, other.partition(",")[0], [one.value for one in complete])
        if not outside:
            others[other] = describe_mean(
                readings_of(complete, documents, sizes), bounds=range_, clusters=clusters, **drawn, **how
            )
            continue
        # how many of the documents that were not drawn it applies to, nobody knows: of those that were
        applies = [i for i, document in enumerate(documents) if document not in outside]
        others[other] = describe_mean(
            readings_of(complete, [documents[i] for i in applies], sizes),
            bounds=range_,
            clusters=None if clusters is None else clusters[applies],
            **how,
        )
    mean = describe_mean(
        table, bounds=bounds, estimators=book.config.further, clusters=clusters, **drawn, **how
    )
    columns = item_columns(table, bounds=bounds, **how)
    return TaskTotals(
        name,
        key,
        documents,
        table,
        columns,
        mean,
        bounds,
        **how,
        others=others,
        drawn=book.strata is not None,
    )


def _judged(
    book: RepeatPurchase,
    account: Account,
    name: str,
    values: Sequence[Judged],
    bounds: tuple[float, float] | None,
    responses: int,
) -> TaskTotals:
    """Of a task that judges score: their deviations are taken out of what is said of single documents."""
    documents, answered = book.primed.documents(name), book.primed.answered(name)
    index = {document: i for i, document in enumerate(documents)}
    how: _How = {
        "allocation": book.sampler.allocation,
        "fixed_repeats": book.sampler.fixed_repeats * responses,
    }
    panel, calls = panel_rows(values), []
    for call in panel.calls:
        asked = Asked(name, answered[call.item], call.epoch // responses)
        calls.append(call._replace(item=index[asked.doc_id], phase=account.phases[asked]))
    panel = replace(
        panel,
        calls=calls,
        n_items=len(documents),
        bounds=bounds or panel.bounds,
        kept=book.config.repeat is Repeat.JUDGE,
        clusters=None if book.clusters is None else book.clusters[name],
        phase_sizes=account.phase_sizes,
        asks_again=True,
        **how,
    )
    table = panel.corrected  # corrected scores may leave the scale
    columns = item_columns(table, bounds=bounds if len(panel.judges) == 1 else None, **how)
    return TaskTotals(
        name, book.scores[name], documents, table, columns, panel.mean, bounds, **how, panel=panel
    )


def _outside(task: object, key: str, scored: Sequence[Scored], complete: Sequence[Scored]) -> set[int] | None:
    """Documents to which a metric does not apply; None where its scores are not all there.

    Args:
        task: the host's.
        key: of the metric.
        scored: all readings that have the score that drove the sampler.
        complete: those of them that have a number by this metric.
    """
    if len(complete) == len(scored):
        return set()
    outside = {one.document for one in scored} - {one.document for one in complete}
    has_all = sum(one.document not in outside for one in scored) == len(complete)
    by_design = applies_to_some(task, key.partition(",")[0])
    return outside if complete and has_all and by_design else None


def _is_averaged(task: object, key: str) -> bool:
    aggregations = task.aggregation()  # type: ignore[attr-defined]  # the host is untyped
    metric = key.partition(",")[0]
    return metric not in aggregations or is_mean(aggregations[metric])  # as the host does with unknown ones
