"""Wall time of a budgeted inspect run against the same number of plain epochs, on models without latency.

Both run in this process, in turn, with the same samples, scorer and log settings:

    python benchmarks/overhead.py --cells 2000 --repetitions 5 --json overhead.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as host_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model
from rich.console import Console
from rich.table import Table

from evalbudget_inspect import budgeted
from evalbudget_inspect.demo.story_rating import story_rating

TARGET = 1.3
PLAIN = "plain epochs"
SAMPLERS = ("uniform", "eb-bernstein")


def timed(task: Task, cells: int, folder: str, **options: Any) -> tuple[float, float]:
    """Wall and processor seconds of one run.

    Raises:
        RuntimeError: it did not run that many cells.
    """
    wall, processor = perf_counter(), process_time()
    (log,) = host_eval(
        task,
        model=get_model("simulated/writer"),
        model_roles={"grader": get_model("simulated/judge")},
        display="none",
        log_dir=folder,
        ctl_server=False,
        **options,
    )
    elapsed = perf_counter() - wall, process_time() - processor
    check(log, cells)
    return elapsed


def check(log: EvalLog, cells: int) -> None:
    """Raise unless the run is complete."""
    ran = len(log.samples or [])
    if log.status != "success" or ran != cells:
        raise RuntimeError(f"the run ended with {log.status} after {ran} of {cells} cells: {log.error}")


def measure(items: int, cells: int, repetitions: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds of every variant and repetition; the variants take turns, to meet the same machine."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in (PLAIN, *SAMPLERS)}
    with tempfile.TemporaryDirectory() as folder:
        timed(story_rating(items), items, folder)  # imports and first-use caches
        for repetition in range(repetitions):
            names = list(seconds)
            for name in names[repetition % len(names) :] + names[: repetition % len(names)]:
                if name == PLAIN:
                    result = timed(story_rating(items), cells, folder, epochs=cells // items)
                else:
                    task = budgeted(story_rating(items), budget=cells, sampler=name)
                    result = timed(task, cells, folder)
                seconds[name].append(result)
    return seconds


def rows(seconds: dict[str, list[tuple[float, float]]], cells: int) -> list[dict[str, Any]]:
    """Medians, and the median of the ratios to the plain run of the same repetition."""
    plain = seconds[PLAIN]
    return [
        {
            "run": name,
            "cells": cells,
            "wall_seconds": statistics.median(wall for wall, _ in times),
            "cpu_seconds": statistics.median(cpu for _, cpu in times),
            "ms_per_cell": 1e3 * statistics.median(wall for wall, _ in times) / cells,
            "wall_ratio": statistics.median(t[0] / p[0] for t, p in zip(times, plain, strict=True)),
            "cpu_ratio": statistics.median(t[1] / p[1] for t, p in zip(times, plain, strict=True)),
        }
        for name, times in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows here")
    given = parser.parse_args()
    if given.cells % given.items:
        parser.error(f"--cells {given.cells} is not a multiple of --items {given.items}")
    found = rows(measure(given.items, given.cells, given.repetitions), given.cells)
    table = Table(title=f"{given.cells:,} cells, {given.items} items, median of {given.repetitions}")
    for heading in ("run", "wall s", "cpu s", "ms/cell", f"wall ratio (<= {TARGET})", "cpu ratio"):
        table.add_column(heading, justify="left" if heading == "run" else "right")
    for row in found:
        numbers = (row[k] for k in ("wall_seconds", "cpu_seconds", "ms_per_cell", "wall_ratio", "cpu_ratio"))
        table.add_row(row["run"], *(f"{number:.2f}" for number in numbers))
    Console().print(table)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
