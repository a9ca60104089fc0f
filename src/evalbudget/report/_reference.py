"""Judges against the reference: what humans, or whatever is trusted, said of the same answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from evalbudget._fields import Shown, percent
from evalbudget.judges.estimates import diagnose_scales
from evalbudget.repeats.estimates import ItemReadings, mean_over_sampled_items
from evalbudget.report._numbers import CLAIM
from evalbudget.report._section import TableSection
from evalbudget.report._study import Study
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._means import mean_of_known
from evalbudget.tables import NotedTable

PANEL = "mean of the panel"
_REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """One judge, or the panel's mean.

    Attributes:
        judge: name.
        bias: mean of its score less the reference, over the items, all models of an item weighing the same.
        standard_error: of it.
        low: of the interval that holds for all rows at once.
        high: of it.
        correlation: of its cell means with the reference's, over models and items; nan if one never varies.
        items: behind the bias.
        cells: pairs of model and item behind the correlation.
    """

    judge: Annotated[str, Shown("judge")]
    bias: Annotated[float, Shown("bias", "+p")]
    standard_error: Annotated[float, Shown("s.e.", "p")]
    low: Annotated[float, Shown("{level} at once", "+p", to="high")]
    high: float
    correlation: Annotated[float, Shown("correlation", ",.2f")]
    items: Annotated[int, Shown("items", ",")]
    cells: int


@dataclass(frozen=True)
class AgainstReference(TableSection):
    """Judges against the reference, in the order of the panel; its mean last.

    Attributes:
        rows: one per judge, and one for the mean over the judges where there are several.
        level: of the intervals.
        references: per model and item, at most.
        odd: whether the reference seems to be on another scale.
    """

    name: ClassVar[str] = "reference"
    title: ClassVar[str] = "Against the reference"
    caption: ClassVar[str] = "against the reference"

    rows: tuple[ReferenceRow, ...]
    level: float
    references: int
    odd: bool

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None without a reference of any scored item."""
        reference = study.recorded.reference
        if reference is None:
            return None
        truth = mean_of_known(reference)
        scores = mean_of_known(study.fixed_table)
        series = {name: scores[:, :, j] for j, name in enumerate(study.raters)}
        if study.is_panel:
            everyone = np.where(np.isnan(scores).any(axis=2), np.nan, scores.mean(axis=2))
            series[PANEL] = everyone
        at_once = 1 - (1 - study.level) / len(series)
        rows = [row for name, x in series.items() if (row := _against(name, x, truth, at_once)) is not None]
        if not rows:
            return None
        return cls(tuple(rows), study.level, reference.shape[2], _odd(study))

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        text = (
            f"Bias: score less the mean of up to {self.references} references of the same answer. {CLAIM} "
            f"{percent(self.level)} at once: all rows together (Bonferroni). Correlation over answers: a "
            "point estimate."
        )
        if self.odd:
            text += " Beware: the reference seems to be on another scale; then the bias means nothing."
        return text

    def about_judge(self, judge: str) -> tuple[NotedTable, ...]:
        """Its row."""
        return self._of_judge(judge)

    def to_dict(self) -> dict[str, Any]:
        """Label, rows and whether the scales differ."""
        return {
            "label": self.label,
            "other_scale": self.odd,
            "rows": [asdict(row) for row in self.rows],
        }


def _against(name: str, scores: FloatArray, truth: FloatArray, level: float) -> ReferenceRow | None:
    model, item = np.nonzero(~np.isnan(scores) & ~np.isnan(truth))
    if not model.size:
        return None
    x, y = scores[model, item], truth[model, item]
    found = mean_over_sampled_items(
        ItemReadings.of(item, model, x - y, n_items=scores.shape[1]), allocation=Allocation.FIXED
    )
    interval = found.confidence_interval(level)
    varies = np.ptp(x) > 0 and np.ptp(y) > 0
    return ReferenceRow(
        name,
        found.value,
        found.standard_error,
        interval.low,
        interval.high,
        float(np.corrcoef(x, y)[0, 1]) if varies else float("nan"),
        int(found.details["items"]),
        int(model.size),
    )


def _odd(study: Study) -> bool:
    """The reference taken for one more judge: the others are on one scale."""
    assert study.recorded.reference is not None
    table = study.fixed_table
    reference = study.recorded.reference.astype(np.float64)[:, :, None, :]
    epochs = max(table.shape[3], reference.shape[3])
    both = np.concatenate([_padded(table, epochs), _padded(reference, epochs)], axis=2)
    one = both.reshape(1, -1, both.shape[2], epochs)
    name = max((_REFERENCE, *study.raters), key=len) + "'"  # no rater's
    return not diagnose_scales(study.stacked(one, (*study.raters, name))).one_scale


def _padded(table: FloatArray, epochs: int) -> FloatArray:
    width = [(0, 0)] * 3 + [(0, epochs - table.shape[3])]
    return np.pad(table, width, constant_values=np.nan)
