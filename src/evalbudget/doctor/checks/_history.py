"""Do scores of other models tell what a new one will get?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evalbudget._fields import names
from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind, saving

_MODELS, _ITEMS = 5, 30
_USEFUL = 0.3
_SURE = 3.0


class History(Check):
    r"""Correlation r of each model's item scores with the mean of the others'.

    A new model's mean is then known from about 1 - r^2 of the items that it takes at random, where
    predictions are used as control variates. A model that goes against the others would be misjudged by
    whoever trusted predictions.
    """

    name = "history"

    def examine(self, case: Case) -> Iterable[Finding]:
        """How much history would save, and for which models it would mislead."""
        means = case.item_means
        if len(means) < _MODELS:
            return
        known = np.isfinite(means)
        total, n = np.where(known, means, 0.0).sum(axis=0), known.sum(axis=0)
        found: dict[str, float] = {}
        sizes: dict[str, int] = {}
        for number, name in enumerate(case.recorded.models):
            others = known[number] & (n > 1)
            if int(others.sum()) < _ITEMS:
                continue
            own = means[number, others]
            rest = (total[others] - own) / (n[others] - 1)
            if own.std() > 0.0 and rest.std() > 0.0:
                found[name] = float(np.corrcoef(own, rest)[0, 1])
                sizes[name] = own.size
        if len(found) < _MODELS:
            return
        typical = float(np.median(list(found.values())))
        against = [
            name
            for name, r in found.items()
            if typical >= _USEFUL and np.arctanh(min(r, 0.999)) + _SURE / np.sqrt(sizes[name] - 3) < 0.1
        ]
        if against:
            yield Finding(
                Kind.BEWARE,
                "history would mislead",
                f"Items that other models fail are not those that {names(against, 3)} "
                f"fail{'s' * (len(against) == 1)} (correlation {max(found[name] for name in against):.2f} at "
                f"most; {typical:.2f} is usual here).",
                "Do not judge such a model by predictions. Intervals of --history hold whatever "
                "history is worth.",
                {"models": len(against), "typical": typical},
            )
        saved = typical**2
        numbers = {"correlation": typical, "saved": saved}
        told = (
            f"A model's item scores correlate with the mean of the others' by {typical:.2f} (median over "
            f"{len(found)} models)"
        )
        useful = typical >= _USEFUL
        yield saving(
            useful,
            "history would save items",
            "history says little",
            f"{told}: a new model's mean would be as well known from {1.0 - saved:.0%} of the items it takes "
            "at random."
            if useful
            else f"{told}: history would save little.",
            "evalbudget inspect race --sampler visit --history THESE_LOGS --until ±0.02 (or lm-eval race), "
            "with the new model.",
            numbers,
        )
