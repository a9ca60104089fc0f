"""Where the book of a run is: beside its record, or where several processes meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbudget import Budget, Sampler
from evalbudget.book import Book, Told, told_in
from evalbudget.errors import JournalError, StoreDownError, StoreError
from evalbudget.store import Address
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import short_name
from evalbudget_lm_eval.host.scoring import scoring_of
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.run.record import Record, beside

_WHERE = "base_url"
"""Of the model's arguments, what may differ: every process may have a server of its own."""


def book_path(record: Path) -> Path:
    """Of the book beside a record."""
    return beside(record, ".db")


def book_of(
    config: Config,
    primed: PrimedTasks,
    sampler: Sampler,
    budget: Budget,
    most: Sequence[float],
    record: Record,
) -> Book:
    """Begin, join or go on with the book.

    Args:
        config: what the user asked for.
        primed: the tasks.
        sampler: fresh.
        budget: of all processes.
        most: what one answer to each document costs at most.
        record: of the answers of this process.

    Raises:
        JournalError: the record has answers and no book, or the book knows of answers and the record is new.
        StoreError: the book is of another run, or it was begun anew.
        StoreDownError: it cannot be reached.
    """
    path = None if record.path is None else book_path(record.path)
    about: Mapping[str, Any] = {}
    where = None if path is None else Address(path=path)
    if config.store is not None:
        where = Address.parse(config.store)
        about = _shared(config, primed, record)
    if where is not None:
        _check_record(record, told_in(where), where, is_shared=config.store is not None)
    alone, cost = config.store is None, (lambda cell: most[cell.item])
    try:
        return Book(sampler, budget, where, most=cost, about=about, known_as=record.worker, alone=alone)
    except StoreError as ex:
        if config.store is not None or isinstance(ex, StoreDownError):
            raise
        raise JournalError(f"{ex}: choose another --journal") from ex


def _check_record(record: Record, told: Told, where: Address, *, is_shared: bool) -> None:
    """Refuse a record and a book of which one is not of the other."""
    began, known = record.of().took_part, record.worker in told.workers
    if began and not known and is_shared:
        raise StoreError(
            f"{where} knows nothing of this process, and its record {record.where} says that it took part: "
            "the store was begun anew. Put the old one back, or move the record away"
        )
    if not is_shared and not known and (began or told.calls):
        raise JournalError(
            f"{record.where} and {where} belong together, and one of them is of another run, or begun anew; "
            "put back the one that is missing, or move both away and buy everything again"
        )


def _shared(config: Config, primed: PrimedTasks, record: Record) -> Mapping[str, Any]:
    """What must be the same for all processes."""
    args = record.settings.get("model_args") or {}
    return {
        **{name: value for name, value in record.settings.items() if name != "store"},
        "model": f"{type(getattr(primed.lm, 'lm', primed.lm)).__name__} {short_name(primed.lm)}",
        "model_args": {name: value for name, value in args.items() if name != _WHERE},
        "scoring": scoring_of(primed, config.scorer),
        "score_range": None if config.score_range is None else list(config.score_range),
    }
