"""The sections of the page: each size in a process of its own, and what had to be reached."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from judges_sections.found import Found, Target

_HERE = Path(__file__).resolve().parents[1]
_COLUMNS = ("calls", "seconds", "µs a call", "99% of calls within", "longest", "peak memory")
_REPEATS = ("auto", "uniform")
_JOURNAL = 50e-6
_DECISION = 5e-3
"""What a host itself takes for a call."""


def measure(name: str, **sizes: object) -> dict[str, float]:
    """One measurement.

    Raises:
        RuntimeError: its process failed.
    """
    command = [sys.executable, "-m", "load_sections.measured", name, json.dumps(sizes)]
    done = subprocess.run(command, cwd=_HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} {sizes} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def journal(quick: bool) -> Found:
    """What the record of a reading costs."""
    found = measure("journal", readings=2_000 if quick else 200_000)
    return Found(
        "A journal on disk: that a score is asked, and what it is, each flushed before anything goes on.",
        ("", *_COLUMNS),
        (_row("journal file", found),),
        (
            Target(
                "a journal takes less than 50 µs per reading",
                f"{found['mean'] * 1e6:.0f} µs",
                found["mean"] < _JOURNAL,
            ),
        ),
    )


def concurrent(quick: bool) -> Found:
    """Calls under way at once."""
    at_once, readings, seconds = (500, 1_500, 0.1) if quick else (10_000, 100_000, 2.0)
    rows = {
        name: measure(
            "concurrent",
            sampler=name,
            at_once=at_once,
            items=readings // 10,
            readings=readings,
            latency=seconds,
        )
        for name in _REPEATS[: 1 if quick else None]
    }
    least = min(found["most"] for found in rows.values())
    return Found(
        f"drive() with {at_once:,} simulated calls at once in one process, each of {seconds / 2:g} to "
        f"{1.5 * seconds:g} seconds, and a journal on disk. A call's time is that of the sampler: asking it "
        "and telling it.",
        ("sampler", *_COLUMNS),
        tuple(_row(name, found) for name, found in rows.items()),
        (
            Target(f"{at_once:,} calls at once", f"{least:,.0f}", least >= at_once),
            Target(
                "exactly the budget is spent",
                ", ".join(f"{found['spent']:,.0f}" for found in rows.values()),
                all(found["spent"] == readings for found in rows.values()),
            ),
            _decides(rows),
        ),
    )


def items(quick: bool) -> Found:
    """Items in one run."""
    n, beyond = (2_000, 500) if quick else (1_000_000, 200_000)
    rows = {
        name: measure("items", sampler=name, items=n, beyond=beyond)
        for name in _REPEATS[: 1 if quick else None]
    }
    return Found(
        f"A run over {n:,} items: their first readings, and {beyond:,} more that are chosen. The longest "
        "decision is the one that ends the first readings: it ranks all items, once.",
        ("sampler", *_COLUMNS),
        tuple(_row(name, found) for name, found in rows.items()),
        (_decides(rows),),
    )


def race(quick: bool) -> Found:
    """Models and items in one race."""
    models, n, evaluations = (20, 200, 1_000) if quick else (500, 12_000, 500_000)
    rows = {
        name: measure("race", sampler=name, models=models, items=n, evaluations=evaluations)
        for name in ("race", "paired-eprocess", "lucb")[: 1 if quick else None]
    }
    return Found(
        f"A race of {models:,} models on {n:,} items, for {evaluations:,} evaluations or until it ends. "
        "Chances of a right answer lie evenly between .3 and .7.",
        ("sampler", *_COLUMNS),
        tuple(_row(name, found) for name, found in rows.items()),
        (_decides(rows),),
    )


def _row(name: str, found: dict[str, float]) -> tuple[str, ...]:
    return (
        name,
        f"{found['calls']:,.0f}",
        f"{found['seconds']:.1f}",
        f"{found['mean'] * 1e6:.1f}",
        f"{found['p99'] * 1e6:.1f} µs",
        f"{found['longest'] * 1e3:,.1f} ms",
        f"{found['mib']:,.0f} MiB",
    )


def _decides(rows: dict[str, dict[str, float]]) -> Target:
    slowest = max(rows, key=lambda name: rows[name]["p99"])
    worst = rows[slowest]["p99"]
    return Target(
        "99% of decisions take less than 5 ms, the host's own time for a call",
        f"{worst * 1e6:,.0f} µs ({slowest})",
        worst < _DECISION,
    )
