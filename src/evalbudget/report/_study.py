"""What is reported on: models in order, their differences, and what missing scores may make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from evalbudget._fields import names
from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import judge_corrected_generations
from evalbudget.judges.estimates._panel_mean import panel_mean_of
from evalbudget.missing import Missing, as_missing
from evalbudget.recorded._direction import is_lower_better
from evalbudget.recorded._missing import (
    missing_answers,
    missing_by_item,
    missing_shares,
    not_applicable,
    score_range,
)
from evalbudget.repeats._groups import describe_group
from evalbudget.repeats._mean_rows import BenchmarkMean, mean_rows, with_ends
from evalbudget.repeats.estimates import mean_over_fixed_items
from evalbudget.repeats.estimates._benchmark_mean import mean_of_item_means
from evalbudget.report._both import Both
from evalbudget.report._missing import check_range, missing_words, without_missing
from evalbudget.report._numbers import CLAIM
from evalbudget.report._pairs import pairs_by_item
from evalbudget.report._scored import Scored, readings_of
from evalbudget.statistics._bounds import Bounds, FloatArray, IntArray, check_level
from evalbudget.statistics._paired_interval import PairedMeans, ScoreSpan
from evalbudget.statistics._strata import Strata

if TYPE_CHECKING:
    from evalbudget.recorded._scores import RecordedScores


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Items whose differences are averaged, as a part of the whole.

    Attributes:
        study: that holds their scores; of one task, where there is a group.
        here: their numbers in it.
        items: in the whole.
        weight: of their mean; None for the number of items that are compared.
        strata: of them, by whose sizes they weigh, where clusters lie across these; None elsewhere.
    """

    study: Study
    here: IntArray
    items: IntArray
    weight: float | None
    strata: Strata | None = None


