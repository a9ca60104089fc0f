"""What the user asked for, checked before anything runs."""

from __future__ import annotations

import inspect as introspection
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from evalbudget import Allocation, Budget, Design, Sampler, Unit
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.plugins import get_sampler
from evalbudget.samplers import JudgeOf, RepeatSampler
from evalbudget.score_range import parse_range
from evalbudget_inspect.judges import Judges
from evalbudget_inspect.panel import Panel, Prices

DEFAULT_SAMPLER = "eb-bernstein"
DEFAULT_SAMPLER_OF_PANELS = "uniform"


class Repeat(StrEnum):
    """What a repeat repeats."""

    GENERATION = "generation"
    """Everything: a fresh epoch."""
    JUDGE = "judge"
    """The scorers only: the item's first generation is kept and scored again."""

    @classmethod
    def named(cls, name: str) -> Repeat:
        """The repeat of that name; UnknownNameError if there is none."""
        try:
            return cls(name)
        except ValueError:
            raise UnknownNameError("repeat", name, [r.value for r in cls]) from None


@dataclass(frozen=True)
class Config:
    """One budgeted task.

    Attributes:
        budget: as the user wrote it; ``20x`` waits for the number of items. None, for a panel of judges only:
            the host's own epochs, and no more.
        sampler: registered name.
        repeat: generation or judge.
        score: which scorer drives the allocation; None for the first.
        seed: of the sampler.
        score_range: the smallest and the largest possible score; None if not declared.
        options: further arguments of the sampler.
        panel: judges that take turns; None where the task's own judge scores.

    Raises:
        UnknownNameError: no such sampler.
        BudgetError: the budget cannot be read, or is not counted in scores.
        InvalidInputError: the sampler has no such option, or refuses its value; or a panel of judges with a
            sampler or a repeat that does not go with it.
    """

    budget: str | int | None
    sampler: str = DEFAULT_SAMPLER
    repeat: Repeat = Repeat.GENERATION
    score: str | None = None
    seed: int = 0
    score_range: tuple[float, float] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    panel: Panel | None = None

    def __post_init__(self) -> None:
        if self.budget is None:
            self._check_without_budget()
        else:
            self.resolve_budget(1_000_000)
        known = introspection.signature(get_sampler(self.sampler)).parameters
        for option in self.options:
            if option not in known or option in ("design", "seed", "warmup"):
                names = [n for n in known if n not in ("design", "seed", "warmup")]
                raise UnknownNameError(f"option of sampler {self.sampler!r}", option, names)
        self._trial  # noqa: B018  (refuse bad options now, not in the middle of a run)
        if self.panel is not None:
            self._check_panel(self.panel)

    def _check_panel(self, panel: Panel) -> None:
        if self.allocation is not Allocation.FIXED and not isinstance(self._trial, RepeatSampler):
            raise InvalidInputError(
                f"sampler {self.sampler!r} repeats an item the more its scores vary, but with --judges they "
                "also vary because the judges differ, and it cannot tell (it is no RepeatSampler, which can "
                f"rotate judges). Use --sampler {DEFAULT_SAMPLER}, or {DEFAULT_SAMPLER_OF_PANELS}"
            )
        if panel.calls_per_generation > 1 and self.repeat is Repeat.GENERATION:
            raise InvalidInputError(
                f"the rotation {panel.rotation!r} has several judges score the same generation, and without "
                "--repeat judge every score is of a fresh one. Add --repeat judge, or use --rotation cyclic"
            )

    def _check_without_budget(self) -> None:
        if self.panel is None or self.allocation is not Allocation.FIXED:
            raise BudgetError("no budget given; write a number of scores (2000) or scores per item (20x)")

    def resolve_budget(self, n_items: int, *, without: int = 0) -> Budget:
        """The budget in scores for this many items; ``without`` is what to allow where none was given."""
        budget = Budget.parse(without if self.budget is None else self.budget, n_items=n_items)
        if budget.unit is not Unit.SCORES:
            raise BudgetError(
                f"budget {self.budget!r} is counted in {budget.unit.value}, but an inspect run is "
                "budgeted in scores so far; write a number of scores (2000) or scores per item (20x)"
            )
        return budget

    def make_sampler(
        self, design: Design, *, warmup: int | None = None, judge_of: JudgeOf | None = None
    ) -> Sampler:
        """A fresh sampler.

        Args:
            design: what to ask; its raters are the judges, where they take turns.
            warmup: raises the sampler's own first readings per item, never lowers them.
            judge_of: who scores what; None where judges do not take turns.
        """
        cls = get_sampler(self.sampler)
        arguments: dict[str, Any] = dict(self.options)
        if warmup is not None and "warmup" in introspection.signature(cls).parameters:
            arguments["warmup"] = max(warmup, self.fixed_repeats)
        try:
            sampler = cls(design, seed=self.seed, **arguments)
        except TypeError as ex:
            raise InvalidInputError(f"sampler {self.sampler!r} refuses its options: {ex}") from ex
        if judge_of is not None and isinstance(sampler, RepeatSampler) and self.panel is not None:
            sampler.rotate(judge_of, rotation=self.panel.rotation)
        return sampler

    @property
    def corrects_judges(self) -> bool:
        """Whether the sampler is told who scores what, and takes the judges' deviations out."""
        return self.panel is not None and isinstance(self._trial, RepeatSampler)

    @cached_property
    def _trial(self) -> Sampler:
        return self.make_sampler(Design.of_items(2))

    @property
    def allocation(self) -> Allocation:
        """What the estimators must know of the sampler."""
        return self._trial.allocation

    @property
    def fixed_repeats(self) -> int:
        """Readings every item gets whatever its scores are."""
        return self._trial.fixed_repeats

    @classmethod
    def of(
        cls,
        *,
        budget: str | int | None,
        sampler: str | None = None,
        repeat: str | None = None,
        score: str | None = None,
        seed: int | None = None,
        score_range: str | Sequence[float] | None = None,
        judges: Judges | None = None,
        rotation: str | None = None,
        judge_prices: Prices | None = None,
        judge_role: str | None = None,
        rotating: Panel | None = None,
        **options: Any,
    ) -> Config:
        """From what a user typed; None means the default. ``rotating`` is the panel of a scorer that has one.

        Raises:
            BudgetError: no budget was given, and there is something to decide.
            InvalidInputError: a score range that is none, or a panel that is none.
        """
        panel = rotating or Panel.of(judges, rotation=rotation, prices=judge_prices, role=judge_role)
        return cls(
            budget=budget,
            sampler=sampler or (DEFAULT_SAMPLER if panel is None else DEFAULT_SAMPLER_OF_PANELS),
            repeat=Repeat.named(repeat or Repeat.GENERATION),
            score=score,
            seed=seed or 0,
            score_range=None if score_range is None else parse_range(score_range),
            options={k: v for k, v in options.items() if v is not None},
            panel=panel,
        )
