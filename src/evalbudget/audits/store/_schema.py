"""Tables of an audit store. All but leases only ever grow; triggers see to it, whoever writes."""

from __future__ import annotations

APPLICATION_ID = 0x65766275  # "evbu": how a store is told from other SQLite files
VERSION = 2

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE contexts (
    context INTEGER PRIMARY KEY,
    item INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    prompt TEXT NOT NULL
);

CREATE TABLE draws (
    draw INTEGER PRIMARY KEY,
    context INTEGER NOT NULL REFERENCES contexts,
    model INTEGER NOT NULL,
    judge REAL CHECK (judge BETWEEN 0 AND 1),
    prediction REAL NOT NULL CHECK (prediction BETWEEN 0 AND 1),
    propensity REAL NOT NULL CHECK (propensity > 0 AND propensity <= 1),
    uniform REAL NOT NULL CHECK (uniform >= 0 AND uniform < 1),
    coin TEXT NOT NULL,
    leader INTEGER,
    cap REAL NOT NULL,
    policy INTEGER NOT NULL CHECK (policy >= 0),
    wanted INTEGER NOT NULL CHECK (wanted IN (0, 1)),
    response TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL,
    UNIQUE (context, model)
);

CREATE TABLE labels (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    draw INTEGER NOT NULL REFERENCES draws,
    score REAL NOT NULL,
    "by" TEXT NOT NULL CHECK ("by" <> ''),
    at REAL NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('first', 'correction', 'agrees', 'conflicts')),
    why TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX one_first_label ON labels (draw) WHERE kind = 'first';
CREATE INDEX labels_of_draw ON labels (draw, id);

CREATE TABLE opinions_seen (
    draw INTEGER NOT NULL REFERENCES draws,
    "by" TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (draw, "by")
);

CREATE TABLE leases (
    draw INTEGER PRIMARY KEY REFERENCES draws,
    session TEXT NOT NULL,
    "by" TEXT NOT NULL,
    until REAL NOT NULL
);

CREATE INDEX draws_wanted ON draws (draw) WHERE wanted;

CREATE TRIGGER only_wanted BEFORE INSERT ON labels
WHEN NOT EXISTS (SELECT 1 FROM draws WHERE draw = NEW.draw AND wanted)
BEGIN SELECT RAISE(ABORT, 'a label for a draw whose coin asked for none'); END;
"""


_ATTEMPTS = """
CREATE TABLE attempts (
    attempt INTEGER PRIMARY KEY AUTOINCREMENT,
    draw INTEGER NOT NULL REFERENCES draws,
    "by" TEXT NOT NULL CHECK ("by" <> ''),
    at REAL NOT NULL
);
CREATE INDEX attempts_of_draw ON attempts (draw);

CREATE TABLE replies (
    attempt INTEGER PRIMARY KEY REFERENCES attempts,
    score REAL,
    answer TEXT NOT NULL,
    explanation TEXT NOT NULL,
    usage TEXT NOT NULL,
    failure TEXT NOT NULL,
    at REAL NOT NULL
);
"""


def _grows_only(table: str) -> str:
    return "".join(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} of an audit store are only ever added'); END;\n"
        for verb in ("update", "delete")
    )


UPGRADES = {1: _ATTEMPTS + _grows_only("attempts") + _grows_only("replies")}
"""What stores of earlier versions lack, by their version."""

SCHEMA = (
    _TABLES
    + "".join(map(_grows_only, ("meta", "contexts", "draws", "labels", "opinions_seen")))
    + UPGRADES[1]
)
