"""The Sampler: what to ask next, as a function of what is known. Pure, synchronous, deterministic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from inspect import Signature, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

from evalbudget.design import Cell, Design, Reading
from evalbudget.errors import SamplerError

if TYPE_CHECKING:  # numpy takes longer to import than samplers do
    from evalbudget._passes import Pass
    from evalbudget.cells import Cells, Planned, Stop, Wait

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


@dataclass(frozen=True)
class Kind:
    """What samplers spread their budget over; with the name it identifies a registered sampler.

    Samplers of a plugin may have a kind of its own.

    Attributes:
        value: the plural, as in "samplers of models".
        told: what such a sampler decides, and the commands that take one: for whoever names it elsewhere.
            Empty for kinds that are looked for everywhere.
    """

    REPEATS: ClassVar[Kind]
    """Repeats of the items of one model."""
    MODELS: ClassVar[Kind]
    """Items of several models, each cell once: which model is best."""

    value: str
    told: str = ""


Kind.REPEATS = Kind("repeats")
Kind.MODELS = Kind("models")


class SamplerOptions(TypedDict, total=False):
    """What every sampler takes besides its own arguments; see :class:`Sampler`."""

    seed: int


class Sampler(ABC):
    """Decides which scores to buy next, round by round.

    A :class:`~evalbudget.book.Book` asks it for a round, has the cells answered in any order, and asks again.
    An author writes :meth:`decide`; nothing but the table of cells and the last round's note may decide.

    Args:
        design: what can be asked.
        seed: breaks ties and drives random choices.
        options: the configuration that a book is known by; JSON values.
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
        self.fixed_repeats = 0
        self.weighs_costs = False
        self._asked_total = 0

    # what a book calls

    @abstractmethod
    def decide(self, cells: Cells, last: Any) -> Planned | Wait | Stop:
        """The next round, as a function of what is known and of nothing else.

        Args:
            cells: every cell that rounds asked for, and what came of it.
            last: the note of the round before; None at the start.
        """

    def next_pass(self, cells: Cells) -> Pass:
        """What of the last round is asked next, once nothing is under way; where rounds wait for all."""
        from evalbudget._passes import next_pass

        return next_pass(cells, self.design.n_items, breaks=self.kind == Kind.MODELS)

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
    def asked(self) -> int:
        """How many cells it was asked for itself; what a book asked is the book's to know."""
        return self._asked_total

    @property
    def minimum_readings(self) -> int:
        """The smallest budget, in scores, that lets this sampler choose anything."""
        return 1

    def closes_as(self, cell: Cell) -> Cell:
        """The cell, at epoch 0, by which what closes together with this one is named."""
        return cell._replace(epoch=0) if cell.epoch else cell

    @property
    def config(self) -> dict[str, Option]:
        """Everything that, with the design and the scores, fixes the decisions."""
        return {"sampler": self.name, "seed": self.seed, **self.options}

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
