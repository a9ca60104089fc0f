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

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Annotated

import numpy as np

from evalbudget._fields import Shown
from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.judges.estimates._components import VarianceComponents
from evalbudget.judges.estimates._scores import Source
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
    weight = {Source.ITEM: 1.0, Source.GENERATION: 1 / m, Source.RESIDUAL: 1 / m}
    if strategy in ("all", SOME):
        return _crossed(pilot, strategy, m, used, weight)
    if strategy == "cyclic":
        turns, more = divmod(m, K)
        weight |= {Source.INTERACTION: (more * (turns + 1) ** 2 + (K - more) * turns**2) / m**2}
    else:
        weight |= {Source.INTERACTION: (1 + (m - 1) / K) / m, Source.JUDGE: 1 / m}
    variance, uneven = _variance(pilot, weight), 0.0
    if strategy == "cyclic":
        uneven = variance if m == 1 else variance - max(pilot[Source.ITEM], 0.0)
    return Forecast(strategy, m, m, variance, (1 / K,) * K, uneven)


def _variance(pilot: VarianceComponents, weight: dict[Source, float]) -> float:
    variance = pilot.combine(weight, truncated=True)
    if not variance > 0.0:
        raise InvalidInferenceError(
            "the pilot's scores never differ, or are too few to tell; a pilot with more items is needed"
        )
    return variance


def _crossed(
    pilot: VarianceComponents, strategy: str, m: int, used: int | None, weight: dict[Source, float]
) -> Forecast:
    """Of all judges, or some of them, who score everything."""
    K, fixed = pilot.n_judges, 0.0
    if strategy == "all":
        used = None
    elif used is None or not 1 <= used < K:
        raise InvalidInputError(f"{used} of {K} judges; give a number from 1 to {K - 1}")
    else:
        fixed = pilot.combine({Source.JUDGE: 1 / used}, truncated=True) * (K - used) / (K - 1)
    n = used or K
    weight |= {Source.INTERACTION: 1 / n, Source.RESIDUAL: 1 / (m * n)}
    return Forecast(strategy, m, m * n, _variance(pilot, weight), (1 / K,) * K, fixed=fixed, used=used)


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


