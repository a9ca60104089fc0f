"""Section ``engines``: the same backtest on loky, and on Dask's and Ray's clusters of this machine."""

from __future__ import annotations

from importlib.util import find_spec

from judges_sections.found import Found, Target
from scale_sections.backtests import SAMPLERS, ran, recorded

SEEDS = 50
_MODULES = {"loky": "joblib", "dask": "distributed", "ray": "ray"}


def engines(quick: bool, seeds: int | None = None) -> Found:
    """Rows of all engines that are installed, against those of one process."""
    seeds = 2 if quick else seeds or SEEDS
    scores = recorded(20 if quick else 200)
    alone = ran(scores, seeds, workers=1)
    rows, same, missing = [("this process", f"{alone.seconds:.1f}", "-")], [], []
    for name, module in _MODULES.items():
        if find_spec(module) is None:
            missing.append(name)
            continue
        if quick and name != "loky":
            continue  # their clusters take seconds to start
        found = ran(scores, seeds, workers=2, parallel=name)
        same.append(found.rows == alone.rows)
        rows.append((name, f"{found.seconds:.1f}", "yes" if same[-1] else "no"))
    return Found(
        f"{seeds} seeds of {len(SAMPLERS)} samplers, 20 readings for each of {len(scores.items)} items, two "
        "workers each; the start of a cluster is included.",
        ("engine", "seconds", "rows of one process"),
        tuple(rows),
        targets=(Target("identical rows on every engine", f"{sum(same)} of {len(same)}", all(same)),),
        notes=(f"Not installed here: {', '.join(missing)}.",) if missing else (),
    )
