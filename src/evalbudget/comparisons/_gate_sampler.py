"""gate: candidates answer what the baseline answered, until each is worse, or not worse, beyond doubt."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from evalbudget.comparisons._evidence import Differences, GateEvidence, check_margin
from evalbudget.design import Design
from evalbudget.races.samplers import RacingSampler
from evalbudget.races.samplers._base import RacingOptions, Step
from evalbudget.statistics._best_proof import check_delta
from evalbudget.statistics._bounds import FloatArray, IntArray

_SHARE = 16  # of the items read before, one in so many at a time


class GateSampler(RacingSampler):
    """Is a candidate worse than the baseline by a margin that matters? The first model is the baseline.

    All read the next items of one random order, cluster by cluster where items have categories, until the
    evidence on each candidate decides (:mod:`evalbudget.statistics._paired_test`): it is worse, or it is not
    worse by the margin or more. A candidate that is decided leaves. Of several, each has its part of delta.

    Args:
        margin: what a candidate may be worse by, in the units of the scores, above 0.
        delta: probability of a wrong verdict, at whatever moment one looks: of "worse" for a candidate that
            is as good as the baseline, and of "not worse" for one that is worse by the margin.
        these_items: the claim is about the items of the design, as scored once each, rather than about items
            and answers like them.
        lower_is_better: of the scores.
        batch: items at a time, or one in 16 of those read so far if that is more.
        common: see RacingSampler.

    Raises:
        InvalidInputError: a margin that is not above 0, or not below the range of the scores; delta is no
            probability; see also RacingSampler.
    """

    name = "gate"
    _common = RacingOptions

    def __init__(
        self,
        design: Design,
        *,
        margin: float = 0.01,
        delta: float = 0.05,
        these_items: bool = False,
        lower_is_better: bool = False,
        batch: int = 8,
        **common: Unpack[RacingOptions],
    ) -> None:
        low, high = common.get("score_range", (0.0, 1.0))
        self.margin = check_margin(margin, (low, high))
        self.delta = check_delta(delta)
        self.these_items = these_items
        self.lower_is_better = lower_is_better
        options = {
            "margin": margin,
            "delta": delta,
            "these_items": these_items,
            "lower_is_better": lower_is_better,
        }
        super().__init__(design, batch=batch, options=options, **common)
        self._cluster = _codes(design, these_items=these_items)
        assert self._shared is not None
        # clusters in random order, the items of one together
        place = np.random.default_rng([self.seed, 3]).permutation(int(self._cluster.max()) + 1)
        self._shared = self._shared[np.argsort(place[self._cluster[self._shared]], kind="stable")]

    @property
    def minimum_readings(self) -> int:
        """One item of each candidate; the baseline's scores are there."""
        return max(self._n_models - 1, 1)

    def evidence(self, candidate: int) -> GateEvidence:
        """What the items that both have settled say of a candidate, whole clusters only."""
        order = self._order(0)
        both = self._settled(np.array([0, candidate]), order).all(axis=0)
        settled = int(both.size if both.all() else np.argmin(both))
        cluster = self._cluster[order]
        if settled < order.size:  # the cluster that is being read
            while settled and cluster[settled - 1] == cluster[settled]:
                settled -= 1
        item = order[:settled]
        return GateEvidence.of(
            Differences.of(*(self._goodness(model)[item] for model in (candidate, 0)), missing=self.missing),
            cluster[:settled],
            margin=self.margin,
            alpha=self.delta / max(self._n_models - 1, 1),
            largest=int(np.bincount(self._cluster).max()),
            pool=self._n_items if self.these_items else None,
            span=self.score_range[1] - self.score_range[0],
        )

    def _goodness(self, model: int) -> FloatArray:
        """Scores in [0, 1], 1 the best."""
        scores = self.scores_of(model)
        return 1.0 - scores if self.lower_is_better else scores

    def _plan(self) -> Step | None:
        if 0 in self.lost or not self._in[0]:
            self.stop_reason = "the baseline can be asked no more"
        elif not self._in[1:].any():
            self.stop_reason = self._why_nobody_is_left()
        elif self._stop_if_over():
            pass
        if self.stop_reason is not None:
            return None
        models = self._remaining()
        read = int(self._drawn[models].max())
        end = min(
            max(read + max(self.batch, read // _SHARE), int(self._drawn[models].min()) + 1), self._n_items
        )
        cluster = self._cluster[self._order(0)]
        while end < self._n_items and cluster[end] == cluster[end - 1]:
            end += 1
        counts = end - self._drawn[models]
        return self._draw(models[counts > 0], counts[counts > 0])

    def _why_nobody_is_left(self) -> str:
        candidates = set(range(1, self._n_models))
        if not candidates:
            return "there is no candidate"
        if candidates <= self._lost:
            return "the candidate was given up after repeated failures"
        return "every candidate is decided"

    def _finished(self, step: Step) -> None:
        for candidate in self._remaining().tolist():
            if candidate and self.evidence(candidate).verdict is not None:
                self._leave(candidate)


def _codes(design: Design, *, these_items: bool) -> IntArray:
    """Number of each item's cluster: of its category, or of itself."""
    if these_items or design.categories is None:
        return np.arange(design.n_items)
    return np.unique(np.asarray(design.categories), return_inverse=True)[1].astype(np.int64)
