"""Plans of races from pilots that are cut from recorded matrices, against what the race then needs."""

from __future__ import annotations

import numpy as np

from evalbudget.backtest import RecordedScores, backtest_race
from evalbudget.races.backtest._plan import plan_race
from judges_sections.found import Found, Target
from places import data_file

RUNS = 40
CASES = (
    ("alpacaeval_models", 6, 100, 600),
    ("alpacaeval_models", 10, 50, 600),
    ("cruxeval_models", 6, 100, 500),
)
"""Matrix, models drawn, items of the pilot and of the evaluation."""


def plans(quick: bool, seeds: int | None = None) -> Found:
    """How often the median, and the most of the plan's benchmarks, are enough."""
    runs = 2 if quick else seeds or RUNS
    rows, least = [], 1.0
    for file, models, pilot_items, items in CASES[:1] if quick else CASES:
        recorded = RecordedScores.load(data_file(file))
        pilot_items, items = min(pilot_items, len(recorded.items) // 2), 50 if quick else items
        median, most, ratio = 0, 0, []
        for seed in range(runs):
            rng = np.random.default_rng((seed, 8))
            who = np.sort(rng.choice(len(recorded.models), size=models, replace=False))
            order = rng.permutation(len(recorded.items))
            pilot = _part(recorded, who, order[:pilot_items])
            plan = plan_race(pilot, n_items=items, seed=seed)[1]
            later = _part(recorded, who, order[pilot_items : pilot_items + items])
            needed = backtest_race(
                later,
                ["race"],
                ["100%"],
                [seed],
                intervals=False,
                sampler_options={"race": {"until_proved": True}},
                workers=1,
            ).rows[0]
            median += needed.evaluations <= plan.evaluations
            most += needed.evaluations <= plan.evaluations_most
            ratio.append(needed.evaluations / plan.evaluations)
        least = min(least, most / runs)
        rows.append(
            (
                file,
                str(models),
                str(pilot_items),
                str(items),
                f"{median / runs:.2f}",
                f"{most / runs:.2f}",
                f"{np.median(ratio):.2f}",
            )
        )
    return Found(
        f"{runs} times: models and items are drawn, the race is planned from some of the items and run to "
        "its proof on others.",
        (
            *("file", "models", "items of the pilot", "items"),
            *("median enough", "most enough", "needed / median"),
        ),
        tuple(rows),
        (Target("the most is enough in .8 of the cases or more", f"least {least:.2f}", least >= 0.8),),
    )


def _part(recorded: RecordedScores, models: np.ndarray, items: np.ndarray) -> RecordedScores:
    return RecordedScores(
        recorded.scores[models][:, items],
        tuple(recorded.models[m] for m in models),
        tuple(recorded.items[i] for i in items),
        recorded.raters,
    )
