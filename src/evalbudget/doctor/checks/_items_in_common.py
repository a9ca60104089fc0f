"""Were all models asked the same?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind
from evalbudget.recorded._missing import not_applicable

_NEARLY, _MOSTLY = 0.99, 0.9
_FEW = 20
_NAMED = 3


class ItemsInCommon(Check):
    """Models whose items differ are compared on what they share only."""

    name = "items in common"

    def examine(self, case: Case) -> Iterable[Finding]:
        """Failures here and there are no finding; models that miss many items are, if not all they have."""
        yield from self._of_scorers(case)
        scored = (case.recorded.counts.sum(axis=2) > 0)[:, ~not_applicable(case.recorded)]
        n_items = scored.shape[1]
        if n_items < _FEW:
            yield Finding(
                Kind.BEWARE,
                "few items",
                f"Intervals over {n_items} items rest on guesses of how scores are distributed: with fewer "
                f"than {_FEW} they may be too narrow.",
                "Add items. Repeats do not help here.",
                {"items": n_items},
            )
        known = np.flatnonzero(case.read)
        if len(known) < 2:
            return
        common, fewest = int(scored[known].all(axis=0).sum()), int(known[np.argmin(case.read[known])])
        if common >= _NEARLY * n_items:
            return
        adaptive = "" if case.is_plain else " Where a sampler chose who is asked, that is meant."
        yield Finding(
            Kind.PROBLEM if case.is_plain and case.read[fewest] < _MOSTLY * n_items else Kind.BEWARE,
            "models were scored on different items",
            f"All models have a score on {common:,} of {n_items:,} items; {case.recorded.models[fewest]} has "
            f"{case.read[fewest]:,}. Their means are of different benchmarks, and a ranking by them may rank "
            f"the items.{adaptive}",
            "Compare models on the items they share: evalbudget compare does. Then score what is missing.",
            {"common": common, "items": n_items, "fewest": int(case.read[fewest])},
        )

    def _of_scorers(self, case: Case) -> Iterable[Finding]:
        """Models that other scorers scored: what differs is the scorer, whatever the items are."""
        if not case.elsewhere:
            return
        own = ", ".join(case.recorded.raters)
        told = [f"{model} by {', '.join(raters)}" for model, raters in case.elsewhere.items()]
        more = f"; {len(told) - _NAMED:,} more likewise" if len(told) > _NAMED else ""
        yield Finding(
            Kind.PROBLEM,
            "models were scored by different scorers",
            f"{', '.join(case.recorded.models[:_NAMED])}: scored by {own}; {'; '.join(told[:_NAMED])}{more}. "
            "What two scorers say of two models is not comparable.",
            "Score all logs by the same scorer; of inspect's: inspect score LOG --scorer NAME.",
        )
