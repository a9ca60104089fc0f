"""Section ``speed``: decisions per second, as a multiple of a bare heap loop timed in the same run."""

from __future__ import annotations

import gc
import heapq
import random
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

from evalbudget.design import Design
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.backtest._compare_samplers import ReplayStage
from evalbudget.repeats.samplers import EBBernstein, RepeatSampler, Robin, RobinHood, Uniform
from evalbudget.replay._contestant import contestants
from evalbudget.replay._workers import Job, run_all
from papers_sections.ratings_pool import ratings_pool
from repeats_sections.replays import recommended
from repeats_sections.section import Section, Setting, Table, Target

DECISIONS = 100_000
BLOCKS = 5
LEAST = {1_000: 100_000, 1_000_000: 30_000}
SCORES = np.array(random.Random(0).choices(range(5), (1, 2, 3, 6, 8), k=4096), dtype=np.float64)

Build = Callable[[Design], RepeatSampler]


def run(setting: Setting) -> Section:
    sizes = (100,) if setting.quick else tuple(LEAST)
    decisions = 400 if setting.quick else DECISIONS
    rows: list[tuple[str, ...]] = []
    targets: list[Target] = []
    builders = _builders(setting)
    done, total = 0, len(sizes) * len(builders)
    for size in sizes:
        reference = _reference(size, decisions)
        for name, build in builders.items():
            warm_up, after = _rates(build(Design.of_items(size)), size, decisions)
            rows.append(
                (
                    f"{size:,}",
                    name,
                    f"{after / reference:.3f}",
                    f"{after:,.0f}",
                    f"{warm_up:,.0f}",
                )
            )
            if size in LEAST and name.split(" ")[0] in recommended(setting):
                text = f"{name} at K = {size:,}: {LEAST[size]:,} readings per second"
                targets.append(
                    Target(text, f"{after:,.0f} after, {warm_up:,.0f} in the warm-up", after >= LEAST[size])
                )
            done += 1
            setting.progress("speed", done, total)
        rows.append((f"{size:,}", "reference loop", "1.000", f"{reference:,.0f}", "-"))
    decided = Table(
        "Decisions per second on one core",
        ("K", "sampler", "relative to reference", "per second", "per second in the warm-up"),
        tuple(rows),
        f"Rounds as they are planned, in a replay: processor time of the first {decisions:,} readings after "
        "the warm-up, or K if that is more. The reference pops and pushes a heap of K entries and writes a "
        f"dict, the fastest of {BLOCKS} blocks of {decisions // BLOCKS:,}. Warm-ups of two readings, so that "
        "a million items get past them.",
    )
    wall, target = _backtest(setting)
    return Section(
        "speed",
        "Speed",
        "Absolute figures depend on the machine and its load; the ratio to the reference loop much less.",
        (decided, wall),
        (*targets, *target),
    )


def _builders(setting: Setting) -> dict[str, Build]:
    found: dict[str, Build] = {
        "uniform": Uniform,
        "robin": lambda design: Robin(design, variances=[1.0 + i % 7 for i in range(design.n_items)]),
        "robin-hood t0=2": lambda design: RobinHood(design, t0=2),
        "eb-bernstein warmup=3": lambda design: EBBernstein(design, warmup=3),
    }
    if "auto" in recommended(setting):
        auto: Any = plugins().sampler("auto")
        found["auto warmup=3"] = partial(auto, warmup=3)
    return found


def _rates(sampler: RepeatSampler, size: int, decisions: int) -> tuple[float, float]:
    """(in the warm-up, after it), per second."""
    warm_up: int = getattr(sampler, "minimum_readings", size)
    gc.collect()
    book = ArrayBook(sampler)
    first = _time(book, warm_up)
    further = max(decisions, size)  # so that a round is planned among them
    return warm_up / first, further / _time(book, further)


def _fastest(seconds: Callable[[int], float], decisions: int) -> float:
    """Per second, in the fastest of some blocks: other load on the machine counts little."""
    block = decisions // BLOCKS
    return block / min(seconds(block) for _ in range(BLOCKS))


def _time(book: ArrayBook, n: int) -> float:
    started, end = process_time(), book.n + n
    while book.n < end and (asked := book.ask(min(end - book.n, SCORES.size))) is not None:
        book.tell(SCORES[: asked.item.size])
    return process_time() - started


def _reference(size: int, decisions: int) -> float:
    heap = [(random.random(), i) for i in range(size)]
    heapq.heapify(heap)
    table: dict[int, float] = {}

    def seconds(n: int) -> float:
        started = process_time()
        for i in range(n):
            urgency, arm = heapq.heappop(heap)
            table[i] = urgency
            heapq.heappush(heap, (urgency + float(SCORES[i & 4095]) ** 2, arm))
        return process_time() - started

    return _fastest(seconds, decisions)


def _backtest(setting: Setting) -> tuple[Table, list[Target]]:
    readings = 800 if setting.quick else 100_000
    seeds = 2 if setting.quick else 50
    pool = ratings_pool(n_items=40 if setting.quick else 1016)
    rows: list[tuple[str, ...]] = []
    targets: list[Target] = []
    names = ("uniform", *recommended(setting))
    for c, name in enumerate(names):
        stage = ReplayStage((pool,), contestants([name], {}), "worst-item")
        jobs = [Job(0, 0, seed, (readings,)) for seed in range(seeds)]
        started = perf_counter()
        run_all(
            stage,
            jobs,
            workers=setting.workers,
            progress=partial(_report, setting, c * seeds, len(names) * seeds),
        )
        seconds = perf_counter() - started
        processes = "one per processor" if setting.workers is None else str(setting.workers)
        rows.append((name, f"{seeds} x {readings:,}", processes, f"{seconds:.0f} s"))
        if not setting.quick:
            text = f"{seeds} seeds x {readings:,} readings of {name} within a minute"
            targets.append(Target(text, f"{seconds:.0f} s, processes: {processes}", seconds <= 60))
    return Table(
        "Backtest, wall time", ("sampler", "seeds x readings", "processes", "time"), tuple(rows)
    ), targets


def _report(setting: Setting, before: int, total: int, done: int, _: int) -> None:
    setting.progress("backtests", before + done, total)
