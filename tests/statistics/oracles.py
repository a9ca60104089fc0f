"""Slow, plain re-implementations straight from the papers' formulas, in Python floats."""

from __future__ import annotations

import math


def betting(x: list[float], alpha: float, grid: int, pool: int | None = None) -> tuple[float, float]:
    def lower(y: list[float]) -> float:
        best = 0.0
        for g in range(grid):
            m = g / (grid - 1)
            capital, peak = [1.0] * 6, 1.0
            for t, value in enumerate(y):
                past = y[:t]
                means = [(0.5 + sum(y[: s + 1])) / (s + 2) for s in range(t)]
                sigma = math.sqrt(
                    (0.25 + sum((a - b) ** 2 for a, b in zip(past, means, strict=True))) / (t + 1)
                )
                mt = m if pool is None else min(1.0, max(0.0, (pool * m - sum(past)) / (pool - t)))
                for j in range(6):
                    bet = 0.5 ** (j + 1) / sigma
                    if pool is not None:
                        gap = 0.5 ** (j + 1) * sigma * pool / (pool - t)
                        bet = gap / (sigma**2 + gap**2 - (0.5 ** (j + 1) * sigma) ** 2)
                    if mt > 0:
                        bet = min(bet, 0.9 / mt)
                    capital[j] *= 1 + bet * (value - mt)
                peak = max(peak, sum(capital) / 6)
            if peak >= 2 / alpha:
                best = m
        return best

    low, high = lower(x), 1 - lower([1 - v for v in x])
    if pool is not None:
        low, high = max(low, sum(x) / pool), min(high, (sum(x) + pool - len(x)) / pool)
    return low, high


def plug_in(x: list[float], alpha: float, kind: str, pool: int | None = None) -> tuple[float, float]:
    low, high = 0.0, 1.0
    numerator = denominator = penalty = 0.0
    for t in range(1, len(x) + 1):
        past = x[: t - 1]
        mean_before = (0.5 + sum(past)) / t
        var = (0.25 + sum((past[i] - (0.5 + sum(past[: i + 1])) / (i + 2)) ** 2 for i in range(t - 1))) / t
        log = math.log(2 / alpha)
        if kind == "bernstein":
            lam = min(math.sqrt(2 * log / (var * t * math.log(1 + t))), 0.5)
            penalty += 4 * (x[t - 1] - mean_before) ** 2 * (-math.log(1 - lam) - lam) / 4
        else:
            lam = min(math.sqrt(8 * log / (t * math.log(1 + t))), 1.0)
            penalty += lam**2 / 8
        if pool is None:
            numerator += lam * x[t - 1]
            denominator += lam
        else:
            numerator += lam * (x[t - 1] + sum(past) / (pool - t + 1))
            denominator += lam * (1 + (t - 1) / (pool - t + 1))
        low = max(low, numerator / denominator - (log + penalty) / denominator)
        high = min(high, numerator / denominator + (log + penalty) / denominator)
    return low, high
