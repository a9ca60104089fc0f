"""What the user asked for, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evalbudget import Allocation, Design, Sampler
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.repeats import DEFAULT_SAMPLER, RepeatConfig
from evalbudget.repeats.samplers import JudgeOf, RepeatSampler
from evalbudget.scale import parse_range
from evalbudget_inspect.judges.judge_names import Judges
from evalbudget_inspect.judges.panel import Panel, Prices

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
class Config(RepeatConfig):
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

    repeat: Repeat = Repeat.GENERATION
    panel: Panel | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
            super()._check_without_budget()

    def make_sampler(
        self,
        design: Design,
        *,
        warmup: int | None = None,
        budget: int | None = None,
        judge_of: JudgeOf | None = None,
    ) -> Sampler:
        """A fresh sampler.

        Args:
            design: what to ask; its raters are the judges, where they take turns.
            warmup: raises the sampler's own first readings per item, never lowers them.
            budget: readings it may expect in all, for samplers that plan with it.
            judge_of: who scores what; None where judges do not take turns.
        """
        sampler = super().make_sampler(design, warmup=warmup, budget=budget)
        if judge_of is not None and isinstance(sampler, RepeatSampler) and self.panel is not None:
            sampler.rotate(judge_of, rotation=self.panel.rotation)
        return sampler

    @property
    def corrects_judges(self) -> bool:
        """Whether the sampler is told who scores what, and takes the judges' deviations out."""
        return self.panel is not None and isinstance(self._trial, RepeatSampler)

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
