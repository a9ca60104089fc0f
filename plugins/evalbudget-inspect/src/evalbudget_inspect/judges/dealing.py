"""One run's judges: who scores which cell, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Self

import numpy as np
from inspect_ai.log import EvalSample
from inspect_ai.model import Model, ModelUsage, model_roles

from evalbudget.errors import BudgetError
from evalbudget.judges.schedules import Dealer, JudgeSchedule
from evalbudget_inspect.host.private import init_model_roles
from evalbudget_inspect.host.readings import was_asked
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.judges.panel import Panel

_ENOUGH = 5  # scored cells after which a role that nobody asked for is worth a warning


class Seat:
    """While it is entered, the role is this judge: in this context alone, so for one sample.

    Args:
        role: bound to the judge.
        name: of the judge.
        model: the judge.
        called: told at the end if somebody asked for the judge.
    """

    def __init__(self, role: str, name: str, model: Model, called: Callable[[], None]) -> None:
        self.name = name
        self._role = role
        self._model = model
        self._roles = _Roles()
        self._called = called

    @property
    def asked(self) -> bool:
        """Whether anybody asked for the role."""
        return self._role in self._roles.asked

    def entry(self) -> dict[str, Any]:
        """For the score's metadata."""
        return {"judge": self.name} if self.asked else {"judge": self.name, "asked": False}

    def __enter__(self) -> Self:
        self._before = model_roles()
        self._roles.update({**self._before, self._role: self._model})
        init_model_roles(self._roles)
        return self

    def __exit__(self, *_: object) -> None:
        init_model_roles(self._before)
        if self.asked:
            self._called()


class Turn:
    """While it is entered, a scorer that rotates asks this judge: in this context alone, so for one sample.

    Args:
        owner: of the panel.
        judge: index into it.
        name: of the judge.
        called: told at the end if the judge was asked.
    """

    def __init__(self, owner: object, judge: int, name: str, called: Callable[[], None]) -> None:
        self.owner = owner
        self.judge = judge
        self.name = name
        self.asked = False
        self._called = called

    @classmethod
    def of(cls, owner: object) -> int | None:
        """The judge whose turn it is in this context; None if its owner is to choose."""
        turn = _turn.get()
        if turn is None or turn.owner is not owner:
            return None
        turn.asked = True
        return turn.judge

    def entry(self) -> dict[str, Any]:
        """For the score's metadata."""
        return {"judge": self.name} if self.asked else {"judge": self.name, "asked": False}

    def __enter__(self) -> Self:
        self._before = _turn.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _turn.reset(self._before)
        if self.asked:
            self._called()


_turn: ContextVar[Turn | None] = ContextVar("evalbudget_turn", default=None)


