"""The most that costs can be worth: variances and costs known, errors normal, no warm-up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_ndtr

from costs_sections.money import TWO_DECADES, Floats
from evalbudget.backtest import Average
from judges_sections.found import Found, Target

SIZES = (30, 100, 300)
SPREADS = {"all alike": 0.0, "log-normal, sd 1 of the logarithm": 1.0}
DRAWS = 4
_GRID = 1500
_LARGEST_SOLVED = 30


def bound(quick: bool) -> Found:
    """Largest error expected under several divisions of the same money."""
    rows = []
    best: list[float] = []
    for K in (10,) if quick else SIZES:
        for spread, sd in SPREADS.items():
            found = np.array([_one(K, sd, draw) for draw in range(2 if quick else DRAWS)])
            of = [Average.of(column[None]) for column in found.T]
            rows.append(
                (
                    f"{K}",
                    spread,
                    *(f"{average.mean:.2f}" if np.isfinite(average.mean) else "-" for average in of),
                )
            )
            best.append(np.nanmax([of[1].mean, of[4].mean]))
    return Found(
        "Item i has the variance v_i and its reading the cost c_i, log-normal over two decades; both are "
        "known, "
        "its error is normal with the variance v_i/n_i, and n_i need not be whole. Each column: the largest "
        "|error| expected with n_i in proportion to v_i (by counts, what ROBIN does), over that of another "
        "division of the same money; v_i/n_i proportional to 1 (by counts), to c_i^gamma with gamma = "
        "1/(1 + ln "
        "K) (what the samplers do), to c_i^1.5gamma, to (v_i c_i)^gamma, and the best there is (found "
        f"numerically; not sought above {_LARGEST_SOLVED} items). Means over {DRAWS} draws of v and c.",
        ("items", "variances", "plain epochs", "c^gamma", "c^1.5gamma", "(v c)^gamma", "the best there is"),
        tuple(rows),
        (
            Target(
                "1.5 times less than by counts can be had by whoever knows everything",
                f"at best {max(best):.2f}",
                bool(max(best) >= 1.5),
            ),
        ),
        (
            "Plain epochs stand here as by counts / plain epochs: below 1 they are worse. What (v "
            "c)^gamma is "
            "better than c^gamma has nothing to do with costs: it holds for equal ones too.",
        ),
    )


def _one(K: int, sd: float, draw: int) -> list[float]:
    rng = np.random.default_rng([draw, K])
    v, c = np.exp(sd * rng.standard_normal(K)), np.exp(TWO_DECADES * rng.standard_normal(K))
    gamma = 1.0 / (1.0 + np.log(K))

    def level(shape: Floats) -> float:
        """Expected largest error with v/n in proportion to ``shape``, all of the money spent."""
        scale = (c * v / shape).sum() / (c * v).sum()
        return _largest(np.sqrt(shape * scale))

    def log_level(x: NDArray[Any]) -> float:
        return float(np.log(level(np.exp(x))))

    counts = level(np.ones(K))
    shapes = [v, c**gamma, c ** (1.5 * gamma), (v * c) ** gamma]
    found = [counts / level(shape) for shape in shapes]
    if K > _LARGEST_SOLVED:
        return [*found, float("nan")]
    start = gamma * np.log(v * c)
    best = minimize(log_level, start, method="L-BFGS-B", options={"maxiter": 25})
    return [*found, counts / float(np.exp(best.fun))]


def _largest(s: Floats) -> float:
    """E max_i |e_i| of independent e_i ~ N(0, s_i^2)."""
    t = np.linspace(0.0, 6.0 * s.max(), _GRID)[1:, None] / s
    below = np.log1p(-2.0 * np.exp(np.minimum(log_ndtr(-t), np.log(0.5) - 1e-15))).sum(axis=1)
    step = 6.0 * s.max() / (_GRID - 1)
    return float(step * (0.5 + (1.0 - np.exp(below)).sum()))
