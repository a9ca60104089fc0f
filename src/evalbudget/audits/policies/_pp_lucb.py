"""pp-lucb: the published algorithm for a judge and few audits, as written or with its errata fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from evalbudget.audits._draw import AuditDraw
from evalbudget.audits.policies._batch_policy import BatchPolicy
from evalbudget.audits.policies._config import PolicyConfig
from evalbudget.audits.policies._lucb import Errata, LucbConfig, LucbState
from evalbudget.audits.policies._verdict import AuditOutcome, Verdict


class PPLUCB(BatchPolicy):
    """Leader and challenger are judged and audited with a coin until their intervals part.

    Formulas and errata: :mod:`evalbudget.audits.policies._lucb`. As the paper states it the rule needs tens
    of thousands of scores at a gap of .1; its tables stop at a fixed number of pulls instead: ``pulls``.
    Every system goes through the pool in the same random order.

    Args:
        config: settings.
    """

    name = "pp-lucb"
    config_type: ClassVar[type[PolicyConfig]] = LucbConfig
    config: LucbConfig

    def __init__(self, config: LucbConfig) -> None:
        super().__init__(config)
        self.state = LucbState(config)
        self._order = np.random.default_rng((config.seed, 0)).permutation(config.n_items).tolist()
        self._position = [0] * config.n_models
        self._ended = ""
        self._parted = False

    def _next(self) -> Sequence[tuple[int, Sequence[int]]]:
        c = self.config
        self.leader, challenger, self._parted = self.state.duel()
        arms = [self.leader, challenger]
        most = min(c.batch, *(c.n_items - self._position[k] for k in arms))
        if c.max_labels is not None:
            most = min(most, (c.max_labels - self.labels_asked) // len(arms))
        if self._parted:
            self._ended = "leader and challenger have parted"
        elif c.pulls is not None and self.state.pulls >= c.pulls:
            self._ended = f"stopped after {c.pulls} pulls: the leader is named, nothing is proved"
        elif any(self._position[k] >= c.n_items for k in arms):
            self._ended = f"all {c.n_items:,} items are drawn: leader and challenger have not parted"
        elif most < 1:
            self._ended = (
                f"{self.labels_asked} of the {c.max_labels} labels allowed are used up, and the next step "
                "could need more than are left"
            )
        if self._ended:
            return ()
        left = None if c.pulls is None else c.pulls - self.state.pulls
        found: list[tuple[int, Sequence[int]]] = []
        for k in (arms * most)[:left]:
            found.append((self._order[self._position[k]], (k,)))
            self._position[k] += 1
        return found

    def _propensity(self, model: int, item: int, judge: float) -> float:
        return self.state.propensity(model)

    def _learn(self, draws: Sequence[AuditDraw], labels: Mapping[int, float]) -> None:
        for draw in draws:
            self.state.learn(draw.model, draw.prediction, draw.propensity, labels.get(draw.index))

    def verdict(self) -> Verdict:
        """What the paper would conclude."""
        over, wanted = self.over, len(self.wanted)
        means, widths = self.state.means(), self.state.widths()
        known = [not math.isnan(mean) for mean in means]
        estimates = self._estimates(
            means,
            [m - w if there else 0.0 for m, w, there in zip(means, widths, known, strict=True)],
            [m + w if there else 1.0 for m, w, there in zip(means, widths, known, strict=True)],
        )
        waits = f"{wanted} label{'s' * (wanted != 1)} wanted" if wanted else "the judge's scores are awaited"
        return self._verdict(
            AuditOutcome.BEST if self._parted else AuditOutcome.UNDECIDED,
            self._ended if over else waits,
            estimates,
            self._intervals(),
            winner=self.leader if self._parted else None,
        )

    def _intervals(self) -> str:
        level = f"{100 * (1 - self.config.delta):.6g}% intervals"
        about = "for all systems at once, of the mean over items like these; complete steps only"
        if self.config.errata == Errata.FIXED:
            return f"{level}, anytime, {about}"
        return (
            f"{level} as published, {about}; the published formula claims more than it proves (errata=fixed)"
        )
