"""What a book would hand out where nothing fails and no call is lost, in arrays: for replays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evalbudget.cells import CAME, Cells, Planned, Wait
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.sampler import Allocation, Sampler
from evalbudget.statistics._bounds import FloatArray, IntArray


class Asked(NamedTuple):
    """Readings that are asked together, in order.

    Attributes:
        item: of each, shape (k,).
        epoch: of each, same shape.
    """

    item: IntArray
    epoch: IntArray


class ArrayBook:
    """Asks a sampler for rounds, and for nothing in between.

    Args:
        sampler: fresh.

    Raises:
        InvalidInputError: the sampler does not repeat items.

    Attributes:
        n: readings that were asked for.
        stop_reason: why nothing more is asked; None while it is.
    """

    def __init__(self, sampler: Sampler) -> None:
        if not isinstance(sampler, RepeatSampler):
            raise InvalidInputError(
                f"sampler {sampler.name!r} does not repeat items of one model; derive it from "
                "evalbudget.repeats.samplers.RepeatSampler, or use another one"
            )
        self._sampler = sampler
        self._note: Any = None
        self._rounds: list[Asked] = []
        self._phases: list[int] = []
        self._value: list[FloatArray] = []
        self._cost: list[FloatArray] = []
        self._counts: IntArray = np.zeros(sampler.design.n_items, np.int64)
        self._planned = 0  # readings of all rounds
        self.n = 0
        self.stop_reason: str | None = None

    def ask(self, most: int) -> Asked | None:
        """What comes next, up to so many; tell what came of it before asking again. None: nothing more."""
        while self.n == self._planned:
            if not self._plan():
                return None
        first = self.n - (self._planned - self._rounds[-1].item.size)
        asked = Asked(*(column[first : first + most] for column in self._rounds[-1]))
        self.n += asked.item.size
        return asked

    def tell(self, value: FloatArray, cost: FloatArray | None = None) -> None:
        """The scores of what was asked last, and what they cost if that is not 1."""
        self._value.append(np.asarray(value, dtype=np.float64))
        self._cost.append(np.ones(value.size) if cost is None else cost)

    def _plan(self) -> bool:
        planned = self._sampler.decide(self._cells(), self._note)
        if isinstance(planned, Planned):
            self._begin(planned)
            return True
        if isinstance(planned, Wait):
            raise SamplerError(f"sampler {self._sampler.name!r} waits with nothing under way")
        self.stop_reason = planned.reason
        return False

    def _begin(self, planned: Planned) -> None:
        if not planned.item.size and planned.note == self._note:
            raise SamplerError(f"sampler {self._sampler.name!r} planned an empty round twice")
        self._note = planned.note
        order = np.argsort(planned.item, kind="stable")
        item = planned.item[order]
        epoch = np.empty(item.size, np.int64)
        epoch[order] = self._counts[item] + np.arange(item.size) - np.searchsorted(item, item)
        self._counts += np.bincount(item, minlength=self._counts.size)
        self._rounds.append(Asked(planned.item, epoch))
        self._phases.append(planned.phase)
        self._planned += item.size

    def bought(self, n: int | None = None) -> ItemReadings:
        """What was told, or the first n of it."""
        columns = self._columns()
        item, epoch, phase, value = (columns[name][:n] for name in ("item", "epoch", "phase", "value"))
        phased = self._sampler.allocation is Allocation.PHASED
        n_items = self._sampler.design.n_items
        return ItemReadings.of(item, epoch, value, n_items=n_items, phase=phase if phased else None)

    def _columns(self) -> dict[str, Any]:
        """Of all that was told."""
        sizes = [asked.item.size for asked in self._rounds]
        found: dict[str, list[Any]] = {
            "item": [asked.item for asked in self._rounds],
            "epoch": [asked.epoch for asked in self._rounds],
            "value": [*self._value],
            "cost": [*self._cost],
        }
        columns: dict[str, Any] = {
            name: np.concatenate(each)[: self.n] if each else np.zeros(0, np.int64)
            for name, each in found.items()
        }
        columns["phase"] = np.repeat(np.array(self._phases, np.int64), sizes)[: self.n]
        columns["round"] = np.repeat(np.arange(len(sizes)), sizes)[: self.n]
        return columns

    def _cells(self) -> Cells:
        """As a book has them."""
        columns, n = self._columns(), self.n
        columns["state"] = np.full(n, CAME, np.int8)
        zeros = np.zeros(n, np.int64)
        return Cells(
            **columns,
            model=zeros,
            rater=zeros,
            tries=np.ones(n, np.int64),
            lost=zeros,
            withdrawn=np.full(1, -1),
            given_up=frozenset(),
            n_rounds=len(self._rounds),
        )
