"""Draws of a store and what humans read of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.store._database import Database, storable
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._record_types import Answer, LabelTask, Opinion
from evalbudget.errors import AuditStoreError, InvalidInputError

_INSERT = (
    "INSERT INTO draws VALUES (:draw, :context, :model, :judge, :prediction, :propensity, :uniform, :coin, "
    ":leader, :cap, :policy, :wanted, :response, :reason, :at)"
)
_TASK = "SELECT draw, item, segment, prompt, response, wanted FROM draws JOIN contexts USING (context) "
_DRAWS = (  # columns in the order of AuditDraw's fields
    "SELECT draw, context, model, item, segment, judge, prediction, propensity, uniform, coin, leader, cap, "
    "policy, wanted FROM draws JOIN contexts USING (context) ORDER BY draw"
)
_LARGEST = 2**63


class Draws:
    """Every answer that was judged, in draw order.

    Args:
        db: the file.
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
        now = self._db.clock()
        with self._db.write() as cursor:
            policy = cursor.execute("SELECT max(policy) FROM draws").fetchone()[0]
            query = "SELECT count(*) FROM labels WHERE kind = 'correction'"
            if corrections not in (None, cursor.execute(query).fetchone()[0]):
                raise AuditStoreError(
                    f"a label in {self._db.path} was corrected since this run read it; start the run again"
                )
            contexts: dict[int, tuple[int, int, str]] = {}
            for draw, answer in drawn:
                self._check(draw, policy)
                if cursor.execute(
                    "SELECT 1 FROM draws WHERE draw = ? OR (context = ? AND model = ?)",
                    (draw.index, draw.context, draw.model),
                ).fetchone():
                    raise AuditStoreError(
                        f"{self._db.path} has draw {draw.index} already; another run continues this store. "
                        "Let one run draw at a time, then start again from the store"
                    )
                about = (draw.item, draw.segment, storable(answer.prompt))
                known = (
                    contexts.get(draw.context)
                    or cursor.execute(
                        "SELECT item, segment, prompt FROM contexts WHERE context = ?", (draw.context,)
                    ).fetchone()
                )
                if known is None:
                    cursor.execute("INSERT INTO contexts VALUES (?, ?, ?, ?)", (draw.context, *about))
                elif tuple(known) != about:
                    raise InvalidInputError(
                        f"draw {draw.index} is of context {draw.context}, which has another item, segment or "
                        "prompt; give every item and step a context of its own"
                    )
                contexts[draw.context] = about
                texts = {"response": storable(answer.response), "reason": storable(answer.reason)}
                values = _to_row(draw) | texts | {"at": now}
                cursor.execute(_INSERT, values)
                policy = draw.policy

    def all(self) -> tuple[AuditDraw, ...]:
        """Every draw in draw order."""
        return tuple(map(_from_row, self._db.rows(_DRAWS)))

    def count(self) -> int:
        """Number of draws."""
        return int(self._db.rows("SELECT count(*) FROM draws")[0][0])

    def tasks(self, *, labelled: bool | None = None) -> list[LabelTask]:
        """Draws whose coin asked for a label, in draw order.

        Args:
            labelled: only those with a label, or only those without.
        """
        which = {
            None: "",
            True: "AND EXISTS (SELECT 1 FROM labels WHERE labels.draw = draws.draw)",
            False: "AND NOT EXISTS (SELECT 1 FROM labels WHERE labels.draw = draws.draw)",
        }[labelled]
        rows = self._db.rows(f"{_TASK} WHERE wanted {which} ORDER BY draw")
        return [self._task(row) for row in rows]

    def task(self, draw: int) -> LabelTask:
        """One draw as a labeller sees it.

        Raises:
            InvalidInputError: there is no such draw, or its coin asked for no label.
        """
        rows = self._db.rows(f"{_TASK} WHERE draw = ?", draw) if 0 <= draw < _LARGEST else []
        if not rows or not rows[0][-1]:
            raise InvalidInputError(_not_wanted(draw, bool(rows)))
        return self._task(rows[0])

    def answer(self, item: int, model: int) -> Answer | None:
        """What a system answered to an item, as it was first drawn; None if it was never asked."""
        rows = self._db.rows(
            "SELECT prompt, response, reason FROM draws JOIN contexts USING (context) "
            "WHERE item = ? AND model = ? ORDER BY draw LIMIT 1",
            item,
            model,
        )
        return Answer(*rows[0]) if rows else None

    def opinion(self, draw: int) -> Opinion:
        """What the judge said of a draw.

        Raises:
            InvalidInputError: there is no such draw.
        """
        rows = self._db.rows("SELECT judge, reason, model FROM draws WHERE draw = ?", draw)
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

    def _task(self, row: Any) -> LabelTask:
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
        ):
            if not 0 <= value < len(names):
                raise InvalidInputError(f"{where} is of {name} {value}; the audit has {len(names)}")
        if draw.leader is not None and not 0 <= draw.leader < len(design.models):
            raise InvalidInputError(
                f"{where} has leader {draw.leader}; the audit has {len(design.models)} models"
            )
        if not (math.isnan(draw.judge) or 0.0 <= draw.judge <= 1.0):
            raise InvalidInputError(
                f"{where} has judge score {draw.judge}, outside [0, 1]; rescale the judge's scores to the "
                f"scale of the labels ({design.scale})"
            )
        if not 0.0 <= draw.prediction <= 1.0:
            raise InvalidInputError(f"{where} has prediction {draw.prediction}, outside [0, 1]")
        if not 0.0 < draw.propensity <= 1.0:
            raise InvalidInputError(f"{where} has propensity {draw.propensity}, outside (0, 1]")
        if not 0.0 <= draw.uniform < 1.0:
            raise InvalidInputError(f"{where} has uniform {draw.uniform}, outside [0, 1)")
        if math.isnan(draw.cap):
            raise InvalidInputError(f"{where} has cap nan; give inf for none")
        if draw.policy < (policy or 0):
            raise InvalidInputError(f"{where} has policy version {draw.policy} after version {policy}")


def _to_row(draw: AuditDraw) -> dict[str, Any]:
    return asdict(draw) | {"draw": draw.index, "coin": draw.coin.value, "wanted": int(draw.wanted)}


def _from_row(row: Any) -> AuditDraw:
    values = dict(zip(AuditDraw.__slots__, row, strict=True))
    judge = math.nan if values["judge"] is None else values["judge"]
    changed = {"judge": judge, "coin": Coin(values["coin"]), "wanted": bool(values["wanted"])}
    return AuditDraw(**values | changed)


def _not_wanted(draw: int, exists: bool) -> str:
    if exists:
        return (
            f"the coin of draw {draw} asked for no label; a label given anyway would bias the estimate. "
            "Label what `evalbudget audit next` shows"
        )
    return f"draw {draw} was never drawn; a label for it would bias the estimate"
