"""What a budgeted run leaves: rows in the host's results, our block among them, and the closing summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalbudget import Allocation, __version__
from evalbudget.repeats import (
    LEVEL,
    BenchmarkMean,
    Outcome,
    Repeat,
    Summary,
    failing_items,
    share_budget,
    summarize,
    whole_counts,
)
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import PHASE, SHARED, Asked
from evalbudget_lm_eval.host.identity import short_name
from evalbudget_lm_eval.host.rows import PLAIN, lead_with, named_rows
from evalbudget_lm_eval.judges.rows import judged_block, judged_rows
from evalbudget_lm_eval.repeats.account import Account
from evalbudget_lm_eval.repeats.groups import group_means
from evalbudget_lm_eval.repeats.purchase import RepeatPurchase
from evalbudget_lm_eval.repeats.refusals import calls_of_readings
from evalbudget_lm_eval.repeats.task_estimates import TaskTotals, totals_of

log = shown_logger(__name__)

BLOCK = "evalbudget"
"""Our key in the host's results."""

UNIT = "calls"
"""What a budget of 1 buys."""

COST = "cost"
"""Key, in a record, of what its answer cost, in a run whose budget is money or tokens."""


def results_of(book: RepeatPurchase, *, rounds: int, scored_again: int = 0) -> tuple[dict[str, Any], Summary]:
    """The host's results with our rows and block, and the same in words.

    Args:
        book: of the run, which is over.
        rounds: there were.
        scored_again: how many kept answers the task scored again, since it was edited.
    """
    processes: tuple[str, ...] = ()
    account = book.account()
    if book.is_shared:
        book.primed.keep_only(account.scored_by(book.record.worker))
    results = book.primed.results()
    if book.is_shared:
        processes = account.processes
        for name, own in results["results"].items():  # of what this process bought, not of all
            results["results"][name] = {key: value for key, value in own.items() if "," not in key}
    if book.sampler.allocation is Allocation.PHASED:
        _note_phases(results.get("samples") or {}, account.phases)
    if book.money is not None:
        for name, records in (results.get("samples") or {}).items():
            for record in records:
                record[COST] = book.money.cost(Asked(name, record["doc_id"], record["epoch"]))
    totals = totals_of(book, account)
    if processes:
        for name, whole in totals.items():
            results["results"][name]["sample_len"] = int((whole.table.counts > 0).sum())
    groups = group_means(book.primed.groups, results["results"], totals)
    for name, own in totals.items():
        results["results"][name] = _task_rows(results["results"][name], own)
        if own.panel is not None:  # the host takes its arrow for that of all rows, a judge's bias included
            metric = own.score.partition(",")[0]
            arrows = results["higher_is_better"]
            arrows[name] = {metric: arrows.get(name, {}).get(metric, True)}
    for name, means in groups.items():
        for table in (results["results"], results.get("groups", {})):
            if name in table:
                table[name] = _rows(table[name], means, book.sampler.allocation)
    if closed := book.closed:
        log.warning(
            "evalbudget: %d of %d documents were given up after repeated failures (%s); the numbers are "
            "of the others",
            len(closed),
            len(book.documents),
            ", ".join(closed[:5]) + (", ..." if len(closed) > 5 else ""),
        )
    summary = _summary(book, account, totals, groups, processes)
    calls = [f"{told[0].upper()}{told[1:]}." for told in calls_of_readings(book.primed)]
    summary = replace(summary, beside=(*summary.beside, *calls))
    if scored_again:
        again = f"The task was edited: its {scored_again:,} kept answers are scored by it as it is now"
        summary = replace(summary, beside=(*summary.beside, again))
    results[BLOCK] = _block(book, account, totals, groups, processes) | {
        "rounds": rounds,
        **({"scored_again": scored_again} if scored_again else {}),
        "summary": {"text": str(summary), **summary.as_json()},
    }
    return results, summary


def _note_phases(samples: Mapping[str, Sequence[dict[str, Any]]], phases: Mapping[Asked, float]) -> None:
    """Into the host's records, for whoever reads them later."""
    for name, records in samples.items():
        for record in records:
            phase = phases[Asked(name, record["doc_id"], record["epoch"])]
            record[PHASE] = None if math.isnan(phase) else int(phase)


def _task_rows(own: Mapping[str, Any], totals: TaskTotals) -> dict[str, Any]:
    if totals.panel is None:
        return _rows(own, totals.means, totals.allocation)
    metric, _, chosen = totals.score.partition(",")
    gone = [key for key in own if key.startswith(f"{metric}_") and key.endswith(f",{chosen}")]
    rest = {key: value for key, value in own.items() if key not in gone}
    more = judged_rows(totals.score, totals.panel)
    return lead_with(_rows(rest, totals.means, totals.allocation), {}) | more


def _rows(
    own: Mapping[str, Any], means: Mapping[str, BenchmarkMean], allocation: Allocation
) -> dict[str, Any]:
    """Every metric's estimate in the place of the host's mean; the first has its intervals too."""
    rows: dict[str, Any] = {}
    for number, (key, mean) in enumerate(means.items()):
        metric, _, chosen = key.partition(",")
        named = named_rows(key, mean.rows)
        if number:
            named = {
                name: value for name, value in named.items() if name in (key, f"{metric}_stderr,{chosen}")
            }
        rows |= named
        if named and not number and allocation is not Allocation.FIXED and key in own:
            rows[f"{metric}{PLAIN},{chosen}"] = own[key]
    return lead_with(own, rows)


