"""Section ``processes``: a backtest on two processes of this machine, against one."""

from __future__ import annotations

import os
import statistics

from judges_sections.found import Found, Target
from scale_sections.backtests import SAMPLERS, ran, recorded

SEEDS = 200
FASTER = 1.8
_TURNS = 3


def processes(quick: bool, seeds: int | None = None) -> Found:
    """One and two workers in turn, so that other load on the machine is the same for both."""
    seeds = 2 if quick else seeds or SEEDS
    scores = recorded(20 if quick else 200)
    rows: list[tuple[str, ...]] = []
    ratios, reachable, same = [], [], []
    for turn in range(1 if quick else _TURNS):
        one, two = ran(scores, seeds, workers=1), ran(scores, seeds, workers=2)
        same.append(one.rows == two.rows)
        ratios.append(one.seconds / two.seconds)
        reachable.append(2 * one.processor / two.processor)
        rows.extend(
            (
                f"{turn + 1}",
                name,
                f"{each.seconds:.1f}",
                f"{each.processor:.1f}",
                f"{each.processor / each.seconds:.2f}",
                f"{each.load:.1f}",
            )
            for name, each in (("one process", one), ("two workers", two))
        )
    typical, possible = statistics.median(ratios), statistics.median(reachable)
    return Found(
        f"{seeds} seeds of {len(SAMPLERS)} samplers ({', '.join(SAMPLERS)}), 20 readings for each of "
        f"{len(scores.items)} items; one process and two loky workers in turn, the start of the workers "
        f"included. This machine has {os.cpu_count()} processors.",
        ("turn", "workers", "seconds", "processor seconds", "processors in use", "load of the machine"),
        tuple(rows),
        targets=(
            Target(
                f"two loky workers are {FASTER} times as fast as one process",
                f"{typical:.2f} times, the median of {', '.join(f'{ratio:.2f}' for ratio in ratios)}",
                typical >= FASTER,
            ),
            Target(
                f"two workers need so little more processor time that {FASTER} times is possible where both "
                "have a processor of their own",
                f"{possible:.2f} times, the median of {', '.join(f'{ratio:.2f}' for ratio in reachable)}",
                possible >= FASTER,
            ),
            Target("the same rows", f"{sum(same)} of {len(same)}", all(same)),
        ),
        notes=(
            "Where the load is well above the number of processors, other programs run on them too, and two "
            "workers cannot have two: the processor seconds say what they would take if they had.",
        ),
    )
