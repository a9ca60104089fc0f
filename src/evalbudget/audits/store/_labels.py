"""Labels of a store: every score that was given, every time that a scorer was asked, and which one counts."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, exists, func, insert, select

from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._draws import Draws
from evalbudget.audits.store._record_types import Attempt, Label, LabelKind, Opinion, Reply
from evalbudget.audits.store._schema import attempts, draws, labels, leases, opinions_seen, replies
from evalbudget.errors import AuditStoreError, InvalidInputError
from evalbudget.secrets import without_known
from evalbudget.statistics._agreement import Agreement, agreement
from evalbudget.store import Database

_LABELS = select(*(labels.c[name] for name in ("draw", "score", "by", "at", "kind", "why")))
_COUNTS = labels.c.kind.in_([LabelKind.FIRST.value, LabelKind.CORRECTION.value])


class Labels:
    """Scores given by humans.

    The first score of a draw counts, or its last correction. Whatever else is said of the draw later is kept
    beside it and reported.

    Args:
        db: of the store.
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
        with self._db.write() as connection:
            return self.record(connection, draw, score, by, at)

    def add_all(self, given: list[tuple[int, float, str, float | None]]) -> list[Label]:
        """Record draws' scores, labellers and times, all of them or none."""
        with self._db.write() as connection:
            return [self.record(connection, *label) for label in given]

    def correct(self, draw: int, score: float, by: str, why: str = "") -> Label:
        """Replace one's own label; both are kept.

        Possible until the next batch is drawn, for its policy rests on the label, and until the labeller has
        seen what the judge says: a label that follows the judge is no audit of it.

        Raises:
            InvalidInputError: it is too late, another one's label, or a score that is not on the scale.
        """
        value, by = self._design.scale.check(score), labeller(by)
        with self._db.write() as connection:
            known = self._of(connection, draw)
            if known is None:
                raise InvalidInputError(f"draw {draw} has no label to correct")
            if known.by != by:
                raise InvalidInputError(f"draw {draw} was labelled by {known.by}, who alone can correct it")
            if known.score == value:
                return Label(draw, value, by, known.at, LabelKind.KNOWN)
            if _has_seen(connection, draw, by):
                raise InvalidInputError(
                    f"{by} has seen what the judge says of draw {draw}; its label can no longer be corrected"
                )
            mine = connection.scalar(select(draws.c.policy).where(draws.c.draw == draw))
            if mine != connection.scalar(select(func.max(draws.c.policy))):
                raise InvalidInputError(
                    f"a later batch was drawn with the help of the label of draw {draw}; it can no longer be "
                    "corrected"
                )
            now, why = self._db.now(connection), self._db.storable(why)
            return _insert(connection, Label(draw, value, by, now, LabelKind.CORRECTION, why))

    def show_opinion(self, draw: int, by: str) -> Opinion:
        """What the judge says of a labelled draw; that ``by`` has seen it is recorded.

        Raises:
            InvalidInputError: the draw is not labelled yet.
        """
        by = labeller(by)
        with self._db.write() as connection:
            if self._of(connection, draw) is None:
                raise InvalidInputError(f"what the judge says of draw {draw} is hidden until it is labelled")
            if not _has_seen(connection, draw, by):
                seen = {"draw": draw, "by": by, "at": self._db.now(connection)}
                connection.execute(insert(opinions_seen), seen)
        return self._draws.opinion(draw)

    def counting(self) -> dict[int, Label]:
        """The label that counts of every labelled draw, in draw order."""
        rows = self._db.rows(_LABELS.where(_COUNTS).order_by(labels.c.draw, labels.c.id))
        return {row[0]: _label(row) for row in rows}

    def history(self) -> list[Label]:
        """Everything that was ever said, in the order it came in."""
        return [_label(row) for row in self._db.rows(_LABELS.order_by(labels.c.id))]

    def corrections(self) -> int:
        """How many labels were corrected so far."""
        query = select(func.count()).where(labels.c.kind == LabelKind.CORRECTION.value)
        return int(self._db.rows(query)[0][0])

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

    def record(self, connection: Connection, draw: int, score: float, by: str, at: float | None) -> Label:
        """As :meth:`add`, together with what else is written."""
        self._draws.task(draw)
        value, by = self._design.scale.check(score), labeller(by)
        at = self._db.now(connection) if at is None else at
        known = self._of(connection, draw)
        if known is None:
            return _insert(connection, Label(draw, value, by, at, LabelKind.FIRST))
        said = select(labels.c.score).where(labels.c.draw == draw, labels.c.by == by)
        if value in connection.scalars(said):
            return Label(draw, value, by, at, LabelKind.KNOWN)
        kind = LabelKind.AGREES if known.score == value else LabelKind.CONFLICTS
        return _insert(connection, Label(draw, value, by, at, kind))

    def _of(self, connection: Connection, draw: int) -> Label | None:
        counts = _LABELS.where(labels.c.draw == draw, _COUNTS).order_by(labels.c.id.desc()).limit(1)
        row = connection.execute(counts).first()
        return None if row is None else _label(row)


def _insert(connection: Connection, label: Label) -> Label:
    connection.execute(insert(labels), asdict(label) | {"kind": label.kind.value})
    connection.execute(delete(leases).where(leases.c.draw == label.draw))
    return label


