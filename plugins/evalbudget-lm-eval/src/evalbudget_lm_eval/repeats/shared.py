"""A budget that other processes share: this one keeps a record of its own, and meets them in the store."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalbudget import Budget, Sampler
from evalbudget.errors import HeldError, StoreError
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import short_name
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.run.record import SHARED, Record, state_of

if TYPE_CHECKING:  # it brings SQLAlchemy
    from evalbudget.run import SharedPurchase

_WHERE = "base_url"
"""Of the model's arguments, what may differ: every process may have a server of its own."""


def record_of_own(first: Path | None, run: Mapping[str, Any], *, named: bool) -> Record:
    """The record of this process: one that a killed process left, or another one.

    Args:
        first: where the first process keeps its own, ``...-1.jsonl``; None to keep none.
        run: what must be the same for a record to be continued.
        named: the user named this very file.

    Raises:
        HeldError: the file that was named is another process's.
        JournalError: a record cannot be read or written, or is of another run.
    """
    if first is None or named:
        return Record.open(first, SHARED, run)
    for path in _candidates(first):
        try:
            return Record.open(path, SHARED, run)
        except HeldError:
            continue
    raise AssertionError("there is always another number")


def _candidates(first: Path) -> Iterator[Path]:
    """Records that were broken off, those that are finished, then new ones."""
    numbered = (first.with_name(re.sub(r"-1$", f"-{n}", first.stem) + ".jsonl") for n in itertools.count(1))
    there: list[Path] = []
    for path in numbered:
        if not path.exists():
            yield from sorted(there, key=lambda each: state_of(each)[0])
            yield path
            yield from numbered
            return
        there.append(path)


def joined(
    config: Config,
    primed: PrimedTasks,
    sampler: Sampler,
    budget: Budget,
    costs: Sequence[float],
    record: Record,
) -> SharedPurchase:
    """Take part in the purchase.

    Args:
        config: what the user asked for.
        primed: the task.
        sampler: fresh.
        budget: of all processes.
        costs: of one answer to each document.
        record: of this process.

    Raises:
        StoreError: the store belongs to another run, or does not know this process though its record says
            that it took part.
        StoreDownError: it cannot be reached.
    """
    from evalbudget.run import SharedPurchase

    assert config.store is not None
    args = record.settings.get("model_args") or {}
    about = {
        **{name: value for name, value in record.settings.items() if name != "store"},
        "model": f"{type(getattr(primed.lm, 'lm', primed.lm)).__name__} {short_name(primed.lm)}",
        "model_args": {name: value for name, value in args.items() if name != _WHERE},
        "score_range": None if config.score_range is None else list(config.score_range),
    }
    began = record.of().took_part
    purchase = SharedPurchase(
        sampler,
        budget,
        config.store,
        cost=max(costs),
        cost_of=lambda cell: costs[cell.item],
        about=about,
        worker=record.worker,
        inherits=True,
    )
    if began and not purchase.rejoins:
        purchase.close()
        raise StoreError(
            f"{config.store} knows nothing of this process, and its record {record.where} says that it took "
            "part: the store was begun anew. Put the old one back, or move the record away"
        )
    return purchase
