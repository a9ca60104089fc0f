"""The tables of a kind of store, and which of them only grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from sqlalchemy import Connection, Dialect, MetaData, text
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable

from evalbudget.errors import EvalbudgetError, StoreError

ONLY_ON = "only_on"
"""Key in a table's ``info``: the dialect whose stores alone have it."""
_FUNCTION = "grows_only"


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of one kind of store.

    Attributes:
        kind: of store, for people: ``audit store``.
        tables: of it; one of them, ``meta``, has the columns ``key`` and ``value``.
        version: of the tables.
        application_id: by which an SQLite file of this kind is known.
        grows_only: tables whose rows are never changed nor deleted; triggers see to it, whoever writes.
        also: further statements that make such a store, by the name of the dialect.
        error: what is raised about such stores.
        is_busy: written many times a second; an SQLite file has its latest changes beside it while it is
            open, and what a machine that loses power was about to write may be gone.
        for_one: one process at a time has it open, and nobody else can look into an SQLite file meanwhile. It
            needs no memory that processes share, so it may be on a network disk.
        is_private: a file is its owner's alone, unless its folder is meant for several.
        remedy: what to do about one that is damaged, or something else.
    """

    kind: str
    tables: MetaData
    version: int
    application_id: int
    grows_only: tuple[str, ...]
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: type[EvalbudgetError] = StoreError
    is_busy: bool = False
    for_one: bool = False
    is_private: bool = True
    remedy: str = ""

    @property
    def advice(self) -> str:
        """The remedy, as the end of what is said of such a store."""
        return f"; {self.remedy}" if self.remedy else ""

    def make(self, connection: Connection) -> None:
        """All tables of a new store, and their triggers."""
        dialect = connection.dialect.name
        names, statements = _tables_of(self.tables, dialect)
        for statement in statements:
            connection.exec_driver_sql(statement)
        if dialect == "postgresql":
            connection.execute(
                text(
                    f"CREATE FUNCTION {_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS "
                    "$$ BEGIN RAISE EXCEPTION '% of a store are only ever added', TG_TABLE_NAME; END $$"
                )
            )
        _protect(connection, [name for name in names if name in self.grows_only])
        for statement in self.also.get(dialect, ()):
            connection.exec_driver_sql(statement)


@cache  # a process may make a store in memory for each of many races
def _tables_of(tables: MetaData, dialect: str) -> tuple[list[str], list[str]]:
    """Names of the tables that such a database has, and what makes them."""
    own = [each for each in tables.sorted_tables if each.info.get(ONLY_ON, dialect) == dialect]
    speech: Dialect = registry.load(dialect)()
    made: list[CreateTable | CreateIndex] = []
    for each in own:
        made += [CreateTable(each), *map(CreateIndex, sorted(each.indexes, key=lambda one: str(one.name)))]
    return [each.name for each in own], [str(part.compile(dialect=speech)) for part in made]


def _protect(connection: Connection, names: Iterable[str]) -> None:
    """Let these tables only grow."""
    for name in names:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(
                f"CREATE TRIGGER {name}_grows BEFORE UPDATE OR DELETE ON {name} "
                f"FOR EACH ROW EXECUTE FUNCTION {_FUNCTION}()"
            )
            connection.exec_driver_sql(
                f"CREATE TRIGGER {name}_stays BEFORE TRUNCATE ON {name} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {_FUNCTION}()"
            )
            continue
        for verb in ("update", "delete"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER {name}_no_{verb} BEFORE {verb} ON {name} "
                f"BEGIN SELECT RAISE(ABORT, '{name} of a store are only ever added'); END"
            )
