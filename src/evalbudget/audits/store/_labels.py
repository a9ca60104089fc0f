"""Labels of a store: every score a human gave, and which one counts."""

from __future__ import annotations

import sqlite3

from evalbudget.audits.store._database import Database
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._draws import Draws
from evalbudget.audits.store._record_types import Label, LabelKind, Opinion
from evalbudget.errors import InvalidInputError
from evalbudget.statistics._agreement import Agreement, agreement

_COUNTS = "kind IN ('first', 'correction')"


class Labels:
    """Scores given by humans.

    The first score of a draw counts, or its last correction. Whatever else is said of the draw later is kept
    beside it and reported.

    Args:
        db: the file.
        design: of the audit.
        draws: what may be labelled.
    """

    def __init__(self, db: Database, design: AuditDesign, draws: Draws) -> None:
        self._db = db
        self._design = design
        self._draws = draws

    def add(self, draw: int, score: float, by: str, at: float | None = None) -> Label:
        """Record a score; on disk when this returns.

        Returns:
            The label, with what became of it: the first of its draw counts; another labeller's equal score
            agrees; a different score conflicts and changes nothing; what one has said before is known.

        Raises:
            InvalidInputError: the draw's coin asked for no label, the score is not on the scale, or nobody
                gave it.
        """
        with self._db.write() as cursor:
            return self.record(cursor, draw, score, by, at)

    def add_all(self, labels: list[tuple[int, float, str, float | None]]) -> list[Label]:
        """Record draws' scores, labellers and times, all of them or none."""
        with self._db.write() as cursor:
            return [self.record(cursor, *label) for label in labels]

    def correct(self, draw: int, score: float, by: str, why: str = "") -> Label:
        """Replace one's own label; both are kept.

        Possible until the next batch is drawn, for its policy rests on the label, and until the labeller has
        seen what the judge says: a label that follows the judge is no audit of it.

        Raises:
            InvalidInputError: it is too late, another one's label, or a score that is not on the scale.
        """
        value, by = self._design.scale.check(score), labeller(by)
        with self._db.write() as cursor:
            known = self._of(cursor, draw)
            if known is None:
                raise InvalidInputError(f"draw {draw} has no label to correct")
            if known.by != by:
                raise InvalidInputError(f"draw {draw} was labelled by {known.by}, who alone can correct it")
            if known.score == value:
                return Label(draw, value, by, known.at, LabelKind.KNOWN)
            if cursor.execute(
                'SELECT 1 FROM opinions_seen WHERE draw = ? AND "by" = ?', (draw, by)
            ).fetchone():
                raise InvalidInputError(
                    f"{by} has seen what the judge says of draw {draw}; its label can no longer be corrected"
                )
            mine, last = cursor.execute(
                "SELECT (SELECT policy FROM draws WHERE draw = ?), (SELECT max(policy) FROM draws)", (draw,)
            ).fetchone()
            if mine < last:
                raise InvalidInputError(
                    f"a later batch was drawn with the help of the label of draw {draw}; it can no longer be "
                    "corrected"
                )
            return self._insert(cursor, Label(draw, value, by, self._db.clock(), LabelKind.CORRECTION, why))

    def show_opinion(self, draw: int, by: str) -> Opinion:
        """What the judge says of a labelled draw; that ``by`` has seen it is recorded.

        Raises:
            InvalidInputError: the draw is not labelled yet.
        """
        by = labeller(by)
        with self._db.write() as cursor:
            if self._of(cursor, draw) is None:
                raise InvalidInputError(f"what the judge says of draw {draw} is hidden until it is labelled")
            cursor.execute(
                "INSERT OR IGNORE INTO opinions_seen VALUES (?, ?, ?)", (draw, by, self._db.clock())
            )
        return self._draws.opinion(draw)

    def counting(self) -> dict[int, Label]:
        """The label that counts of every labelled draw, in draw order."""
        rows = self._db.rows(
            f'SELECT draw, score, "by", at, kind, why FROM labels WHERE {_COUNTS} ORDER BY draw, id'
        )
        return {row[0]: _label(row) for row in rows}

    def history(self) -> list[Label]:
        """Everything that was ever said, in the order it came in."""
        return [
            _label(row)
            for row in self._db.rows('SELECT draw, score, "by", at, kind, why FROM labels ORDER BY id')
        ]

    def corrections(self) -> int:
        """How many labels were corrected so far."""
        return int(self._db.rows("SELECT count(*) FROM labels WHERE kind = 'correction'")[0][0])

    def conflicts(self) -> dict[int, tuple[Label, ...]]:
        """Draws with contradictory labels: the one that counts, then those that contradict it."""
        counting, found = self.counting(), dict[int, tuple[Label, ...]]()
        for label in self.history():
            kept = counting[label.draw]
            if label.kind in (LabelKind.CONFLICTS, LabelKind.AGREES) and label.score != kept.score:
                found[label.draw] = (*found.get(label.draw, (kept,)), label)
        return dict(sorted(found.items()))

    def agreement(self) -> Agreement | None:
        """How far people agree on draws that two or more labelled; None if there are none."""
        last = {(label.draw, label.by): label.score for label in self.history()}
        last |= {(label.draw, label.by): label.score for label in self.counting().values()}
        return agreement([draw for draw, _ in last], list(last.values()))

    def record(self, cursor: sqlite3.Cursor, draw: int, score: float, by: str, at: float | None) -> Label:
        """As :meth:`add`, together with what else is written."""
        self._draws.task(draw)
        value, by = self._design.scale.check(score), labeller(by)
        label = Label(draw, value, by, self._db.clock() if at is None else at, LabelKind.FIRST)
        known = self._of(cursor, draw)
        if known is None:
            return self._insert(cursor, label)
        said = cursor.execute('SELECT score FROM labels WHERE draw = ? AND "by" = ?', (draw, by)).fetchall()
        if (value,) in said:
            return Label(draw, value, by, label.at, LabelKind.KNOWN)
        kind = LabelKind.AGREES if known.score == value else LabelKind.CONFLICTS
        return self._insert(cursor, Label(draw, value, by, label.at, kind))

    def _of(self, cursor: sqlite3.Cursor, draw: int) -> Label | None:
        row = cursor.execute(
            f'SELECT draw, score, "by", at, kind, why FROM labels WHERE draw = ? AND {_COUNTS} '
            "ORDER BY id DESC LIMIT 1",
            (draw,),
        ).fetchone()
        return None if row is None else _label(row)

    def _insert(self, cursor: sqlite3.Cursor, label: Label) -> Label:
        cursor.execute(
            'INSERT INTO labels (draw, score, "by", at, kind, why) VALUES (?, ?, ?, ?, ?, ?)',
            (label.draw, label.score, label.by, label.at, label.kind.value, label.why),
        )
        cursor.execute("DELETE FROM leases WHERE draw = ?", (label.draw,))
        return label


def labeller(name: str) -> str:
    """A name that can stand in a report.

    Raises:
        InvalidInputError: it is empty, too long, or has control characters.
    """
    trimmed = name.strip()
    if not trimmed:
        raise InvalidInputError("a label needs the name of who gave it")
    if len(trimmed) > 100 or not trimmed.isprintable():
        raise InvalidInputError(
            f"{trimmed[:40]!r} is no name for a labeller; use up to 100 printable characters"
        )
    return trimmed


def _label(row: tuple[int, float, str, float, str, str]) -> Label:
    draw, score, by, at, kind, why = row
    return Label(draw, score, by, at, LabelKind(kind), why)
