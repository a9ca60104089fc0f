r"""Where the variance of a score comes from: a G study of items, generations and judges.

.. math:: X_{ijl} = \mu + \alpha_i + \beta_{ij} + \gamma_l + (\alpha\gamma)_{il} + \varepsilon_{ijl}

A design tells apart only some of the sources; :class:`Component` is what it can tell: the sum over one or
more sources. Estimates are unbiased and may be negative; only planning truncates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates._bias import bias_errors, judge_moments, pooled_variance
from evalbudget.judges.estimates._mixed import MixedFit
from evalbudget.judges.estimates._pairs import Pairs, components_of_pairs
from evalbudget.judges.estimates._scores import JudgeScores, Source
from evalbudget.statistics._bounds import Bounds, FloatArray, check_level
from evalbudget.statistics._shrinkage import t_quantile

_MANY = 30  # complete items that are worth more than all items without crossing

_CROSS = "let all judges score two or more generations of each item (rotation 'all')"
_HOW_TO_TELL = {
    "crossed, one generation": "let all judges score two or more generations of each item",
    "one generation": "let all judges score two or more generations of each item",
    "rotated": "let all judges score two or more generations of some items (rotation 'all')",
    "rotated, one score per item": "score two or more generations of each item, by different judges",
    "one judge per item": "let other judges score the item's generations",
}


@dataclass(frozen=True, slots=True)
class Component:
    """Variance of one source, or the sum over sources that the design cannot tell apart.

    Attributes:
        sources: one, or those that are confounded.
        value: the estimate; may be negative.
    """

    sources: tuple[Source, ...]
    value: float

    @property
    def identified(self) -> bool:
        """Whether it is a single source's variance."""
        return len(self.sources) == 1

    @property
    def name(self) -> str:
        """The sources, joined."""
        return " + ".join(self.sources)

    @property
    def negative(self) -> bool:
        """Whether the estimate is below zero: it is then not told from zero."""
        return self.value < 0.0

    @property
    def truncated(self) -> float:
        """The value, or 0 where it is negative: for planning only."""
        return max(self.value, 0.0)


@dataclass(frozen=True, eq=False)
class VarianceComponents:
    """Components of one model's scores by one panel.

    Attributes:
        design: ``crossed``, ``crossed, one generation``, ``rotated``, ``rotated, one score per item``,
            ``one generation`` or ``one judge per item``.
        method: how, in words.
        components: in the order item, generation, item x judge, residual, judge; together they hold every
            source once.
        judges: names of those that scored.
        judge_variance: variance of the scores of each judge over items and generations, shape (K,).
        n_items: items used.
        items_dropped: items scored but not used, because a score was missing.
        draws: bootstrap estimates over items, shape (n_draws, components); empty if not asked for.
    """

    design: str
    method: str
    components: tuple[Component, ...]
    judges: tuple[str, ...]
    judge_variance: FloatArray
    n_items: int
    items_dropped: int
    draws: FloatArray = field(repr=False)

    @property
    def n_judges(self) -> int:
        """Judges that scored."""
        return len(self.judges)

    def __getitem__(self, source: Source | str) -> float:
        """Estimated variance of one source.

        Raises:
            InvalidInferenceError: the design does not tell it from others; says which, and what would.
        """
        return self.combine({Source(source): 1.0})

    def combine(self, weight: Mapping[Source, float], *, truncated: bool = False) -> float:
        """Weighted sum over sources, for example the variance of some mean.

        Args:
            weight: of each source; 0 if missing.
            truncated: take negative estimates for 0.

        Raises:
            InvalidInferenceError: sources that the design confounds have different weights.
        """
        total = 0.0
        for component in self.components:
            weights = [weight.get(source, 0.0) for source in component.sources]
            if max(weights) - min(weights) > 1e-12:
                wanted = [s for s, w in zip(component.sources, weights, strict=True) if w == max(weights)]
                raise InvalidInferenceError(
                    f"the variance of {' + '.join(wanted)} is needed, but the design ({self.design}) gives "
                    f"only the sum {component.name}; {_HOW_TO_TELL.get(self.design, _CROSS)}"
                )
            if weights[0] != 0.0:
                total += weights[0] * (component.truncated if truncated else component.value)
        return total

    def shares(self) -> dict[str, float]:
        """Share of each component in the variance of a single score by a judge at random; negatives as 0."""
        values = [component.truncated for component in self.components]
        total = sum(values)
        return {
            c.name: (v / total if total > 0 else float("nan"))
            for c, v in zip(self.components, values, strict=True)
        }

    def confidence_intervals(self, level: float = 0.95) -> Bounds:
        """Percentile bootstrap over items, each component for itself; nan if it was not asked for.

        Percentiles are taken further out as items are fewer, as t is from normal quantiles; with some 20
        items the intervals of the larger components still fall short of their level.
        """
        from scipy.special import ndtr

        alpha = 1.0 - check_level(level)
        if not self.draws.size:
            nothing = np.full(len(self.components), np.nan)
            return Bounds(nothing, nothing)
        n = max(self.n_items, 2)
        tail = float(ndtr(-float(t_quantile(1.0 - alpha, n - 1.0)) * np.sqrt(n / (n - 1))))
        low, high = np.quantile(self.draws, [tail, 1 - tail], axis=0)
        return Bounds(low, high)