def _has_seen(connection: Connection, draw: int, by: str) -> bool:
    seen = exists().where(opinions_seen.c.draw == draw, opinions_seen.c.by == by)
    return bool(connection.scalar(select(seen)))


def labeller(name: str) -> str:
    """A name that can stand in a report, without keys.

    Raises:
        InvalidInputError: it is empty, too long, or has control characters.
    """
    trimmed = str(without_known(name)).strip()
    if not trimmed:
        raise InvalidInputError("a label needs the name of who gave it")
    if len(trimmed) > 100 or not trimmed.isprintable():
        raise InvalidInputError(
            f"{trimmed[:40]!r} is no name for a labeller; use up to 100 printable characters"
        )
    return trimmed


def _label(row: Row[*tuple[Any, ...]]) -> Label:
    draw, score, by, at, kind, why = row
    return Label(draw, score, by, at, LabelKind(kind), why)


_HAS_REPLY = exists().where(replies.c.attempt == attempts.c.attempt).correlate(attempts)
_ALL = (
    select(attempts.c.attempt, attempts.c.draw, attempts.c.by, replies)
    .join(replies, isouter=True)
    .order_by(attempts.c.attempt)
)
_OF_LABEL = exists().where(attempts.c.draw == labels.c.draw, attempts.c.by == labels.c.by).correlate(labels)


class Attempts:
    """Labels that are bought from a scorer.

    ::

        number = store.attempts.begin(draw, "scorer panel")
        reply = await ask()  # paid from here on, whatever becomes of it
        store.attempts.finish(number, reply)

    Args:
        db: of the store.
        design: of the audit.
        draws: what may be labelled.
        labels: where scores go.
    """

    def __init__(self, db: Database, design: AuditDesign, draws: Draws, labels: Labels) -> None:
        self._db = db
        self._design = design
        self._draws = draws
        self._labels = labels

    def begin(self, draw: int, by: str) -> int:
        """Note that a scorer is about to be asked; on disk when this returns.

        Returns:
            The number of the attempt.

        Raises:
            InvalidInputError: the draw's coin asked for no label, or ``max_labels`` is used up.
        """
        self._draws.task(draw)
        with self._db.write() as connection:
            left = self.left
            if left is not None and left < 1:
                raise InvalidInputError(
                    f"all {self._design.config['max_labels']} labels allowed have been asked for, those that "
                    "failed included; label the rest by evalbudget audit serve"
                )
            begun = {"draw": draw, "by": labeller(by), "at": self._db.now(connection)}
            added = connection.execute(insert(attempts), begun).inserted_primary_key
            return int(added[0]) if added else 0

    def finish(self, attempt: int, reply: Reply) -> Reply:
        """Keep what a scorer said, and its score as a label; both are on disk when this returns.

        Returns:
            The reply; with its ``failure`` where there was no score, or one that is not on the scale.

        Raises:
            InvalidInputError: there is no such attempt, or it has a reply.
        """
        reply = self._judged(reply)
        usage = {model: dict(used) for model, used in reply.usage.items()}
        storable = self._db.storable
        with self._db.write() as connection:
            known = connection.execute(
                select(attempts.c.draw, attempts.c.by).where(attempts.c.attempt == attempt, ~_HAS_REPLY)
            ).first()
            if known is None:
                raise InvalidInputError(f"attempt {attempt} was never begun, or has a reply already")
            row = {
                "attempt": attempt,
                "score": reply.score,
                "answer": storable(reply.answer),
                "explanation": storable(reply.explanation),
                "usage": json.dumps(usage, sort_keys=True),
                "failure": storable(reply.failure),
                "at": self._db.now(connection),
            }
            connection.execute(insert(replies), row)
            if reply.score is not None and not reply.failure:
                self._labels.record(connection, known.draw, reply.score, known.by, None)
        return reply

    def all(self) -> list[Attempt]:
        """Every attempt, in the order in which they were begun."""
        try:
            return [_attempt(row) for row in self._db.rows(_ALL)]
        except (ValueError, RecursionError) as ex:
            raise AuditStoreError(
                f"{self._db.address} is damaged: the usage of a reply is not JSON ({ex}). Restore a copy"
            ) from ex

    @property
    def left(self) -> int | None:
        """How many labels may still be asked for; None without a limit.

        Attempts count whatever became of them, and so do labels that were given otherwise.
        """
        most = self._design.config.get("max_labels")
        if most is None:
            return None
        otherwise = select(func.count()).where(labels.c.kind == LabelKind.FIRST.value, ~_OF_LABEL)
        asked = select(func.count()).select_from(attempts)
        spent = self._db.rows(select(asked.scalar_subquery() + otherwise.scalar_subquery()))[0][0]
        return max(0, int(most) - int(spent))

    def _judged(self, reply: Reply) -> Reply:
        if reply.score is None or math.isnan(reply.score):
            return replace(reply, score=None, failure=reply.failure or "it gave no score")
        if reply.failure:
            return reply
        try:
            return replace(reply, score=self._design.scale.check(reply.score))
        except InvalidInputError as ex:
            return replace(reply, failure=str(ex))


def _attempt(row: Row[*tuple[Any, ...]]) -> Attempt:
    number, draw, by, replied, score, answer, explanation, usage, failure, _ = row
    if replied is None:
        return Attempt(number, draw, by, None)
    return Attempt(number, draw, by, Reply(score, answer, explanation, json.loads(usage), failure))
