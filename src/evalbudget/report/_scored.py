"""Recorded scores and every core estimator of them, as far as their purchase allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import (
    JudgeScores,
    between_clusters,
    judge_corrected,
    panel_mean,
    require_one_scale,
)
from evalbudget.judges.estimates._panel_mean import error_of_biases
from evalbudget.recorded._missing import missing_answers
from evalbudget.repeats.estimates import (
    ItemReadings,
    Strata,
    mean_over_sampled_items,
    mean_over_stratified_items,
)
from evalbudget.repeats.estimates._combined import weighted_mean
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray, IntArray

if TYPE_CHECKING:
    from evalbudget.recorded._how_bought import HowBought
    from evalbudget.recorded._scores import RecordedScores

S = TypeVar("S", bound="Scored")


@dataclass(frozen=True, eq=False)
class Scored:
    """Recorded scores and what is estimated from them.

    Attributes:
        recorded: the scores; several raters are a panel of judges.
        level: of all intervals.
        against: the model all others are compared with; None for the one with the highest estimate.
        bounds: smallest and largest possible score, where that is known.
    """

    recorded: RecordedScores
    level: float = 0.95
    against: str | None = None
    bounds: tuple[float, float] | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Names."""
        return self.recorded.models

    @property
    def raters(self) -> tuple[str, ...]:
        """Names."""
        return self.recorded.raters

    @property
    def is_panel(self) -> bool:
        """Whether there are several raters."""
        return len(self.raters) > 1

    @cached_property
    def clusters(self) -> IntArray | None:
        """Number of each item's cluster, as the source declares them; None where items are independent."""
        declared = self.recorded.declared
        if declared is None or declared.clusters is None:
            return None
        return np.unique(np.asarray(declared.clusters), return_inverse=True)[1].astype(np.int64)

    @cached_property
    def tasks(self) -> Mapping[str, Part[Self]]:
        """The tasks of a group, by name, each as if alone; empty where the scores are of no group.

        One that has nothing but failures is among them, and one of which nothing is said is not.
        """
        labels = np.asarray(self.recorded.categories if self.recorded.by_category else ())
        told = self.recorded.counts.any(axis=(0, 2))
        if self.recorded.failed is not None:
            told = told | self.recorded.failed.any(axis=(0, 2))
        names = dict.fromkeys(labels[told].tolist() if labels.size else ())
        return {name: Part.of(self, labels == name) for name in names} if len(names) > 1 else {}

    def tasks_of(self, model: int) -> Mapping[str, tuple[Self, float]]:
        """Those that have a score of a model, with the number of items that each weighs."""
        return {
            name: (part.study, float(known if part.drawn_of is None else part.drawn_of))
            for name, part in self.tasks.items()
            if (known := int(np.count_nonzero(part.study.recorded.counts[model].any(axis=1))))
        }

    def purchase(self, model: int) -> HowBought:
        """How the model's scores were bought."""
        from evalbudget.recorded._how_bought import HowBought

        return HowBought() if self.recorded.purchases is None else self.recorded.purchases[model]

    def scores(self, model: int) -> JudgeScores:
        """All scores of a model; epochs are ordinals where the allocation is not fixed."""
        latest = self._latest
        if model not in latest:
            latest.clear()  # each model's are looked at many times in turn, and all together may be large
            latest[model] = self._scores(model)
        return latest[model]

    @cached_property
    def _latest(self) -> dict[int, JudgeScores]:
        return {}

    def _scores(self, model: int) -> JudgeScores:
        table = np.asarray(self.recorded.scores[model], dtype=np.float64)
        item, judge, place = np.nonzero(~np.isnan(table))
        epoch, purchase = place, self.purchase(model)
        if purchase.allocation is not Allocation.FIXED and self.recorded.epochs is not None:
            epoch = self.recorded.epochs[model, item, judge, place]
        return JudgeScores.of(
            item,
            epoch,
            judge,
            table[item, judge, place],
            judges=self.raters,
            n_items=len(self.recorded.items),
            cost=purchase.cost,
            phase=None if self.recorded.phases is None else self.recorded.phases[model, item, judge, place],
            phase_sizes=purchase.phase_sizes,
        )

    def fixed_scores(self, model: int) -> JudgeScores:
        """The scores of a model that were bought whatever the scores were."""
        scores, purchase = self.scores(model), self.purchase(model)
        if purchase.allocation is Allocation.FIXED:
            return scores
        return scores.where(scores.epoch < purchase.fixed_repeats)

    @cached_property
    def fixed_table(self) -> FloatArray:
        """Those of all models, shape (models, items, raters, epochs), NaN elsewhere."""
        parts = [self.fixed_scores(m) for m in range(len(self.models))]
        epochs = 1 + max(int(part.epoch.max(initial=0)) for part in parts)
        table: FloatArray = np.full(
            (len(self.models), len(self.recorded.items), len(self.raters), epochs), np.nan
        )
        for m, part in enumerate(parts):
            table[m, part.item, part.judge, part.epoch] = part.value
        return table

    def stacked(self, table: FloatArray, raters: tuple[str, ...]) -> JudgeScores:
        """Scores of all models as one benchmark, a model's epochs after another's, each less its mean.

        Args:
            table: shape (models, items, raters, epochs), NaN where missing.
            raters: names.
        """
        model, item, judge, epoch = np.nonzero(~np.isnan(table))
        value = table[model, item, judge, epoch]
        n = np.bincount(model, minlength=len(table))
        mean = np.bincount(model, value, len(table)) / np.maximum(n, 1)
        if len(table) > 1:
            value = value - mean[model]
        generation = model * table.shape[3] + epoch
        return JudgeScores.of(item, generation, judge, value, judges=raters, n_items=table.shape[1])

    def mean(self, model: int) -> Estimate:
        """A model's mean over sampled items: of the panel, or of the only rater.

        Raises:
            InvalidInferenceError: no reading may count, or none is there.
        """
        if model not in self._known_means:
            self._known_means[model] = self._mean(model)
        return self._known_means[model]

    @cached_property
    def _known_means(self) -> dict[int, Estimate]:
        """What :meth:`mean` has found."""
        return {}

    def _mean(self, model: int) -> Estimate:
        purchase = self.purchase(model)
        scores = self.scores(model)
        if not scores.value.size:
            lost = int(missing_answers(self.recorded)[model])
            by = f" by {' or '.join(map(repr, self.raters[:3]))}"
            why = f": all {lost:,} of its answers are missing" if lost else by
            raise InvalidInferenceError(
                f"model {self.models[model]!r} has no score{why}; leave that model out (report, compare and "
                "plan: --model)"
            )
        if purchase.allocation is Allocation.ADAPTIVE and not self.fixed_scores(model).value.size:
            raise InvalidInferenceError(
                f"every reading of model {self.models[model]!r} was bought because of earlier scores, so "
                "their mean is biased; leave that model out (report, compare and plan: --model), or evaluate "
                "it with a sampler that reads every item first (a race has a leaderboard of its own)"
            )
        fixed = max(purchase.fixed_repeats, 1)
        if tasks := self.tasks_of(model):
            studies, weights = zip(*tasks.values(), strict=True)
            return weighted_mean([study.mean(model) for study in studies], weights)
        if self.is_panel:
            found = self._of_judges(model)
            if self.clusters is not None:
                found = between_clusters(found, self.item_means(model), self.clusters)
        elif self.recorded.strata is not None:
            found = mean_over_stratified_items(
                readings_of(scores), self.recorded.strata, bounds=self.bounds, clusters=self.clusters
            )
        else:
            found = mean_over_sampled_items(
                readings_of(scores),
                allocation=purchase.allocation,
                fixed_repeats=fixed,
                bounds=self.bounds,
                clusters=self.clusters,
            )
        return found if self.bounds is None else found.within(*self.bounds)

    def _of_judges(self, model: int) -> Estimate:
        """A model's mean by the panel, items independent."""
        purchase = self.purchase(model)
        fixed = max(purchase.fixed_repeats, 1)
        return panel_mean(self.scores(model), allocation=purchase.allocation, fixed_repeats=fixed)

    @cached_property
    def means(self) -> tuple[Estimate, ...]:
        """Of all models."""
        return tuple(self.mean(m) for m in range(len(self.models)))

    @cached_property
    def scored_by(self) -> NDArray[np.bool_]:
        """Which raters scored which models, shape (models, raters)."""
        return np.asarray(self.recorded.counts.any(axis=1))

    @cached_property
    def all_item_means(self) -> FloatArray:
        """:meth:`item_means` of all models, shape (models, items)."""
        return np.array([self.item_means(m) for m in range(len(self.models))])

    @cached_property
    def judge_errors(self) -> tuple[FloatArray, FloatArray]:
        """Variance that fitting the judges' biases adds to each model's mean, with its degrees of freedom.

        Shapes (models,); nothing of a single rater.
        """
        n = len(self.models)
        if not self.is_panel:
            return np.zeros(n), np.ones(n)
        found = [error_of_biases(means, self._of_judges(m)) for m, means in enumerate(self.all_item_means)]
        added, degrees = np.array(found).T
        return added, degrees

    def item_means(self, model: int) -> FloatArray:
        """Each item's score by what may count, shape (items,); NaN where nothing does.

        Of a panel: by judges who scored it, each less what it gives more than the others.
        """
        if self.is_panel:
            adaptive = self.purchase(model).allocation is Allocation.ADAPTIVE
            scores = self.fixed_scores(model) if adaptive else self.scores(model)
            return judge_corrected(scores).item_means
        readings, purchase = readings_of(self.scores(model)), self.purchase(model)
        if purchase.allocation is Allocation.ADAPTIVE:
            return readings.first(purchase.fixed_repeats).moments.mean
        return readings.item_means

    def counted(self, model: int) -> int:
        """Readings behind a model's mean."""
        if self.is_panel and self.purchase(model).allocation is Allocation.ADAPTIVE:
            return int(self.fixed_scores(model).value.size)
        if tasks := self.tasks_of(model):
            return sum(study.counted(model) for study, _ in tasks.values())
        unused = self.mean(model).details.get("readings_unused", 0.0)
        return int(self.scores(model).value.size) - int(unused)

    def require_one_scale(
        self, remedy: str = "--rater NAME, or map the ranges they used to 0..1 with --rescale"
    ) -> None:
        """Refuse judges whose scores lie on different scales.

        Args:
            remedy: how people choose one, where this is asked.

        Raises:
            InvalidInferenceError: they do.
        """
        models, items, raters, repeats = self.recorded.scores.shape
        pooled = replace(
            self.recorded,
            scores=self.recorded.scores.reshape(1, models * items, raters, repeats),
            models=("all",),
            items=tuple(map(str, range(models * items))),
            categories=None,
            texts=None,
            reference=None,
            purchases=None,
            epochs=None,
            phases=None,
            costs=None,
            failed=None,
            declared=None,
            strata=None,
        )
        try:
            require_one_scale(Scored(pooled).scores(0))
        except InvalidInferenceError as ex:
            raise InvalidInferenceError(f"{ex}. Choose one with {remedy}") from ex

    def only(self, items: NDArray[np.bool_]) -> Self:
        """The same of some of the items."""
        return replace(self, recorded=self.recorded.part(items=np.flatnonzero(items), may_be_empty=True))


@dataclass(frozen=True, eq=False)
class Part(Generic[S]):
    """One task of a group.

    Attributes:
        items: of it, shape (items,).
        study: of these items.
        drawn_of: items that it has in all, where a sample of them was drawn; None elsewhere.
    """

    items: NDArray[np.bool_]
    study: S
    drawn_of: int | None

    @classmethod
    def of(cls, whole: S, items: NDArray[np.bool_]) -> Self:
        """Of some items of a group; each stratum is of one task."""
        study, strata = whole.only(items), whole.recorded.strata
        if strata is None:
            return cls(items, study, None)
        used, number = np.unique(strata.of_item[items], return_inverse=True)
        own = Strata(number, strata.sizes[used])
        return cls(items, replace(study, recorded=replace(study.recorded, strata=own)), own.n_items)


def readings_of(scores: JudgeScores) -> ItemReadings:
    """Scores of a panel of one."""
    return ItemReadings.of(
        scores.item,
        scores.epoch,
        scores.value,
        n_items=scores.n_items,
        cost=scores.cost,
        phase=scores.phase,
        phase_sizes=scores.phase_sizes,
    )
