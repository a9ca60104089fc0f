"""A store's rows hold what this version writes; SQLite itself keeps any value in any column."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
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
    true,
)

from evalbudget.audits._draw import Coin
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._record_types import LabelKind
from evalbudget.audits.store._scale import Scale
from evalbudget.audits.store._schema import (
    WANTED,
    attempts,
    contexts,
    draws,
    labels,
    leases,
    opinions_seen,
    replies,
)
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
    is_file = db.address.url is None
    sizes = len(design.items), len(design.segments), len(design.models)
    for name, unsound in _unsound(sizes, design.scale, is_file=is_file).items():
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
    return {
        table.name: select(literal_column("rowid") if is_file else next(iter(table.primary_key)))
        .select_from(table)
        .where(not_(func.coalesce(sound, false())))
        .limit(1)
        for table, sound in _sound(sizes, scale, _Types(checked=is_file)).items()
    }


class _Types:
    """Conditions on columns; a database that knows types needs not be asked for them."""

    def __init__(self, *, checked: bool) -> None:
        self._checked = checked

    def are(self, kind: str, *columns: ColumnElement[Any]) -> Check:
        if not self._checked:
            return true()
        return and_(*(func.typeof(column) == kind for column in columns))

    def index(self, column: ColumnElement[int], n: int) -> Check:
        return and_(self.are("integer", column), column.between(0, n - 1))

    def flag(self, column: ColumnElement[bool]) -> Check:
        return and_(self.are("integer", column), column.in_([False, True])) if self._checked else true()

    def number(self, column: ColumnElement[float], low: float = 0.0, high: float = 1.0) -> Check:
        return and_(self.are("real", column), column.between(low, high))


def _sound(sizes: tuple[int, int, int], scale: Scale, types: _Types) -> Mapping[Table, Check]:
    """What must be true of every row, by table; sizes: how many items, segments and models there are."""
    n_items, n_segments, n_models = sizes
    c = draws.c
    known = exists().where(contexts.c.context == c.context).correlate(draws)
    labelled = exists().where(draws.c.draw == labels.c.draw, WANTED).correlate(labels)
    return {
        contexts: and_(
            types.index(contexts.c.item, n_items),
            types.index(contexts.c.segment, n_segments),
            types.are("text", contexts.c.prompt),
        ),
        draws: and_(
            c.draw >= 0,
            types.index(c.model, n_models),
            or_(c.judge.is_(None), types.number(c.judge)),
            *(types.number(c[name]) for name in ("prediction", "propensity", "uniform")),
            c.propensity > 0,
            c.uniform < 1,
            c.coin.in_([coin.value for coin in Coin]),
            or_(c.leader.is_(None), types.index(c.leader, n_models)),
            types.are("real", c.cap),
            types.are("integer", c.policy),
            c.policy >= 0,
            types.flag(c.wanted),
            types.are("text", c.response, c.reason),
            known,
        ),
        labels: and_(
            labelled,
            labels.c.kind.in_([kind.value for kind in LabelKind]),
            types.number(labels.c.score, scale.low, scale.high),
            types.are("text", labels.c.by, labels.c.why),
            types.number(labels.c.at, 0.0, _YEAR_9999),
        ),
        opinions_seen: types.are("text", opinions_seen.c.by),
        leases: and_(types.are("text", leases.c.session, leases.c.by), types.are("real", leases.c.until)),
        attempts: types.are("text", attempts.c.by),
        replies: and_(
            types.are("text", *(replies.c[name] for name in ("answer", "explanation", "usage", "failure"))),
            or_(replies.c.score.is_(None), types.are("real", replies.c.score)),
        ),
    }
