"""The Sampler: what to ask next. Pure, synchronous, deterministic given (config, seed, sequence of calls)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from inspect import Signature, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

from evalbudget._failures import Failures
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError, SamplerError

if TYPE_CHECKING:  # numpy takes longer to import than samplers do
    from evalbudget._passes import Pass
    from evalbudget.cells import Cells, Planned, Stop, Wait

Eligible = Callable[[Cell], bool]
Option = int | float | str | bool | None | tuple[float, ...]


class Allocation(StrEnum):
    """How the number of readings of an item depends on the item's own scores: what estimators must know."""

    FIXED = "fixed"
    """Counts do not depend on scores."""
    PHASED = "phased"
    """Counts depend on the scores of earlier phases, never on those of the same one (``Request.phase``): each
    phase's own mean is unbiased, and so is what phases are folded into."""
    ADAPTIVE = "adaptive"
    """Counts depend on the same scores that are averaged: only the first ``fixed_repeats`` are unbiased."""


class Kind(StrEnum):
    """What a sampler spreads its budget over; with the name it identifies a registered sampler."""

    REPEATS = "repeats"
    """Repeats of the items of one model."""
    MODELS = "models"
    """Items of several models, each cell once: which model is best."""
    PAIRS = "pairs"
    """Answers of two models to an item, in one order or the other: which is preferred."""


class SamplerOptions(TypedDict, total=False):
    """What every sampler takes besides its own arguments; see :class:`Sampler`."""

    seed: int


