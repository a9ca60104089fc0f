"""The readings in a log of the demo, whose samples' metadata hold the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from inspect_ai.log import read_eval_log

from evalbudget.repeats.backtest import Outcome, against_truth
from evalbudget.repeats.estimates import ItemReadings
from evalbudget_inspect.host.readings import WEIGHT, weight_of
from evalbudget_inspect.host.scoring import METADATA


def outcome_of(sampler: str, logs: Path) -> Outcome:
    """Read the one log in the folder and compare it with the truth."""
    (file,) = sorted(logs.rglob("*.eval"))[-1:]
    log = read_eval_log(str(file))
    samples = log.samples or []
    ids = sorted({str(s.id) for s in samples})
    index = {item: i for i, item in enumerate(ids)}
    truth, sd = np.zeros(len(ids)), np.zeros(len(ids))
    columns: tuple[list[int], list[int], list[float]] = ([], [], [])
    weights: list[float] = []
    budgeted = False
    for sample in samples:
        item = index[str(sample.id)]
        truth[item] = sample.metadata["simulated_mean"]
        sd[item] = sample.metadata["simulated_sd"]
        for score in (sample.scores or {}).values():
            columns[0].append(item)
            columns[1].append(sample.epoch - 1)
            columns[2].append(score.as_float())
            entry = (score.metadata or {}).get(METADATA) or {}
            budgeted |= WEIGHT in entry
            weights.append(weight_of(entry))
    readings = ItemReadings.of(*columns, n_items=len(ids), weight=weights if budgeted else None)
    ours = [(score.metadata or {}).get(METADATA) or {} for score in log.results.scores] if log.results else []
    chosen = next((entry["chosen"] for entry in ours if "chosen" in entry), None)
    return against_truth(sampler, readings, truth=truth, sd=sd, chosen=chosen)
