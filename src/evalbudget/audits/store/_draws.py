"""Draws of a store and what humans read of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, exists, func, insert, or_, select

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._record_types import Answer, LabelKind, LabelTask, Opinion
from evalbudget.audits.store._schema import WANTED, contexts, draws, labels
from evalbudget.errors import AuditStoreError, InvalidInputError
from evalbudget.store import Database

_WITH_CONTEXT = draws.join(contexts)
_TASK = select(
    *(draws.c.draw, contexts.c.item, contexts.c.segment, contexts.c.prompt, draws.c.response, draws.c.wanted)
).select_from(_WITH_CONTEXT)
_IN_CONTEXTS = ("item", "segment")
_DRAWS = (
    select(
        *(
            draws.c.draw if name == "index" else (contexts if name in _IN_CONTEXTS else draws).c[name]
            for name in AuditDraw.__slots__
        )
    )
    .select_from(_WITH_CONTEXT)
    .order_by(draws.c.draw)
)
_LARGEST = 2**63

_CORRECTED = select(func.count()).where(labels.c.kind == LabelKind.CORRECTION.value)
_LAST = select(func.max(draws.c.policy), _CORRECTED.scalar_subquery())
_KNOWN = select(contexts).where(contexts.c.context.between(bindparam("low"), bindparam("high")))
_THERE = select(draws.c.draw, draws.c.context, draws.c.model).where(
    or_(
        draws.c.draw.between(bindparam("first"), bindparam("last")),
        draws.c.context.between(bindparam("low"), bindparam("high")),
    )
)

Drawn = tuple[AuditDraw, Answer]
_About = tuple[int, int, str]
"""Item, segment and prompt of a context."""


class Draws:
    """Every answer that was judged, in draw order.

    Args:
        db: of the store.
        design: of the audit.
        store: unique id of the store.
    """

    def __init__(self, db: Database, design: AuditDesign, store: str) -> None:
        self._db = db
        self._design = design
        self._store = store

    def append(self, drawn: Iterable[tuple[AuditDraw, Answer]], corrections: int | None = None) -> None:
        """Record what was drawn, all of it or nothing; labellers are asked for it from now on.

        Contexts of a batch may come in any order; what is not needed any more may never come.

        Args:
            drawn: draws and what humans read of them.
            corrections: labels corrected when the draws were made; None if they rest on no labels.

        Raises:
            InvalidInputError: a draw that does not fit the design, with its index.
            AuditStoreError: a draw is there already, because another process added it, or a label was
                corrected meanwhile.
        """
        batch = list(drawn)
        if not batch:
            return
        spans = _spans([draw for draw, _ in batch])
        with self._db.write() as connection:
            policy, corrected = connection.execute(_LAST).one()
            if corrections not in (None, corrected):
                raise AuditStoreError(
                    f"a label in {self._db.address} was corrected since this run read it; start the run again"
                )
            for draw, _ in batch:
                self._check(draw, policy)
                policy = draw.policy
            self._check_new([draw for draw, _ in batch], connection.execute(_THERE, spans).all())
            new = self._new_contexts(batch, connection.execute(_KNOWN, spans).all())
            now = self._db.now(connection)
            if new:
                connection.execute(insert(contexts), new)
            connection.execute(insert(draws), [self._row(*each) | {"at": now} for each in batch])

    def _check_new(self, batch: Sequence[AuditDraw], rows: Iterable[Row[*tuple[Any, ...]]]) -> None:
        """Refuse draws that are there."""
        indices = {row.draw for row in rows}
        answers = {(row.context, row.model) for row in rows}
        for draw in batch:
            if draw.index in indices or (draw.context, draw.model) in answers:
                raise AuditStoreError(
                    f"{self._db.address} has draw {draw.index} already; another run continues this store. "
                    "Let one run draw at a time, then start again from the store"
                )
            indices.add(draw.index)
            answers.add((draw.context, draw.model))

    def _new_contexts(
        self, batch: Sequence[Drawn], rows: Iterable[Row[*tuple[Any, ...]]]
    ) -> list[dict[str, Any]]:
        """Contexts that are not there yet."""
        known: dict[int, _About] = {row.context: (row.item, row.segment, row.prompt) for row in rows}
        new = []
        for draw, answer in batch:
            about = (draw.item, draw.segment, self._db.storable(answer.prompt))
            if draw.context not in known:
                names = ("item", "segment", "prompt")
                new.append({"context": draw.context, **dict(zip(names, about, strict=True))})
            elif known[draw.context] != about:
                raise InvalidInputError(
                    f"draw {draw.index} is of context {draw.context}, which has another item, segment or "
                    "prompt; give every item and step a context of its own"
                )
            known[draw.context] = about
        return new

    def _row(self, draw: AuditDraw, answer: Answer) -> dict[str, Any]:
        values = {name: getattr(draw, name) for name in AuditDraw.__slots__ if name not in _IN_CONTEXTS}
        return values | {
            "draw": values.pop("index"),
            "judge": None if math.isnan(draw.judge) else draw.judge,
            "coin": draw.coin.value,
            "response": self._db.storable(answer.response),
            "reason": self._db.storable(answer.reason),
        }

    def all(self) -> tuple[AuditDraw, ...]:
        """Every draw in draw order."""
        return tuple(map(_from_row, self._db.rows(_DRAWS)))

    def tasks(self, *, labelled: bool | None = None) -> list[LabelTask]:
        """Draws whose coin asked for a label, in draw order.

        Args:
            labelled: only those with a label, or only those without.
        """
        query = _TASK.where(WANTED).order_by(draws.c.draw)
        if labelled is not None:
            query = query.where(has_label() if labelled else ~has_label())
        return [self._task(row) for row in self._db.rows(query)]

    def task(self, draw: int) -> LabelTask:
        """One draw as a labeller sees it.

        Raises:
            InvalidInputError: there is no such draw, or its coin asked for no label.
        """
        rows = self._db.rows(_TASK.where(draws.c.draw == draw)) if 0 <= draw < _LARGEST else []
        if not rows or not rows[0].wanted:
            raise InvalidInputError(_not_wanted(draw, bool(rows)))
        return self._task(rows[0])

    def answer(self, item: int, model: int) -> Answer | None:
        """What a system answered to an item, as it was first drawn; None if it was never asked."""
        rows = self._db.rows(
            select(contexts.c.prompt, draws.c.response, draws.c.reason)
            .select_from(_WITH_CONTEXT)
            .where(contexts.c.item == item, draws.c.model == model)
            .order_by(draws.c.draw)
            .limit(1)
        )
        return Answer(*rows[0]) if rows else None

    def opinion(self, draw: int) -> Opinion:
        """What the judge said of a draw.

        Raises:
            InvalidInputError: there is no such draw.
        """
        query = select(draws.c.judge, draws.c.reason, draws.c.model).where(draws.c.draw == draw)
        rows = self._db.rows(query)
        if not rows:
            raise InvalidInputError(_not_wanted(draw, False))
        judge, reason, model = rows[0]
        score = None if judge is None else self._design.scale.from_unit(judge)
        return Opinion(score, reason, self._design.models[model])

    def index(self, task: str) -> int:
        """The draw of a task id.

        Raises:
            InvalidInputError: the id is of another store, or of a draw whose coin asked for no label.
        """
        store, dash, number = task.strip().rpartition("-")
        if not dash or not (number.isascii() and number.isdecimal() and len(number) < 20):
            raise InvalidInputError(f"{task[:60]!r} is not the id of a task; it looks like {self._id(0)!r}")
        if store != self._store:
            raise InvalidInputError(
                f"task {task!r} is of another audit store; ids of this one begin with {self._store}-"
            )
        self.task(int(number))
        return int(number)

    def _id(self, draw: int) -> str:
        return f"{self._store}-{draw}"

    def _task(self, row: Row[*tuple[Any, ...]]) -> LabelTask:
        draw, item, segment, prompt, response, _ = row
        return LabelTask(
            self._id(draw), draw, self._design.items[item], self._design.segments[segment], prompt, response
        )

    def _check(self, draw: AuditDraw, policy: int | None) -> None:
        design, where = self._design, f"draw {draw.index}"
        if not 0 <= draw.index < _LARGEST:
            raise InvalidInputError(f"{where}: an index is a whole number of 0 or more")
        for name, value, names in (
            ("model", draw.model, design.models),
            ("item", draw.item, design.items),
            ("segment", draw.segment, design.segments),
            ("leader", draw.leader or 0, design.models),
        ):
            if not 0 <= value < len(names):
                raise InvalidInputError(f"{where} is of {name} {value}; the audit has {len(names)}")
        if not (math.isnan(draw.judge) or 0.0 <= draw.judge <= 1.0):
            raise InvalidInputError(
                f"{where} has judge score {draw.judge}, outside [0, 1]; rescale the judge's scores to the "
                f"scale of the labels ({design.scale})"
            )
        for fits, problem in (
            (0.0 <= draw.prediction <= 1.0, f"prediction {draw.prediction}, outside [0, 1]"),
            (0.0 < draw.propensity <= 1.0, f"propensity {draw.propensity}, outside (0, 1]"),
            (0.0 <= draw.uniform < 1.0, f"uniform {draw.uniform}, outside [0, 1)"),
            (not math.isnan(draw.cap), "cap nan; give inf for none"),
        ):
            if not fits:
                raise InvalidInputError(f"{where} has {problem}")
        if draw.policy < (policy or 0):
            raise InvalidInputError(f"{where} has policy version {draw.policy} after version {policy}")


def _from_row(row: Row[*tuple[Any, ...]]) -> AuditDraw:
    values = dict(zip(AuditDraw.__slots__, row, strict=True))
    judge = math.nan if values["judge"] is None else values["judge"]
    changed = {"judge": judge, "coin": Coin(values["coin"]), "wanted": bool(values["wanted"])}
    return AuditDraw(**values | changed)


def has_label() -> ColumnElement[bool]:
    """True of draws that somebody has labelled."""
    return exists().where(labels.c.draw == draws.c.draw).correlate(draws)


def _spans(batch: Sequence[AuditDraw]) -> dict[str, int]:
    """What lies among these draws and contexts may be there already."""
    indices, numbers = [draw.index for draw in batch], [draw.context for draw in batch]
    return {"first": min(indices), "last": max(indices), "low": min(numbers), "high": max(numbers)}


def _not_wanted(draw: int, exists: bool) -> str:
    if exists:
        return (
            f"the coin of draw {draw} asked for no label; a label given anyway would bias the estimate. "
            "Label what `evalbudget audit next` shows"
        )
    return f"draw {draw} was never drawn; a label for it would bias the estimate"
