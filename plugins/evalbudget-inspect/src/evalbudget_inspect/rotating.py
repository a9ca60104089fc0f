"""One run's judges: who scores which cell, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from types import TracebackType
from typing import Any, Self

import numpy as np
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalSample
from inspect_ai.model import Model, ModelUsage, get_model, model_roles
from inspect_ai.model._model import init_model_roles

from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget_inspect.panel import Panel
from evalbudget_inspect.scoring import METADATA

_ENOUGH = 5  # scored cells after which a role that nobody asked for is worth a warning


class Seat:
    """While it is entered, the role is this judge: in this context alone, so for one sample.

    Args:
        role: bound to the judge.
        name: of the judge.
        model: the judge.
    """

    def __init__(self, role: str, name: str, model: Model) -> None:
        self.name = name
        self._role = role
        self._model = model
        self._roles = _Roles()

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        init_model_roles(self._before)


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
    """Deals the judges of a panel; a cell has the same judge in every attempt.

    Args:
        panel: the judges.
        items: sample ids of this run, in order.
        categories: one per item; None for a single one.
        epochs: planned per item.
        kept: every epoch of an item scores the same generation.
        seed: of the schedule.

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
    ) -> None:
        self.panel = panel
        self.kept = kept
        self.schedule = panel.schedule(items, categories=categories, epochs=max(epochs, 1), seed=seed)
        self._calls = self.schedule.calls_per_generation
        if epochs < self._calls:
            raise BudgetError(
                f"the rotation {panel.rotation!r} has {self._calls} judges score each of the {len(items)} "
                f"items, which takes {self._calls * len(items)} scores. Raise --budget to that (or --epochs "
                f"to {self._calls}, without a budget), evaluate fewer items with --limit, or use --rotation "
                "cyclic"
            )
        self._index = {item: i for i, item in enumerate(items)}
        self._turn = np.random.default_rng([seed, 7]).permutation(len(items))
        self._models = [_resolve(model, panel.role) for model in panel.models]
        self.usage = [ModelUsage() for _ in panel.judges]
        """Of the role in all samples a judge scored, those of an earlier attempt included."""
        self._scored = 0
        self._asked = False

    def judge(self, item: int, epoch: int) -> int:
        """Who scores this epoch (from 0) of an item.

        Where several judges are to score each generation, consecutive epochs of a kept one get them all.
        """
        judges = self.schedule.judges_for(item, epoch // self._calls)
        return judges[(int(self._turn[item]) + epoch) % len(judges)]

    def seat(self, item: str, epoch: int) -> Seat:
        """The judge of a cell, epochs counted from 1 as the host does."""
        judge = self.judge(self._index[item], epoch - 1)
        return Seat(self.panel.role, self.panel.judges[judge], self._models[judge])

    def observe(self, sample: EvalSample) -> str | None:
        """Take note of a finished cell; a warning if by now some scorer should have asked for a judge."""
        if str(sample.id) not in self._index:
            return None
        used = sample.role_usage.get(self.panel.role)
        if used is not None:
            self.usage[self.judge(self._index[str(sample.id)], sample.epoch - 1)] += used
        entries = [(score.metadata or {}).get(METADATA) for score in (sample.scores or {}).values()]
        if not entries:
            return None
        self._scored += 1
        self._asked |= any(was_asked(entry) for entry in entries)
        if self._asked or self._scored != min(_ENOUGH, len(self._index)):
            return None
        return self.unused

    @property
    def unused(self) -> str | None:
        """A warning if something was scored and nobody asked for the role."""
        if self._asked or not self._scored:
            return None
        return (
            f"no scorer of this task asks for the role {self.panel.role!r}, so the judges "
            f"{', '.join(self.panel.judges)} score nothing and the estimate is not theirs. Name the role it "
            "asks for with --judge-role; a scorer with a model of its own (model=...) cannot be rotated"
        )


def was_asked(entry: Mapping[str, Any] | None) -> bool:
    """Whether our entry in a score's metadata says that a judge gave the score."""
    return entry is not None and "judge" in entry and bool(entry.get("asked", True))


def _resolve(model: str | Model, role: str) -> Model:
    """An instance of its own, as the host makes for roles: usage would be counted for another otherwise."""
    try:
        judge = get_model(model, memoize=False) if isinstance(model, str) else copy(model)
    except (ValueError, PrerequisiteError) as ex:
        raise InvalidInputError(f"judge {str(model)!r} cannot be used: {ex}") from ex
    judge._set_role(role)
    return judge
