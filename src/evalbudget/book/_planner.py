"""What is asked next, and whether it can be paid: rounds, passes and calls of a book."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from evalbudget.book._known import ADOPTED
from evalbudget.book._turn import Claim, Turn
from evalbudget.book._turns import Turns
from evalbudget.book._waiting import Left, Passes
from evalbudget.book._workers import MEMORY
from evalbudget.budget import Budget
from evalbudget.cells import CLOSED, Planned, Stop, Wait
from evalbudget.design import Cell
from evalbudget.errors import BudgetError, InvalidInputError, SamplerError

_SLACK = 1e-9


class Planner:
    """Plans outside of a book's lock, and hands out what was planned within it.

    Args:
        turns: at the book.
        budget: what may be spent in all.
        most: the highest cost of one call, or of a call for a given cell.
        at_once: how many cells may be under way, of all workers; None: any number.

    Attributes:
        budget: what may be spent in all.
        has_answers: whether the caller has answers that cost nothing.
        why: the sampler's reason to ask nothing more; None while it may.
    """

    def __init__(
        self,
        turns: Turns,
        budget: Budget,
        most: float | Callable[[Cell], float],
        at_once: Callable[[], float] | None,
    ) -> None:
        self._turns, self._sampler = turns, turns.sampler
        self.budget, self._most, self._at_once = budget, most, at_once
        self.has_answers = False
        self.why: str | None = None
        # rounds, passes, models withdrawn, and whether any call could be paid, when nothing could be planned
        self._planned_at: tuple[object, ...] = ()
        self._until = 0  # tries that must have come back before it is worth planning again
        self._looked_at: object = None

    # money

    @property
    def free(self) -> float:
        """Of the budget, neither spent nor held; below 0 where what is held was promised by a larger one."""
        about = self._turns.about
        return float(min(self.budget.amount, about["cap"]) - about["spent"] - about["held"])

    def fits(self, cost: float) -> bool:
        """Whether it is no more than what is free."""
        return cost <= self.free + _SLACK

    @property
    def affords_any(self) -> bool:
        """Whether some call could be paid."""
        least = 0.0 if callable(self._most) else self._most
        return self.has_answers or (self.fits(least) and self.free > _SLACK)

    def _cost(self, cell: int) -> float:
        most = self._most
        if callable(most):
            known = self._turns.known
            most = most(known.cell(cell)._replace(epoch=known.next_attempt(cell)))
        if not (math.isfinite(most) and (most > 0.0 or (self.has_answers and most == 0.0))):
            raise BudgetError(f"the highest cost of a call is {most:g}; give a finite cost above zero")
        return most

    def may(self, cell: int) -> bool:
        """Whether this cell can be asked now."""
        return self._may(self._cost(cell))

    def _may(self, most: float) -> bool:
        return not most or (self.fits(most) and self._room >= 1)

    @property
    def _room(self) -> float:
        """How many more cells may be under way."""
        return math.inf if self._at_once is None else self._at_once() - self._turns.known.under_way

    # calls

    def claim(
        self, turn: Turn, new: dict[int, Claim], n: int | Callable[[int], int], found: Mapping[int, Claim]
    ) -> None:
        """Add calls until there are n with those that were found before, of each model or in all."""
        known = self._turns.known

        def call(cell: int, most: float) -> None:
            claim = turn.call(cell, most)
            new[claim.request.id] = claim

        if callable(n):
            wanted = n
            had = Counter(c.request.cell.model for each in (found, new) for c in each.values() if c.most)
            left = Left(self.free + _SLACK, self._room)
            assert isinstance(known.waiting, Passes)
            for cell in known.waiting.by_model(lambda m: wanted(m) - had[m], self._cost, left):
                call(cell, self._cost(cell))
            return
        while len(new) + len(found) < n and (first := known.waiting.first()) is not None:
            if not self._may(most := self._cost(first)):  # it stays the first
                return
            known.waiting.drop(first)
            call(first, most)

    def adopt(self, planned: Planned, most: Sequence[float], attempts: Sequence[int]) -> list[Claim]:
        """Cells that somebody else chose are under way.

        Raises:
            InvalidInputError: the book is in a file or on a server, or has planned something.
        """
        turns = self._turns
        if turns.where.path != MEMORY or turns.known.n_planned:
            raise InvalidInputError(
                f"{turns.where}: cells are adopted by a book in memory, before it plans; begin a new one"
            )
        adopted = planned._replace(note=ADOPTED)
        texts = turns.copy.texts_of(adopted)

        def act(turn: Turn) -> list[Claim]:
            first = len(turns.known)
            turns.copy.begin(adopted, texts)
            calls = enumerate(zip(most, attempts, strict=True), first)
            return [turn.call(cell, cost, attempt) for cell, (cost, attempt) in calls]

        claims = turns.take(act)
        turns.adopted.add(turns.known, [claim.cell for claim in claims])
        return claims

    # rounds

    def look(self) -> None:
        """Let the sampler see how it stands."""
        turns = self._turns
        with turns.state:
            counts = tuple(turns.about[name] for name in ("rounds", "passes", "withdrawn", "changes"))
            now = turns.copy, *counts
            if now != self._looked_at:
                self._sampler.look(turns.known.cells(), turns.known.note)
                self._looked_at = now

    def plan(self) -> bool:
        """Plan what comes next, outside of the lock; whether there is something now, by whomever."""
        turns, sampler, can_go_on = self._turns, self._sampler, self.affords_any
        known = turns.known
        at = *(turns.about[name] for name in ("rounds", "passes", "withdrawn")), can_go_on
        if (
            known.waiting.first() is not None
            or turns.about["stopped"] is not None
            or not (can_go_on or sampler.waits_for_all)
        ):
            return False
        if self._planned_at == at and known.settled < self._until:
            return False
        if sampler.waits_for_all and (known.under_way or (known.n_rounds and self._begin_pass(at[1]))):
            return not known.under_way
        with turns.state:
            planned, self._looked_at = sampler.decide(known.cells(), known.note), None
            self.why = planned.reason if isinstance(planned, Stop) else None
        if isinstance(planned, Planned) and can_go_on:
            if not planned.item.size and planned.note == known.note:
                raise SamplerError(
                    f"sampler {sampler.name!r} planned an empty round twice; it must wait or stop"
                )
            self._begin(planned, at[0])
            return True
        if isinstance(planned, Wait) and not known.under_way:
            raise SamplerError(f"sampler {sampler.name!r} waits with nothing under way; it must plan or stop")
        self._planned_at = at
        self._until = max(planned.until if isinstance(planned, Wait) else 0, known.settled + 1)
        return False

    def _begin(self, planned: Planned, rounds: int) -> None:
        turns = self._turns
        planned, adopted = turns.adopted.without(planned)
        texts = turns.copy.texts_of(planned)

        def begin(turn: Turn) -> None:
            if turns.about["rounds"] == rounds:  # nobody else has
                turns.copy.begin(planned, texts)

        turns.take(begin)
        turns.adopted = adopted

    def _begin_pass(self, passes: int) -> bool:
        """Put the next pass of the round together; whether there is one."""
        turns = self._turns
        with turns.state:
            close, ask = self._sampler.next_pass(turns.known.cells())
        if not close.size and not ask.size:
            return False

        def begin(turn: Turn) -> None:
            if turns.about["passes"] == passes:  # nobody else has
                for cell in close.tolist():
                    turns.copy.change(cell, turns.workers.me, state=CLOSED)
                turns.copy.begin_pass(ask)

        turns.take(begin)
        return True
