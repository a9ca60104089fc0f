"""Labels of a file into a store: all that are valid, or none."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

from evalbudget.audits.store._labels import labeller
from evalbudget.audits.store._record_types import LabelKind
from evalbudget.audits.store._store import AuditStore
from evalbudget.audits.store.exchange._reading import Row, read_rows
from evalbudget.errors import InvalidInputError

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the rows of a file.

    Attributes:
        new: labels that count from now on.
        known: in the store already.
        agrees: other labellers' scores, the same as the ones that count.
        conflicts: scores that contradict the ones that count; kept, reported, and nothing more.
        empty: rows without a score.
    """

    new: int
    known: int
    agrees: int
    conflicts: int
    empty: int


def import_labels(store: AuditStore, text: str, kind: str, by: str | None = None) -> Imported:
    """Record the labels of a file; importing it again changes nothing.

    Args:
        store: the audit.
        text: of the file.
        kind: ``csv``, ``jsonl`` or ``label-studio``.
        by: who labelled, where the file does not say.

    Raises:
        InvalidInputError: rows that cannot be used, each with its line; nothing was recorded.
    """
    labels, problems, empty = [], list[str](), 0
    for row in read_rows(text, kind):
        try:
            draw = store.draws.index(row.task)
            if row.score is None or row.score == "":
                empty += 1
                continue
            who = row.by or by
            if not who:
                raise InvalidInputError("does not say who labelled; fill in the column by, or give --by NAME")
            labels.append((draw, store.design.scale.check(_score(row)), labeller(who), _time(row)))
        except InvalidInputError as ex:
            problems.append(f"{row.place}: {ex}")
    if problems:
        more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InvalidInputError("nothing was imported:\n  " + "\n  ".join(problems[:_SHOWN]) + more)
    kinds = Counter(label.kind for label in store.labels.add_all(labels))
    return Imported(
        new=kinds[LabelKind.FIRST],
        known=kinds[LabelKind.KNOWN],
        agrees=kinds[LabelKind.AGREES],
        conflicts=kinds[LabelKind.CONFLICTS],
        empty=empty,
    )


def _score(row: Row) -> float:
    if isinstance(row.score, bool) or not isinstance(row.score, int | float | str):
        raise InvalidInputError(f"score {row.score!r} is not a number")
    try:
        return float(row.score)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"score {str(row.score)[:60]!r} is not a number") from None


def _time(row: Row) -> float | None:
    if not row.at:
        return None
    try:
        moment = datetime.fromisoformat(row.at)
    except ValueError:
        raise InvalidInputError(
            f"time {row.at!r} is not a time; write 2026-01-31T12:00:00+00:00 or leave it empty"
        ) from None
    if not 1970 < moment.year < 9999:  # time zones lead over the ends of the calendar
        raise InvalidInputError(f"time {row.at!r} is not when anybody labelled; leave it empty for now")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
