"""The Journal: what happened, in order. Feeding it again rebuilds a sampler exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from evalbudget._asked import AskedSampler
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError, JournalError, ReplayError, SamplerError, differences
from evalbudget.sampler import Allocation

FORMAT = 1
"""Version of the journal's own format; another major number cannot be read."""


@dataclass(frozen=True, slots=True)
class Header:
    """Who wrote a journal: enough to refuse one that would rebuild another sampler.

    Attributes:
        config: the sampler's :attr:`~evalbudget.sampler.Sampler.config`.
        design: the design's fingerprint.
        version: of evalbudget, for the message; decisions are compared one by one anyway.
        format: of the journal.
    """

    config: dict[str, Any]
    design: str
    version: str
    format: int = FORMAT

    @classmethod
    def of(cls, sampler: AskedSampler, version: str) -> Header:
        """The header of a journal that ``sampler`` begins."""
        return cls(dict(sampler.config), sampler.design.fingerprint, version)

    def check(self, sampler: AskedSampler) -> None:
        """Raise JournalError unless ``sampler`` is the one that wrote the journal."""
        if self.format != FORMAT:
            raise JournalError(
                f"the journal has format {self.format} (evalbudget {self.version}); this version reads "
                f"format {FORMAT}. Install the version that wrote it, or start a new journal"
            )
        if self.design != sampler.design.fingerprint:
            raise JournalError(
                "the journal belongs to another design (other models, items or raters); "
                "resume with the same task and data set, or start a new journal"
            )
        shown = differences(_jsonable(self.config), _jsonable(sampler.config))
        if shown:
            raise JournalError(
                f"the journal was written with another configuration ({shown}); "
                "resume with the recorded one, or start a new journal"
            )


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: a request handed out, or a reading taken in.

    Attributes:
        request: what was asked, or what the reading answers.
        reading: None for a request handed out.
        adopted: somebody else chose the request, see :meth:`~evalbudget._asked.AskedSampler.adopt`.
        restricted: chosen among eligible cells only.
    """

    request: Request
    reading: Reading | None = None
    adopted: bool = False
    restricted: bool = False


@dataclass(slots=True)
class Journal:
    """An append-only record of events.

    Attributes:
        header: who wrote it; None for one built by hand.
        events: in the order they happened.
    """

    header: Header | None = None
    events: list[Event] = field(default_factory=list)

    def append(self, event: Event) -> None:
        """Record what happened."""
        self.events.append(event)

    def ask(self, request: Request, *, adopted: bool = False, restricted: bool = False) -> None:
        """Record a request as handed out."""
        self.append(Event(request, adopted=adopted, restricted=restricted))

    def tell(self, reading: Reading) -> None:
        """Record a reading as taken in."""
        self.append(Event(reading.request, reading))

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Every reading, failed ones included, in the order of asking."""
        told = [e.reading for e in self.events if e.reading is not None]
        return tuple(sorted(told, key=lambda r: r.request.id))

    @property
    def spent(self) -> float:
        """What the readings cost together, failed ones included."""
        return sum(e.reading.cost for e in self.events if e.reading is not None)

    @property
    def pending(self) -> tuple[Request, ...]:
        """Requests without a reading."""
        told = {e.request.id for e in self.events if e.reading is not None}
        return tuple(e.request for e in self.events if e.reading is None and e.request.id not in told)

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)


def resume(
    sampler: AskedSampler, journal: Journal | Iterable[Event], *, path: str | PathLike[str] | None = None
) -> None:
    """Feed a journal to a fresh sampler; requests without a reading are pending afterwards.

    Args:
        sampler: freshly built with the recorded configuration, seed and design.
        journal: what happened.
        path: of the file it stands in, for messages.

    Raises:
        JournalError: another configuration or design wrote the journal, or the sampler is not fresh.
        ReplayError: the sampler gives another answer than the recorded one.
    """
    try:
        _repeat(sampler, journal)
    except JournalError as ex:
        raise ex if path is None else type(ex)(f"{path}: {ex}") from ex


def _repeat(sampler: AskedSampler, journal: Journal | Iterable[Event]) -> None:
    if sampler.asked:
        raise JournalError("resume needs a fresh sampler; this one was asked already")
    if isinstance(journal, Journal) and journal.header is not None:
        journal.header.check(sampler)
    for number, event in enumerate(journal):
        try:
            given = repeat(sampler, event)
        except (SamplerError, InvalidInputError) as ex:
            raise ReplayError(f"event {number} of the journal cannot be repeated: {ex}") from ex
        if given != (event.request,):
            raise ReplayError(
                f"event {number}: the journal has {event.request}, this sampler answers "
                f"{given[0] if given else 'nothing'}; it is not the sampler that wrote the journal "
                "(another version?)"
            )


def repeat(sampler: AskedSampler, event: Event) -> tuple[Request, ...]:
    """Have a sampler go through an event again.

    Returns:
        Its answer: the event's request, if it is the sampler that gave it then.

    Raises:
        SamplerError, InvalidInputError: it cannot.
    """
    if event.reading is not None:
        sampler.tell([event.reading])
        return (event.request,)
    if event.request.phase is not None:
        sampler.assume_phase(event.request.cell, event.request.phase)
    if event.adopted:
        return (sampler.adopt(event.request.cell),)
    if sampler.allocation is Allocation.PHASED:  # it may have gone by another budget
        return (sampler.follow(event.request.cell),)
    if not event.restricted:
        return sampler.ask(1)
    # which cells were eligible is not known any more; that this one was is
    wanted = event.request.cell._replace(epoch=0)
    return sampler.ask(1, eligible=lambda cell: cell._replace(epoch=0) == wanted)


def _jsonable(config: dict[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in config.items()}


__all__ = ["FORMAT", "Cell", "Design", "Event", "Header", "Journal", "differences", "resume"]
