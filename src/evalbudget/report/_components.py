"""Where the variance of a score comes from."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from evalbudget._fields import Shown, percent
from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates import VarianceComponents, variance_components
from evalbudget.report._section import TableSection
from evalbudget.report._study import Study
from evalbudget.tables import WORDS, NotedTable

RESAMPLES = 200
_COLUMNS = ("source", "variance", "low", "share")


def _source(row: ComponentRow) -> str:
    return row.source + (" (negative: taken for 0)" if row.variance < 0 else "")


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """One source of variance, or sources that cannot be told apart.

    Attributes:
        source: name; joined by ``+`` where the design gives only the sum.
        identified: whether it is a single source.
        variance: mean over the models; may be negative, which is not told from zero.
        share: of the variance of a single score by a judge at random, negatives taken for 0.
        low: of the bootstrap interval for a single model; of several, the smallest estimate.
        high: of it; the largest.
    """

    source: Annotated[str, Shown("source", by=_source, more=WORDS)]
    identified: bool
    variance: Annotated[float, Shown("variance", ".3g")]
    share: Annotated[float, Shown("share", ".0%")]
    low: Annotated[float, Shown("over models", ".3g", to="high")]
    high: float


@dataclass(frozen=True)
class Components(TableSection):
    """Variance components.

    Attributes:
        rows: in the order item, generation, item x judge, residual, judge.
        level: of the intervals.
        design: what the scores allow to tell apart.
        method: how.
        models: averaged over.
        items: used, of the model that has the fewest.
        left_out: models with another design or too few scores.
    """

    name: ClassVar[str] = "components"
    title: ClassVar[str] = "Where the variance comes from"
    caption: ClassVar[str] = "where the variance comes from"

    rows: tuple[ComponentRow, ...]
    level: float
    design: str
    method: str
    models: tuple[str, ...]
    items: int
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None without a panel, or with too few scores."""
        if not study.is_panel:
            return None
        found: dict[str, VarianceComponents] = {}
        for m, model in enumerate(study.models):
            try:
                found[model] = variance_components(
                    study.fixed_scores(m),
                    bootstrap=RESAMPLES if len(study.models) == 1 else 0,
                    one_generation=study.recorded.one_generation,
                )
            except InvalidInferenceError:
                continue
        found = {m: f for m, f in found.items() if all(isfinite(c.value) for c in f.components)}
        if not found:
            return None
        # one design may tell other sources apart where a model has repeats and where it has none
        kinds = {model: (f.design, tuple(c.name for c in f.components)) for model, f in found.items()}
        kind = Counter(kinds.values()).most_common(1)[0][0]
        design = kind[0]
        used = {model: f for model, f in found.items() if kinds[model] == kind}
        first = next(iter(used.values()))
        values = np.array([[c.value for c in f.components] for f in used.values()])
        mean = values.mean(axis=0)
        low, high = values.min(axis=0), values.max(axis=0)
        if len(used) == 1:
            bounds = first.confidence_intervals(study.level)
            low, high = bounds.low, bounds.high
        total = float(np.maximum(mean, 0.0).sum())
        rows = tuple(
            ComponentRow(
                c.name,
                c.identified,
                float(mean[i]),
                max(float(mean[i]), 0.0) / total if total > 0 else float("nan"),
                float(low[i]),
                float(high[i]),
            )
            for i, c in enumerate(first.components)
        )
        return cls(
            rows,
            study.level,
            design,
            first.method,
            tuple(used),
            min(f.n_items for f in used.values()),
            tuple(model for model in study.models if model not in used),
        )

    @property
    def label(self) -> str:
        """What the numbers are, and what they cannot tell."""
        one = len(self.models) == 1
        what = (
            f"{percent(self.level)} intervals: bootstrap over items, each source for itself, fixed-n."
            if one
            else f"Means over {len(self.models)} models and the range of their estimates; no intervals."
        )
        text = (
            f"Of one score by a judge at random; {self.items:,} items, {self.method}, design: {self.design}. "
            f"{what}"
        )
        if not all(row.identified for row in self.rows):
            text += (
                " Sources joined by + are not identified: this design gives only their sum; two or more "
                "generations of each item, scored by all judges, tell them apart."
            )
        elif any("generation" in row.source for row in self.rows):
            text += (
                " Repeats are taken for fresh generations; where they re-judge one answer, item holds the "
                "variance of generations."
            )
        if self.left_out:
            text += f" Left out (another design, or too few scores): {', '.join(self.left_out)}."
        return text

    def tables(self) -> tuple[NotedTable, ...]:
        """One table."""
        spread = f"{percent(self.level)} interval" if len(self.models) == 1 else "over models"
        return (self._table(self.rows, only=_COLUMNS, titles={"low": spread}),)

    def to_dict(self) -> dict[str, Any]:
        """Label, design and rows."""
        return {
            "label": self.label,
            "design": self.design,
            "models": list(self.models),
            "left_out": list(self.left_out),
            "items": self.items,
            "rows": [asdict(row) for row in self.rows],
        }
