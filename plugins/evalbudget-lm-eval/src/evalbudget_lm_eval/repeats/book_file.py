"""Where the book of a run is: in the file of its record, or where several processes meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalbudget import Budget, Sampler
from evalbudget.book import Book, told_in
from evalbudget.errors import JournalError, StoreError
from evalbudget.store import Address
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import short_name
from evalbudget_lm_eval.host.scoring import scoring_of
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.run.record import Record

_WHERE = "base_url"
"""Of the model's arguments, what may differ: every process may have a server of its own."""


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
        JournalError: the book in the record is of another run.
        StoreError: that of all processes is, or it was begun anew.
        StoreDownError: it cannot be reached.
    """
    given: dict[str, Any] = {"most": most, "known_as": record.worker}
    if config.store is None:
        try:
            return Book(sampler, budget, record.db, **given)
        except StoreError as ex:
            raise JournalError(f"{ex}: choose another --journal") from ex
    where = Address.parse(config.store)
    if record.of().took_part and record.worker not in told_in(where).workers:
        raise StoreError(
            f"{where} knows nothing of this process, and its record {record.where} says that it took part: "
            "the store was begun anew. Put the old one back, or move the record away"
        )
    return Book(sampler, budget, where, about=_shared(config, primed, record), **given)


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
