"""gate: candidates answer what the baseline answered, until each is worse, or not worse, beyond doubt."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from evalbudget.comparisons._evidence import Differences, GateEvidence, check_margin
from evalbudget.design import Design
from evalbudget.races.samplers import Note, RacingSampler, Round, Stop, Table
from evalbudget.races.samplers._base import RacingOptions
from evalbudget.statistics._best_proof import check_delta
from evalbudget.statistics._bounds import IntArray

_LEAST = 16  # of the items read before, one in so many at a time at least
_MOST = 0.75  # of the items read before, this part at a time at most


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
        batch: items at first. Then half of what the nearest verdict lacks by the evidence so far: at least
            half a batch or one in 16 of those read, at most three quarters of these. A third of the rounds
            of 8 items, or 1/16, take about 5% more evaluations.
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
        batch: int = 24,
        **common: Unpack[RacingOptions],
    ) -> None:
        low, high = common.get("score_range", (0.0, 1.0))
        self.margin = check_margin(margin, (low, high))
        self.delta = check_delta(delta)
        self.these_items = these_items
        options = {
            "margin": margin,
            "delta": delta,
            "these_items": these_items,
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
        return self._evidence(self._now()[0], candidate)

    def _evidence(self, table: Table, candidate: int) -> GateEvidence:
        order = self.order(0)
        both = table.settled(np.array([[0], [candidate]]), order).all(axis=0)
        settled = int(both.size if both.all() else np.argmin(both))
        cluster = self._cluster[order]
        if settled < order.size:  # the cluster that is being read
            while settled and cluster[settled - 1] == cluster[settled]:
                settled -= 1
        item = order[:settled]
        return GateEvidence.of(
            Differences.of(*(table.scores(model, item) for model in (candidate, 0)), missing=self.missing),
            cluster[:settled],
            margin=self.margin,
            alpha=self.delta / max(self._n_models - 1, 1),
            largest=int(np.bincount(self._cluster).max()),
            pool=self._n_items if self.these_items else None,
            span=self.score_range[1] - self.score_range[0],
        )

    def plan(self, table: Table, last: Note | None) -> Round | Stop:
        """The next items of all that are not decided."""
        note: Note = self.resumed(table, last)
        open_ones: list[GateEvidence] = []
        if last is not None:
            found = {model: self._evidence(table, model) for model in note.remaining.tolist() if model}
            note = note.leaving([c for c, one in found.items() if one.verdict is not None], table.asked)
            open_ones = [one for one in found.values() if one.verdict is None]
        if not note.is_in[0]:
            return Stop("the baseline can be asked no more", note)
        if not note.is_in[1:].any():
            return Stop(self._why_nobody_is_left(note), note)
        if reason := self.why_over(table, note):
            return Stop(reason, note)
        models = note.remaining
        drawn = table.drawn[models]
        read = int(drawn.max())
        end = min(max(read + self._ahead(read, open_ones), int(drawn.min()) + 1), self._n_items)
        cluster = self._cluster[self.order(0)]
        while end < self._n_items and cluster[end] == cluster[end - 1]:
            end += 1
        counts = end - drawn
        return self.next_items(table, note, models[counts > 0], counts[counts > 0])

    def _ahead(self, read: int, found: list[GateEvidence]) -> int:
        """How many items are read next."""
        half = 0.5 * min((one.lacking() for one in found), default=0.0)
        most = int(min(half, _MOST * read))
        return max(most, read // _LEAST, -(-self.batch // 2)) if read else self.batch

    def _why_nobody_is_left(self, note: Note) -> str:
        if self._n_models == 1:
            return "there is no candidate"
        if note.lost[1:].all():
            return "the candidate was given up after repeated failures"
        return "every candidate is decided"


def _codes(design: Design, *, these_items: bool) -> IntArray:
    """Number of each item's cluster: of its category, or of itself."""
    if these_items or design.categories is None:
        return np.arange(design.n_items)
    return np.unique(np.asarray(design.categories), return_inverse=True)[1].astype(np.int64)
