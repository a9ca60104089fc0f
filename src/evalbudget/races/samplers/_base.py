"""What all samplers that race models share: rounds handed out cell by cell, failures, who is lost."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from evalbudget import cells as cells_
from evalbudget.cells import Planned
from evalbudget.design import Cell, Design, Reading
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.missing import Missing, as_missing
from evalbudget.outage import DOWN_AFTER
from evalbudget.races._draws import Chances, ModelDraws
from evalbudget.races.samplers._asked import Asked
from evalbudget.races.samplers._rounds import (
    ASKED,
    CLOSED,
    OPEN,
    READ,
    Note,
    Round,
    Stop,
    Table,
    draws_of,
)
from evalbudget.sampler import Kind, Option, Sampler, SamplerOptions
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

_DIGITS = 12


@dataclass(frozen=True)
class Cells:
    """Cells to read, in the order in which they are handed out.

    Attributes:
        model: of each cell, shape (k,).
        item: of each cell, shape (k,).
    """

    model: IntArray
    item: IntArray

    def __len__(self) -> int:
        return int(self.model.size)


class RacingOptions(SamplerOptions, total=False):
    """What every racing sampler takes besides its own arguments; see :class:`RacingSampler`."""

    score_range: tuple[float, float]
    missing: str


class BatchOptions(RacingOptions, total=False):
    """The same of those whose batch may be set."""

    batch: int


class RacingSampler(Sampler):
    """Asks items of several models, each cell at most once; an author writes :meth:`plan`.

    The next round is planned when every cell of the last one was read or closed, so that decisions are
    a function of the scores alone, whatever the concurrency and the order of completion. A failed cell is
    asked again as a new epoch until it is given up, since it fails more often than the model's others do
    (:mod:`evalbudget.closing`); a model whose last 8 cells were all given up is lost and leaves.

    Failures decide just as little by when they arrive: a round is handed out in passes
    (:mod:`evalbudget._passes`), each when every cell of the last one has come back.

    There are two ways to drive it, with the same decisions: a :class:`~evalbudget.book.Book`, and
    :meth:`next_cells`/:meth:`learn`, a whole round as arrays, where a missing score closes its cell at once.

    Scores are kept on the scale of [0, 1] that ``score_range`` maps to.

    Args:
        design: any number of models and items, one rater.
        batch: items a model is given at a time.
        paired: every model gets the items in the same order; else each in its own.
        score_range: smallest and largest possible score.
        missing: what an item that was given up for a model counts as (:class:`~evalbudget.missing.Missing`).
        common: see Sampler; the seed is of the orders and of ties.

    Raises:
        InvalidInputError: several raters, a batch below 1, a range that is empty or not finite.
    """

    kind = Kind.MODELS
    takes_one: ClassVar[bool] = False
    """Whether a single model is worth asking."""
    note_kinds: ClassVar[tuple[type, ...]] = (Note, Chances)
    """The author's own kind of note first, then what there is in it."""
    _common: ClassVar[Any] = BatchOptions

    def __init__(
        self,
        design: Design,
        *,
        batch: int = 64,
        paired: bool = True,
        score_range: tuple[float, float] = (0.0, 1.0),
        missing: str = Missing.WORST,
        options: Mapping[str, Option] = MappingProxyType({}),
        **common: Unpack[SamplerOptions],
    ) -> None:
        low, high = (float(bound) for bound in score_range)
        self.missing = as_missing(missing)
        own: dict[str, Option] = {"batch": batch, "score_range": (low, high), "missing": self.missing.value}
        super().__init__(design, options={**options, **own}, **common)
        if design.n_raters != 1:
            raise InvalidInputError(f"{self.name} races models under one rater; got {self._shape()}")
        if batch < 1:
            raise InvalidInputError(f"{self.name} got batch={batch}; give 1 item or more")
        if not (math.isfinite(high - low) and low < high):
            raise InvalidInputError(
                f"{self.name} got the score range {low:g} to {high:g}; give the smallest and largest score"
            )
        self.batch = batch
        self.score_range = (low, high)
        m, n = design.n_models, design.n_items
        self._n_models, self._n_items = m, n
        self._rank = np.random.default_rng([self.seed, 0]).permutation(m)  # who goes first among equals
        self._shared = np.random.default_rng([self.seed, 1]).permutation(n) if paired else None
        self._orders: dict[int, IntArray] = {}
        self._cells = Asked(m, n)
        self._requests_of = np.zeros(m, dtype=np.int64)
        self._unanswered = 0
        # finished rounds; what is in a table is not written to
        self._n_finished = 0
        self._drawn, self._n_read = np.zeros((2, m), dtype=np.int64)
        self._total = np.zeros(m)
        self._lost_at: IntArray = np.full(m, -1)
        self._note: Any = None  # of the last round that was begun
        self._planned: Round | Stop | None = None  # what comes after it, as far as is known now
        self._resumed: Any = None  # the note, as far as is known now, while a round is under way
        self._looked: tuple[Table, Any] | None = None  # of a book
        # the round that is under way
        self._round: Round | None = None
        self._rows = slice(0, 0)
        self._wanted = np.zeros(0, dtype=bool)
        self._unsettled = 0
        self.stop_reason: str | None = None

    # what an author writes

    @abstractmethod
    def plan(self, table: Table, last: Any) -> Round | Stop:
        """What to ask next, as a function of what is known and of nothing else.

        Args:
            table: every cell that was handed out, in order; all rounds are finished.
            last: the note of the round before; None at the start. Neither is written to.
        """

    def start(self, **more: Any) -> Any:
        """The note of a race that has not begun; override it to give what else the note has."""
        m = self._n_models
        return self.note_kinds[0](left_at=np.full(m, -1), lost=np.zeros(m, dtype=bool), **more)

    def estimates(self, table: Table, note: Any) -> FloatArray:
        """What the leader is chosen by, shape (n_models,); the mean of all scores so far."""
        count, total = table.so_far()
        with np.errstate(invalid="ignore"):
            return np.asarray(total / np.where(count > 0, count, np.nan))

    # what an author may use

    def resumed(self, table: Table, last: Any) -> Any:
        """The last note, or that of the start, once those who were lost since have left."""
        note = self.start() if last is None else last
        lost = (table.lost_at >= 0) & note.is_in
        if not lost.any():
            return note
        return note.but(left_at=np.where(lost, table.lost_at, note.left_at), lost=note.lost | lost)

    def why_over(self, table: Table, note: Note) -> str:
        """The reason if nobody is left to ask; empty otherwise."""
        if not note.is_in.any():
            return "every model was given up after repeated failures"
        if not self.drawable(table, note).size:
            return "every cell of the models in the race was read or closed"
        return ""

    def drawable(self, table: Table, note: Note) -> IntArray:
        """Models in the race that have items left."""
        return np.flatnonzero(note.is_in & (table.drawn < self._n_items))

    def first(self, value: FloatArray, among: BoolArray) -> int:
        """The largest value, ties by the seed."""
        best = np.flatnonzero(among & (value == value[among].max()))
        return int(best[np.argmin(self._rank[best])])

    def order(self, model: int, note: Any = None) -> IntArray:
        """The items in the order in which a model gets them."""
        if self._shared is not None:
            return self._shared
        if model not in self._orders:
            order = np.random.default_rng([self.seed, 2, model]).permutation(self._n_items)
            self._orders[model] = order.astype(np.int32)
        return self._orders[model]

    def next_items(self, table: Table, note: Any, models: IntArray, count: int | IntArray) -> Round:
        """The next ``count`` items of each model, as far as there are any; the first of every model first."""
        begin = table.drawn[models]
        counts = np.minimum(count, self._n_items - begin)
        if models.size == 1:
            items = self.order(int(models[0]), note)[begin[0] : begin[0] + counts[0]].astype(np.int64)
            return Round(np.full(items.size, models[0]), items, note)
        row = np.arange(int(counts.max(initial=0)))[:, None]
        taken = row < counts
        model = np.broadcast_to(models, taken.shape)[taken]
        if self._shared is not None:
            return Round(model, self.order(0, note)[(row + begin)[taken]], note)
        item = np.zeros(taken.shape, dtype=np.int64)
        for column, each in enumerate(models.tolist()):
            own = self.order(each)[begin[column] : begin[column] + counts[column]]
            item[: own.size, column] = own
        return Round(model, item[taken], note)

    def one_by_one(
        self, table: Table, note: Any, index: Callable[[], FloatArray], *, first: int = 1
    ) -> Round | Stop:
        """``first`` batches of every model, then one of the model with the largest index; nan comes first."""
        if reason := self.why_over(table, note):
            return Stop(reason, note)
        drawable = self.drawable(table, note)
        unread = drawable[table.drawn[drawable] == 0]
        if unread.size:
            return self.next_items(table, note, unread, first * self.batch)
        among = np.zeros(self._n_models, dtype=bool)
        among[drawable] = True
        value = index()
        best = self.first(np.where(np.isnan(value), np.inf, value), among)
        return self.next_items(table, note, np.array([best]), self.batch)

    # what hosts and backtests may look at

    @property
    def minimum_readings(self) -> int:
        """One batch of each model."""
        return self._n_models * min(self.batch, self._n_items)

    @property
    def eliminated(self) -> dict[int, int]:
        """Models that left the race, with the number of requests in all at which they did."""
        left_at = self._now()[1].left_at
        return {model: int(left_at[model]) for model in np.flatnonzero(left_at >= 0).tolist()}

    @property
    def lost(self) -> frozenset[int]:
        """Models that left because they were down or withdrawn; the policy did not find them worse."""
        return frozenset(np.flatnonzero(self._now()[1].lost).tolist())

    @property
    def proved_worse(self) -> frozenset[int]:
        """Models that the sampler itself has proved not to be the best of those that were not lost."""
        return frozenset()

    @property
    def proved_error(self) -> float:
        """Probability with which a given best model is ever among :attr:`proved_worse`; 0 without a proof.

        Of two exactly tied ones each may be, so that a proof needs twice as much in all: nobody who relies on
        it rules out further models by another rule that can err.
        """
        return 0.0

    @property
    def closed(self) -> tuple[Cell, ...]:
        """Cells given up after repeated failures, in order."""
        table = self._table()
        shut = table.state == CLOSED
        return tuple(sorted(map(Cell, table.model[shut].tolist(), table.item[shut].tolist())))

    def leader(self) -> int:
        """The model that the policy would name as the best now."""
        table, note = self._now()
        estimate = np.where(np.isnan(estimate := self.estimates(table, note)), -np.inf, estimate)
        remaining = note.is_in if note.is_in.any() else ~note.is_in
        return self.first(np.where(remaining, estimate, -np.inf), remaining)

    def n_read(self, model: int) -> int:
        """Scores of the model so far, those of the round under way included."""
        return int(self._table().so_far()[0][model])

    def scores_of(self, model: int) -> FloatArray:
        """Everything read of the model, shape (n_items,), in [0, 1]; nan where not read."""
        return self._table().scores(model, np.arange(self._n_items))

    def draws(self, model: int) -> ModelDraws:
        """The model's cells in draw order, for estimators."""
        return draws_of(*self._now(), model, cost=float(self._requests_of[model]))

    # what a book calls

    def decide(self, cells: cells_.Cells, last: Any) -> Planned | cells_.Stop:
        """The next round; see :class:`~evalbudget.sampler.Sampler`."""
        planned = self.plan(self._table_of(cells), last)
        if isinstance(planned, Stop):
            return cells_.Stop(planned.reason)
        return Planned(planned.model, planned.item, cells.n_rounds, planned.note, planned.propensity)

    def look(self, cells: cells_.Cells, last: Any) -> None:
        """For everything that tells how the race stands."""
        table = self._table_of(cells)
        note = self.plan(table, last).note if table.is_finished else self.resumed(table, last)
        self._looked = table, note
        self._requests_of = np.bincount(cells.model, cells.tries, self._n_models).astype(np.int64)

    def _table_of(self, cells: cells_.Cells) -> Table:
        low, high = self.score_range
        m, n = self._n_models, self._n_items
        row: IntArray = np.full((m, n), -1, dtype=np.int32)
        row[cells.model, cells.item] = np.arange(cells.model.size)
        state = np.array([OPEN, ASKED, READ, CLOSED], np.int8)[cells.state]  # OPEN, TAKEN, CAME, CLOSED
        value = np.clip((cells.value - low) / (high - low), 0.0, 1.0)
        begin = int(np.searchsorted(cells.round, cells.n_rounds - 1)) if cells.n_rounds else 0
        n_finished = cells.n_rounds - bool(cells.wanted[begin:].any())
        there = (cells.round < n_finished) & np.isfinite(value)
        returned = cells.returned
        return Table(
            model=cells.model,
            item=cells.item,
            round=cells.round,
            value=value,
            state=state,
            cost=_rounded(np.divide(cells.cost, returned, out=np.zeros(value.size), where=returned > 0))
            if self.weighs_costs
            else None,
            row=row,
            last=slice(begin, value.size),
            n_finished=n_finished,
            drawn=np.bincount(cells.model, minlength=m),
            n_read=np.bincount(cells.model[there], minlength=m),
            total=np.bincount(cells.model[there], value[there], m).astype(np.float64),
            lost_at=self._found_down(cells, state, n_finished),
            is_withdrawn=cells.withdrawn >= 0,
            asked=cells.asked,
        )

    def _found_down(self, cells: cells_.Cells, state: NDArray[np.int8], n_finished: int) -> IntArray:
        """Requests in all when the last cells of each model, or all of them, had failed for good; else -1."""
        found = cells.withdrawn.copy()
        asked = np.cumsum(np.bincount(cells.round, cells.tries, n_finished + 1))
        for model in np.unique(cells.model[state == CLOSED]).tolist():
            own = np.flatnonzero((cells.model == model) & (cells.round < n_finished))
            for number in np.unique(cells.round[own]).tolist():
                upto = own[cells.round[own] <= number]
                last = upto[-DOWN_AFTER:]
                enough = last.size == DOWN_AFTER or upto.size == self._n_items
                if enough and (state[last] == CLOSED).all():
                    at = int(asked[number])
                    found[model] = at if found[model] < 0 else min(at, found[model])
                    break
        return found

    # the way in for whole rounds

    def next_cells(self, limit: int | None = None) -> Cells | None:
        """Cells of the round under way, or of the next one; None when there is nothing left to ask.

        Args:
            limit: how many at most, for what is left of a budget; None for the whole round.

        Raises:
            SamplerError: cells of an earlier call are not answered yet.
        """
        if self._unanswered:
            raise SamplerError(f"sampler {self.name!r} was asked for a round while another is unanswered")
        under_way = self._current()
        if under_way is None:
            return None
        index = np.flatnonzero(self._wanted & (self._states == OPEN))[:limit]
        cells = Cells(under_way.model[index], under_way.item[index])
        self._cells.mark(self._rows.start + index, ASKED)
        self._asked_total += len(cells)
        self._unanswered += len(cells)
        self._requests_of += np.bincount(cells.model, minlength=self._n_models)
        return cells

    def learn(self, cells: Cells, values: FloatArray, costs: FloatArray | None = None) -> None:
        """Take in the scores of cells that :meth:`next_cells` returned.

        Args:
            cells: all or some of them.
            values: their scores, shape (k,); nan for a cell that has none, which closes it.
            costs: what the cells cost, shape (k,), 0 or more; 1 each if None. Only :meth:`weigh_costs` makes
                them matter.

        Raises:
            SamplerError: a cell is not waiting for its score.
            InvalidInputError: a score outside ``score_range``, or not one value, or cost, per cell.
        """
        values = np.asarray(values, dtype=float)
        costs = np.ones(len(cells)) if costs is None else np.asarray(costs, dtype=float)
        if values.shape != cells.model.shape or costs.shape != cells.model.shape:
            raise InvalidInputError(
                f"{len(cells)} cells, but values of shape {values.shape} and costs of shape {costs.shape}"
            )
        rows = self._cells.row[cells.model, cells.item]
        if (rows < 0).any() or not (self._cells.column("state")[rows] == ASKED).all():
            raise SamplerError(
                f"sampler {self.name!r} was told scores of cells that next_cells() did not give"
            )
        read, (low, high) = np.isfinite(values), self.score_range
        for extreme in (values[read].min(initial=low), values[read].max(initial=high)):
            self._check_range(float(extreme))
        scaled = np.where(read, np.clip((values - low) / (high - low), 0.0, 1.0), np.nan)
        if self.weighs_costs:
            self._cells.paid(rows, costs, self._n_finished)
        self._cells.mark(rows, np.where(read, READ, CLOSED), scaled)
        self._unanswered -= len(cells)
        self._unsettled -= len(cells)
        self._wanted[rows - self._rows.start] = False
        self._know_anew()

    def weigh_costs(self, budget: float | None = None) -> None:
        """Go by what the readings of each model cost, where the policy knows how; see Sampler."""
        super().weigh_costs(budget)
        self._cells.keep("cost", "n_paid")

    def check(self, reading: Reading) -> None:
        """Refuse a score outside ``score_range``.

        Raises:
            InvalidInputError: it is.
        """
        if reading.value is not None:
            self._check_range(reading.value, reading.request.cell)

    def _check_range(self, value: float, cell: Cell | None = None) -> None:
        low, high = self.score_range
        slack = 1e-9 * (high - low)
        if value < low - slack or value > high + slack:
            d = self.design
            where = (
                "" if cell is None else f" of model {d.models[cell.model]!r}, item {d.items[cell.item]!r},"
            )
            raise InvalidInputError(
                f"the score {value:g}{where} is outside the range {low:g} to {high:g} that "
                f"{self.name} reckons with; declare the smallest and largest possible score as score_range"
            )

    # rounds

    def _table(self) -> Table:
        if self._looked is not None:
            return self._looked[0]
        column = self._cells.column
        return Table(
            **{name: column(name) for name in ("model", "item", "round", "value", "state")},
            cost=column("cost") if self.weighs_costs else None,
            row=self._cells.row,
            last=self._rows,
            n_finished=self._n_finished,
            drawn=self._drawn,
            n_read=self._n_read,
            total=self._total,
            lost_at=self._lost_at,
            is_withdrawn=np.zeros(self._n_models, dtype=bool),
            asked=self.asked,
        )

    def _now(self) -> tuple[Table, Any]:
        """What is known, and the note of the round under way, or else of the one that comes next."""
        if self._looked is not None:
            return self._looked
        self._settle()
        table = self._table()
        if self._round is None:
            return table, self._next_plan(table).note
        if self._resumed is None:
            self._resumed = self.resumed(table, self._note)
        return table, self._resumed

    def _next_plan(self, table: Table) -> Round | Stop:
        if self._planned is None:
            self._planned = self.plan(table, self._note)
        return self._planned

    def _know_anew(self) -> None:
        """Drop what was made of what was known, which has changed."""
        self._planned = self._resumed = None

    def _current(self) -> Round | None:
        """The round under way; begins the next one when it is finished."""
        while self.stop_reason is None:
            self._settle()
            if self._round is not None:
                return self._round
            planned = self._next_plan(self._table())
            if isinstance(planned, Stop):
                self.stop_reason = planned.reason
            else:
                self._begin(planned)
        return None

    def _begin(self, planned: Round) -> None:
        self._round, self._note = planned, planned.note
        self._know_anew()
        self._rows = self._cells.begin(planned.model, planned.item, self._n_finished)
        self._drawn = self._drawn + np.bincount(planned.model, minlength=self._n_models)
        self._wanted = np.ones(planned.model.size, dtype=bool)
        self._unsettled = planned.model.size

    def _settle(self) -> None:
        """Take in the round under way if it is finished."""
        if self._unsettled or self._round is None:
            return
        model, states = self._round.model, self._states
        self._add_up(model, self._cells.column("value")[self._rows])
        self._n_finished += 1
        for each in np.unique(model[states == CLOSED]).tolist():
            if self._is_down(each):
                self._lose(each)
        self._round = None
        self._know_anew()

    def _add_up(self, model: IntArray, value: FloatArray) -> None:
        """Count scores of finished rounds."""
        read = np.isfinite(value)
        self._n_read = self._n_read + np.bincount(model[read], minlength=self._n_models)
        self._total = self._total + np.bincount(model[read], value[read], self._n_models)

    @property
    def _states(self) -> Any:
        """What became of the cells of the round under way."""
        return self._cells.column("state")[self._rows]

    def _is_down(self, model: int) -> bool:
        """Whether the last cells of the model, or all of them, failed for good."""
        last = self._table().rows_of(model)[-DOWN_AFTER:]
        return bool((self._cells.column("state")[last] == CLOSED).all()) and (
            last.size == DOWN_AFTER or int(self._drawn[model]) == self._n_items
        )

    def _lose(self, model: int) -> None:
        if self._lost_at[model] < 0:
            self._lost_at = self._lost_at.copy()
            self._lost_at[model] = self.asked


def _rounded(cost: FloatArray) -> FloatArray:
    """To 12 digits, so that the mean of equal costs is exactly that of one."""
    mantissa, exponent = np.frexp(cost)
    return np.asarray(np.ldexp(np.round(mantissa, _DIGITS), exponent))