def plan_rotations(
    pilot: VarianceComponents,
    prices: Prices,
    *,
    half_width: float | None = None,
    money: float | None = None,
    level: float = 0.95,
    max_items: int | None = None,
    judges_used: int | None = None,
    clusters: ClusterExcess | None = None,
) -> tuple[Plan | Refusal, ...]:
    """Of each strategy the cheapest plan for a half-width, or the narrowest interval for some money.

    Args:
        pilot: components of a G study.
        prices: of calls and generations.
        half_width: that the interval shall have at most, in units of the scores.
        money: to spend, in the unit of the prices; this or the half-width.
        level: of the interval.
        max_items: how many items there are; more generations are planned then, if that helps.
        judges_used: also plan with so many judges of the panel, drawn at random, who score everything.
        clusters: of the pilot's items, which the items planned come in, too; None: they are independent.

    Returns:
        A plan or a refusal for each strategy.

    Raises:
        InvalidInputError: the half-width or the money is not positive.
    """
    if half_width is not None and not (isfinite(half_width) and half_width > 0):
        raise InvalidInputError(f"half-width is {half_width:g}; give a positive one, in units of the scores")
    if money is not None and not (isfinite(money) and money > 0):
        raise InvalidInputError(f"the money to spend is {money:g}; give a positive amount")
    asked = _Asked(pilot, prices, half_width, money, check_level(level), max_items, clusters)
    results: list[Plan | Refusal] = []
    for strategy in STRATEGIES if judges_used is None else (*STRATEGIES, SOME):
        forecasts, reason = _forecasts(pilot, strategy, prices, judges_used)
        plans = [plan for found in forecasts if (plan := asked.plan(found)) is not None]
        if plans:
            results.append(min(plans, key=asked.loss))
        else:
            results.append(Refusal(strategy, asked.why_not(forecasts) if forecasts else reason))
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be planned; see :func:`plan_rotations`."""

    pilot: VarianceComponents
    prices: Prices
    wanted: float | None
    money: float | None
    level: float
    max_items: int | None
    clusters: ClusterExcess | None

    def plan(self, found: Forecast) -> Plan | None:
        """What to buy with so many generations per item; None if that does not do."""
        if self.wanted is None:
            items = min(self._affordable(found), self.max_items or _MOST_ITEMS)
        else:
            items = bisect_left(
                range(_MOST_ITEMS), True, _least(found), key=lambda n: self._is_enough(found, n)
            )
        if items < _least(found) or items > (_MOST_ITEMS - 1 if self.max_items is None else self.max_items):
            return None
        calls, shares = items * found.calls, found.shares
        if found.strategy == "priced":
            shares = tuple((self._counts(found, items) / calls).tolist())
        return Plan(
            found.strategy,
            items,
            found.generations,
            found.used or self.pilot.n_judges,
            calls,
            self._cost(found, items),
            self._half_width(found, items),
            self.level,
            shares,
        )

    def loss(self, plan: Plan) -> tuple[float, int]:
        """What the best plan has least of."""
        return (plan.half_width if self.wanted is None else plan.cost), plan.generations

    def why_not(self, found: Sequence[Forecast]) -> str:
        """Why no number of generations does."""
        if self.money is not None:
            least = min(self._cost(f, _least(f)) for f in found)
            if least <= self.money:
                few = min(_least(f) for f in found)
                return f"{self.max_items} items are too few to tell the judges apart; {few} are needed"
            return f"{self.money:g} does not buy enough calls for an interval; the least is {least:.4g}"
        best = min(self._half_width(f, self.max_items or _MOST_ITEMS) for f in found)
        return (
            f"a half-width of {self.wanted:g} is out of reach with "
            f"{'any number of' if self.max_items is None else self.max_items} items and up to "
            f"{max(f.generations for f in found)} generations each (best: {best:.3g}); more "
            f"{'judges' if self.max_items is None else 'items'} are needed"
        )

    def _is_enough(self, found: Forecast, items: int) -> bool:
        assert self.wanted is not None
        return self._half_width(found, items) <= self.wanted

    def _affordable(self, found: Forecast) -> int:
        assert self.money is not None
        most = self.money * (1 + 1e-12)
        return bisect_left(range(_MOST_ITEMS), True, 1, key=lambda n: self._cost(found, n) > most) - 1

    def _counts(self, found: Forecast, items: int) -> FloatArray:
        """Calls per judge, expected if at random; what does not come out even is the dearest's."""
        K, calls = len(found.shares), items * found.calls
        if found.strategy == "priced":
            return np.asarray(counts_of(np.array(found.shares), calls), dtype=np.float64)
        if found.strategy != "cyclic":
            return np.full(K, calls / K)
        counts = np.full(K, float(calls // K))
        counts[np.argsort(-self.prices.per_call, kind="stable")[: calls % K]] += 1.0
        return counts

    def _cost(self, found: Forecast, items: int) -> float:
        price = self.prices.per_call
        cost = float(self._counts(found, items) @ price)
        if found.used is not None:  # whom the lot falls on is not known
            cost = items * found.generations * float(np.sort(price)[-found.used :].sum())
        if found.strategy == "random":
            cost += _RANDOM_COST * sqrt(items * found.calls * float(price.var()))
        return cost + items * found.generations * self.prices.per_generation

    def _half_width(self, found: Forecast, items: int) -> float:
        K, calls, variance = self.pilot.n_judges, items * found.calls, found.variance / items + found.fixed
        degrees = items - 1.0
        if found.strategy in ("cyclic", "priced"):
            if calls < 2 * K:
                return inf
            if found.strategy == "priced":
                variance = float((self.pilot.judge_variance / self._counts(found, items)).sum()) / K**2
            else:
                more, less = calls % K, calls // K
                unevenness = calls * (more / (less + 1) + (K - more) / less) / K**2 - 1.0
                variance += found.uneven / items * unevenness
            left = float(calls - K)
            degrees = left if found.generations == 1 else (degrees**-4 + left**-4) ** -0.25
        error = sqrt(variance)
        if self.clusters is not None:
            error, degrees = self.clusters.error(variance, degrees, items)
        return float(t_quantile(self.level, degrees)) * error


def _least(found: Forecast) -> int:
    """Items that give every judge two calls, or, where judges are not estimated, an interval at all."""
    if found.strategy in ("all", "random", SOME):
        return 2
    return max(-(-2 * len(found.shares) // found.generations), 2)
