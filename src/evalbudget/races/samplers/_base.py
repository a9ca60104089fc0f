"""What all samplers that race models share: steps of cells, draw order, failures, who is in the race."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

import numpy as np

from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.missing import Missing, as_missing
from evalbudget.outage import DOWN_AFTER
from evalbudget.races._draws import ModelDraws
from evalbudget.races.samplers._step_order import Passes
from evalbudget.sampler import Eligible, Kind, Option, Sampler, SamplerOptions
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

_UNSEEN, _ASKED, _READ, _CLOSED = range(4)


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


@dataclass
class Step:
    """Cells that one decision asked for; the next decision waits until they are settled."""

    model: IntArray
    item: IntArray
    position: IntArray  # in the model's order

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
    """Asks items of several models, each cell at most once; an author writes :meth:`_plan`.

    The unit of decision is a step: some cells of some models, the next ones in each model's random order of
    items. The next step is planned when every cell of the last one was read or closed, so that decisions are
    a function of the scores alone, whatever the concurrency and the order of completion. A failed cell is
    asked again as a new epoch until it is given up, since it fails more often than the model's others do
    (:mod:`evalbudget.closing`); a model whose last 8 cells were all given up is lost and leaves.

    Failures decide just as little by when they arrive: a step is handed out in passes, each in the order of
    the step, and the next pass is put together when every cell of the last one has come back. What failed in
    it comes first, again and again, so that a budget that ends within the step leaves no gaps; then the cells
    not asked yet, per model at most as many as every model of the step has answered (16 at the start: a model
    that is down shall not be paid for a long step). A model whose last 8 cells of the step failed gets only
    these again, until one is answered or all have failed three times and the model is given up. So
    :meth:`ask` may return nothing while requests are pending.

    There are two ways to drive it, with the same decisions: ``ask``/``tell``, one request at a time, and
    :meth:`next_cells`/:meth:`learn`, a whole step as arrays, where a missing score closes its cell at once.

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
        self._eliminated: dict[int, int] = {}
        self._lost: set[int] = set()
        m, n = design.n_models, design.n_items
        self._n_models, self._n_items = m, n
        self._rank = np.random.default_rng([self.seed, 0]).permutation(m)  # who goes first among equals
        self._n_anchors = 0
        self._shared = np.random.default_rng([self.seed, 1]).permutation(n) if paired else None
        self._orders = None if paired else np.empty((m, n), dtype=np.int32)
        self._ordered = [paired] * m
        self._status = np.zeros((m, n), dtype=np.int8)
        self._value = np.zeros((m, n), dtype=np.float64)
        self._batch_of = np.zeros((m, n), dtype=np.int32)  # by position in the model's order
        self._requests_of = np.zeros(m, dtype=np.int64)
        self._failed_epochs: dict[tuple[int, int], int] = {}
        # what finished steps taught
        self._in = np.ones(m, dtype=bool)
        self._drawn = np.zeros(m, dtype=np.int64)
        self._n_read = np.zeros(m, dtype=np.int64)
        self._sum = np.zeros(m)
        self._steps = 0
        # the step that is under way
        self._step: Step | None = None
        self._in_step = np.zeros((m, n), dtype=np.bool_)
        self._unsettled = 0
        self._passes: Passes | None = None
        self._in_flight = [0] * m
        self._step_read = [0] * m
        self._step_closed = [0] * m
        self._given_up: set[int] = set()
        # once costs are weighed: of every cell its mean cost, over how many attempts that cost anything
        self._cost: Any = None
        self._n_paid: Any = None

    # what hosts and backtests may look at

    @property
    def minimum_readings(self) -> int:
        """One batch of each model."""
        return self._n_models * min(self.batch, self._n_items)

    @property
    def eliminated(self) -> dict[int, int]:
        """Models that left the race, with the number of requests in all at which they did."""
        self._wrap_up()
        return dict(self._eliminated)

    @property
    def lost(self) -> frozenset[int]:
        """Models that left because they were down or withdrawn; the policy did not find them worse."""
        self._wrap_up()
        return frozenset(self._lost)

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

    def leader(self) -> int:
        """The model that the policy would name as the best now."""
        self._wrap_up()
        estimate = np.where(np.isnan(estimate := self._estimates()), -np.inf, estimate)
        remaining = self._in if self._in.any() else ~self._in
        return self._first(np.where(remaining, estimate, -np.inf), remaining)

    def n_read(self, model: int) -> int:
        """Scores of the model so far, those of the step under way included."""
        return int(self._n_read[model]) + self._step_read[model]

    def scores_of(self, model: int) -> FloatArray:
        """Everything read of the model, shape (n_items,), in [0, 1]; nan where not read."""
        return self._scores_at(model, np.arange(self._n_items))

    def draws(self, model: int) -> ModelDraws:
        """The model's cells in draw order, for estimators."""
        n_drawn = int(self._drawn[model])
        item = self._order(model)[:n_drawn].astype(np.int64)
        status = self._status[model, item]
        open_cells = np.flatnonzero(status < _READ)
        end = int(open_cells[0]) if open_cells.size else n_drawn
        item, status = item[:end], status[:end]
        value = np.where(status == _READ, self._value[model, item], np.nan)
        k = min(self._n_anchors, end)
        answered = status[:k] == _READ
        batch = np.unique(self._batch_of[model, k:end], return_inverse=True)[1].astype(np.int64)
        frozen = self._predictions(model, item[k:], batch)
        return ModelDraws(
            n_items=self._n_items - int(k - answered.sum()),
            known=value[:k][answered],
            known_item=item[:k][answered],
            value=value[k:],
            item=item[k:],
            batch=batch,
            cost=float(self._requests_of[model]),
            prediction=frozen["prediction"],
            unseen_prediction_sum=frozen["unseen_prediction_sum"],
            unseen_prediction_sum_sq=frozen["unseen_prediction_sum_sq"],
        )

    # the way in for whole steps

    def next_cells(self, limit: int | None = None) -> Cells | None:
        """Cells of the step under way, or of the next one; None when there is nothing left to ask.

        Args:
            limit: how many at most, for what is left of a budget; None for the whole step.

        Raises:
            SamplerError: requests of :meth:`ask`, or cells of an earlier call, are not answered yet.
        """
        if any(self._in_flight):
            raise SamplerError(f"sampler {self.name!r} was asked for a step while another is unanswered")
        step = self._current()
        if step is None:
            return None
        left = self._in_step[step.model, step.item] & (self._status[step.model, step.item] == _UNSEEN)
        index = np.flatnonzero(left)[:limit]
        cells = Cells(step.model[index], step.item[index])
        self._status[cells.model, cells.item] = _ASKED
        self._asked_total += len(cells)
        requests = np.bincount(cells.model, minlength=self._n_models)
        self._requests_of += requests
        for model in np.flatnonzero(requests).tolist():
            self._in_flight[model] += int(requests[model])
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
        if self._pending or not (self._status[cells.model, cells.item] == _ASKED).all():
            raise SamplerError(
                f"sampler {self.name!r} was told scores of cells that next_cells() did not give"
            )
        read = np.isfinite(values)
        scaled = self._scaled(values[read])
        if self._cost is not None:
            self._count_cost(self._cost, cells.model, cells.item, costs)
        self._value[cells.model[read], cells.item[read]] = scaled
        self._status[cells.model, cells.item] = np.where(read, _READ, _CLOSED)
        self._in_step[cells.model, cells.item] = False
        self._unsettled -= len(cells)
        n_read = np.bincount(cells.model[read], minlength=self._n_models)
        n_all = np.bincount(cells.model, minlength=self._n_models)
        for model in np.flatnonzero(n_all).tolist():
            self._in_flight[model] -= int(n_all[model])
            self._step_read[model] += int(n_read[model])
            self._step_closed[model] += int(n_all[model] - n_read[model])
        self._closed.update(map(Cell, cells.model[~read].tolist(), cells.item[~read].tolist()))

    # what an author writes

    @abstractmethod
    def _plan(self) -> Step | None:
        """The next step, from finished steps only, changing nothing; None after setting ``stop_reason``."""

    def _begun(self, step: Step) -> None:
        """Freeze what must not know the step's scores; its cells count as drawn already."""

    def _finished(self, step: Step) -> None:
        """Take in a finished step; its counts and sums are up to date."""

    def _estimates(self) -> FloatArray:
        """What the leader is chosen by, shape (n_models,); the mean of all scores so far."""
        total, count = self._sum, self._n_read
        if self._step is not None:
            model, item = self._step.model, self._step.item
            read = self._status[model, item] == _READ
            total = total + np.bincount(
                model[read], weights=self._value[model[read], item[read]], minlength=self._n_models
            )
            count = count + np.bincount(model[read], minlength=self._n_models)
        with np.errstate(invalid="ignore"):
            return total / np.where(count > 0, count, np.nan)

    def _predictions(self, model: int, item: IntArray, batch: IntArray) -> dict[str, FloatArray]:
        """Prediction of each draw, and sums over the items not yet drawn before each batch."""
        none = np.zeros(int(batch[-1]) + 1 if batch.size else 0)
        return {
            "prediction": np.zeros(item.size),
            "unseen_prediction_sum": none,
            "unseen_prediction_sum_sq": none,
        }

    # what an author may use

    def _frozen(
        self, past: Sequence[tuple[FloatArray, float, float]], item: IntArray, batch: IntArray
    ) -> dict[str, FloatArray]:
        """As :meth:`_predictions`: of each batch its predictions, their sum over unread items, of squares."""
        used = past[: int(batch[-1]) + 1 if batch.size else 0]
        return {
            "prediction": np.concatenate([np.zeros(0), *(f for f, _, _ in used)])[: item.size],
            "unseen_prediction_sum": np.array([total for _, total, _ in used]),
            "unseen_prediction_sum_sq": np.array([squares for _, _, squares in used]),
        }

    def _means(self) -> FloatArray:
        """Mean score of each model over finished steps, shape (n_models,); nan without any."""
        with np.errstate(invalid="ignore"):
            return self._sum / np.where(self._n_read > 0, self._n_read, np.nan)

    def is_read(self, model: int, item: IntArray) -> BoolArray:
        """Which of the items have a score of this model."""
        read: BoolArray = self._status[model, item] == _READ
        return read

    def _settled(self, models: IntArray, items: IntArray) -> BoolArray:
        """Which cells were read or failed for good, shape (models, items)."""
        settled: BoolArray = self._status[np.ix_(models, items)] >= _READ
        return settled

    def _scores_at(self, model: int, item: IntArray) -> FloatArray:
        """Scores of the model on items, in [0, 1], shape as ``item``; nan where not read."""
        return np.where(self._status[model, item] == _READ, self._value[model, item], np.nan)

    def _scores_on(self, item: int) -> FloatArray:
        """Scores of all models on an item, in [0, 1], shape (n_models,); nan where not read."""
        everyone = np.arange(self._n_models)
        return np.where(self._status[everyone, item] == _READ, self._value[everyone, item], np.nan)

    def _remaining(self) -> IntArray:
        """Models in the race."""
        return np.flatnonzero(self._in)

    def _costs_of(self, step: Step) -> FloatArray:
        """What a request of each cell of a finished step cost, shape (k,); 0 where it is not known."""
        return np.zeros(len(step)) if self._cost is None else self._cost[step.model, step.item]

    def _drawable(self) -> IntArray:
        """Models in the race that have items left."""
        return np.flatnonzero(self._in & (self._drawn < self._n_items))

    def _first(self, value: FloatArray, among: BoolArray) -> int:
        """The largest value, ties by the seed."""
        best = np.flatnonzero(among & (value == value[among].max()))
        return int(best[np.argmin(self._rank[best])])

    def _draw(self, models: IntArray, count: int | IntArray) -> Step:
        """The next ``count`` items of each model, as far as there are any; the first of every model first."""
        counts = np.minimum(count, self._n_items - self._drawn[models])
        if models.size == 1:
            only, start, k = int(models[0]), int(self._drawn[models[0]]), int(counts[0])
            position = np.arange(start, start + k)
            return Step(np.full(k, only), self._order(only)[start : start + k].astype(np.int64), position)
        row = np.arange(int(counts.max(initial=0)))[:, None]
        taken = row < counts
        model = np.broadcast_to(models, taken.shape)[taken]
        position = (row + self._drawn[models])[taken]
        if self._shared is not None:
            item = self._shared[position]
        else:
            for each in models.tolist():
                self._order(each)
            assert self._orders is not None
            item = self._orders[model, position].astype(np.int64)
        return Step(model, item, position)

    def _largest(self, index: Callable[[], FloatArray], *, first: int = 1) -> Step | None:
        """``first`` batches of every model, then one of the model with the largest index; nan comes first."""
        if self._stop_if_over():
            return None
        drawable = self._drawable()
        unread = drawable[self._drawn[drawable] == 0]
        if unread.size:
            return self._draw(unread, first * self.batch)
        among = np.zeros(self._n_models, dtype=bool)
        among[drawable] = True
        value = index()
        first = self._first(np.where(np.isnan(value), np.inf, value), among)
        return self._draw(np.array([first]), self.batch)

    def _order(self, model: int) -> IntArray:
        if self._shared is not None:
            return self._shared
        assert self._orders is not None
        if not self._ordered[model]:
            self._orders[model] = np.random.default_rng([self.seed, 2, model]).permutation(self._n_items)
            self._ordered[model] = True
        order: IntArray = self._orders[model]
        return order

    def _leave(self, model: int) -> None:
        """Take a model out of the race for good."""
        if self._in[model]:
            self._in[model] = False
            self._eliminated[model] = self.asked

    def _lose(self, model: int) -> None:
        """Take a model out that the policy did not reject."""
        if self._in[model]:
            self._lost.add(model)
            self._leave(model)

    def _stop_if_over(self) -> bool:
        """Set the reason if nobody is left to ask."""
        if not self._in.any():
            self.stop_reason = "every model was given up after repeated failures"
        elif not self._drawable().size:
            self.stop_reason = "every cell of the models in the race was read or closed"
        return self.stop_reason is not None

    # steps

    def _current(self) -> Step | None:
        """The step under way; plans the next one when it is finished."""
        while self.stop_reason is None:
            self._wrap_up()
            if self._step is not None:
                return self._step
            planned = self._plan()
            if planned is None:
                return None  # ask() sees to it that there is a reason
            self._begin(planned)
        return None

    def _wrap_up(self) -> None:
        """Take in the step under way if it is finished."""
        if self._step is not None and not self._unsettled:
            self._finish(self._step)

    def _begin(self, step: Step) -> None:
        model, item = step.model, step.item
        self._step = step
        self._batch_of[model, step.position] = self._steps
        self._drawn += np.bincount(model, minlength=self._n_models)
        settled = self._status[model, item] >= _READ  # adopted before
        self._in_step[model, item] = ~settled
        self._passes = Passes(step.model, step.item, settled)
        self._unsettled = len(step) - int(settled.sum())
        if settled.any():
            read = self._status[model, item] == _READ
            for index in np.flatnonzero(settled).tolist():
                counts = self._step_read if read[index] else self._step_closed
                counts[int(model[index])] += 1
        self._begun(step)

    def _finish(self, step: Step) -> None:
        model, item = step.model, step.item
        read = self._status[model, item] == _READ
        value = self._value[model, item] * read
        self._sum += np.bincount(model, weights=value, minlength=self._n_models)
        self._n_read += np.bincount(model[read], minlength=self._n_models)
        self._step = None
        self._steps += 1
        involved = np.unique(model).tolist()
        lost = [each for each in involved if each in self._given_up or self._is_down(each)]
        for each in involved:
            self._step_read[each] = self._step_closed[each] = 0
        for each in lost:
            self._lose(each)
        self._finished(step)

    def _is_down(self, model: int) -> bool:
        """Whether the last cells of the model, or all of them, failed for good."""
        if not self._step_closed[model]:
            return False
        end = int(self._drawn[model])
        last = self._order(model)[max(0, end - DOWN_AFTER) : end]
        return bool((self._status[model, last] == _CLOSED).all()) and (
            last.size == DOWN_AFTER or end == self._n_items
        )

    def _give_up(self, model: int) -> None:
        """Do not ask the rest of the step of a model that is down; it leaves when the step is finished."""
        assert self._step is not None
        self._given_up.add(model)
        item = self._step.item[self._step.model == model]
        self._unsettled -= int(self._in_step[model, item].sum())
        self._in_step[model, item] = False

    # Sampler

    def adopt(self, cell: Cell) -> Request:
        """Count a cell that somebody else asked as asked; it is used once its model's order comes to it.

        Returns:
            The request to tell its reading against.

        Raises:
            InvalidInputError: the cell is not in the design, or was asked before, at whatever epoch.
        """
        if cell in self.design and self._status[cell.model, cell.item] != _UNSEEN:
            raise InvalidInputError(
                f"{cell} was asked before, so it cannot be adopted; {self.name} reads every cell once"
            )
        return super().adopt(cell)

    def withdraw(self, model: int) -> None:
        """Ask a model nothing more, for a reason outside the race: it leaves with what it has answered.

        Its requests that are not answered yet still wait for their readings.
        """
        if self._step is not None:
            self._give_up(model)
        self._lose(model)

    def tell(self, readings: Iterable[Reading]) -> None:
        """Take readings in, in any order, at any time.

        Raises:
            SamplerError: a reading answers a request that was never asked, or was told before.
            InvalidInputError: a score is outside ``score_range``; none of the readings is taken in.
        """
        told = tuple(readings)
        for reading in told:
            if reading.value is not None:
                self._scaled_score(reading.value, reading.request.cell)
        super().tell(told)

    def _next(self, eligible: Eligible | None) -> Cell | None:
        while (step := self._current()) is not None:
            assert self._passes is not None
            cell = self._waiting(step, self._passes, eligible)
            if cell is not None or self._unsettled:
                return cell
        return None

    def _waiting(self, step: Step, passes: Passes, eligible: Eligible | None) -> Cell | None:
        """The first cell of the pass that may be handed out now."""
        while True:
            held_back = False
            for model, item in passes.cells:
                if self._in_step[model, item] and self._status[model, item] == _UNSEEN:
                    cell = Cell(model, item, self._failed_epochs.get((model, item), 0))
                    if eligible is None or eligible(cell):
                        return cell
                    held_back = True
            status, waiting = self._status[step.model, step.item], self._in_step[step.model, step.item]
            in_flight = waiting & (status == _ASKED)
            # cells adopted before belong to the first pass, which need not wait for them
            if held_back or (passes.begun and in_flight.any()):
                return None
            if not in_flight.any():
                super()._give_up_and_reopen()
                status, waiting = self._status[step.model, step.item], self._in_step[step.model, step.item]
            for model, cells in passes.models_down(waiting, status == _READ, self._failures_of).items():
                self._close(cells)
                # fewer are too few to tell by: the model's next ones may be answered
                if len(cells) >= DOWN_AFTER or self._failures_of(model).answers_nothing:
                    self._give_up(model)
            waiting = self._in_step[step.model, step.item]
            first = self._drawn - np.bincount(step.model, minlength=self._n_models)
            if not passes.next(waiting, step.position - first[step.model], self.n_read, in_flight):
                return None

    def weigh_costs(self, budget: float | None = None) -> None:
        """Go by what the readings of each model cost, where the policy knows how; see Sampler."""
        super().weigh_costs(budget)
        if self._cost is None:
            self._cost = np.zeros((self._n_models, self._n_items), dtype=np.float64)
            self._n_paid = np.zeros((self._n_models, self._n_items), dtype=np.int32)

    def _paid(self, cell: Cell, cost: float) -> None:
        if self._cost is not None:
            self._count_cost(self._cost, np.array([cell.model]), np.array([cell.item]), np.array([cost]))

    def _count_cost(self, mean: Any, model: IntArray, item: IntArray, cost: FloatArray) -> None:
        model, item, cost = model[cost > 0.0], item[cost > 0.0], cost[cost > 0.0]
        self._n_paid[model, item] += 1
        # so that the mean of equal costs is exactly that cost
        mean[model, item] += (cost - mean[model, item]) / self._n_paid[model, item]

    def _asked(self, cell: Cell) -> None:
        self._status[cell.model, cell.item] = _ASKED
        if self._passes is not None:
            self._passes.cells.pop((cell.model, cell.item), None)
        self._requests_of[cell.model] += 1
        self._in_flight[cell.model] += 1
        if cell.epoch:
            self._failed_epochs[cell.model, cell.item] = cell.epoch

    def _learn(self, cell: Cell, value: float) -> None:
        model, item = cell.model, cell.item
        self._in_flight[model] -= 1
        self._value[model, item] = self._scaled_score(value, cell)
        self._settle_cell(model, item, _READ)

    def _failed(self, cell: Cell) -> None:
        model, item = cell.model, cell.item
        self._in_flight[model] -= 1
        self._failed_epochs[model, item] = cell.epoch + 1
        self._status[model, item] = _UNSEEN

    def _give_up_and_reopen(self) -> None:
        """Nothing: cells are given up between passes, so that who answers first decides nothing."""

    def _to_give_up(self, model: int) -> set[Cell]:
        # what followed from giving a cell up cannot be taken back
        return self._given_up_cells.get(model, set()) | self._failures[model].given_up()

    def _close(self, cells: Sequence[Cell]) -> None:
        """Give cells up, for another reason than that they fail more often than the model's others."""
        for cell in cells:
            self._closed.add(cell)
            self._given_up_cells.setdefault(cell.model, set()).add(cell)
            self._set_open(cell, False)

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        if not is_open:
            self._settle_cell(cell.model, cell.item, _CLOSED)

    def _settle_cell(self, model: int, item: int, status: int) -> None:
        self._status[model, item] = status
        if self._in_step[model, item]:
            self._in_step[model, item] = False
            self._unsettled -= 1
            counts = self._step_read if status == _READ else self._step_closed
            counts[model] += 1

    def _reads(self, key: Cell) -> int:
        return int(self._status[key.model, key.item] == _READ)

    def _scaled(self, values: FloatArray) -> FloatArray:
        """On the unit scale, shape as ``values``."""
        low, high = self.score_range
        slack = 1e-9 * (high - low)
        outside = (values < low - slack) | (values > high + slack)
        if outside.any():
            self._scaled_score(float(values[outside][0]))
        scaled: FloatArray = np.clip((values - low) / (high - low), 0.0, 1.0)
        return scaled

    def _scaled_score(self, value: float, cell: Cell | None = None) -> float:
        """One score on the unit scale; InvalidInputError if it is outside the range."""
        low, high = self.score_range
        slack = 1e-9 * (high - low)
        if value < low - slack or value > high + slack:
            where = (
                ""
                if cell is None
                else (f" of model {self.design.models[cell.model]!r}, item {self.design.items[cell.item]!r},")
            )
            raise InvalidInputError(
                f"the score {value:g}{where} is outside the range {low:g} to {high:g} that "
                f"{self.name} reckons with; declare the smallest and largest possible score as score_range"
            )
        return min(max((value - low) / (high - low), 0.0), 1.0)
