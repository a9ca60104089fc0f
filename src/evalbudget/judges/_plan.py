r"""The D study of a panel: what each rotation would cost, and how wide its interval would be.

Per item with m generations, K judges, components of :mod:`evalbudget.judges.estimates._components` and a
fixed panel, the panel mean over n items has variance V/n with

.. math::
    V_{\text{all}} &= \sigma^2_\alpha + \frac{\sigma^2_\beta}{m} + \frac{\sigma^2_{\alpha\gamma}}{K}
                      + \frac{\sigma^2_\varepsilon}{mK} \\
    V_{\text{cyclic}} &= \sigma^2_\alpha + \frac{\sigma^2_\beta + \sigma^2_\varepsilon}{m}
                         + \sigma^2_{\alpha\gamma} \frac{\sum_l m_l^2}{m^2}, \quad
                         m_l \in \{\lfloor m/K \rfloor, \lceil m/K \rceil\} \\
    V_{\text{random}} &= \sigma^2_\alpha + \frac{\sigma^2_\beta + \sigma^2_\varepsilon + \sigma^2_\gamma}{m}
                         + \sigma^2_{\alpha\gamma}\,\frac{1 + (m-1)/K}{m} \\
    V_{\text{priced}} &= \frac1{K^2} \sum_l \frac{v_l}{q_l}, \quad q_l \propto \sqrt{v_l/c_l}
                         \quad (m = 1)

and k of the K judges, drawn at random, who score everything (CyclicJudge's variance of the mean; ``some``),
add what no number of items takes away:

.. math:: \frac{V_{\text{some}}}{n} = \frac1n \Bigl[\sigma^2_\alpha + \frac{\sigma^2_\beta}{m}
          + \frac{\sigma^2_{\alpha\gamma}}{k} + \frac{\sigma^2_\varepsilon}{mk}\Bigr]
          + \frac{\sigma^2_\gamma}{k} \, \frac{K - k}{K - 1}

The paper leaves sigma^2_alpha out; it is what most of the items pay for. Counts that do not come out even add
to the variance as sum_l 1/n_l does. Estimating K judges costs degrees of freedom: n - K with one score per
item, and with several about what is left of both items and scores,

.. math:: \nu = \bigl[(n - 1)^{-4} + (nm - K)^{-4}\bigr]^{-1/4},

Clusters of items add their excess over independent items to V, with degrees of freedom of their own. nu is
within 10% of the degrees that :func:`~evalbudget.judges.estimates._panel_mean` computes (for n, K, nm from
5, 8, 10 to 150, 123, 300). Plans have two calls of every judge at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np

from evalbudget._fields import Shown
from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.judges.estimates._components import VarianceComponents
from evalbudget.judges.estimates._sources import Source
from evalbudget.judges.schedules._priced import counts_of, priced_shares
from evalbudget.statistics._bounds import FloatArray, check_level
from evalbudget.statistics._cluster_excess import ClusterExcess
from evalbudget.statistics._shrinkage import t_quantile

STRATEGIES = ("all", "random", "cyclic", "priced")
SOME = "some"
MOST_GENERATIONS = 10
_MOST_ITEMS = 10**9
_RANDOM_COST = 1.96  # standard deviations that `random` may cost more than on average


@dataclass(frozen=True, slots=True)
class Prices:
    """What things cost, in dollars or any other unit.

    Attributes:
        per_call: of one call of each judge, shape (K,), in the order of the pilot's judges.
        per_generation: of one answer of the model judged.
    """

    per_call: FloatArray
    per_generation: float = 0.0

    def __post_init__(self) -> None:
        calls = np.asarray(self.per_call, dtype=np.float64)
        object.__setattr__(self, "per_call", calls)
        if calls.ndim != 1 or not (np.isfinite(calls) & (calls > 0)).all():
            raise InvalidInputError(
                f"prices per call are {calls.tolist()}; give every judge one above zero (in any unit)"
            )
        if not (np.isfinite(self.per_generation) and self.per_generation >= 0):
            raise InvalidInputError(
                f"the price of a generation is {self.per_generation}; it must be zero or more"
            )


@dataclass(frozen=True, slots=True)
class Forecast:
    """One item's worth of a strategy.

    Attributes:
        strategy: name of the rotation.
        generations: per item.
        calls: judge calls per item.
        variance: V; that of the estimate over n items is V/n where all counts come out even.
        shares: of the calls, per judge.
        uneven: the part of V that is larger where judges' counts do not come out even.
        fixed: variance of the estimate that items do not take away.
        used: judges that score; None for all of the panel.
    """

    strategy: str
    generations: int
    calls: int
    variance: float
    shares: tuple[float, ...]
    uneven: float = 0.0
    fixed: float = 0.0
    used: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to buy with one strategy, and what to expect.

    Attributes:
        strategy: name of the rotation.
        items: how many.
        generations: per item.
        judges: that score.
        calls: judge calls in all.
        cost: of calls and generations in all, in the unit of the prices. What does not come out even is
            charged at the dearest judges; ``random`` is charged what 39 of 40 runs stay below.
        half_width: predicted, of the interval at ``level``.
        level: of the interval.
        shares: of the calls, per judge.
    """

    strategy: Annotated[str, Shown("rotation")]
    items: Annotated[int, Shown("items", ",")]
    generations: Annotated[int, Shown("generations", "d")]
    judges: Annotated[int, Shown("judges", "d")]
    calls: Annotated[int, Shown("calls", ",")]
    cost: Annotated[float, Shown("cost", "~")]
    half_width: Annotated[float, Shown("half-width", ".4g")]
    level: float
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a strategy cannot be planned.

    Attributes:
        strategy: name of the rotation.
        reason: what is missing, and the remedy.
    """

    strategy: str
    reason: str


def forecast(
    pilot: VarianceComponents, strategy: str, generations: int, prices: Prices, *, used: int | None = None
) -> Forecast:
    """Variance of one item under a strategy; negative components count as 0.

    Args:
        pilot: components of a G study.
        strategy: one of ``STRATEGIES``, or ``some``.
        generations: per item.
        prices: of calls and generations.
        used: with ``some``, how many of the judges score.

    Raises:
        UnknownNameError: no such strategy.
        InvalidInputError: prices for another number of judges, or generations below 1.
        InvalidInferenceError: the pilot's design does not identify what the strategy's variance needs, or its
            scores do not vary.
    """
    K, m = pilot.n_judges, generations
    if strategy not in (*STRATEGIES, SOME):
        raise UnknownNameError("strategy", strategy, STRATEGIES)
    if prices.per_call.size != K:
        raise InvalidInputError(
            f"there are {prices.per_call.size} prices for the pilot's {K} judges "
            f"({', '.join(pilot.judges)}); give one each"
        )
    if m < 1:
        raise InvalidInputError(f"generations is {m}; plan at least one per item")
    if strategy == "priced":
        return _priced(pilot, m, prices)
    if strategy == SOME:
        return _some(pilot, m, used)
    weight = {Source.ITEM: 1.0, Source.GENERATION: 1 / m, Source.RESIDUAL: 1 / m}
    if strategy == "all":
        weight |= {Source.INTERACTION: 1 / K, Source.RESIDUAL: 1 / (m * K)}
    elif strategy == "cyclic":
        turns, more = divmod(m, K)
        weight |= {Source.INTERACTION: (more * (turns + 1) ** 2 + (K - more) * turns**2) / m**2}
    else:
        weight |= {Source.INTERACTION: (1 + (m - 1) / K) / m, Source.JUDGE: 1 / m}
    calls = m * K if strategy == "all" else m
    variance = pilot.combine(weight, truncated=True)
    if not variance > 0.0:
        raise InvalidInferenceError(
            "the pilot's scores never differ, or are too few to tell; a pilot with more items is needed"
        )
    uneven = 0.0
    if strategy == "cyclic":
        uneven = variance if m == 1 else variance - max(pilot[Source.ITEM], 0.0)
    return Forecast(strategy, m, calls, variance, (1 / K,) * K, uneven)


def _some(pilot: VarianceComponents, m: int, used: int | None) -> Forecast:
    K = pilot.n_judges
    if used is None or not 1 <= used < K:
        raise InvalidInputError(f"{used} of {K} judges; give a number from 1 to {K - 1}")
    weight = {Source.ITEM: 1.0, Source.GENERATION: 1 / m}
    weight |= {Source.INTERACTION: 1 / used, Source.RESIDUAL: 1 / (m * used)}
    variance = pilot.combine(weight, truncated=True)
    lot = pilot.combine({Source.JUDGE: 1 / used}, truncated=True) * (K - used) / (K - 1)
    return Forecast(SOME, m, m * used, variance, (1 / K,) * K, fixed=lot, used=used)


def plan_for_half_width(
    pilot: VarianceComponents,
    half_width: float,
    prices: Prices,
    *,
    level: float = 0.95,
    max_items: int | None = None,
    judges_used: int | None = None,
    clusters: ClusterExcess | None = None,
) -> tuple[Plan | Refusal, ...]:
    """The cheapest plan of each strategy whose interval is no wider than wanted.

    Args:
        pilot: components of a G study.
        half_width: of the interval, in units of the scores.
        prices: of calls and generations.
        level: of the interval.
        max_items: how many items there are; more generations are planned then, if that helps.
        judges_used: also plan with so many judges of the panel, drawn at random, who score everything.
        clusters: of the pilot's items, which the items planned come in, too; None: they are independent.

    Returns:
        A plan or a refusal for each strategy.

    Raises:
        InvalidInputError: the half-width is not positive.
        UnknownNameError: no such strategy.
    """
    if not (np.isfinite(half_width) and half_width > 0):
        raise InvalidInputError(f"half-width is {half_width:g}; give a positive one, in units of the scores")

    def items_for(found: Forecast) -> int:
        return _fewest(lambda n: _half_width(found, n, level, pilot, clusters) <= half_width, _least(found))

    def refuse(found: Sequence[Forecast]) -> str:
        most = max_items or _MOST_ITEMS
        best = min(_half_width(f, most, level, pilot, clusters) for f in found)
        return (
            f"a half-width of {half_width:g} is out of reach with "
            f"{'any number of' if max_items is None else max_items} items and up to "
            f"{max(f.generations for f in found)} generations each (best: {best:.3g}); more "
            f"{'judges' if max_items is None else 'items'} are needed"
        )

    return _plans(pilot, prices, level, max_items, judges_used, clusters, items_for, refuse, lambda p: p.cost)


def plan_for_money(
    pilot: VarianceComponents,
    money: float,
    prices: Prices,
    *,
    level: float = 0.95,
    max_items: int | None = None,
    judges_used: int | None = None,
    clusters: ClusterExcess | None = None,
) -> tuple[Plan | Refusal, ...]:
    """The narrowest interval of each strategy for the money.

    Args:
        pilot: components of a G study.
        money: to spend, in the unit of the prices.
        prices: of calls and generations.
        level: of the interval.
        max_items: how many items there are.
        judges_used: also plan with so many judges of the panel, drawn at random, who score everything.
        clusters: of the pilot's items, which the items planned come in, too; None: they are independent.

    Returns:
        A plan or a refusal for each strategy.

    Raises:
        InvalidInputError: the amount is not positive.
        UnknownNameError: no such strategy.
    """
    if not (np.isfinite(money) and money > 0):
        raise InvalidInputError(f"the money to spend is {money:g}; give a positive amount")

    def items_for(found: Forecast) -> int:
        affordable = _fewest(lambda n: _cost(found, n, prices) > money * (1 + 1e-12), 1) - 1
        return affordable if max_items is None else min(affordable, max_items)

    def refuse(found: Sequence[Forecast]) -> str:
        least = min(_cost(f, _least(f), prices) for f in found)
        if least <= money:
            few = min(_least(f) for f in found)
            return f"{max_items} items are too few to tell the judges apart; {few} are needed"
        return f"{money:g} does not buy enough calls for an interval; the least is {least:.4g}"

    return _plans(
        pilot, prices, level, max_items, judges_used, clusters, items_for, refuse, lambda p: p.half_width
    )


def _plans(
    pilot: VarianceComponents,
    prices: Prices,
    level: float,
    max_items: int | None,
    judges_used: int | None,
    clusters: ClusterExcess | None,
    items_for: Callable[[Forecast], int],
    refuse: Callable[[Sequence[Forecast]], str],
    loss: Callable[[Plan], float],
) -> tuple[Plan | Refusal, ...]:
    check_level(level)
    results: list[Plan | Refusal] = []
    for strategy in STRATEGIES if judges_used is None else (*STRATEGIES, SOME):
        forecasts, reason = _forecasts(pilot, strategy, prices, judges_used)
        plans = []
        for found in forecasts:
            items = items_for(found)
            if items < _least(found) or items > (_MOST_ITEMS - 1 if max_items is None else max_items):
                continue
            half = _half_width(found, items, level, pilot, clusters)
            calls, cost = items * found.calls, _cost(found, items, prices)
            shares = _counts(found, items, prices) / calls if strategy == "priced" else found.shares
            plans.append(
                Plan(
                    strategy,
                    items,
                    found.generations,
                    found.used or pilot.n_judges,
                    calls,
                    cost,
                    half,
                    level,
                    tuple(float(share) for share in shares),
                )
            )
        if plans:
            results.append(min(plans, key=lambda p: (loss(p), p.generations)))
        else:
            results.append(Refusal(strategy, refuse(forecasts) if forecasts else reason))
    return tuple(results)


def _forecasts(
    pilot: VarianceComponents, strategy: str, prices: Prices, used: int | None
) -> tuple[list[Forecast], str]:
    """Every number of generations that the pilot can speak of, and why not more."""
    found: list[Forecast] = []
    reason = ""
    for m in range(1, MOST_GENERATIONS + 1):
        try:
            found.append(forecast(pilot, strategy, m, prices, used=used))
        except InvalidInferenceError as ex:
            reason = reason or str(ex)
    return found, reason


def _priced(pilot: VarianceComponents, m: int, prices: Prices) -> Forecast:
    if m > 1:
        raise InvalidInferenceError(
            "judges by price are planned for one generation per item; use cyclic for several"
        )
    v, K = pilot.judge_variance, pilot.n_judges
    if not (np.isfinite(v) & (v > 0)).all():
        raise InvalidInferenceError(
            "the pilot has a judge whose scores never differ (or a single one), so counts by price are "
            "undefined; use cyclic"
        )
    share = priced_shares(prices.per_call, v, prices.per_generation)
    variance = float((v / share).sum()) / K**2
    return Forecast("priced", 1, 1, variance, tuple(share.tolist()))


def _least(found: Forecast) -> int:
    """Items that give every judge two calls, or, where judges are not estimated, an interval at all."""
    if found.strategy in ("all", "random", SOME):
        return 2
    return max(-(-2 * len(found.shares) // found.generations), 2)


def _counts(found: Forecast, items: int, prices: Prices) -> FloatArray:
    """Calls per judge; one more for the dearest where turns do not come out even. ``random``: expected."""
    K, calls = len(found.shares), items * found.calls
    if found.strategy == "priced":
        return np.asarray(counts_of(np.array(found.shares), calls), dtype=np.float64)
    if found.strategy != "cyclic":
        return np.full(K, calls / K)
    counts = np.full(K, float(calls // K))
    counts[np.argsort(-prices.per_call, kind="stable")[: calls % K]] += 1.0
    return counts


def _cost(found: Forecast, items: int, prices: Prices) -> float:
    cost = float(_counts(found, items, prices) @ prices.per_call)
    if found.used is not None:  # whom the lot falls on is not known
        cost = items * found.generations * float(np.sort(prices.per_call)[-found.used :].sum())
    if found.strategy == "random":
        cost += _RANDOM_COST * sqrt(items * found.calls * float(prices.per_call.var()))
    return cost + items * found.generations * prices.per_generation


def _half_width(
    found: Forecast, items: int, level: float, pilot: VarianceComponents, clusters: ClusterExcess | None
) -> float:
    K, calls, variance = pilot.n_judges, items * found.calls, found.variance / items + found.fixed
    degrees = items - 1.0
    if found.strategy in ("cyclic", "priced"):
        if calls < 2 * K:
            return float("inf")
        if found.strategy == "priced":
            counts = counts_of(np.array(found.shares), calls)
            variance = float((pilot.judge_variance / counts).sum()) / K**2
        else:
            more, less = calls % K, calls // K
            unevenness = calls * (more / (less + 1) + (K - more) / less) / K**2 - 1.0
            variance += found.uneven / items * unevenness
        left = float(calls - K)
        degrees = left if found.generations == 1 else (degrees**-4 + left**-4) ** -0.25
    error = sqrt(variance)
    if clusters is not None:
        error, degrees = clusters.error(variance, degrees, items)
    return float(t_quantile(level, degrees)) * error


def _fewest(enough: Callable[[int], bool], low: int) -> int:
    """The smallest number from ``low`` on that is enough, if more never is less."""
    if enough(low):
        return low
    high = 2 * low
    while not enough(high):
        low, high = high, high * 2
        if high > _MOST_ITEMS:
            return _MOST_ITEMS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
