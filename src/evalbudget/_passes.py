"""In which passes a round is handed out whose cells must all be settled.

A pass is put together when every cell of the one before has come back, as a function of what came back. So
who answers first, how many calls are made at once and how often a process begins anew decide nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evalbudget.cells import CAME, OPEN, Cells
from evalbudget.closing import answers_nothing, closed
from evalbudget.outage import DOWN_AFTER
from evalbudget.statistics._bounds import BoolArray, IntArray

_TRIES = 3
"""Of each of a model's last cells before it is taken to be down."""
_FIRST = 16
"""Cells of a model that has not answered anything yet."""


class Pass(NamedTuple):
    """Cells by their numbers.

    Attributes:
        close: to be given up for good.
        ask: to be handed out, in this order; with none to close either the round is over.
    """

    close: IntArray
    ask: IntArray


def next_pass(cells: Cells, n_items: int, *, breaks: bool) -> Pass:
    """What comes after a pass; nothing may be under way.

    What failed comes first, again and again, so that a budget that ends within the round leaves no gaps; then
    what was not asked yet. A cell is given up when it fails more often than the model's others do
    (:mod:`evalbudget.closing`).

    Args:
        cells: of rounds that wait for all; each model and item once.
        n_items: of the design.
        breaks: per model no more fresh cells are asked than every model of the round has answered (16 at the
            start), and a model whose last 8 cells of the round failed is a suspect: it gets only these again,
            until one is answered, or each has failed three times and the model is given up.
    """
    in_round = np.flatnonzero(cells.round == cells.n_rounds - 1)
    is_open = (cells.state == OPEN) & (cells.withdrawn[cells.model] < 0)
    shut = _hopeless(cells, n_items)
    if not breaks:
        waiting = in_round[is_open[in_round] & ~shut[in_round]]
        failed = waiting[cells.failures[waiting] > 0]
        return Pass(np.flatnonzero(shut), failed if failed.size else waiting)
    model, tried = cells.model[in_round], cells.tries[in_round] > cells.lost[in_round]
    tried |= cells.state[in_round] > OPEN
    suspects = _Suspects(cells, in_round, is_open, tried, shut, n_items)
    waiting = is_open[in_round] & ~shut[in_round]
    trusted = ~np.isin(model, suspects.models)
    failed, fresh = waiting & tried & (trusted | suspects.last), waiting & ~tried & trusted
    if failed.any():
        ask = failed
    elif fresh.any():
        place = place_of(model)
        answered = np.bincount(cells.model[cells.state == CAME], minlength=int(cells.model.max()) + 1)
        reach = int(place[tried].max(initial=-1)) + 1 + max(_FIRST, int(answered[model[fresh]].min()))
        ask = fresh & (place < max(reach, int(place[fresh].min()) + 1))
    else:  # suspects of whom nothing is left to try
        shut[in_round[waiting]] = True
        ask = np.zeros(in_round.size, dtype=bool)
    return Pass(np.flatnonzero(shut), in_round[ask])


class _Suspects:
    """Models whose last cells of the round failed; marks what is given up because of that."""

    def __init__(
        self,
        cells: Cells,
        in_round: IntArray,
        is_open: BoolArray,
        tried: BoolArray,
        shut: BoolArray,
        n_items: int,
    ) -> None:
        self.models: list[int] = []
        self.last: BoolArray = np.zeros(in_round.size, dtype=bool)
        model, fails = cells.model[in_round], cells.failures[in_round]
        waiting = is_open[in_round] & ~shut[in_round]
        for one in np.unique(model[waiting]).tolist():
            own = np.flatnonzero(model == one)
            last = own[tried[own]][-DOWN_AFTER:]
            short = last.size < DOWN_AFTER
            if (
                not last.size
                or (cells.state[in_round[last]] == CAME).any()
                or (short and not tried[own].all())
            ):
                continue
            self.models.append(one)
            self.last[last] = True
            silent = _answers_nothing(cells, one, n_items)
            often = fails[last].min() >= _TRIES and fails[last].sum() >= _TRIES * DOWN_AFTER
            if often or (short and silent):
                gone = own if silent or not short else last
                shut[in_round[gone[cells.state[in_round[gone]] == OPEN]]] = True


def _hopeless(cells: Cells, n_items: int) -> BoolArray:
    """Which open cells fail more often than the model's others do."""
    fails, came = cells.failures, cells.state == CAME
    shut = np.zeros(fails.size, dtype=bool)
    for model in np.unique(cells.model[(fails > 0) & (cells.state == OPEN)]).tolist():
        own = np.flatnonzero(cells.model == model)
        failed = np.bincount(cells.item[own], fails[own], n_items).astype(np.int64)
        called = failed + np.bincount(cells.item[own], came[own], n_items).astype(np.int64)
        shut[own] = closed(failed, called)[cells.item[own]] & (cells.state[own] == OPEN)
    return shut


def _answers_nothing(cells: Cells, model: int, n_items: int) -> bool:
    own = cells.model == model
    fails = cells.failures[own]
    return answers_nothing(
        int((cells.state[own] == CAME).sum()), int(fails.sum()), int((fails > 0).sum()), n_items
    )


def place_of(model: IntArray) -> IntArray:
    """Of each cell, how many cells of its model come before it, shape (k,)."""
    order = np.argsort(model, kind="stable")
    ordered = model[order]
    place = np.empty(model.size, dtype=np.int64)
    place[order] = np.arange(model.size) - np.searchsorted(ordered, ordered)
    return place