@dataclass(frozen=True, eq=False)
class Study(Scored):
    """Recorded scores and what was asked of them: means, differences, and what missing scores may be.

    Attributes:
        recorded: the scores; see :class:`Scored` for more.
        missing: what missing scores count as; ``recorded`` has them accordingly.
        lost: how many answers are missing, shape (models, items); None where nobody counted.
        seen: smallest and largest score of what this is a part of, where both are of one range; None for its
            own.
        outside: items that no score applies to, shape (items,); None where nobody looked.
        unscored: models without any score, which are not among these.
        unranked: how many of them may be better or worse than any other, since their answers are missing.
    """

    missing: Missing = Missing.WORST
    lost: IntArray | None = None
    seen: tuple[float, float] | None = None
    outside: NDArray[np.bool_] | None = None
    unscored: tuple[str, ...] = ()
    unranked: int = 0

    @classmethod
    def of(
        cls,
        recorded: RecordedScores,
        *,
        level: float = 0.95,
        against: str | None = None,
        missing: str = Missing.WORST,
        bounds: tuple[float, float] | None = None,
    ) -> Study:
        """Of scores as they were read.

        Args:
            recorded: the scores.
            level: of all intervals.
            against: the model all others are compared with; None for the best.
            missing: what missing scores count as.
            bounds: smallest and largest possible score; None: as far as it is known.

        Raises:
            InvalidInputError: a score is outside the bounds.
            UnknownNameError: no such value of ``missing``.
        """
        counted = as_missing(missing)
        if bounds is not None:
            check_range(recorded, bounds)
        else:
            bounds = known_range(recorded)
        return cls(
            without_missing(recorded, counted, bounds),
            level,
            against,
            bounds,
            counted,
            missing_by_item(recorded),
            outside=not_applicable(recorded),
        )

    def of_the_scored(self) -> Study:
        """Of the models that have a score; what the others lack is said.

        Raises:
            InvalidInferenceError: one of the others is the model that all are compared with.
        """
        has = self.recorded.counts.any(axis=(1, 2))
        if has.all():
            return self
        others = np.flatnonzero(~has).tolist()
        if self.against in [self.models[m] for m in others]:
            self.mean(self.models.index(self.against))
        lost = [self.lost_of(m) for m in others]
        return replace(
            self,
            recorded=self.recorded.part(models=np.flatnonzero(has)),
            lost=None if self.lost is None else self.lost[has],
            unscored=tuple(self._unscored_words(m) for m in others),
            unranked=sum(n > 0 for n in lost) if self.missing is Missing.WORST else 0,
        )

    def _unscored_words(self, model: int) -> str:
        name, n = self.models[model], self.lost_of(model)
        if not n:
            return f"{name} has no score by {names(self.raters, 3)}, and is left out."
        told = f"{name} has no score: all {n:,} of its answers are missing"
        dropped = self.missing is Missing.DROP
        return told + (self.counted_as if dropped else ". It may be better or worse than any other.")

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Models, the best estimate first."""
        way = 1.0 if self.lower_is_better else -1.0
        return tuple(sorted(range(len(self.models)), key=lambda m: way * self.means[m].value))

    @cached_property
    def lower_is_better(self) -> bool:
        """Whether the source says so."""
        return is_lower_better(self.recorded)

    def only(self, items: NDArray[np.bool_]) -> Self:
        """The same of some of the items; where none of them has a score, the others say what it could be."""
        found = super().only(items)
        if not found.recorded.counts.any():
            found = replace(found, seen=self.scale)
        if self.outside is not None:
            found = replace(found, outside=self.outside[items])
        return found if self.lost is None else replace(found, lost=self.lost[:, items])

    def blocks(self, clusters: IntArray | None) -> tuple[Block, ...]:
        """What differences are the weighted mean of: the tasks of a group, the strata of a sample, or all.

        Strata that clusters lie across are no parts of their own.

        Args:
            clusters: number of each item's, shape (items,); None where items are independent.
        """
        if self.tasks:
            return tuple(
                replace(block, items=np.flatnonzero(part.items)[block.items])
                for part in self.tasks.values()
                for block in part.study.blocks(None if clusters is None else clusters[part.items])
            )
        every = np.arange(len(self.recorded.items))
        if self.recorded.strata is None or self.is_panel:
            return (Block(self, every, every, None),)
        read = ~np.isnan(self.all_item_means)
        whole = self.recorded.strata.collapsed(
            read.all(axis=0) if read.all(axis=0).any() else read.any(axis=0)
        )
        if clusters is not None and whole.divide(clusters):
            return (Block(self, every, every, None, whole),)
        own = [np.flatnonzero(whole.of_item == number) for number in range(whole.sizes.size)]
        return tuple(
            Block(self, here, here, float(size))
            for here, size in zip(own, whole.sizes, strict=True)
            if here.size
        )

    @cached_property
    def shared_items(self) -> IntArray:
        """How many items both of two models have a score on, shape (models, models)."""
        return np.asarray(self._pairs.n.sum(axis=0))

    @cached_property
    def pair_bounds(self) -> Bounds:
        """Intervals of the differences of all pairs, which hold at once, each shape (models, models).

        They hold whatever the missing scores would have been. Pairs that share no item take no part.
        """
        alpha = (1.0 - check_level(self.level)) / max(self.comparable, 1)
        if self.is_whole:
            return self._pairs.intervals(alpha=alpha, span=self.span)
        worst = self._all_pairs(worst=True).intervals(alpha=alpha, span=self.span)
        known = (self.shared_items > 0) & ~np.isnan(worst.low)
        low = np.where(known, np.fmin(worst.low, self._pairs.values), np.nan)  # it stands beside
        return Bounds(low, -low.T)

    @property
    def comparable(self) -> int:
        """Pairs of models that both have a score on some item."""
        return int(np.count_nonzero(np.triu(self.shared_items, 1)))

    @cached_property
    def _pairs(self) -> PairedMeans:
        """Paired differences of all models, over what both have a score of."""
        return self._all_pairs(worst=False)

    def _all_pairs(self, *, worst: bool) -> PairedMeans:
        return PairedMeans.joined(
            [block.study._pairs_in(block, worst=worst) for block in self.blocks(self.clusters)]
        )

    def _pairs_in(self, block: Block, *, worst: bool) -> PairedMeans:
        """Of all models; those of judges that did not score all, by the judges that both have."""
        here = block.here
        cluster = None if self.clusters is None else self.clusters[here]
        first, less = (self.lowest, self.highest) if worst else (self.all_item_means, self.all_item_means)
        found = pairs_by_item(
            first[:, here],
            self.judge_errors,
            less=less[:, here],
            absent=self.absent[:, here],
            cluster=cluster,
            strata=block.strata,
        )
        for a, b in permutations(range(len(self.models)), 2) if self.is_panel else ():
            if not self._shares_fewer(a, b):
                continue
            both = self.of_both(a, b)
            of_two = pairs_by_item(
                both.lowest if worst else both.means,
                both.errors,
                less=both.highest if worst else both.means,
                cluster=cluster,
            )
            for field in fields(PairedMeans):
                table, own = getattr(found, field.name), getattr(of_two, field.name)
                table[:, a, b] = own[:, 0, 1]
        if block.weight is None:
            return found
        return replace(found, weights=np.full(found.n.shape, block.weight))

    @property
    def claim(self) -> str:
        """What every interval over sampled items takes for random, and when it may be read."""
        if self.clusters is None or self.recorded.declared is None:
            return CLAIM
        return CLAIM.replace("items (", f"clusters of items ({self.recorded.declared.cluster}; ", 1)

    @cached_property
    def span(self) -> ScoreSpan:
        """How far two scores can be apart."""
        return ScoreSpan.of(self.recorded.scores, self.bounds)

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Smallest and largest score that a missing one could be; those seen, where nobody knows."""
        return self.bounds or self.seen or score_range(self.recorded)[0]

    @property
    def missing_note(self) -> str:
        """How many answers are missing of whom, and what they count as; empty where none is."""
        told = missing_words((name, self.lost_of(m)) for m, name in enumerate(self.models))
        return told and f"{told}{self.counted_as}"

    def lost_of(self, model: int, items: NDArray[np.bool_] | slice = slice(None)) -> int:
        """How many of a model's answers are missing, in all or among some items."""
        return 0 if self.lost is None else int(self.lost[model, items].sum())

    @property
    def counted_as(self) -> str:
        """What missing answers count as, as the end of a sentence that says how many there are."""
        if self.missing is Missing.DROP:
            return ", and left out (--missing drop)."
        low, high = self.scale
        if self.missing is Missing.ZERO:
            return f", and counted as {high if self.lower_is_better else low:g} (--missing zero)."
        if low == high and self.bounds is None:
            return f": of what they would have been the others, which are all {low:g}, say nothing."
        known = self.bounds is not None or self.scale == (0.0, 1.0)
        ends = f"from {low:,.4g} to {high:,.4g}{'' if known else ', the lowest and the highest seen'}"
        if self.tasks and not known:  # each goes by what was seen of it
            unseen = any(not part.study.recorded.counts.any() for part in self.tasks.values())
            others = ", or in the others where nobody answered theirs" if unseen else ""
            ends = f"from the lowest to the highest seen in their task{others}"
        return f": intervals and verdicts hold whatever they would have been, {ends}."

    @cached_property
    def shares(self) -> FloatArray:
        """See :func:`~evalbudget.recorded._missing.missing_shares`; shape (models, items)."""
        return missing_shares(self.recorded)

    @cached_property
    def is_whole(self) -> bool:
        """Whether no score is missing."""
        return not bool((self.shares > 0.0).any())

    @cached_property
    def absent(self) -> NDArray[np.bool_]:
        """Items that are taken to be missing only since other models have them, shape (models, items)."""
        asked = self.recorded.counts.sum(axis=2)
        if self.recorded.failed is not None:
            asked = asked + self.recorded.failed.sum(axis=2)
        return np.asarray(asked == 0)

    @cached_property
    def lowest(self) -> FloatArray:
        """:attr:`all_item_means` if every missing score were the lowest, shape (models, items)."""
        return self._with_missing(self.scale[0])

    @cached_property
    def highest(self) -> FloatArray:
        """The same if every one were the highest."""
        return self._with_missing(self.scale[1])

    def _with_missing(self, value: float) -> FloatArray:
        if self.is_whole:
            return self.all_item_means
        known = np.where(self.shares == 1.0, 0.0, self.all_item_means)
        return np.asarray((1.0 - self.shares) * known + self.shares * value)

    def rows(self, model: int, level: float) -> Mapping[str, float]:
        """What a run prints of a model's mean, as far as it is defined, by the names of its rows.

        ``lower`` and ``upper`` hold whatever scores that are missing would have been.
        """
        found = self._benchmark_mean(model, level)
        if not found.ends:
            return found.rows
        if found.at_worst is None:
            return {name: value for name, value in found.rows.items() if name not in ("lower", "upper")}
        return {**found.rows, "lower": found.at_worst.low, "upper": found.at_worst.high}

    def _benchmark_mean(self, model: int, level: float) -> BenchmarkMean:
        if tasks := self.tasks_of(model):
            return describe_group(
                {name: study._benchmark_mean(model, level) for name, (study, _) in tasks.items()},
                {name: weight for name, (_, weight) in tasks.items()},
                whole={
                    name: float(part.drawn_of or np.count_nonzero(~np.isnan(part.study.shares[model])))
                    for name, part in self.tasks.items()
                },
                lost={
                    name: part.study._ends_of(model)
                    for name, part in self.tasks.items()
                    if name not in tasks and (part.study.shares[model] > 0.0).any()
                },
                level=level,
            )
        total = self.mean(model)
        given, ends = self._given_and_ends(model)
        found = mean_rows(
            total,
            given,
            items=len(self.recorded.items) - int(total.details["items_missing"]),
            readings=self.counted(model),
            clusters=self._clusters_of(model),
            bounds=self.bounds,
            level=level,
        )
        return with_ends(found, ends, level) if ends else found

    def _given_and_ends(self, model: int) -> tuple[Estimate, list[Estimate]]:
        """A model's mean with the items given, and what missing scores could make of it, if there are any."""
        if model not in self._known_ends:
            scores, purchase = self.scores(model), self.purchase(model)
            given = mean_over_fixed_items(
                judge_corrected_generations(scores) if self.is_panel else readings_of(scores),
                allocation=purchase.allocation,
                fixed_repeats=max(purchase.fixed_repeats, 1),
                bounds=None if self.is_panel else self.bounds,
            )
            lacking = (self.shares[model] > 0.0).any()
            self._known_ends[model] = given, self._ends_of(model) if lacking else []
        return self._known_ends[model]

    @cached_property
    def _known_ends(self) -> dict[int, tuple[Estimate, list[Estimate]]]:
        """What :meth:`_given_and_ends` has found, of which several levels are asked."""
        return {}

    def _ends_of(self, model: int) -> list[Estimate]:
        """Of a model's mean, if every missing score were the lowest, and if every one were the highest."""
        return [self._mean_of(means[model], model) for means in (self.lowest, self.highest)]

    def _clusters_of(self, model: int) -> int | None:
        """Clusters of the items that a model has a score on; None where items are independent."""
        if self.clusters is None:
            return None
        return int(np.unique(self.clusters[self.recorded.counts[model].sum(axis=1) > 0]).size)

    def _mean_of(self, means: FloatArray, model: int) -> Estimate:
        """Of item means, with the error of the judges' biases.

        Where all are the same, nothing but the range says what else could have come: known, or as seen.
        """
        bounds = self.bounds
        if bounds is None and np.nanmin(means) == np.nanmax(means) and self.scale[0] < self.scale[1]:
            bounds = self.scale
        if self.is_panel:
            added, degrees = self.judge_errors
            biases = float(added[model]), float(degrees[model])
            return panel_mean_of(means, biases, bounds=bounds, clusters=self.clusters)
        return mean_of_item_means(means, bounds=bounds, clusters=self.clusters)

    def of_both(self, a: int, b: int) -> Both:
        """What is compared of two models.

        Of a panel by the judges that scored both, whose leniency cancels only then.
        """
        if self._shares_fewer(a, b):
            return self._by_fewer(a, b)
        places = np.array([a, b])
        added, degrees = self.judge_errors
        errors = added[places], degrees[places]
        if self.is_whole:
            means = self.all_item_means[places]
            return Both(means, means, means, errors, (0, 0))
        neither = self.absent[a] & self.absent[b]
        tables = (self.all_item_means, self.lowest, self.highest)
        means, lowest, highest = (np.where(neither, np.nan, table[places]) for table in tables)
        lost = missing_answers(self.recorded.part(places))
        return Both(means, lowest, highest, errors, (int(lost[0]), int(lost[1])))

    def _shares_fewer(self, a: int, b: int) -> bool:
        """Whether a judge scored one of two models alone; not where nobody scored the other."""
        by = self.scored_by[[a, b]]
        return bool((by[0] != by[1]).any() and by.any(axis=1).all())

    def _by_fewer(self, a: int, b: int) -> Both:
        if (a, b) not in self._found_by_fewer:
            by = self.scored_by[a] & self.scored_by[b]
            if by.any():
                fewer = self.recorded.part(np.array([a, b]), raters=np.flatnonzero(by))
                found = replace(self, recorded=fewer, against=None, lost=None).of_both(0, 1)
            else:
                nothing: FloatArray = np.full((2, len(self.recorded.items)), np.nan)
                found = Both(nothing, nothing, nothing, (np.zeros(2), np.ones(2)), (0, 0))
            self._found_by_fewer[a, b], self._found_by_fewer[b, a] = found, found.swapped
        return self._found_by_fewer[a, b]

    @cached_property
    def _found_by_fewer(self) -> dict[tuple[int, int], Both]:
        """What :meth:`_by_fewer` has found."""
        return {}


def known_range(recorded: RecordedScores) -> tuple[float, float] | None:
    """As far as it is known; see :func:`~evalbudget.recorded._missing.score_range`."""
    found, known = score_range(recorded)
    return found if known else None