def _block(
    book: RepeatPurchase,
    account: Account,
    totals: Mapping[str, TaskTotals],
    groups: Mapping[str, Mapping[str, BenchmarkMean]],
    processes: Sequence[str],
) -> dict[str, Any]:
    config = book.config
    means = {**groups, **{name: own.means for name, own in totals.items()}}
    block: dict[str, Any] = {
        "version": __version__,
        **config.as_json,
        "score": dict(book.scores),
        **({"drawn": _drawn(book, totals)} if config.strata or len(totals) > 1 else {}),
        **book.as_json(account.failures, account.useful),
        "in_vain": {name: sorted(own.in_vain) for name, own in totals.items() if own.in_vain},
        **({"phase_sizes": list(account.phase_sizes)} if account.phase_sizes else {}),
        "journal": None if book.record.path is None else str(book.record.path),
        **({SHARED: _shared(book, processes)} if processes else {}),
        "level": LEVEL,
        "estimates": {
            name: {key: _estimates(mean) for key, mean in own.items()} for name, own in means.items()
        },
        "tasks": {},
    }
    for name, own in totals.items():
        read = own.table.counts > 0
        if read.any():
            block["tasks"][name] = {
                "doc_id": [doc for doc, scored in zip(own.documents, read, strict=True) if scored],
                **{
                    column: [one for one, scored in zip(values, read, strict=True) if scored]
                    if isinstance(values, list)
                    else values
                    for column, values in own.columns.items()
                },
                "range": list(own.bounds) if own.bounds else None,
                "failed": [
                    account.failed_of[name, doc]
                    for doc, scored in zip(own.documents, read, strict=True)
                    if scored
                ],
            }
    panels = {name: judged_block(own.panel) for name, own in totals.items() if own.panel is not None}
    if panels:
        block["judges"] = panels
    return block


def _drawn(book: RepeatPurchase, totals: Mapping[str, TaskTotals]) -> dict[str, Any]:
    """Of each task, the strata of the documents that were asked, and how large these are."""
    found = {}
    for name, strata in (book.strata or {}).items():
        own = totals[name]
        asked = [i for i, doc in enumerate(own.documents) if own.table.counts[i] > 0 or doc in own.in_vain]
        found[name] = {
            "doc_id": [own.documents[i] for i in asked],
            "stratum": strata.of_item[asked].tolist(),
            "sizes": strata.sizes.tolist(),
        }
    return found


def _shared(book: RepeatPurchase, processes: Sequence[str]) -> dict[str, Any]:
    return {"store": book.config.store, "processes": list(processes), "this": book.record.worker}


def _estimates(mean: BenchmarkMean) -> dict[str, Any]:
    why = {} if mean.no_interval is None else {"no_interval": mean.no_interval}
    return {**whole_counts(mean.rows), **why}


def _summary(
    book: RepeatPurchase,
    account: Account,
    totals: Mapping[str, TaskTotals],
    groups: Mapping[str, Mapping[str, BenchmarkMean]],
    processes: Sequence[str],
) -> Summary:
    if len(totals) == 1:
        outcome = _outcome(book, account, next(iter(totals.values())))
        found = summarize(replace(outcome, processes=max(1, len(processes))))
    else:
        found = share_budget(
            [_outcome(book, account, own, of=f" of {name}") for name, own in sorted(totals.items())],
            groups={name: next(iter(means.values())) for name, means in groups.items()},
            spent=book.spent,
            failures=account.failures,
            closed=book.closed,
        )
    primed = book.primed
    dear = any(
        primed.cost(name, own.documents[0]) > 1
        for name, own in totals.items()
        if own.documents and own.panel is None
    )
    return replace(found, dear=dear)


def _outcome(book: RepeatPurchase, account: Account, own: TaskTotals, *, of: str = "") -> Outcome:
    return Outcome(
        task=own.name,
        model=short_name(book.primed.lm),
        names=[f"document {doc_id}{of}" for doc_id in own.documents],
        table=own.table,
        columns=own.columns,
        mean=own.mean,
        budget=book.budget.amount,
        spent=book.spent,
        failures=account.failures,
        closed=book.closed,
        failing=failing_items(account.readings, book.sampler.design.items),
        stop_reason=book.stop_reason,
        bounds=own.bounds,
        judges=() if own.panel is None or len(own.panel.judges) < 2 else own.panel.judges,
        judged=own.panel is not None,
        kept=book.config.repeat is Repeat.JUDGE,
        score=own.score if len(own.means) > 1 else "",
        unit=UNIT if book.money is None else book.money.bill.cap.unit.value,
        costs=() if book.money is None else book.money.bill.rows,
        wasted=0.0 if book.bill is None else book.bill.wasted(account.useful),
        range_flag="--score_range",
        judges_flag="--judges",
        drawn=book.strata is not None,
        strata=book.config.strata,
        cluster=book.config.cluster,
        in_vain=len(own.in_vain),
    )
