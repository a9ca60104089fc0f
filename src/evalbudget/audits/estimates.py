r"""Means of human scores from a judged population of which some, by known chances, were labelled too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from evalbudget.audits.draw import AuditDraw, Coin
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.journal import Journal
from evalbudget.statistics.bounds import FloatArray

JUDGE, HUMAN = 0, 1


@dataclass(frozen=True)
class AuditedScores:
    """One model's judged items.

    Attributes:
        judge: f, shape (n,), on the human scale; nan where there is none.
        human: y, shape (n,); nan where not audited.
        propensity: pi, shape (n,), in (0, 1]; nan where not audited.
        item: indices into the design's items, shape (n,).
    """

    judge: FloatArray
    human: FloatArray
    propensity: FloatArray
    item: tuple[int, ...]

    @classmethod
    def of(
        cls, journal: Journal, model: int = 0, *, draws: Iterable[AuditDraw] | None = None
    ) -> AuditedScores:
        """From the journal of a sampler of audits (rater 0 is the judge, rater 1 the human).

        Args:
            journal: of the run.
            model: whose scores.
            draws: of the sampler. A journal does not know of labels that a coin wants and nobody was asked
                for: with the draws, contexts from the first such one on are left out. Without them the run
                must have asked for every label that its coins wanted.

        Returns:
            Every item that was judged or labelled; judge is nan where it failed for good or was not asked.
            Labels of the second pass, which no coin chose, are left out.

        Raises:
            InvalidInferenceError: a label was asked for and is not there, or a human request has no
                propensity.
        """
        judge: dict[int, float] = {}
        human: dict[int, float] = {}
        chance: dict[int, float] = {}
        uncertain: set[int] = set()
        failed: set[int] = set()
        for event in journal:
            cell = event.request.cell
            if cell.model != model:
                continue
            if cell.rater == HUMAN:
                if event.request.propensity is None:
                    uncertain.add(cell.item)
                    continue
                chance[cell.item] = event.request.propensity
            if event.reading is not None and event.reading.value is not None:
                (human if cell.rater == HUMAN else judge)[cell.item] = event.reading.value
            elif event.reading is not None and cell.rater == JUDGE:
                failed.add(cell.item)
        if uncertain and not (chance and uncertain.isdisjoint(chance)):
            raise InvalidInferenceError(
                f"the human request of item {min(uncertain)} has no propensity; use the journal of a "
                "sampler of audits, for example audit-eprocess"
            )
        missing = sorted(set(chance) - set(human))
        if missing:
            raise InvalidInferenceError(
                f"{len(missing)} labels that were asked for are missing (item {missing[0]} first); leaving "
                "them out would bias the mean: wait for them, or use the sampler's verdict"
            )
        known = set(judge) | set(human) | failed
        if draws is not None:
            known &= _complete(draws, model, set(human))
        items = tuple(sorted(known))
        nan = float("nan")
        return cls(
            np.array([judge.get(i, nan) for i in items], dtype=np.float64),
            np.array([human.get(i, nan) for i in items], dtype=np.float64),
            np.array([chance.get(i, nan) for i in items], dtype=np.float64),
            items,
        )


def _complete(draws: Iterable[AuditDraw], model: int, labelled: set[int]) -> set[int]:
    """Items of the contexts before the first whose label is wanted and not there."""
    found: set[int] = set()
    for draw in sorted((d for d in draws if d.model == model), key=lambda d: d.index):
        if draw.coin is Coin.NONE:
            continue
        if draw.wanted and draw.item not in labelled:
            break
        found.add(draw.item)
    return found


def ipw_mean(
    judge: FloatArray, human: FloatArray, propensity: FloatArray, *, cost: float = float("nan")
) -> Estimate:
    r"""Mean human score from a judged population and a random audit.

    .. math:: \hat\theta = \frac1n \sum_i \Big[f_i + \frac{\xi_i}{\pi_i}(y_i - f_i)\Big]

    Args:
        judge: f, shape (n_items,), on the human scale.
        human: y, shape (n_items,); NaN where not audited (xi = 0).
        propensity: pi, shape (n_items,), in (0, 1]; read only where audited.
        cost: of all of it, in units of the budget.

    Returns:
        Estimate of the superpopulation mean, items independent; normal interval, so asymptotic.

    Raises:
        InvalidInferenceError: an audited item has no propensity, or pi <= 0.

    References:
        Zrnic & Candes (2024), Active Statistical Inference.
    """
    f, weight, y = _checked(judge, human, propensity)
    return _estimate(f + weight * (y - f), "inverse-propensity weighted", 1.0, cost)


def ppi_mean(
    judge: FloatArray,
    human: FloatArray,
    propensity: FloatArray,
    *,
    power: float | None = None,
    cost: float = float("nan"),
) -> Estimate:
    r"""As :func:`ipw_mean`, trusting the judge only as far as it helps.

    .. math:: \hat\theta = \frac1n \sum_i \Big[\lambda f_i + \frac{\xi_i}{\pi_i}(y_i - \lambda f_i)\Big],
              \hat\lambda = -\frac{\mathrm{Cov}(\xi y / \pi,\; h)}{\mathrm{Var}(h)}, \quad
              h = f (1 - \xi / \pi)

    lambda = 1 is ipw_mean, 0 the audited labels alone; estimating lambda from the same data biases the mean
    by a term of order 1/n.

    Args:
        judge: see :func:`ipw_mean`.
        human: see :func:`ipw_mean`.
        propensity: see :func:`ipw_mean`.
        power: lambda; None for the estimated one, in [0, 1].
        cost: of all of it, in units of the budget.

    Returns:
        Estimate as of ipw_mean, with ``power`` in its details.

    Raises:
        InvalidInferenceError: see :func:`ipw_mean`.

    References:
        Angelopoulos, Duchi & Zrnic (2023), PPI++, arXiv 2311.01453, Section 6 (with propensities).
    """
    f, weight, y = _checked(judge, human, propensity)
    g, h = weight * y, f * (1.0 - weight)
    if power is None:
        variance = float(h.var())
        covariance = float(((g - g.mean()) * (h - h.mean())).mean()) if f.size else 0.0
        power = float(np.clip(-covariance / variance, 0.0, 1.0)) if variance > 0.0 else 0.0
    values = g + power * h
    return _estimate(values, f"PPI++ with power {power:.2f}", power, cost)


def by_segment(
    judge: FloatArray,
    human: FloatArray,
    propensity: FloatArray,
    segment: Sequence[str],
    *,
    power: float | None = None,
) -> dict[str, Estimate]:
    """:func:`ppi_mean` of each segment, in order of appearance; ``power=1`` is ipw_mean.

    Raises:
        InvalidInferenceError: see :func:`ipw_mean`, or segments of another length.
    """
    if len(segment) != len(judge):
        raise InvalidInferenceError(f"{len(segment)} segments for {len(judge)} items; give one per item")
    labels = np.asarray(segment)
    found = {}
    for name in dict.fromkeys(segment):
        here = labels == name
        found[name] = ppi_mean(judge[here], human[here], propensity[here], power=power)
    return found


def _checked(
    judge: FloatArray, human: FloatArray, propensity: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """F, xi / pi, and y with 0 where it is not known."""
    f, y, pi = (np.asarray(x, dtype=np.float64) for x in (judge, human, propensity))
    if not f.ndim == 1 == y.ndim or not f.shape == y.shape == pi.shape:
        raise InvalidInferenceError(
            f"judge {f.shape}, human {y.shape} and propensity {pi.shape} must have one entry per item"
        )
    if np.isnan(f).any():
        raise InvalidInferenceError(
            f"{int(np.isnan(f).sum())} items have no judge score; put in a number fixed beforehand, for "
            "example the middle of the scale"
        )
    audited = ~np.isnan(y)
    chance = pi[audited]
    if not ((chance > 0.0) & (chance <= 1.0)).all():
        raise InvalidInferenceError(
            "an audited item has no propensity in (0, 1]; labels not chosen by chance have no weight"
        )
    weight = np.zeros(f.size)
    weight[audited] = 1.0 / chance
    return f, weight, np.where(audited, y, 0.0)


def _estimate(values: FloatArray, method: str, power: float, cost: float) -> Estimate:
    n = values.size
    mean = float(values.mean()) if n else float("nan")
    error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    def interval(level: float) -> ConfidenceInterval:
        from scipy.special import ndtri  # slow to import, and not every estimate is asked for an interval

        half = float(ndtri(0.5 + level / 2.0)) * error
        return ConfidenceInterval(mean - half, mean + half)

    return Estimate(
        value=mean,
        standard_error=error,
        target="mean human score over items like these",
        method=method,
        random=frozenset({Random.ITEMS, Random.LABELS}),
        validity=Validity.FIXED_N,
        coverage=Coverage.EACH,
        asymptotic=True,
        n=n,
        cost=cost,
        interval=interval,
        details={"power": power},
    )
