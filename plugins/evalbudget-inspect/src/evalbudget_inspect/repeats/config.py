"""What the user asked for, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from evalbudget import Design
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats import DEFAULT_SAMPLER_OF_PANELS, Repeat, RepeatConfig
from evalbudget.repeats.samplers import JudgeOf, RepeatSampler
from evalbudget_inspect.judges.panel import Panel


@dataclass(frozen=True)
class Config(RepeatConfig):
    """One budgeted task.

    Attributes:
        budget: None, for a panel of judges only: the host's own epochs, and no more.
        panel: judges that take turns; None where the task's own judge scores.

    Raises:
        UnknownNameError: no such sampler.
        BudgetError: the budget cannot be read, or is not counted in scores.
        InvalidInputError: the sampler has no such option, or refuses its value; or a panel of judges with a
            sampler or a repeat that does not go with it.
    """

    panel: Panel | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.panel is not None:
            self._check_panel(self.panel)

    @property
    def rotates(self) -> bool:
        """See RepeatConfig."""
        return self.panel is not None

    def _check_panel(self, panel: Panel) -> None:
        if self.draws:
            raise InvalidInputError(
                f"--sampler {self.sampler} reads items once, and judges that take turns are told apart by "
                "items that they all score; drop --judges, or evaluate fewer items with --limit"
            )
        if panel.calls_per_generation > 1 and self.repeat is Repeat.GENERATION:
            raise InvalidInputError(
                f"the rotation {panel.rotation!r} has several judges score the same generation, and without "
                "--repeat judge every score is of a fresh one. Add --repeat judge, or use --rotation cyclic"
            )

    def check_epochs(self, epochs: int) -> None:
        """Refuse a sample of the items where each is to be read several times.

        Raises:
            BudgetError: as said.
        """
        if self.draws and epochs > 1:
            raise BudgetError(
                f"--epochs {epochs} asks for {epochs} readings of every item, and sampler {self.sampler!r}, "
                f"which --budget {self.budget} is for, reads a sample of them once each; add --epochs 1, or "
                "raise --budget and leave --sampler out"
            )

    def make_sampler(
        self,
        design: Design,
        *,
        warmup: int | None = None,
        budget: int | None = None,
        judge_of: JudgeOf | None = None,
        questions: Mapping[str, str] | None = None,
    ) -> RepeatSampler:
        """A fresh sampler.

        Args:
            design: what to ask; its raters are the judges, where they take turns.
            warmup: raises the sampler's own first readings per item, never lowers them.
            budget: readings it may expect in all, for samplers that plan with it.
            judge_of: who scores what; None where judges do not take turns.
            questions: see RepeatConfig.
        """
        sampler = super().make_sampler(design, warmup=warmup, budget=budget, questions=questions)
        if judge_of is not None and self.panel is not None:
            sampler.rotate(judge_of, rotation=self.panel.rotation)
        return sampler

    @classmethod
    def of(cls, *, rotating: Panel | None = None, **typed: Any) -> Self:
        """From what a user typed; None means the default. ``rotating`` is the panel of a scorer that has one.

        Raises:
            BudgetError: no budget was given, and there is something to decide.
            InvalidInputError: a score range that is none, or a panel that is none.
        """
        asked = {name: typed.pop(f"judge_{name}", None) for name in ("prices", "role")}
        panel = rotating or Panel.of(typed.pop("judges", None), rotation=typed.pop("rotation", None), **asked)
        if panel is not None and not typed.get("sampler"):
            typed["sampler"] = DEFAULT_SAMPLER_OF_PANELS
        return cls._of(typed, panel=panel)
