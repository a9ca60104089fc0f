"""Where the budget went: readings and dollars by model and judge, and what came of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from evalbudget._fields import Shown
from evalbudget.report._leaderboard import standing
from evalbudget.report._numbers import table_of
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable


@dataclass(frozen=True, slots=True)
class SpentOnModel:
    """What one model's scores cost.

    Attributes:
        model: name.
        counted: readings behind its estimate.
        not_counted: readings that do not count for it, since they were bought because of earlier scores.
        failed: paid for, without a score; None where the scores do not say what was paid for.
        usd: dollars paid; None where unknown.
    """

    model: Annotated[str, Shown("model")]
    counted: Annotated[int, Shown("counted", ",")]
    not_counted: Annotated[int, Shown("not counted", ",")]
    failed: Annotated[int | None, Shown("failed", ",")]
    usd: Annotated[float | None, Shown("usd", "usd", optional=True)]


@dataclass(frozen=True, slots=True)
class SpentOnJudge:
    """What one judge scored.

    Attributes:
        judge: name.
        readings: scores of it.
        share: of all scores.
        usd: dollars that the answers it scored cost, with its scores; None where unknown, or where judges
            scored the same answers.
    """

    judge: Annotated[str, Shown("judge")]
    readings: Annotated[int, Shown("scores", ",")]
    share: Annotated[float, Shown("share", ".0%")]
    usd: Annotated[float | None, Shown("usd", "usd", optional=True)]


@dataclass(frozen=True)
class Spent(Section):
    """Where the budget went.

    Attributes:
        models: in the order of the leaderboard.
        judges: of a panel, in its order.
    """

    name: ClassVar[str] = "spent"
    title: ClassVar[str] = "Where the budget went"

    models: tuple[SpentOnModel, ...]
    judges: tuple[SpentOnJudge, ...]

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None where the scores say nothing of how they were bought."""
        recorded = study.recorded
        if recorded.costs is None and all(p.cost is None for p in recorded.purchases or ()):
            return None
        return cls(
            tuple(_model(study, m) for m in study.order),
            tuple(_judge(study, j) for j in range(len(study.raters))) if study.is_panel else (),
        )

    @property
    def label(self) -> str:
        """What the columns mean."""
        return (
            "Counted: readings behind the estimate. Not counted: bought because of earlier scores, so they "
            "would bias the mean. Failed: paid for, without a score."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """By model, with a total, and by judge."""
        everyone = (_all_of(self.models),) if len(self.models) > 1 else ()
        return (self._of_models((*self.models, *everyone)), *self._of_judges(self.judges))

    def about_model(self, model: str) -> tuple[NotedTable, ...]:
        """Its row."""
        rows = tuple(row for row in self.models if row.model == model)
        return (self._of_models(rows),) if rows else ()

    def about_judge(self, judge: str) -> tuple[NotedTable, ...]:
        """Its row."""
        return self._of_judges(tuple(row for row in self.judges if row.judge == judge))

    def _of_models(self, rows: tuple[SpentOnModel, ...]) -> NotedTable:
        return table_of(rows, "where the budget went", self.label)

    def _of_judges(self, rows: tuple[SpentOnJudge, ...]) -> tuple[NotedTable, ...]:
        if not rows:
            return ()
        dollars = any(row.usd is not None for row in rows)
        note = "Usd: of the answers it scored, with its scores." if dollars else ""
        return (table_of(rows, "where the budget went, by judge", note),)

    def to_dict(self) -> dict[str, Any]:
        """Label and rows."""
        return {
            "label": self.label,
            "models": [asdict(row) for row in self.models],
            "judges": [asdict(row) for row in self.judges],
        }


def _model(study: Study, m: int) -> SpentOnModel:
    row = standing(study, m, study.means[m], 1, (1, 1))
    there = ~np.isnan(study.recorded.scores[m])
    paid = study.purchase(m).cost
    # some hosts pay by the score, others by the answer, whatever scores it
    brought = [int(there.sum()), int(there.any(axis=1).sum())]
    failed = None if paid is None else next((round(paid) - n for n in brought if n <= paid), None)
    if failed and study.outside is not None:  # paid for, and not to have a score
        failed = max(failed - int(study.outside.sum()) * row.most, 0)
    usd = study.purchase(m).usd
    costs = study.recorded.costs
    if usd is None and costs is not None and not _shared(study):
        usd = _total(costs[m][there])
    return SpentOnModel(study.models[m], row.readings, row.readings_recorded - row.readings, failed, usd)


def _all_of(rows: tuple[SpentOnModel, ...]) -> SpentOnModel:
    failed = [row.failed for row in rows if row.failed is not None]
    paid = [row.usd for row in rows if row.usd is not None]
    return SpentOnModel(
        "all",
        sum(row.counted for row in rows),
        sum(row.not_counted for row in rows),
        sum(failed) if len(failed) == len(rows) else None,
        sum(paid) if len(paid) == len(rows) else None,
    )


def _judge(study: Study, j: int) -> SpentOnJudge:
    there = ~np.isnan(study.recorded.scores)
    costs = study.recorded.costs
    own = there[:, :, j]
    usd = None if costs is None or _shared(study) else _total(costs[:, :, j][own])
    return SpentOnJudge(study.raters[j], int(own.sum()), float(own.sum() / there.sum()), usd)


def _shared(study: Study) -> bool:
    """Whether an answer has several scores: logs give each the cost of the whole answer."""
    return bool(((~np.isnan(study.recorded.scores)).sum(axis=2) > 1).any())


def _total(costs: np.ndarray[Any, np.dtype[np.floating[Any]]]) -> float | None:
    """Of what is known; None if some is not."""
    return None if not costs.size or np.isnan(costs).any() else float(costs.sum())