_Parts = dict[tuple[Source, ...], float]
"""Variance of the sources that are told apart."""


def variance_components(
    scores: JudgeScores, *, bootstrap: int = 0, seed: int = 0, one_generation: bool = False
) -> VarianceComponents:
    r"""Variance components with an item x judge interaction, as far as the design tells them apart.

    Crossed (every generation scored by all judges; items without a complete generation are dropped), with
    MS_W = sum (X - X_ij. - X_i.l + X_i..)^2 / (n(m-1)(K-1)):

    .. math:: \hat\sigma^2_{\alpha\gamma} = (MS_{SJ} - MS_W)/m, \quad
              \hat\sigma^2_\beta = (MS_G - MS_W)/K, \quad
              \hat\sigma^2_\alpha = (MS_S - MS_G - MS_{SJ} + MS_W)/(mK)

    .. math:: \hat\sigma^2_\gamma = \tfrac1K \sum_l \hat\gamma_l^2 - \frac{MS_{SJ}}{nm} \frac{K-1}{K}

    With one generation, item + generation and item x judge + residual. In other designs (rotated, or with
    many scores missing) from products of pairs of scores, by which kinds of pairs there are
    (:mod:`.pairs`): rotated gives item, and generation + item x judge + residual; with one score per item
    only the sum of all four is told. The judge component is identified in each of them.

    Args:
        scores: of one model.
        bootstrap: resamples of items for intervals; 0 for none. Those that lose a judge are left out.
        seed: of the bootstrap.
        one_generation: all scores of an item are of one generation, and epochs only count a judge's scores of
            it (``--repeat judge``): item and generation are then one source.

    Raises:
        InvalidInferenceError: fewer than two judges or two items that can be used.
    """
    panel, table, dropped = _prepare(scores)
    if table is not None:
        n_items = len(table)
        found = _crossed(table, one_generation)
        again = [_crossed(table[pick], one_generation) for pick in _picks(n_items, bootstrap, seed)]
        design = "crossed" if (Source.GENERATION,) in found else "crossed, one generation"
        method = "ANOVA with item x judge interaction"
    else:
        items = np.flatnonzero(panel.per_item)
        n_items = items.size
        pairs = Pairs.of(panel, one_generation=one_generation)
        fit = MixedFit.of(panel)
        found, again = _uncrossed(fit, pairs), []
        for pick in _picks(n_items, bootstrap, seed):
            other = panel.resample(items[pick])
            if other.counts.all() and other.value.size > other.n_judges:
                again.append(_uncrossed(MixedFit.of(other, rho=fit.rho), pairs))
        design = pairs.design
        method = "products of pairs of judge-corrected scores" if pairs.used else "within-judge variance"
    draws = np.array([list(parts.values()) for parts in again]).reshape(-1, len(found))
    _, squares = judge_moments(panel)
    return VarianceComponents(
        design=design,
        method=method,
        components=tuple(Component(sources, float(value)) for sources, value in found.items()),
        judges=panel.judges,
        judge_variance=squares / np.maximum(panel.counts - 1, 1),
        n_items=n_items,
        items_dropped=dropped,
        draws=draws[np.isfinite(draws).all(axis=1)],
    )


