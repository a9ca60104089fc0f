"""Section ``factors``: item factors trained on recorded scores that are mapped from disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from evalbudget.recorded import _folder
from judges_sections.found import Found, Target
from scale_sections.large import measured

MODELS, ITEMS = 1_200, 50_000


def factors(quick: bool) -> Found:
    """A quarter of the models, and all of them."""
    m, n = (24, 60) if quick else (MODELS, ITEMS)
    rows, owned = [], []
    for models in (m // 4, m):
        with tempfile.TemporaryDirectory() as folder:
            _record(Path(folder) / "scores", models, n)
            told = measured("factors", f"{folder}/scores", f"{folder}/cache")
        owned.append(told["own"])
        rows.append(
            (
                f"{models:,}",
                f"{8 * models * n / 2**20:,.0f} MiB",
                f"{told['rank']:.0f}",
                f"{told['seconds']:.0f}",
                f"{told['own']:,.0f} MiB",
                f"{told['peak']:,.0f} MiB",
            )
        )
    whole = 8 * m * n / 2**20
    return Found(
        f"Item factors for predictions in races, trained on models that answered {n:,} items, right or "
        "wrong, float32 in a folder that is mapped; with the cross-validation of rank and ridge, the folds "
        "for calibration and the file in the cache. The world has two factors beside level and easiness.",
        ("models", "scores as float64", "rank found", "seconds", "own memory", "peak with mapped files"),
        tuple(rows),
        targets=(
            Target(
                f"the process takes less memory of its own than one float64 copy would ({whole:,.0f} MiB)",
                f"{owned[1]:,.0f} MiB",
                owned[1] < whole,
            ),
            Target(
                "four times the models take less than 1.5 times the memory",
                f"{owned[1] / owned[0]:.2f} times",
                owned[1] < 1.5 * owned[0],
            ),
        ),
        notes=(
            "Besides blocks of the scores, training holds what grows with the items (factors, and the scores "
            "of about 300 models for calibration) and the square of the number of models or of items, "
            "whichever is smaller: the principal components that it starts from.",
        ),
    )


def _record(folder: Path, m: int, n: int) -> None:
    rng = np.random.default_rng(1)
    V = np.c_[rng.normal(0.3, 1.3, n), rng.normal(size=(n, 2))]
    with _folder.written(folder) as made:
        scores: Any = open_memmap(made / "scores.npy", "w+", np.float32, (m, n, 1, 1))
        for i in range(m):
            level, *factor = rng.normal(size=3)
            chance = 1.0 / (1.0 + np.exp(-(level + V @ np.r_[1.0, factor])))
            scores[i, :, 0, 0] = rng.random(n) < chance
        scores.flush()
