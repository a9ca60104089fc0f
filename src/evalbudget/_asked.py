"""A sampler that is asked one request at a time, by hosts and replays that keep their own count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from evalbudget._failures import Failures
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.sampler import Option, Sampler

Eligible = Callable[[Cell], bool]


class AskedSampler(Sampler):
    """A driver calls :meth:`ask`, has the requests answered in any order and calls :meth:`tell`.

    What is learned must not depend on the order of ``tell``.
    """

    def __init__(
        self,
        design: Design,
        *,
        seed: int = 0,
        options: Mapping[str, Option] = MappingProxyType({}),
    ) -> None:
        super().__init__(design, seed=seed, options=options)
        self.stop_reason: str | None = None
        self._pending: dict[int, Request] = {}
        self._failures: dict[int, Failures] = {}  # of each model
        self._given_up_cells: dict[int, set[Cell]] = {}  # of each model
        self._changed: set[int] = set()  # models of which something came back since
        self._closed: set[Cell] = set()

    @property
    def pending(self) -> tuple[Request, ...]:
        """Requests asked and not yet told."""
        return tuple(self._pending.values())

    @property
    def due(self) -> Cell | None:
        """The cell that must be asked before any other, however dear it is; None where another one may be."""
        return None

    @property
    def closed(self) -> tuple[Cell, ...]:
        """Cells (at epoch 0) given up after repeated failures, in order."""
        self._give_up_and_reopen()
        return tuple(sorted(self._closed))

    # what drivers call

    def ask(self, n: int = 1, *, eligible: Eligible | None = None) -> tuple[Request, ...]:
        """Up to ``n`` requests; asking 8 equals asking 1 eight times.

        Args:
            n: how many requests at most.
            eligible: which cells may be asked now (the epoch is the sampler's to choose); None is all.

        Returns:
            The requests. Empty with requests pending means wait; empty with a ``stop_reason`` means done;
            empty under ``eligible`` means skip.

        Raises:
            SamplerError: nothing to ask, nothing pending, no stop reason: a bug in the sampler.
        """
        self._give_up_and_reopen()
        requests: list[Request] = []
        while len(requests) < n and self.stop_reason is None:
            cell = self._next(eligible)
            if cell is None:
                break
            requests.append(self._hand_out(cell))
        if not requests and n > 0 and eligible is None and not self._pending and self.stop_reason is None:
            raise SamplerError(
                f"sampler {self.name!r} neither asked nor stopped with nothing pending; "
                "_next must return a cell or set stop_reason"
            )
        return tuple(requests)

    def assume_phase(self, cell: Cell, phase: int) -> None:
        """Say in which phase an earlier run asked a cell, before it is adopted.

        Args:
            cell: about to be adopted.
            phase: its ``Request.phase``.
        """

    def adopt(self, cell: Cell) -> Request:
        """Count a cell that somebody else asked (a host's first epochs, an earlier run) as asked.

        Returns:
            The request to tell its reading against.

        Raises:
            InvalidInputError: the cell is not in the design.
        """
        if cell not in self.design:
            raise InvalidInputError(f"{cell} is not in the design of {self._shape()}")
        self._give_up_and_reopen()
        return self._hand_out(cell)

    def follow(self, cell: Cell) -> Request:
        """Ask what an earlier run asked here, under ``Allocation.PHASED``, perhaps with another budget.

        Returns:
            The request.

        Raises:
            InvalidInputError: the cell cannot have been asked here.
        """
        raise InvalidInputError(f"sampler {self.name!r} decides what is asked, and does not follow")

    def tell(self, readings: Iterable[Reading]) -> None:
        """Take readings in, in any order, at any time.

        Raises:
            SamplerError: a reading answers a request that was never asked, or was told before.
            InvalidInputError: a score cannot be reckoned with; none of the readings is taken in.
        """
        told = tuple(readings)
        for reading in told:
            self.check(reading)
        for reading in told:
            request = reading.request
            if self._pending.get(request.id) != request:
                raise SamplerError(
                    f"sampler {self.name!r} was told a reading of request {request.id} ({request.cell}), "
                    "which is not pending; tell each request that ask() returned exactly once"
                )
            del self._pending[request.id]
            if self.weighs_costs:
                self._paid(request.cell, reading.cost)
            if reading.value is None:
                self._count_failure(request.cell)
                self._failed(request.cell)
            else:
                self._count_read(request.cell)
                self._learn(request.cell, reading.value)

    # what an author writes

    @abstractmethod
    def _next(self, eligible: Eligible | None) -> Cell | None:
        """Choose the next cell without changing what is known; None to wait, or after setting stop_reason."""

    def _asked(self, cell: Cell) -> None:
        """Count a cell as asked; called for chosen and adopted cells alike."""

    def _learn(self, cell: Cell, value: float) -> None:
        """Take one finite value in."""

    def _paid(self, cell: Cell, cost: float) -> None:
        """Take in what a reading cost, with or without a score; called before it is learned from or failed.

        Only after :meth:`weigh_costs`. A cost may tell of the score it came with: what must not look at the
        score must not look at its cost either.
        """

    def _failed(self, cell: Cell) -> None:
        """Note that a reading failed; it may be asked again."""

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        """Stop asking this model, item and rater (``cell.epoch`` is 0), or go on after a late reading."""

    # bookkeeping

    def _hand_out(self, cell: Cell) -> Request:
        request = Request(self._asked_total, cell, self._propensity(cell), self._phase_of(cell))
        self._asked_total += 1
        self._pending[request.id] = request
        self._asked(cell)
        return request

    def _propensity(self, cell: Cell) -> float | None:
        return None

    def _phase_of(self, cell: Cell) -> int | None:
        return None

    def _count_failure(self, cell: Cell) -> None:
        self._failures_of(cell.model).failed(self.closes_as(cell), self._reads)
        self._changed.add(cell.model)

    def _count_read(self, cell: Cell) -> None:
        key = self.closes_as(cell)
        failures = self._failures_of(cell.model)
        failures.read(key)
        if failures.all_fails:  # nothing is given up, and nothing reopens, where none failed
            self._changed.add(cell.model)

    def _failures_of(self, model: int) -> Failures:
        if model not in self._failures:
            by_rater = {self.closes_as(Cell(rater=rater)) for rater in range(self.design.n_raters)}
            self._failures[model] = Failures(self.design.n_items * len(by_rater))
        return self._failures[model]

    @abstractmethod
    def _reads(self, key: Cell) -> int:
        """How often this model, item and rater was read so far."""

    def _give_up_and_reopen(self) -> None:
        """Close what the rule gives up now, and open what it does not any more.

        It is a function of what came back, so it is asked before a decision and not after every reading: the
        order of completion must not matter.
        """
        for model in self._changed:
            found, before = self._to_give_up(model), self._given_up_cells.get(model, set())
            for key in sorted(before ^ found):
                (self._closed.add if key in found else self._closed.remove)(key)
                self._set_open(key, key not in found)
            self._given_up_cells[model] = found
        self._changed.clear()

    def _to_give_up(self, model: int) -> set[Cell]:
        failures, d = self._failures[model], self.design
        if not failures.answers_nothing:
            return failures.given_up()
        everything = (Cell(model, item, 0, rater) for item in range(d.n_items) for rater in range(d.n_raters))
        return {self.closes_as(cell) for cell in everything}
