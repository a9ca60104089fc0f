"""Panels of judges with biases of their own: coverage, wrong ranks, and what ten times the judges cost."""

from __future__ import annotations

import time

import numpy as np
from scipy.stats import binomtest

from evalbudget_pairwise import PairwiseReading, read_preferences
from judges_sections.found import Found, Target
from pairwise_sections.panels import Panel

RUNS = 400
LEVEL = 0.95
_TIMED = (Panel(200, 3), Panel(2000, 3))
_TIMED_QUICK = (Panel(20, 3), Panel(200, 3))
_MOST = 12.0
_PANELS = {
    "2 judges": Panel(2, 30),
    "2 judges, one order each": Panel(2, 30, orders="one"),
    "5 judges": Panel(5, 12),
    "5 judges, one order each": Panel(5, 12, orders="one"),
    "50 judges": Panel(50, 8),
    "50 judges, one order each": Panel(50, 8, orders="one"),
    "50 judges, half of them in one order": Panel(50, 8, orders="mixed"),
    "200 voters": Panel(200, 3),
    "200 voters, one vote each": Panel(200, 1),
}


def judges(quick: bool, seeds: int | None = None) -> Found:
    """Panels of equal models."""
    runs = 2 if quick else (seeds or RUNS)
    rows, missed, wrong = [], [], []
    for name, panel in _PANELS.items():
        told = [row for seed in range(runs) if (row := _read(panel, seed)).pairs[0].position != "none"]
        pairs = [reading.pairs[0] for reading in told]
        missed.append((sum(not row.low <= 0.5 <= row.high for row in pairs), len(told)))
        ranked = sum(reading.models[0].rank_high == 1 for reading in told)
        proved = sum(reading.winner is not None for reading in told)
        wrong += [(ranked, len(told)), (proved, len(told))]
        rows.append(
            (
                name,
                f"{runs - len(told):,}",
                _share(len(told) - missed[-1][0], len(told)),
                f"{np.mean([row.high - row.low for row in pairs]):.2f}" if pairs else "-",
                _share(ranked, len(told)),
                _share(proved, len(told)),
            )
        )
    ratio = _ratio(_TIMED_QUICK, 1) if quick else _ratio(_TIMED, 5)
    return Found(
        f"{runs:,} runs per row of two equal models. Each judge favours the first by an amount of its own "
        "(standard deviation .2 of its votes), and sees both orders, or one, by chance. Where all votes are "
        "in the same order nothing tells what position did: those runs are counted and left out.",
        ("panel", "not identified", "win rate holds", "width", "ranks told apart", "winner named"),
        tuple(rows),
        targets=(
            Target(
                f"intervals hold with {LEVEL:g} or more",
                f"at least {min(1.0 - failed / of for failed, of in missed if of):.3f}",
                _kept(missed),
            ),
            Target(
                f"wrong statements in at most {1.0 - LEVEL:.2g} of the runs",
                f"at most {max(failed / of for failed, of in wrong if of):.3f}",
                _kept(wrong),
            ),
            Target(
                f"ten times the judges take at most {_MOST:g} times the time", f"{ratio:.1f}", ratio <= _MOST
            ),
        ),
        notes=(
            "Two judges in opposite orders tell nothing, and their interval is from 0 to 1; five in one "
            "order each tell little.",
        ),
    )


def _read(panel: Panel, seed: int) -> PairwiseReading:
    return read_preferences(panel.preferences([seed, 4]), level=LEVEL)


def _share(count: int, of: int) -> str:
    return f"{count / of:.3f}" if of else "-"


def _kept(found: list[tuple[int, int]]) -> bool:
    return all(
        binomtest(failed, of, 1.0 - LEVEL, alternative="greater").pvalue > 0.001 for failed, of in found if of
    )


def _ratio(timed: tuple[Panel, Panel], times: int) -> float:
    """Of the least processor time that each took, in turn, so that what else runs hurts both alike."""
    small, large = (panel.preferences(1) for panel in timed)
    spent: list[tuple[float, float]] = []
    for _ in range(times):
        moments = [time.process_time()]
        for preferences in (small, large):
            read_preferences(preferences)
            moments.append(time.process_time())
        spent.append((moments[1] - moments[0], moments[2] - moments[1]))
    return min(large for _, large in spent) / min(small for small, _ in spent)