class Sampler(ABC):
    """Decides which score to buy next.

    A driver calls :meth:`ask`, has the requests answered in any order and calls :meth:`tell`. An author
    writes :meth:`_next` (choose a cell, change nothing), :meth:`_asked` (count it) and :meth:`_learn` (take a
    value in); what is learned must not depend on the order of ``tell``.

    Args:
        design: what can be asked.
        seed: breaks ties and drives random choices.
        options: the configuration to write into journals; JSON values.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = Kind.REPEATS
    note_kinds: ClassVar[tuple[type, ...]] = ()
    """Records that notes of this sampler's rounds are made of."""
    waits_for_all: ClassVar[bool] = True
    """Whether a round is planned only when every cell of the one before is settled."""
    allocation: Allocation = Allocation.ADAPTIVE  # what may be assumed of a sampler that says nothing

    __signature__: ClassVar[Signature]
    _common: ClassVar[Any] = SamplerOptions

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__signature__ = _signature(cls)

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse arguments that the class does not take; they would go up unseen with ``**common``."""
        try:
            signature(cls).bind_partial(*given, **named)
        except TypeError as ex:
            raise TypeError(f"{cls.__name__}() {ex}") from None
        return super().__new__(cls)

    def __init__(
        self,
        design: Design,
        *,
        seed: int = 0,
        options: Mapping[str, Option] = MappingProxyType({}),
    ) -> None:
        self.design = design
        self.seed = seed
        self.options = dict(options)
        self.stop_reason: str | None = None
        self.fixed_repeats = 0
        self._pending: dict[int, Request] = {}
        self._asked_total = 0
        self._failures: dict[int, Failures] = {}  # of each model
        self._given_up_cells: dict[int, set[Cell]] = {}  # of each model
        self._changed: set[int] = set()  # models of which something came back since
        self._read_counts: dict[Cell, int] = {}
        self._keeps_count = type(self)._reads is Sampler._reads
        self._closed: set[Cell] = set()
        self.weighs_costs = False

    # what a book calls

    def decide(self, cells: Cells, last: Any) -> Planned | Wait | Stop:
        """The next round, as a function of what is known and of nothing else.

        Args:
            cells: every cell that rounds asked for, and what came of it.
            last: the note of the round before; None at the start.

        Raises:
            SamplerError: this sampler does not plan.
        """
        raise SamplerError(f"sampler {self.name!r} plans no rounds; write it as one that does")

    def next_pass(self, cells: Cells) -> Pass:
        """What of the last round is asked next, once nothing is under way; where rounds wait for all."""
        from evalbudget._passes import next_pass

        return next_pass(cells, self.design.n_items, breaks=self.kind is Kind.MODELS)

    def look(self, cells: Cells, last: Any) -> None:  # noqa: B027
        """Take in what became of the cells, for whoever asks this sampler what they prove.

        Args:
            cells: as in :meth:`decide`.
            last: the note of the last round; None if there was none.
        """

    def check(self, reading: Reading) -> None:  # noqa: B027
        """Refuse a score that this sampler cannot reckon with.

        Raises:
            InvalidInputError: says why.
        """

    def rater_of(self, item: int, epoch: int) -> int:
        """Who scores this item and epoch."""
        return 0

    # what drivers call

    def weigh_costs(self, budget: float | None = None) -> None:
        """Go by what readings cost, for a budget in money or tokens; a sampler that knows no way to goes on.

        Where all readings cost the same, and unless this is called, their costs change no decision.

        Args:
            budget: what will be spent in all, if known; samplers may plan for it.

        Raises:
            SamplerError: something was asked already.
        """
        if self.weighs_costs:
            return
        if self.asked:
            raise SamplerError(f"{self.name} was asked before it was told to weigh costs; tell it first")
        self.weighs_costs = True
        self.options["costs"] = True

    @property
    def pending(self) -> tuple[Request, ...]:
        """Requests asked and not yet told."""
        return tuple(self._pending.values())

    @property
    def asked(self) -> int:
        """How many requests were handed out so far."""
        return self._asked_total

    @property
    def minimum_readings(self) -> int:
        """The smallest budget, in scores, that lets this sampler choose anything."""
        return 1

    @property
    def due(self) -> Cell | None:
        """The cell that must be asked before any other, however dear it is; None where another one may be."""
        return None

    @property
    def closed(self) -> tuple[Cell, ...]:
        """Cells (at epoch 0) given up after repeated failures, in order."""
        self._give_up_and_reopen()
        return tuple(sorted(self._closed))

    def closes_as(self, cell: Cell) -> Cell:
        """The cell, at epoch 0, by which :attr:`closed` names what closes together with this one."""
        return cell._replace(epoch=0) if cell.epoch else cell

    @property
    def config(self) -> dict[str, Option]:
        """Everything that, with the design and the journal, fixes the decisions."""
        return {"sampler": self.name, "seed": self.seed, **self.options}

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

    def assume_phase(self, cell: Cell, phase: int) -> None:  # noqa: B027
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

    def _asked(self, cell: Cell) -> None:  # noqa: B027
        """Count a cell as asked; called for chosen and adopted cells alike."""

    def _learn(self, cell: Cell, value: float) -> None:  # noqa: B027
        """Take one finite value in."""

    def _paid(self, cell: Cell, cost: float) -> None:  # noqa: B027
        """Take in what a reading cost, with or without a score; called before it is learned from or failed.

        Only after :meth:`weigh_costs`. A cost may tell of the score it came with: what must not look at the
        score must not look at its cost either.
        """

    def _failed(self, cell: Cell) -> None:  # noqa: B027
        """Note that a reading failed; it may be asked again."""

    def _set_open(self, cell: Cell, is_open: bool) -> None:  # noqa: B027
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
        if self._keeps_count:
            self._read_counts[key] = self._read_counts.get(key, 0) + 1
        failures = self._failures_of(cell.model)
        failures.read(key)
        if failures.all_fails:  # nothing is given up, and nothing reopens, where none failed
            self._changed.add(cell.model)

    def _failures_of(self, model: int) -> Failures:
        if model not in self._failures:
            by_rater = {self.closes_as(Cell(rater=rater)) for rater in range(self.design.n_raters)}
            self._failures[model] = Failures(self.design.n_items * len(by_rater))
        return self._failures[model]

    def _reads(self, key: Cell) -> int:
        """How often this model, item and rater was read so far; override it if you know anyway."""
        return self._read_counts.get(key, 0)

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

    def _shape(self) -> str:
        d = self.design
        return f"{d.n_models} models x {d.n_items} items x {d.n_raters} raters"


def _signature(cls: type[Any]) -> Signature:
    """What a constructor takes; its ``**common`` are the arguments in ``_common``, as the base has them."""
    _, *own = signature(cls.__init__).parameters.values()
    kept = {parameter.name: parameter for parameter in own}
    if kept.pop("common", None) is not None:
        inherited = signature(cls.__base__ or Sampler).parameters
        kept |= {name: inherited[name] for name in cls._common.__annotations__ if name not in kept}
    return Signature(list(kept.values()))


Sampler.__signature__ = _signature(Sampler)
