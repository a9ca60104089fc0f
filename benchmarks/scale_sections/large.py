"""Sections ``races`` and ``parquet``: recorded scores that are larger than what a process should take."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from evalbudget.recorded import _folder
from judges_sections.found import Found, Target
from places import ROOT

MODELS, ITEMS = 10_000, 100_000
EVALUATIONS = 2_000_000
_SAMPLERS = ("uniform", "race")
_ROWS = 20_000_000
_ROWS_OF_A_FILE = 2_000_000


def races(quick: bool) -> Found:
    """A race on a mapped table, sampler by sampler."""
    m, n, most = (20, 300, 600) if quick else (MODELS, ITEMS, EVALUATIONS)
    whole = 4 * m * n / 2**20
    rows, owned = [], {}
    with tempfile.TemporaryDirectory() as folder:
        _record(Path(folder) / "scores", m, n)
        for sampler in _SAMPLERS:
            told = measured("race", f"{folder}/scores", sampler, str(most))
            owned[sampler] = told["own"]
            rows.append(
                (
                    sampler,
                    f"{told['evaluations']:,.0f}",
                    f"{told['loaded']:.1f}",
                    f"{told['seconds']:.1f}",
                    f"{told['deciding']:.1f}",
                    f"{told['own']:,.0f} MiB",
                    f"{told['peak']:,.0f} MiB",
                    f"{told['regret']:.4f}",
                )
            )
    dense = 14 * m * n / 2**20
    shown = ", ".join(f"{mib:,.0f} MiB ({name})" for name, mib in owned.items())
    return Found(
        f"A backtest of a race of {m:,} models on {n:,} items, right or wrong, float32 in a "
        f"folder that is mapped: {whole:,.0f} MiB on disk. Chances of a right answer lie evenly "
        "between .3 and .7.",
        (
            "sampler",
            "evaluations",
            "seconds to load",
            "seconds in all",
            "of these deciding",
            "own memory",
            "peak with mapped files",
            "regret",
        ),
        tuple(rows),
        targets=(
            Target(
                f"the process takes less memory of its own than the scores would ({whole:,.0f} MiB)",
                shown,
                all(mib < whole for mib in owned.values()),
            ),
        ),
        notes=(
            f"Tables of every model and item, as samplers of small races keep them, would take "
            f"{dense:,.0f} MiB. "
            "Mapped files can be given back at any time; they count in the peak, which the system "
            "reports, while there is room for them.",
        ),
    )


def parquet(quick: bool) -> Found:
    """A folder of Parquet files, one reading per row, read by batches; and one of four times the rows."""
    sizes = (400, 1_600) if quick else (_ROWS // 4, _ROWS)
    rows, owned = [], []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            files = _write_parquet(folder, n, 400 if quick else _ROWS_OF_A_FILE)
            told = measured("parquet", folder, "0" if quick else "")
        owned.append(told["own"])
        rows.append(
            (
                f"{n:,}",
                f"{files}",
                f"{told['seconds']:.1f}",
                f"{n / told['seconds']:,.0f}",
                f"{told['own']:,.0f} MiB",
                f"{told['peak']:,.0f} MiB",
            )
        )
    return Found(
        "Folders of Parquet files with the columns model, item and score, to an array that is mapped.",
        ("rows", "files", "seconds", "rows a second", "own memory", "peak with mapped files"),
        tuple(rows),
        targets=(
            Target(
                "four times the rows take less than 1.3 times the memory",
                f"{owned[1] / owned[0]:.2f} times",
                owned[1] < 1.3 * owned[0],
            ),
        ),
    )


def _write_parquet(folder: str, n: int, of_a_file: int) -> int:
    """Readings of 1,000 models, or 20 where they are few; the number of files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, starts = np.random.default_rng(0), range(0, n, of_a_file)
    items = n // (1_000 if n > 10_000 else 20)
    for k, first in enumerate(starts):
        row = np.arange(first, min(first + of_a_file, n))
        columns = {
            "model": np.char.add("model ", (row // items).astype(str)),
            "item": np.char.add("item ", (row % items).astype(str)),
            "score": (rng.random(row.size) < 0.5).astype(np.float32),
        }
        pq.write_table(pa.table(columns), f"{folder}/{k}.parquet")
    return len(starts)


def _record(folder: Path, m: int, n: int) -> None:
    """A folder of recorded scores, written a few models at a time."""
    chance = np.random.default_rng(1).permutation(np.linspace(0.3, 0.7, m))
    with _folder.written(folder) as made:
        scores: Any = open_memmap(made / "scores.npy", "w+", np.float32, (m, n, 1, 1))
        for first in range(0, m, 100):
            rows = chance[first : first + 100]
            scores[first : first + rows.size, :, 0, 0] = (
                np.random.default_rng([2, first]).random((rows.size, n), dtype=np.float32) < rows[:, None]
            )
        scores.flush()


def measured(*arguments: str) -> dict[str, float]:
    """What :mod:`scale_sections.measured` prints, from a process of its own."""
    command = [sys.executable, "-m", "scale_sections.measured", *arguments]
    done = subprocess.run(command, cwd=ROOT / "benchmarks", capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found
