"""Times that a scorer was asked for a label: noted before it is asked, kept with all that it said."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, exists, func, insert, select

from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._draws import Draws
from evalbudget.audits.store._labels import Labels, labeller
from evalbudget.audits.store._record_types import Attempt, LabelKind, Reply
from evalbudget.audits.store._schema import attempts, labels, replies
from evalbudget.errors import AuditStoreError, InvalidInputError
from evalbudget.store import Database

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
