"""EST-IVWE's assumption, that all judges of an item mean the same score, on recorded ratings.

arXiv 2605.23362 weighs judges by the inverse of their variance on an item, and asks them for that. Of the
paper we found the abstract only, not the text nor code: how EST-IVWE biases its variance estimates is not in
it, so it is not run. What bounds it follows from what is published: with known variances s_kj^2 and prices
c_j, the n_kj readings of item k give an error of 1 / sum_j n_kj / s_kj^2, which at a given cost is least when
the judge with the least c_j s_kj^2 alone is asked. It is no race of models: its rows are judges and items.
"""

from __future__ import annotations

import numpy as np

from evalbudget.backtest import RecordedScores
from judges_sections.found import Floats, Found, Target
from places import data_file

EACH = (1, 2, 4, 10)  # readings for each judge of the panel


def errors(mean: Floats, variance: Floats, readings: int) -> dict[str, tuple[float, float]]:
    """Root mean squares over items: of the noise alone, and of the error against the panel's mean.

    Args:
        mean: of each judge on each item, shape (items, judges).
        variance: of one reading, same shape.
        readings: of each item in all; a multiple of the number of judges.
    """
    panel, each = mean.mean(axis=1), readings / mean.shape[1]
    surest = variance == variance.min(axis=1, keepdims=True)
    # a judge without variance has all the weight; several have it together
    weight = np.where((variance > 0.0).all(axis=1, keepdims=True), 1.0 / np.maximum(variance, 1e-300), surest)
    weight = weight / weight.sum(axis=1, keepdims=True)
    alone = surest / surest.sum(axis=1, keepdims=True)
    noise = {
        "every judge, plain mean": ((variance / each).mean(axis=1) / mean.shape[1], panel),
        "every judge, inverse variances": (
            (weight**2 * variance).sum(axis=1) / each,
            (weight * mean).sum(axis=1),
        ),
        "the surest judge of each item": (variance.min(axis=1) / readings, (alone * mean).sum(axis=1)),
    }
    return {
        name: (float(np.sqrt(v.mean())), float(np.sqrt((v + (centre - panel) ** 2).mean())))
        for name, (v, centre) in noise.items()
    }


def one_score(quick: bool) -> Found:
    """Known variances, equal prices: no simulation, errors follow from the recorded means and variances."""
    ratings = RecordedScores.load(data_file("judge_repeats")).scores[0].astype(np.float64)
    ratings = ratings[(~np.isnan(ratings)).any(axis=2).all(axis=1)]
    mean, variance = np.nanmean(ratings, axis=2), np.nanvar(ratings, axis=2)
    rows, targets = [], []
    for each in EACH[:1] if quick else EACH:
        readings = each * mean.shape[1]
        found = errors(mean, variance, readings)
        rows += [
            (str(readings), name, f"{alone:.3f}", f"{both:.3f}") for name, (alone, both) in found.items()
        ]
        plain, surest = found["every judge, plain mean"][1], found["the surest judge of each item"][1]
        targets.append(
            Target(
                f"{readings} readings of each item: the panel's plain mean is nearer to what it estimates",
                f"{plain:.3f} against {surest:.3f} of the surest judge",
                plain <= surest,
            )
        )
    return Found(
        f"{len(mean):,} items rated by {mean.shape[1]} judges, on the scale recorded; variances known, equal "
        "prices. EST-IVWE (arXiv 2605.23362) approaches the row of the surest judge, the least cost if all "
        "judges mean the same score on an item; where judges differ that is one judge's score. It is no "
        "rival in a race, and has no row of its own: its abstract is all we found, and that does not say how "
        "it estimates variances.",
        ("readings of an item", "estimate", "noise alone", "error against the panel's mean"),
        tuple(rows),
        tuple(targets),
    )
