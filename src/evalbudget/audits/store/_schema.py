"""Tables of an audit store. All but leases and bill only ever grow; triggers see to it, whoever writes."""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
    text,
)
from sqlalchemy.sql import quoted_name
from sqlalchemy.types import TypeEngine

from evalbudget.audits._draw import Coin
from evalbudget.book import PAID_CALLS
from evalbudget.errors import AuditStoreError
from evalbudget.store import Layout
from evalbudget.store._layout import ONLY_ON

TABLES = MetaData()
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")
_REAL: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")
_FLAG = Boolean().with_variant(Integer(), "sqlite")
_COINS = ", ".join(f"'{coin.value}'" for coin in Coin)
_NOT_WANTED = "a label for a draw whose coin asked for none"


def _by(*checks: CheckConstraint) -> Column[str]:
    return Column(quoted_name("by", quote=True), Text, *checks, nullable=False)


def _somebody() -> CheckConstraint:
    return CheckConstraint("\"by\" <> ''")


meta = Table(
    "meta",
    TABLES,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

contexts = Table(
    "contexts",
    TABLES,
    Column("context", _NUMBER, primary_key=True, autoincrement=False),
    Column("item", Integer, nullable=False),
    Column("segment", Integer, nullable=False),
    Column("prompt", Text, nullable=False),
)

draws = Table(
    "draws",
    TABLES,
    Column("draw", _NUMBER, primary_key=True, autoincrement=False),
    Column("context", _NUMBER, ForeignKey(contexts.c.context), nullable=False),
    Column("model", Integer, nullable=False),
    Column("judge", _REAL, CheckConstraint("judge BETWEEN 0 AND 1")),
    Column("prediction", _REAL, CheckConstraint("prediction BETWEEN 0 AND 1"), nullable=False),
    Column("propensity", _REAL, CheckConstraint("propensity > 0 AND propensity <= 1"), nullable=False),
    Column("uniform", _REAL, CheckConstraint("uniform >= 0 AND uniform < 1"), nullable=False),
    Column("coin", Text, CheckConstraint(f"coin IN ({_COINS})"), nullable=False),
    Column("leader", Integer),
    Column("cap", _REAL, nullable=False),
    Column("policy", Integer, CheckConstraint("policy >= 0"), nullable=False),
    Column("wanted", _FLAG, CheckConstraint("wanted IN (FALSE, TRUE)"), nullable=False),
    Column("response", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", _REAL, nullable=False),
    UniqueConstraint("context", "model"),
)
Index("draws_wanted", draws.c.draw, sqlite_where=text("wanted"), postgresql_where=text("wanted"))
WANTED: ColumnElement[bool] = literal_column("draws.wanted")  # a comparison with 1 would not use the index
"""True of draws whose coin asked for a label."""

labels = Table(
    "labels",
    TABLES,
    Column("id", _NUMBER, primary_key=True),
    Column("draw", _NUMBER, ForeignKey(draws.c.draw), nullable=False),
    Column("score", _REAL, nullable=False),
    _by(_somebody()),
    Column("at", _REAL, nullable=False),
    Column(
        "kind",
        Text,
        CheckConstraint("kind IN ('first', 'correction', 'agrees', 'conflicts')"),
        nullable=False,
    ),
    Column("why", Text, nullable=False, server_default=""),
    sqlite_autoincrement=True,
)
_FIRST = text("kind = 'first'")
Index("one_first_label", labels.c.draw, unique=True, sqlite_where=_FIRST, postgresql_where=_FIRST)
Index("labels_of_draw", labels.c.draw, labels.c.id)

opinions_seen = Table(
    "opinions_seen",
    TABLES,
    Column("draw", _NUMBER, ForeignKey(draws.c.draw), primary_key=True, autoincrement=False),
    Column(quoted_name("by", quote=True), Text, primary_key=True),
    Column("at", _REAL, nullable=False),
)

leases = Table(
    "leases",
    TABLES,
    Column("draw", _NUMBER, ForeignKey(draws.c.draw), primary_key=True, autoincrement=False),
    Column("session", Text, nullable=False),
    _by(),
    Column("until", _REAL, nullable=False),
)

attempts = Table(
    "attempts",
    TABLES,
    Column("attempt", _NUMBER, primary_key=True),
    Column("draw", _NUMBER, ForeignKey(draws.c.draw), nullable=False),
    _by(_somebody()),
    Column("at", _REAL, nullable=False),
    sqlite_autoincrement=True,
)
Index("attempts_of_draw", attempts.c.draw)

replies = Table(
    "replies",
    TABLES,
    Column("attempt", _NUMBER, ForeignKey(attempts.c.attempt), primary_key=True, autoincrement=False),
    Column("score", _REAL),
    Column("answer", Text, nullable=False),
    Column("explanation", Text, nullable=False),
    Column("usage", Text, nullable=False),
    Column("failure", Text, nullable=False),
    Column("at", _REAL, nullable=False),
)

PAID_CALLS.to_metadata(TABLES).info[ONLY_ON] = "postgresql"  # beside a file there is a file

_ONLY_WANTED = {
    "sqlite": (
        "CREATE TRIGGER only_wanted BEFORE INSERT ON labels "
        "WHEN NOT EXISTS (SELECT 1 FROM draws WHERE draw = NEW.draw AND wanted) "
        f"BEGIN SELECT RAISE(ABORT, '{_NOT_WANTED}'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION only_wanted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS "
        "$$ BEGIN IF NOT EXISTS (SELECT 1 FROM draws WHERE draw = NEW.draw AND wanted) "
        f"THEN RAISE EXCEPTION '{_NOT_WANTED}'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER only_wanted BEFORE INSERT ON labels FOR EACH ROW EXECUTE FUNCTION only_wanted()",
    ),
}

LAYOUT = Layout(
    kind="audit store",
    tables=TABLES,
    version=1,
    application_id=0x65766275,  # "evbu"
    grows_only=("meta", "contexts", "draws", "labels", "opinions_seen", "attempts", "replies"),
    also=_ONLY_WANTED,
    error=AuditStoreError,
)
