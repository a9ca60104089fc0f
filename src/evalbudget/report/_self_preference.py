"""Do judges favour themselves?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from evalbudget._fields import Shown, percent
from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates import self_preference
from evalbudget.report._numbers import CLAIM, claimed
from evalbudget.report._section import TableSection
from evalbudget.report._study import Study


@dataclass(frozen=True, slots=True)
class SelfPreferenceRow:
    """One judge that is also a judged model.

    Attributes:
        judge: name in the panel.
        model: name among the models.
        value: how much more it gives itself than the others give it, beyond what it gives others.
        standard_error: of it.
        low: of the interval that holds for all rows at once.
        high: of it.
        items: behind it.
    """

    judge: Annotated[str, Shown("judge")]
    model: Annotated[str, Shown("model")]
    value: Annotated[float, Shown("preference", "+p")]
    standard_error: Annotated[float, Shown("s.e.", "p")]
    low: Annotated[float, Shown("{level} at once", "+p", to="high")]
    high: float
    items: Annotated[int, Shown("items", ",")]


@dataclass(frozen=True)
class SelfPreferences(TableSection):
    """Judges that are also judged models.

    Attributes:
        rows: one each.
        level: of the intervals.
    """

    name: ClassVar[str] = "self_preference"
    title: ClassVar[str] = "Self-preference"
    caption: ClassVar[str] = "self-preference"

    rows: tuple[SelfPreferenceRow, ...]
    level: float

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None if no judge is among the models."""
        if not study.is_panel or len(study.models) < 2:
            return None
        try:
            found = self_preference(study.fixed_table, study.models, study.raters)
        except InvalidInferenceError:
            return None
        bounds = claimed(found.confidence_intervals(study.level), found.standard_error)
        rows = zip(
            found.judges,
            found.models,
            found.value.tolist(),
            found.standard_error.tolist(),
            bounds.low.tolist(),
            bounds.high.tolist(),
            found.n.tolist(),
            strict=True,
        )
        return cls(tuple(SelfPreferenceRow(*row) for row in rows), study.level)

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        return (
            "How much more a judge gives itself than the others give it, beyond what it gives the other "
            f"models more than they do. {CLAIM} {percent(self.level)} at once: all rows together "
            "(Bonferroni)."
        )
