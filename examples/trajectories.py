"""Writes trajectories.csv: made-up scores and costs of an agent that attempts every task twelve times.

Nothing in it was recorded. Tasks cost from a cent to some dollars, attempts that fail run on to the limit of
steps and cost more, and the pass rates of tasks are Beta(2, 0.7), as where most tasks are solved most of the
time::

    python trajectories.py
    evalbudget backtest repeats trajectories.csv --budget '$100'
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

TASKS, ATTEMPTS = 60, 12
TYPICAL = 0.15  # dollars
SPREAD = 1.1  # standard deviation of ln(cost) between tasks
LUCK = 0.4  # and between attempts
FAILING = 0.8  # ln of what a failed attempt costs more
LIMIT = 4.0  # dollars, at which an attempt is ended


def rows(seed: int = 0) -> list[tuple[str, int, int, str, str]]:
    """Item, repeat, score, cost in dollars, and where it comes from."""
    rng = np.random.default_rng(seed)
    passes = rng.beta(2.0, 0.7, TASKS)
    task = TYPICAL * np.exp(rng.normal(0.0, SPREAD, TASKS))
    score = (rng.random((TASKS, ATTEMPTS)) < passes[:, None]).astype(int)
    luck = rng.normal(0.0, LUCK, score.shape)
    cost = np.minimum(task[:, None] * np.exp(luck + FAILING * (1 - score)), LIMIT)
    return [
        (f"task {t:02}", a, int(score[t, a]), f"{cost[t, a]:.4f}", "simulated")
        for t in range(TASKS)
        for a in range(ATTEMPTS)
    ]


def main() -> None:
    """Write the file beside this one."""
    path = Path(__file__).with_name("trajectories.csv")
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("item", "repeat", "score", "cost", "source"))
        table.writerows(rows())


if __name__ == "__main__":
    main()
