"""A store's rows hold what this version writes; SQLite itself keeps any value in any column."""

from __future__ import annotations

from evalbudget.audits._draw import Coin
from evalbudget.audits.store._database import Database
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._record_types import LabelKind
from evalbudget.errors import AuditStoreError

_YEAR_9999 = 253_370_764_800


def check_rows(db: Database, design: AuditDesign) -> None:
    """Refuse a file that something else has written into.

    Args:
        db: the file.
        design: of the audit.

    Raises:
        AuditStoreError: a row holds something that no version wrote; names table and row.
    """
    for table, sound in _sound(design).items():
        rows = db.rows(f"SELECT rowid FROM {table} WHERE NOT coalesce({sound}, 0) LIMIT 1")
        if rows:
            raise AuditStoreError(
                f"{db.path} is damaged, or something else wrote into it: row {rows[0][0]} of its table "
                f"{table} holds what no version of evalbudget writes. Restore a copy of the file"
            )


def _sound(design: AuditDesign) -> dict[str, str]:
    """What must be true of every row, by table."""
    scale = design.scale
    return {
        "contexts": f"{_index('item', design.items)} AND {_index('segment', design.segments)} AND "
        f"{_texts('prompt')}",
        "draws": f"draw >= 0 AND {_index('model', design.models)} AND {_number('prediction')} AND "
        f"(judge IS NULL OR {_number('judge')}) AND {_number('propensity')} AND propensity > 0 AND "
        f"{_number('uniform')} AND uniform < 1 AND {_one_of('coin', Coin)} AND "
        f"(leader IS NULL OR {_index('leader', design.models)}) AND typeof(cap) = 'real' AND "
        "typeof(policy) = 'integer' AND policy >= 0 AND typeof(wanted) = 'integer' AND wanted IN (0, 1) AND "
        f"{_texts('response', 'reason')} AND context IN (SELECT context FROM contexts)",
        "labels": f"draw IN (SELECT draw FROM draws WHERE wanted) AND {_one_of('kind', LabelKind)} AND "
        f"{_number('score', scale.low, scale.high)} AND {_texts('by', 'why')} AND {_moment('at')}",
        "opinions_seen": _texts("by"),
        "leases": f"{_texts('session', 'by')} AND typeof(until) = 'real'",
        "attempts": _texts("by"),
        "replies": _texts("answer", "explanation", "usage", "failure")
        + " AND typeof(score) IN ('null', 'real')",
    }


def _index(column: str, names: tuple[str, ...]) -> str:
    return f"(typeof({column}) = 'integer' AND {column} BETWEEN 0 AND {len(names) - 1})"


def _number(column: str, low: float = 0.0, high: float = 1.0) -> str:
    return f"(typeof({column}) = 'real' AND {column} BETWEEN {low!r} AND {high!r})"


def _moment(column: str) -> str:
    return _number(column, 0.0, float(_YEAR_9999))


def _texts(*columns: str) -> str:
    return " AND ".join(f"typeof(\"{column}\") = 'text'" for column in columns)


def _one_of(column: str, kinds: type[Coin] | type[LabelKind]) -> str:
    return f"{column} IN ({', '.join(repr(kind.value) for kind in kinds)})"