class _Roles(dict[str, Any]):
    """Roles that remember which of them were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def __getitem__(self, role: str) -> Any:
        self.asked.add(role)
        return super().__getitem__(role)

    def get(self, role: str, default: Any = None) -> Any:
        self.asked.add(role)
        return super().get(role, default)


class Rotation:
    """Deals the judges of a panel; a cell has the same judge in every attempt, unless that judge is dropped.

    Args:
        panel: the judges.
        items: sample ids of this run, in order.
        categories: one per item; None for a single one.
        epochs: planned per item.
        kept: every epoch of an item scores the same generation.
        seed: of the schedule.
        model: the model judged.
        told: a scorer is known to ask for the role, though perhaps not for every answer.

    Raises:
        BudgetError: the rotation has several judges score a generation, and the budget is too small for it.
        InvalidInputError: inspect does not know a judge.
    """

    def __init__(
        self,
        panel: Panel,
        items: Sequence[str],
        *,
        categories: Sequence[str] | None = None,
        epochs: int = 1,
        kept: bool = False,
        seed: int = 0,
        model: str = "",
        told: bool = True,
    ) -> None:
        self.panel = panel
        self.told = told
        itself = panel.judging_itself(model)
        self.notes = [] if itself is None else [itself]
        self.kept = kept
        schedule = panel.schedule(items, categories=categories, epochs=max(epochs, 1), seed=seed)
        self._dealer = Dealer(schedule)
        self._calls = schedule.calls_per_generation
        if epochs < self._calls:
            raise BudgetError(
                f"the rotation {panel.rotation!r} has {self._calls} judges score each of the {len(items)} "
                f"items, which takes {self._calls * len(items)} scores. Raise --budget to that (or --epochs "
                f"to {self._calls}, without a budget), evaluate fewer items with --limit, or use --rotation "
                "cyclic"
            )
        self._index = {item: i for i, item in enumerate(items)}
        self._turn = np.random.default_rng([seed, 7]).permutation(len(items))
        self._models = [model.instance(panel.role) for model in panel.models if panel.owner is None]
        self.usage = [ModelUsage() for _ in panel.judges]
        """Of the role in all samples a judge scored, those of an earlier attempt included."""
        self.calls = [0] * len(panel.judges)
        """How often scorers asked each judge, whatever came of it, those of an earlier attempt included."""
        self._seated: set[tuple[int, int]] = set()
        self._called: set[tuple[int, int]] = set()
        self._scored = 0
        self.asked = False
        """Whether any scorer asked any judge."""

    def judge(self, item: int, epoch: int) -> int:
        """Who scores this epoch (from 0) of an item; until it is scored that may change.

        Where several judges are to score each generation, consecutive epochs of a kept one get them all.
        """
        if self._calls == 1:
            return self._dealer.due(item, epoch)[0]
        judges = self.schedule.judges_for(item, epoch // self._calls)
        return judges[(int(self._turn[item]) + epoch) % len(judges)]

    @property
    def schedule(self) -> JudgeSchedule:
        """Who is to score what, without judges that were dropped."""
        return self._dealer.schedule

    def assume(self, item: str, epoch: int, judge: str) -> None:
        """An earlier attempt had this cell scored by this judge, epochs counted from 1."""
        if self._calls == 1 and item in self._index and judge in self.panel.judges:
            self._dealer.assume(self._index[item], epoch - 1, self.panel.judges.index(judge))

    def note(self, item: str, epoch: int, *, scored: bool) -> str | None:
        """What came of a cell, epochs counted from 1; a warning if its judge is dropped for it."""
        cell = (self._index[item], epoch - 1)
        return self._dealer.note(self.judge(*cell), scored=scored) if cell in self._called else None

    def seat(self, item: str, epoch: int) -> Seat | Turn:
        """The judge of a cell, epochs counted from 1 as the host does."""
        cell = (self._index[item], epoch - 1)
        if cell not in self._seated:  # otherwise somebody scored it already
            self._dealer.deal_again(*cell)
        self._seated.add(cell)
        self._dealer.judges(*cell)
        judge = self.judge(*cell)
        name, called = self.panel.judges[judge], partial(self._count, cell)
        if self.panel.owner is not None:
            return Turn(self.panel.owner, judge, name, called)
        return Seat(self.panel.role, name, self._models[judge], called)

    def attempt_failed(self, item: str, epoch: int) -> None:
        """A cell, epochs counted from 1, is scored anew: by another judge if its own is dropped by then."""
        self._seated.discard((self._index[item], epoch - 1))

    def was_called(self, item: int, epoch: int) -> bool:
        """Whether somebody asked for the judge of this cell, epochs counted from 0."""
        return (item, epoch) in self._called

    def _count(self, cell: tuple[int, int]) -> None:
        self._called.add(cell)
        self.calls[self.judge(*cell)] += 1

    def observe(self, sample: EvalSample) -> str | None:
        """Take note of a finished cell; a complaint if by now some scorer should have asked for a judge."""
        if str(sample.id) not in self._index:
            return None
        used = sample.role_usage.get(self.panel.role)
        if used is not None:
            self.usage[self.judge(self._index[str(sample.id)], sample.epoch - 1)] += used
        entries = [(score.metadata or {}).get(METADATA) for score in (sample.scores or {}).values()]
        cell = (self._index[str(sample.id)], sample.epoch - 1)
        if cell not in self._seated:  # of an earlier attempt
            for entry in entries:
                if was_asked(entry):
                    self._count(cell)
        if not entries:
            return None
        self._scored += 1
        self.asked |= any(was_asked(entry) for entry in entries)
        if self.asked or self._scored != min(_ENOUGH if self.told else 1, len(self._index)):
            return None
        return self.unused

    @property
    def unused(self) -> str | None:
        """A complaint if something was scored and nobody asked for the role."""
        if self.asked or not self._scored or self.panel.owner is not None:
            return None
        return self.panel.unused
