"""What the user asked of a budgeted run of one model, checked before anything runs."""

from __future__ import annotations

import inspect as introspection
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evalbudget.budget import Budget, Unit
from evalbudget.design import Design
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import get_sampler
from evalbudget.sampler import Allocation, Sampler

DEFAULT_SAMPLER = "auto"
_NOT_OPTIONS = ("design", "seed", "warmup", "budget")


@dataclass(frozen=True)
class RepeatConfig:
    """One budgeted run; hosts add what only they have.

    Attributes:
        budget: as the user wrote it; ``20x`` waits for the number of items. None where a host allows it.
        sampler: registered name.
        score: which score drives the allocation; None for the first.
        seed: of the sampler.
        score_range: the smallest and the largest possible score; None if not declared.
        options: further arguments of the sampler.

    Raises:
        UnknownNameError: no such sampler, or it has no such option.
        BudgetError: the budget cannot be read, or is not counted in scores.
        InvalidInputError: the sampler refuses an option's value.
    """

    budget: str | int | None
    sampler: str = DEFAULT_SAMPLER
    score: str | None = None
    seed: int = 0
    score_range: tuple[float, float] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.budget is None:
            self._check_without_budget()
        else:
            self.resolve_budget(1_000_000)
        names = list(introspection.signature(get_sampler(self.sampler)).parameters)
        known = [name for name in names if name not in _NOT_OPTIONS]
        for option in self.options:
            if option not in known:
                raise UnknownNameError(f"option of sampler {self.sampler!r}", option, known)
        self._trial  # noqa: B018  (refuse bad options now, not in the middle of a run)

    def _check_without_budget(self) -> None:
        raise BudgetError("no budget given; write a number of scores (2000) or scores per item (20x)")

    def resolve_budget(self, n_items: int, *, without: int = 0) -> Budget:
        """The budget in scores for this many items; ``without`` is what to allow where none was given.

        Raises:
            BudgetError: it cannot be read, or is not counted in scores.
        """
        budget = Budget.parse(without if self.budget is None else self.budget, n_items=n_items)
        if budget.unit is not Unit.SCORES:
            raise BudgetError(
                f"budget {self.budget!r} is counted in {budget.unit.value}, but a run is "
                "budgeted in scores so far; write a number of scores (2000) or scores per item (20x)"
            )
        return budget

    def make_sampler(
        self, design: Design, *, warmup: int | None = None, budget: int | None = None
    ) -> Sampler:
        """A fresh sampler.

        Args:
            design: what to ask.
            warmup: raises the sampler's own first readings per item, never lowers them.
            budget: readings it may expect in all, for samplers that plan with it.
        """
        cls = get_sampler(self.sampler)
        arguments: dict[str, Any] = dict(self.options)
        takes = introspection.signature(cls).parameters
        if warmup is not None and "warmup" in takes:
            arguments["warmup"] = max(warmup, self.fixed_repeats)
        if budget is not None and "budget" in takes:
            arguments["budget"] = budget
        try:
            return cls(design, seed=self.seed, **arguments)
        except TypeError as ex:
            raise InvalidInputError(f"sampler {self.sampler!r} refuses its options: {ex}") from ex

    @cached_property
    def _trial(self) -> Sampler:
        return RepeatConfig.make_sampler(self, Design.of_items(2))

    @property
    def allocation(self) -> Allocation:
        """What the estimators must know of the sampler."""
        return self._trial.allocation

    @property
    def fixed_repeats(self) -> int:
        """Readings every item gets whatever its scores are."""
        return self._trial.fixed_repeats
