"""How each judge agrees with the others, and which part of the scale it uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from evalbudget._fields import Shown
from evalbudget.report._section import TableSection
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._means import mean_of_known
from evalbudget.tables import NotedTable


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """One judge.

    Attributes:
        judge: name.
        correlation: of its scores with the mean of the other judges', over models and items; nan if one of
            them never varies, or they share nothing.
        apart: mean absolute difference from the mean of the others, each less its own mean.
        cells: pairs of model and item that it and another judge scored.
        low: its lowest score.
        high: its highest.
        deviation: standard deviation of its scores.
        values: how many different ones.
    """

    judge: Annotated[str, Shown("judge")]
    correlation: Annotated[float, Shown("correlation", ",.2f")]
    apart: Annotated[float, Shown("distance", ".3g")]
    cells: int
    low: Annotated[float, Shown("lowest", ".4g")]
    high: Annotated[float, Shown("highest", ".4g")]
    deviation: Annotated[float, Shown("s.d.", ".3g")]
    values: Annotated[int, Shown("values", ",")]


@dataclass(frozen=True)
class JudgeAgreement(TableSection):
    """Judges in the order of the panel.

    Attributes:
        rows: one per judge that scored.
    """

    name: ClassVar[str] = "agreement"
    title: ClassVar[str] = "Agreement of the judges"
    caption: ClassVar[str] = "agreement and scale"

    rows: tuple[AgreementRow, ...]

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None without a panel."""
        if not study.is_panel:
            return None
        table = study.fixed_table
        cells = mean_of_known(table)
        scored = np.asarray(np.isfinite(cells).any(axis=(0, 1)))
        if scored.sum() < 2:
            return None
        centred = cells - np.array(
            [np.nanmean(cells[:, :, j]) if scored[j] else np.nan for j in range(len(study.raters))]
        )
        rows = [_row(study.raters[j], table[:, :, j], centred, j) for j in np.flatnonzero(scored).tolist()]
        return cls(tuple(rows))

    @property
    def label(self) -> str:
        """What the columns mean."""
        return (
            "Correlation with, and mean distance from, the mean of the other judges on the same models "
            "and items, each judge less its own mean; repeats averaged. Scale: lowest and highest score, "
            "standard deviation, different values. Point estimates, no intervals."
        )

    def about_judge(self, judge: str) -> tuple[NotedTable, ...]:
        """Its row."""
        return self._of_judge(judge)


def _row(judge: str, scores: FloatArray, centred: FloatArray, j: int) -> AgreementRow:
    others = mean_of_known(np.delete(centred, j, axis=2))
    shared = np.isfinite(centred[:, :, j]) & np.isfinite(others)
    x, y = centred[:, :, j][shared], others[shared]
    varies = x.size > 1 and np.ptp(x) > 0.0 and np.ptp(y) > 0.0
    own = scores[~np.isnan(scores)]
    return AgreementRow(
        judge,
        float(np.corrcoef(x, y)[0, 1]) if varies else float("nan"),
        float(np.abs(x - y).mean()) if x.size else float("nan"),
        int(x.size),
        float(own.min()),
        float(own.max()),
        float(own.std()),
        int(np.unique(own).size),
    )
