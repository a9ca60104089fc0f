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
_BOOK = 300e-6
_DECISION = 5e-3
"""What a host itself takes for a call."""
_FASTER = 3.0


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


def book(quick: bool) -> Found:
    """What a reading costs in a book."""
    readings = 1_000 if quick else 50_000
    rows = {n: measure("book", readings=readings, at_once=n) for n in (1, 10, 100)[: 1 if quick else None]}
    return Found(
        "A book on disk: so many readings are taken in and as many cells handed out at a time, all of it "
        "written before anything goes on. Processor time a reading.",
        ("at a time", *_COLUMNS),
        tuple(_row(f"{n}", found) for n, found in rows.items()),
        (
            Target(
                "a reading takes less than .3 ms in the book",
                f"{rows[1]['mean'] * 1e3:.2f} ms",
                rows[1]["mean"] < _BOOK,
            ),
        ),
    )


def concurrent(quick: bool) -> Found:
    """Calls under way at once."""
    at_once, readings, seconds = (100, 300, 0.1) if quick else (10_000, 100_000, 2.0)
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
        f"{1.5 * seconds:g} seconds, and a book on disk: plans of rounds, and how long they take.",
        ("sampler", "plans", "seconds", "µs a plan", "99% of plans within", "longest", "peak memory"),
        tuple(_row(name, found) for name, found in rows.items()),
        (
            Target(f"{at_once:,} calls at once", f"{least:,.0f}", least >= at_once),
            Target(
                "exactly the budget is spent",
                ", ".join(f"{found['spent']:,.0f}" for found in rows.values()),
                all(found["spent"] == readings for found in rows.values()),
            ),
        ),
    )


def items(quick: bool) -> Found:
    """Items in one run."""
    n, beyond = (300, 400) if quick else (1_000_000, 200_000)
    rows = {
        name: measure("items", sampler=name, items=n, beyond=beyond)
        for name in _REPEATS[: 1 if quick else None]
    }
    return Found(
        f"A run over {n:,} items: their first readings, and {beyond:,} more. The longest "
        "decision is the one that ranks all items, or plans a phase of them.",
        ("sampler", *_COLUMNS),
        tuple(_row(name, found) for name, found in rows.items()),
        (_decides(rows),),
    )


def race(quick: bool) -> Found:
    """Models and items in one race."""
    models, n, evaluations = (10, 100, 300) if quick else (500, 12_000, 100_000)
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


def arms(quick: bool) -> Found:
    """Arms of a race on lm-eval that are asked at once."""
    documents, latency = (12, 0.01) if quick else (200, 0.1)
    at_once, concurrent = ((1, 4), (1,)) if quick else ((1, 2, 4), (1, 8))
    found = measure("arms", at_once=at_once, concurrent=concurrent, documents=documents, latency=latency)
    same = bool(found.pop("same"))
    times_as_fast = {
        (requests, arms): found[f"{requests} x 1"] / found[f"{requests} x {arms}"]
        for requests in concurrent
        for arms in at_once
    }
    return Found(
        f"A race of 4 models on {documents:,} documents on lm-eval, all of them asked, on a server that "
        f"takes {latency:g} seconds for a reply; with the record, and all that comes before and after.",
        ("num_concurrent", "arms at once", "calls", "seconds", "times as fast"),
        tuple(
            (
                str(requests),
                str(arms),
                f"{4 * documents:,}",
                f"{found[f'{requests} x {arms}']:.1f}",
                f"{times:.2f}",
            )
            for (requests, arms), times in times_as_fast.items()
        ),
        (
            Target(
                "4 arms at once take a third of the time of one after the other",
                f"{times_as_fast[1, 4]:.2f} times as fast",
                times_as_fast[1, 4] >= _FASTER,
            ),
            Target("they decide the same", "the same leaderboards" if same else "different ones", same),
        ),
    )


def slow(quick: bool) -> Found:
    """Waiting between the default's phases, where calls take their time."""
    times = 1 if quick else 5
    sizes = {
        ("lm-eval", 64): (100, 20, 1.10),
        ("inspect", 20): (40, 10, 1.15),
        ("inspect", 100): (200, 4, 1.15),
    }
    if quick:
        del sizes["inspect", 100]
    found = {
        (host, concurrent): measure(
            "slow",
            host=host,
            concurrent=concurrent,
            items=4 if quick else items,
            repeats=2 if quick else repeats,
            times=times,
        )
        for (host, concurrent), (items, repeats, _) in sizes.items()
    }
    return Found(
        "The default against plain repeats (epochs) with as many calls, on models that take .1 to .4 seconds "
        f"for a call (lm-eval), or log-normal times around .3 (inspect); medians of {times} pairs.",
        ("host", "calls at once", "calls", "plain, seconds", "default, seconds", "ratio"),
        tuple(
            (
                host,
                str(concurrent),
                f"{sizes[host, concurrent][0] * sizes[host, concurrent][1]:,}",
                f"{each['plain']:.1f}",
                f"{each['ours']:.1f}",
                f"{each['ratio']:.2f}",
            )
            for (host, concurrent), each in found.items()
        ),
        tuple(
            Target(
                f"{host}, {concurrent} at once: at most {sizes[host, concurrent][2]:.2f} times as long",
                f"{each['ratio']:.2f}",
                each["ratio"] <= sizes[host, concurrent][2],
            )
            for (host, concurrent), each in found.items()
        ),
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