def _prepare(scores: JudgeScores) -> tuple[JudgeScores, FloatArray | None, int]:
    """The panel that scored; its complete table (items, judges, generations), if it is crossed."""
    panel = scores.scoring_panel()
    n = int(np.count_nonzero(panel.per_item))
    if panel.n_judges < 2 or n < 2:
        raise InvalidInferenceError(
            f"{panel.n_judges} judges scored {n} items; variance components need two of each"
        )
    if panel.is_crossed:
        table = panel.table()
        complete = np.asarray(np.isfinite(table).all(axis=1))
        usable = (complete.sum(axis=1)[:, None] > np.arange(complete.shape[1])).sum(axis=0)
        m = int(np.argmax(usable * np.arange(1, usable.size + 1))) + 1
        if usable[m - 1] >= max(2, min(n // 2, _MANY)):
            keep = complete.sum(axis=1) >= m
            first = np.argsort(~complete[keep], axis=1, kind="stable")[:, None, :m]
            return panel, np.take_along_axis(table[keep], first, axis=2), n - int(usable[m - 1])
    return panel, None, 0


def _picks(n: int, draws: int, seed: int) -> Iterable[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    generator = np.random.default_rng([seed, n])
    return (generator.integers(n, size=n) for _ in range(draws))


@dataclass(frozen=True, slots=True)
class _Squares:
    """Sums of squares of a complete table."""

    item: float
    generation: float
    interaction: float
    within: float
    gamma: FloatArray

    @classmethod
    def of(cls, table: FloatArray) -> _Squares:
        _, K, m = table.shape
        mu, of_item = table.mean(), table.mean(axis=(1, 2))
        of_judge, of_cell, of_generation = table.mean(axis=(0, 2)), table.mean(axis=2), table.mean(axis=1)
        within = table - of_generation[:, None, :] - of_cell[:, :, None] + of_item[:, None, None]
        return cls(
            item=m * K * float(((of_item - mu) ** 2).sum()),
            generation=K * float(((of_generation - of_item[:, None]) ** 2).sum()),
            interaction=m * float(((of_cell - of_item[:, None] - of_judge + mu) ** 2).sum()),
            within=float((within**2).sum()),
            gamma=np.asarray(of_judge - mu),
        )


def _crossed(table: FloatArray, one_generation: bool) -> _Parts:
    """Of one generation the third axis are scores of it by the same judge again."""
    n, K, m = table.shape
    ss = _Squares.of(table)
    ms_s, ms_sj = ss.item / (n - 1), ss.interaction / ((n - 1) * (K - 1))
    judge: _Parts = {(Source.JUDGE,): float((ss.gamma**2).mean()) - ms_sj / (n * m) * (K - 1) / K}
    if m > 1 and not one_generation:
        ms_g, ms_w = ss.generation / (n * (m - 1)), ss.within / (n * (m - 1) * (K - 1))
        return {
            (Source.ITEM,): (ms_s - ms_g - ms_sj + ms_w) / (m * K),
            (Source.GENERATION,): (ms_g - ms_w) / K,
            (Source.INTERACTION,): (ms_sj - ms_w) / m,
            (Source.RESIDUAL,): ms_w,
            **judge,
        }
    item: _Parts = {(Source.ITEM, Source.GENERATION): (ms_s - ms_sj) / (m * K)}
    if m == 1:
        return {**item, (Source.INTERACTION, Source.RESIDUAL): ms_sj, **judge}
    ms_e = (ss.generation + ss.within) / (n * K * (m - 1))
    return {**item, (Source.INTERACTION,): (ms_sj - ms_e) / m, (Source.RESIDUAL,): ms_e, **judge}


def _uncrossed(fit: MixedFit, pairs: Pairs) -> _Parts:
    panel, K = fit.panel, fit.panel.n_judges
    if pairs.used:
        values, gamma = components_of_pairs(fit, pairs), fit.gamma
        noise = float(bias_errors(fit).unbiased.mean())
    else:
        mean, _ = judge_moments(panel)
        own, _ = pooled_variance(panel)
        values, gamma = np.array([own.mean()]), mean - mean.mean()
        noise = float((own / panel.counts).mean()) * (K - 1) / K
    told: _Parts = dict(zip(pairs.partition, values.tolist(), strict=True))
    return {**told, (Source.JUDGE,): float((gamma**2).mean()) - noise}
