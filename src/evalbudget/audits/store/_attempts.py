"""Times that a scorer was asked for a label: noted before it is asked, kept with all that it said."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from evalbudget.audits.store._database import Database, storable
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._draws import Draws
from evalbudget.audits.store._labels import Labels, labeller
from evalbudget.audits.store._record_types import Attempt, Reply
from evalbudget.errors import AuditStoreError, InvalidInputError


class Attempts:
    """Labels that are bought from a scorer.

    ::

        number = store.attempts.begin(draw, "scorer panel")
        reply = await ask()  # paid from here on, whatever becomes of it
        store.attempts.finish(number, reply)

    Args:
        db: the file.
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
        with self._db.write() as cursor:
            left = self.left
            if left is not None and left < 1:
                raise InvalidInputError(
                    f"all {self._design.config['max_labels']} labels allowed have been asked for, those that "
                    "failed included; label the rest by evalbudget audit serve"
                )
            cursor.execute(
                'INSERT INTO attempts (draw, "by", at) VALUES (?, ?, ?)',
                (draw, labeller(by), self._db.clock()),
            )
            return int(cursor.lastrowid or 0)

    def finish(self, attempt: int, reply: Reply) -> Reply:
        """Keep what a scorer said, and its score as a label; both are on disk when this returns.

        Returns:
            The reply; with its ``failure`` where there was no score, or one that is not on the scale.

        Raises:
            InvalidInputError: there is no such attempt, or it has a reply.
        """
        reply = self._judged(reply)
        usage = {model: dict(used) for model, used in reply.usage.items()}
        with self._db.write() as cursor:
            known = cursor.execute(
                'SELECT draw, "by" FROM attempts WHERE attempt = ? AND attempt NOT IN '
                "(SELECT attempt FROM replies)",
                (attempt,),
            ).fetchone()
            if known is None:
                raise InvalidInputError(f"attempt {attempt} was never begun, or has a reply already")
            cursor.execute(
                "INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    attempt,
                    reply.score,
                    storable(reply.answer),
                    storable(reply.explanation),
                    json.dumps(usage, sort_keys=True),
                    storable(reply.failure),
                    self._db.clock(),
                ),
            )
            if reply.score is not None and not reply.failure:
                self._labels.record(cursor, known[0], reply.score, known[1], None)
        return reply

    def all(self) -> list[Attempt]:
        """Every attempt, in the order in which they were begun."""
        rows = self._db.rows(
            'SELECT attempt, draw, "by", replies.attempt IS NOT NULL, score, answer, explanation, usage, '
            "failure FROM attempts LEFT JOIN replies USING (attempt) ORDER BY attempt"
        )
        try:
            return [
                Attempt(
                    number,
                    draw,
                    by,
                    Reply(score, answer, explanation, json.loads(usage), failure) if answered else None,
                )
                for number, draw, by, answered, score, answer, explanation, usage, failure in rows
            ]
        except (ValueError, RecursionError) as ex:
            raise AuditStoreError(
                f"{self._db.path} is damaged: the usage of a reply is not JSON ({ex}). Restore a copy"
            ) from ex

    @property
    def left(self) -> int | None:
        """How many labels may still be asked for; None without a limit.

        Attempts count whatever became of them, and so do labels that were given otherwise.
        """
        most = self._design.config.get("max_labels")
        if most is None:
            return None
        spent = self._db.rows(
            "SELECT (SELECT count(*) FROM attempts) + (SELECT count(*) FROM labels WHERE kind = 'first' AND "
            'NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.draw = labels.draw AND attempts."by" = '
            'labels."by"))'
        )[0][0]
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
