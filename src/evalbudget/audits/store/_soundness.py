"""A store's rows hold what this version writes; SQLite itself keeps any value in any column."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Float,
    Integer,
    Select,
    Table,
    and_,
    exists,
    false,
    func,
    literal_column,
    not_,
    or_,
    select,
)

from evalbudget.audits.store._design import AuditDesign, Scale
from evalbudget.audits.store._schema import TABLES, WANTED, contexts, draws, labels
from evalbudget.book import PAID_CALLS
from evalbudget.errors import AuditStoreError
from evalbudget.store import Database

_YEAR_9999 = 253_370_764_800.0

Check = ColumnElement[bool]


def check_rows(db: Database, design: AuditDesign) -> None:
    """Refuse a store that something else has written into.

    Args:
        db: of the store.
        design: of the audit.

    Raises:
        AuditStoreError: a row holds something that no version wrote; names table and row.
    """
    sizes = len(design.items), len(design.segments), len(design.models)
    for name, unsound in _unsound(sizes, design.scale, is_file=db.address.url is None).items():
        rows = db.rows(unsound)
        if rows:
            raise AuditStoreError(
                f"{db.address} is damaged, or something else wrote into it: row {rows[0][0]} of its table "
                f"{name} holds what no version of evalbudget writes. Restore a copy"
            )


@lru_cache(maxsize=16)
def _unsound(
    sizes: tuple[int, int, int], scale: Scale, *, is_file: bool
) -> Mapping[str, Select[tuple[Any, ...]]]:
    """Queries for a row that is not sound, by table; to put them together takes longer than to ask them."""
    meant = _meant(*sizes, scale)
    found = {}
    for table in TABLES.sorted_tables:
        if table.name in ("meta", PAID_CALLS.name):  # read by whoever knows what is in them
            continue
        checks = [*meant.get(table, ()), *(_declared(c) for c in table.columns)]
        if is_file:
            checks += [_has_type(column) for column in table.columns]
        row = literal_column("rowid") if is_file else next(iter(table.primary_key))
        sound = func.coalesce(and_(*checks), false())
        found[table.name] = select(row).select_from(table).where(not_(sound)).limit(1)
    return found


def _has_type(column: Column[Any]) -> Check:
    """Whether a value has the type of its column; a server sees to that by itself."""
    kinds = {Integer: "integer", Boolean: "integer", Float: "real"}
    kind = next((kind for of, kind in kinds.items() if isinstance(column.type, of)), "text")
    return _unless_null(column, func.typeof(column) == kind)


def _declared(column: Column[Any]) -> Check:
    """Whether a value is what the schema says, which somebody may have circumvented."""
    checks: list[Check] = [
        literal_column(str(each.sqltext)) for each in column.constraints if isinstance(each, CheckConstraint)
    ]
    checks += [exists().where(key.column == column).correlate(column.table) for key in column.foreign_keys]
    return _unless_null(column, and_(True, *checks))


def _unless_null(column: Column[Any], check: Check) -> Check:
    return or_(column.is_(None), check) if column.nullable else check


def _meant(n_items: int, n_segments: int, n_models: int, scale: Scale) -> Mapping[Table, list[Check]]:
    """What this audit makes true of rows."""
    labelled = exists().where(draws.c.draw == labels.c.draw, WANTED).correlate(labels)
    return {
        contexts: [
            contexts.c.item.between(0, n_items - 1),
            contexts.c.segment.between(0, n_segments - 1),
        ],
        draws: [
            draws.c.draw >= 0,
            draws.c.model.between(0, n_models - 1),
            _unless_null(draws.c.leader, draws.c.leader.between(0, n_models - 1)),
        ],
        labels: [
            labelled,
            labels.c.score.between(scale.low, scale.high),
            labels.c.at.between(0.0, _YEAR_9999),
        ],
    }
