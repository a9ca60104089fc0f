"""The baseline: one score per item, from a log or from a small file that is kept with the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.recorded._task_name import TaskName
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import IntArray


@dataclass(frozen=True)
class Baseline:
    """What candidates are compared with.

    Attributes:
        name: of the model.
        score: that is compared.
        scores: of each item, the mean of what may count, by item id.
        task: that they are of, where it is known.
        clusters: label of each item, where there are any.
    """

    name: str
    score: str
    scores: Mapping[str, float]
    task: TaskName | None = None
    clusters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, recorded: RecordedScores, *, name: str, score: str | None = None, series: Sequence[str] = ()
    ) -> Baseline:
        """From the scores of one model.

        Args:
            recorded: the scores.
            name: to go by.
            score: of several metrics, the one to compare by, or of several judges; None for the only metric,
                or all judges.
            series: names by which a host's logs may have the score that decides, the likeliest first; those
                that are not there are passed over.

        Raises:
            InvalidInputError: several models, several metrics and none chosen, or no score.
            UnknownNameError: no such score.
        """
        if len(recorded.models) > 1:
            raise InvalidInputError(
                f"{name} holds {len(recorded.models)} models ({', '.join(recorded.models[:4])}); a "
                "gate compares "
                "one with one: give the log of one, or --model"
            )
        known_as = next((each for each in series if each in recorded.raters), None)
        score = known_as or score
        if score is not None and (score in recorded.raters or not recorded.one_measure):
            if score not in recorded.raters:
                raise UnknownNameError("score", score, recorded.raters)
            recorded = recorded.part(raters=np.array([recorded.raters.index(score)]))
        if not recorded.one_measure and len(recorded.raters) > 1:
            raise InvalidInputError(
                f"{name} has the scores {', '.join(recorded.raters)}; name the one that decides, for example "
                f"--score {recorded.raters[0]}"
            )
        means = Study(recorded).item_means(0)
        known = {
            item: float(value)
            for item, value in zip(recorded.items, means.tolist(), strict=True)
            if not np.isnan(value)
        }
        if not known:
            raise InvalidInputError(
                f"{name} has no score that may count for a mean; give a log of plain epochs"
            )
        labels = recorded.categories or ()
        return cls(
            name,
            recorded.raters[0] if len(recorded.raters) == 1 else "panel",
            known,
            recorded.task,
            dict(zip(recorded.items, labels, strict=False)),
        )

    def shared(self, items: Sequence[str]) -> list[str]:
        """Items, in their order, that the baseline has a score of.

        Raises:
            InvalidInputError: there are fewer than two.
        """
        found = [item for item in items if item in self.scores]
        if len(found) < 2:
            ours = next(iter(self.scores))
            raise InvalidInputError(
                f"the baseline and the candidate share {len(found)} items (the baseline has "
                f"{len(self.scores):,}, such as {ours!r}; the candidate {len(items):,}, such as "
                f"{items[0] if items else '-'!r}); a gate needs two or more: give a baseline of the same task"
            )
        return found

    def codes(self, items: Sequence[str]) -> IntArray:
        """Number of each item's cluster, shape (len(items),).

        Raises:
            InvalidInputError: an item has none.
        """
        for item in items:
            if item not in self.clusters:
                raise InvalidInputError(
                    f"the baseline says of item {item!r} not which cluster it belongs to; leave "
                    "--cluster out, "
                    "or give a baseline that does"
                )
        return np.unique([self.clusters[item] for item in items], return_inverse=True)[1].astype(np.int64)

    def check_task(self, task: TaskName | None) -> None:
        """Refuse a candidate of another task, or of another version of it.

        Raises:
            InvalidInputError: it is known what both are of, and it differs.
        """
        if self.task is not None and task is not None and self.task != task:
            raise InvalidInputError(
                f"the baseline is of {self.task} and the candidate of {task}: their items may differ under "
                "the same ids; give a baseline of the same task and version"
            )

    def check_range(self, bounds: tuple[float, float]) -> None:
        """Refuse scores outside of the range.

        Raises:
            InvalidInputError: there is one.
        """
        low, high = bounds
        for item, value in self.scores.items():
            if not low - 1e-9 <= value <= high + 1e-9:
                raise InvalidInputError(
                    f"item {item!r} of {self.name} has the score {value:g}, outside of {low:g} to {high:g}; "
                    "declare the smallest and the largest possible score, for example --score-range 1..10"
                )
