"""Two models on one panel: what the same judge said of the same item, subtracted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import Estimate
from evalbudget.judges.estimates._panel_mean import panel_mean
from evalbudget.judges.estimates._scores import JudgeScores


def paired_difference(a: JudgeScores, b: JudgeScores) -> Estimate:
    """Difference A - B of two models' panel means, paired by item, epoch and judge.

    The judges' biases cancel in every pair, except where a judge favours one of the models; the interval is
    :func:`panel_mean`'s on the differences. Scores without a counterpart are left out,
    ``details["unpaired"]`` counts them.

    Returns:
        Estimate, fixed-n, asymptotic.

    Raises:
        InvalidInferenceError: the panels or the items differ, or nothing matches.
    """
    if a.judges != b.judges:
        raise InvalidInferenceError(
            f"the models were scored by different panels ({', '.join(a.judges)}; {', '.join(b.judges)}); "
            "a judge's bias cancels only if the same judges score both"
        )
    if a.n_items != b.n_items:
        raise InvalidInferenceError(
            f"the models were scored on {a.n_items} and {b.n_items} items; give scores of the same benchmark"
        )
    epochs = 1 + max(int(a.epoch.max(initial=0)), int(b.epoch.max(initial=0)))
    keys = [(s.item * epochs + s.epoch) * a.n_judges + s.judge for s in (a, b)]
    _, in_a, in_b = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    if not in_a.size:
        raise InvalidInferenceError(
            "no judge scored the same item and epoch of both models; use one schedule (the same seed) "
            "for both"
        )
    mark = np.zeros(a.value.size, dtype=np.bool_)
    mark[in_a] = True
    difference = a.where(mark).with_values(a.value[in_a] - b.value[in_b])
    difference = replace(difference, cost=a.cost + b.cost, failed=a.failed + b.failed)
    found = panel_mean(difference)
    unpaired = a.value.size + b.value.size - 2 * in_a.size
    return replace(
        found,
        target=f"difference of the two models' {found.target}",
        method=f"{found.method}, of paired differences",
        details={**found.details, "unpaired": float(unpaired)},
    )
