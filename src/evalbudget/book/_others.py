"""What others did to a book, taken into a process's own copy of it; what cannot be is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evalbudget.book._copy import NUMBERS, Copy, Kept, is_adopted
from evalbudget.book._notes import unpacked
from evalbudget.book._statements import (
    ALL_WITHDRAWN,
    CHANGED,
    HOW_IT_STANDS,
    MISSED_PASSES,
    MISSED_ROUNDS,
)
from evalbudget.cells import CAME, TAKEN, Planned
from evalbudget.store._sql import Asked, Query

_COUNTS = ("rounds", "passes", "withdrawn", "calls", "changes")
_WHOLE = ("cell", *(name for name in Kept._fields if name not in ("value", "cost")))


def check_numbers(row: Any, *, whole: Sequence[str] = (), real: Sequence[str] = ()) -> None:
    """Refuse what is no number; SQLite keeps whatever somebody writes.

    Raises:
        ValueError: names it.
    """
    for name in (*whole, *real):
        value = getattr(row, name)
        if not isinstance(value, int if name in whole else int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}")


def asks(copy: Copy) -> Sequence[Query]:
    """What :func:`look` will ask, as far as that is known before."""
    return Query(HOW_IT_STANDS), Query(CHANGED, {"after": copy.about["changes"]})


def look(copy: Copy, asked: Asked) -> None:
    """Take in what others did.

    Raises:
        StoreError: what stands there cannot be.
    """
    about = next(iter(asked.rows(HOW_IT_STANDS)), None)
    try:
        if about is None:
            raise ValueError("its numbers are gone")
        check_numbers(about, whole=_COUNTS, real=("cap", "spent", "held"))
        _look(copy, asked, about)
        there = copy.n_rounds, copy.n_passes, len(copy.why_withdrawn)
        if (about.rounds, about.passes, about.withdrawn) != there:
            raise ValueError("rounds or passes of it are gone")
    except (LookupError, TypeError, ValueError, AttributeError) as ex:
        raise copy.damaged(ex) from ex
    copy.about.update({name: getattr(about, name) for name in NUMBERS})


def _look(copy: Copy, asked: Asked, about: Any) -> None:
    rows = asked.rows
    if about.rounds > copy.n_rounds:
        for row in rows(MISSED_ROUNDS, {"after": copy.n_rounds}):
            planned = Planned(*unpacked(row.planned, ()))
            note = None if row.note is None else unpacked(row.note, copy.sampler.note_kinds)
            copy.begin(planned if note is None else planned._replace(note=note))
            if copy.n_rounds == about.rounds and row.note is None and not is_adopted(planned):
                raise ValueError("the note of its last round is gone")
    if about.passes > copy.n_passes:
        for row in rows(MISSED_PASSES, {"after": copy.n_passes}):
            copy.begin_pass(unpacked(row.cells, ()))
    if about.withdrawn > len(copy.why_withdrawn):
        for row in rows(ALL_WITHDRAWN):
            copy.withdraw(row.model, row.asked, row.why)
    if about.changes > copy.about["changes"]:
        _take_in(copy, rows(CHANGED, {"after": copy.about["changes"]}))


def _take_in(copy: Copy, rows: Sequence[Any]) -> None:
    """Cells that others changed."""
    if not rows:
        return
    columns = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
    are_whole = all(set(map(type, columns[name])) == {int} for name in _WHOLE)
    if not (are_whole and set(map(type, columns["cost"])) == {float}):
        for row in rows:
            check_numbers(row, whole=_WHOLE, real=("cost",))
    for row in rows:
        _check(copy, row)
    copy.set_all(columns.pop("cell"), columns)


def _check(copy: Copy, row: Any) -> None:
    cell, state, tries, value = row.cell, row.state, row.tries, row.value
    fits = 0 <= cell < len(copy) and state in range(4) and 0 <= row.lost <= tries
    if not fits or tries < (state in (TAKEN, CAME)) or row.attempt < 0 < tries:
        raise ValueError(f"cell {cell} is in state {state} after {tries} tries")
    if (state == CAME) != (value is not None and math.isfinite(value)) or not math.isfinite(row.cost):
        raise ValueError(f"cell {cell} is in state {state} with the score {value} for {row.cost}")
