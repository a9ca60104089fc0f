r"""How often to audit: the least expected cost of telling the leader from the others, no target rate given.

Up to a scale s and a floor the best propensities are proportional to the residual's spread,
:math:`\pi = \max(s \sqrt g, \text{floor})`, with
:math:`s^2 = 2 c_F / (c_Y \mathrm{Var}(m_i - m_j))` for a pair and :math:`c_F / (c_Y \mathrm{Var}(m))` for a
single system. The bets are limited by the least propensity, so the floor matters more than s: it is chosen,
with multiples of s, by the expected cost

.. math:: \sum_k T_k (c_F + c_Y E\pi_k), \quad T_k = \log(1/\delta) / \max_\lambda
          [\lambda d - \lambda^2 (V + d^2) / 2]

until each rival is told apart. The same sum with pi = 1 and without the judge is what audits alone
would cost: the judge is a no-go when that is less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._always_valid_evidence import pair_bets, reach
from evalbudget.audits.policies._calibration import Calibration
from evalbudget.statistics._bounds import FloatArray, IntArray

LEAST = 0.005
FLOORS = (0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5)
WIDTHS = (1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0)
SCALES = (0.35, 0.6, 1.0, 1.7)


@dataclass(frozen=True)
class Rates:
    """Frozen propensities and what is expected of them.

    Attributes:
        propensity: pi, shape (arms, cells).
        cost: expected, until every rival is told apart from the leader.
        contexts: expected number of them until then.
        steps: expected number of contexts until each rival is told apart, shape (rivals,).
    """

    propensity: FloatArray
    cost: float
    contexts: float
    steps: FloatArray


@dataclass(frozen=True)
class Pool:
    """What a finite pool changes.

    Attributes:
        left: items not drawn yet.
        needed: labels of each rival that a second pass is expected to need if none were there, shape
            (rivals,); see :func:`expected_pass_labels`.
    """

    left: int
    needed: FloatArray


@dataclass(frozen=True)
class Task:
    """What is to be told apart.

    Attributes:
        leader: the arm that leads.
        rivals: the others that are still in.
        gap: supposed difference of the leader to each rival, shape (rivals,), > 0.
        spread: Var(m_leader - m_rival), shape (rivals,).
        log_threshold: log of the evidence wanted.
        judge_price: of a score.
        label_price: of a label.
    """

    leader: int
    rivals: IntArray
    gap: FloatArray
    spread: FloatArray
    log_threshold: float
    judge_price: float
    label_price: float


def residual_variance(calibration: Calibration, propensity: FloatArray) -> FloatArray:
    """G of each arm, shape (arms,)."""
    return np.asarray((calibration.share * calibration.square / propensity).sum(axis=1), dtype=np.float64)


def fits_disjoint(propensity: FloatArray, leader: int) -> NDArray[np.bool_]:
    """Which pairs are never both audited, whatever their cells, shape (arms, arms)."""
    most = propensity.max(axis=1)
    with_leader = most + most[leader] <= 1.0
    with_leader[leader] = False
    fits = np.zeros((most.size, most.size), dtype=bool)
    fits[leader] = fits[:, leader] = with_leader
    return fits


def best_rates(calibration: Calibration, task: Task) -> Rates:
    """The cheapest of a few dozen propensity tables."""
    root = np.sqrt(calibration.square)
    nearest = float(task.spread[np.argmin(task.gap)])
    s = np.sqrt(2.0 * task.judge_price / (task.label_price * max(nearest, 1e-4)))
    floors = _floors(calibration.prediction, task.leader)
    scaled = s * np.array(SCALES)[:, None, None, None] * root
    options = np.clip(np.maximum(scaled, floors), LEAST, 1.0).reshape(-1, *root.shape)
    return _cheapest(calibration, np.concatenate([options, np.ones((1, *root.shape))]), task)


def audits_only(calibration: Calibration, task: Task, spread: FloatArray) -> Rates:
    """Label everything, without a judge; ``spread`` is Var(Y_leader - Y_rival), shape (rivals,)."""
    return _cheapest(calibration, np.ones((1, *calibration.square.shape)), task, without_judge=spread)


def _floors(m: FloatArray, leader: int) -> FloatArray:
    """The least propensities with which Z_rival - Z_leader stays below each width under disjoint coins.

    The leader's Z must not fall below 1 - width, a rival's not rise above width: cells where the leader is
    expected to do badly, and rivals well, need few audits.
    """
    width = np.array(WIDTHS)[:, None, None]
    floor = (1.0 - m) / (width - m)
    floor[:, leader] = m[leader] / (width[:, 0] - 1.0 + m[leader])
    return np.asarray(floor, dtype=np.float64)


def _cheapest(
    calibration: Calibration, options: FloatArray, task: Task, *, without_judge: FloatArray | None = None
) -> Rates:
    """The option, of shape (options, arms, cells), with the least expected cost."""
    leader, rivals = task.leader, task.rivals
    m = calibration.prediction
    residual = (calibration.share * calibration.square / options).sum(axis=2)
    if without_judge is None:
        variance = task.spread + residual[:, [leader]] + residual[:, rivals]
    else:
        variance = np.broadcast_to(without_judge, (len(options), rivals.size))
    below = (m[leader] * (1.0 / options[:, leader] - 1.0)).max(axis=1)[:, None]
    above = (m[rivals] + (1.0 - m[rivals]) / options[:, rivals]).max(axis=2)
    most = options.max(axis=2)
    fits = most[:, [leader]] + most[:, rivals] <= 1.0
    width = np.where(fits, np.maximum(below + 1.0, above), below + above)
    bets = pair_bets(variance, width)
    second = (variance + task.gap**2)[..., None]
    growth = (bets * task.gap[:, None] - bets**2 * second / 2.0).max(axis=2)
    steps = task.log_threshold / np.maximum(growth, 1e-9)
    price = task.label_price * (calibration.share * options).sum(axis=2)
    price += 0.0 if without_judge is not None else task.judge_price
    cost = (steps * price[:, rivals]).sum(axis=1) + steps.max(axis=1) * price[:, leader]
    best = int(np.argmin(cost))
    return Rates(options[best], float(cost[best]), float(steps[best].max()), steps[best])


def expected_pass_labels(
    n_items: int, gap: FloatArray, variance: FloatArray, log_threshold: float
) -> FloatArray:
    r"""Labels until a difference of means over a pool is proved, none labelled twice.

    The best bet after n of N items gains :math:`d^2 N^2 / (2 V (N - n)^2)` on the next; added up that is
    :math:`d^2 N n / (2 V (N - n))`, which reaches the threshold at n = N T / (N + T), with T the number that
    an endless pool would take.

    Args:
        n_items: N.
        gap: d, shape (pairs,), > 0.
        variance: V of y - f, the difference of two arms or of one alone, same shape.
        log_threshold: log of the evidence wanted.
    """
    endless = 2.0 * log_threshold * (variance + gap**2) / gap**2
    return np.asarray(n_items * endless / (n_items + endless), dtype=np.float64)


def pool_cost(calibration: Calibration, rates: Rates, task: Task, pool: Pool, *, judged: bool) -> float:
    """Expected cost where the items may not suffice: those left, and a second pass for whoever is left then.

    The same as ``rates.cost`` where every rival is expected to be told apart before.
    """
    rate = (calibration.share * rates.propensity).sum(axis=1)
    price = task.label_price * rate + (task.judge_price if judged else 0.0)
    short = rates.steps > pool.left
    first = np.minimum(rates.steps, pool.left)
    again = np.where(short, pool.needed, 0.0)
    cost = (first * price[task.rivals]).sum() + first.max() * price[task.leader]
    unlabelled = task.label_price * (1.0 - rate)
    return float(cost + (again * unlabelled[task.rivals]).sum() + again.max() * unlabelled[task.leader])


def skipping_cost(task: Task, pool: Pool, *, judged: bool) -> float:
    """Expected cost of drawing the rest of the pool at once, all but unlabelled, for the second pass."""
    n = task.rivals.size + 1
    judging = n * pool.left * task.judge_price if judged else 0.0
    return float(judging + task.label_price * (pool.needed.sum() + pool.needed.max()))


def single_rates(
    calibration: Calibration, spread: float, half_width: float, alpha: float, prices: tuple[float, float]
) -> Rates:
    """The cheapest table for one mean.

    Args:
        calibration: of the one arm.
        spread: Var(m).
        half_width: wanted of the interval.
        alpha: its error probability.
        prices: of a judge's score and of a label.
    """
    root = np.sqrt(calibration.square)
    s = np.sqrt(prices[0] / (prices[1] * max(spread, 1e-4)))
    found = []
    for propensity in [
        *(np.clip(np.maximum(scale * s * root, floor), LEAST, 1.0) for scale in SCALES for floor in FLOORS),
        np.ones_like(root),
    ]:
        residual = residual_variance(calibration, propensity)
        a, b = reach(calibration.prediction, propensity)
        steps = _steps(spread + float(residual[0]), float((a + b)[0]), half_width, alpha)
        price = prices[0] + prices[1] * float((calibration.share * propensity).sum())
        found.append(Rates(propensity, steps * price, steps, np.array([steps])))
    return min(found, key=lambda rates: rates.cost)


def single_pool_cost(
    calibration: Calibration, rates: Rates, pool: Pool, prices: tuple[float, float], *, judged: bool
) -> float:
    """:func:`pool_cost` for one mean."""
    rate = float((calibration.share * rates.propensity).sum())
    first = min(rates.contexts, pool.left) * (prices[1] * rate + (prices[0] if judged else 0.0))
    again = float(pool.needed[0]) if rates.contexts > pool.left else 0.0
    return first + again * prices[1] * (1.0 - rate)


def single_needed(n_items: int, variance: float, half_width: float, alpha: float) -> FloatArray:
    """:func:`expected_pass_labels` for one mean, shape (1,)."""
    endless = _steps(variance, 1.0, half_width, alpha)
    return np.array([n_items * endless / (n_items + endless)])


def single_audits_only(
    calibration: Calibration, variance: float, half_width: float, alpha: float, label_price: float
) -> Rates:
    """Label everything, without a judge, for one mean; ``variance`` is that of the labels."""
    everything = np.ones_like(calibration.square)
    steps = _steps(variance, 1.0, half_width, alpha)
    return Rates(everything, steps * label_price, steps, np.array([steps]))


def _steps(variance: float, width: float, half_width: float, alpha: float) -> float:
    """T with half_width = sqrt(2 variance log / T) + width log / (3 T), log = log(2 / alpha)."""
    log = np.log(2.0 / alpha)
    linear, root = width * log / 3.0, np.sqrt(2.0 * variance * log)
    inverse = (-root + np.sqrt(root**2 + 4.0 * linear * half_width)) / (2.0 * linear)
    return float(inverse**-2)
