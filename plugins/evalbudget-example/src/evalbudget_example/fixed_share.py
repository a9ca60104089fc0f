"""A third-party audit policy: a fixed share of all answers is labelled, and one look at the end decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from random import Random
from statistics import NormalDist, fmean, variance

from evalbudget.audits.policies import AuditDraw, AuditOutcome, BatchPolicy, PolicyConfig, Verdict
from evalbudget.errors import InvalidInputError

FEWEST = 20
"""Labels of every system below which means are not taken for normal."""
INTERVALS = (
    "normal intervals, for one look at the end and all systems at once, of means over items like these"
)


@dataclass(frozen=True)
class ShareConfig(PolicyConfig):
    """What a user may set, besides prices, delta, max_labels and seed: the share of answers to label."""

    share: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.share <= 1.0:
            raise InvalidInputError(f"share is {self.share:g}; give a share of the answers, above 0 to 1")
        if self.n_models < 2:
            raise InvalidInputError("fixed-share compares systems and there is only one; name several")


class FixedShare(BatchPolicy):
    """Every answer is judged, and each is labelled with the same chance.

    With judge score F, label Y and coin A, the mean of Z = F + (A / share) (Y - F) is that of the labels,
    whatever the judge is worth. The intervals are normal ones, so they hold approximately, for one look at
    the end and for all systems at once. A label that never came counts as 0 in the lower bound, as 1 in the
    upper.
    """

    name = "fixed-share"
    config_type = ShareConfig
    config: ShareConfig

    def __init__(self, config: ShareConfig) -> None:
        super().__init__(config)
        self.order = Random(config.seed).sample(range(config.n_items), config.n_items)
        self.drawn = 0
        self.lowest: list[list[float]] = [[] for _ in range(config.n_models)]  # Z of each system
        self.highest: list[list[float]] = [[] for _ in range(config.n_models)]

    def _next(self) -> Sequence[tuple[int, Sequence[int]]]:
        config = self.config
        n = config.n_items
        if config.max_labels is not None:  # every coin may ask for a label
            n = (config.max_labels - self.labels_asked) // config.n_models
        items = self.order[self.drawn : self.drawn + n]
        self.drawn += len(items)
        return [(item, range(config.n_models)) for item in items]

    def _propensity(self, model: int, item: int, judge: float) -> float:
        return self.config.share

    def _learn(self, draws: Sequence[AuditDraw], labels: Mapping[int, float]) -> None:
        for draw in draws:
            label = labels.get(draw.index, draw.prediction)  # without a coin there is nothing to correct
            missing = isnan(label)
            for z, value in ((self.lowest, 0.0), (self.highest, 1.0)):
                off = (value if missing else label) - draw.prediction
                z[draw.model].append(draw.prediction + off / draw.propensity)

    def verdict(self) -> Verdict:
        """Undecided until all labels are in; then whether one system's interval is above all others."""
        n = self.config.n_models
        values, lower, upper = [nan] * n, [0.0] * n, [1.0] * n
        outcome, winner = AuditOutcome.UNDECIDED, None
        if not self.over:
            reason = f"{len(self.wanted)} labels wanted"
        elif (fewest := min(self.labelled)) < FEWEST:
            reason = f"{fewest} labels of a system are too few for normal intervals; {FEWEST} are the fewest"
        else:
            reach = NormalDist().inv_cdf(1.0 - self.config.delta / (2 * n))
            lower = [fmean(z) - reach * sqrt(variance(z) / len(z)) for z in self.lowest]
            upper = [fmean(z) + reach * sqrt(variance(z) / len(z)) for z in self.highest]
            values = [(fmean(a) + fmean(b)) / 2 for a, b in zip(self.lowest, self.highest, strict=True)]
            best = max(range(n), key=values.__getitem__)
            reason = "intervals overlap; a larger share narrows them"
            if lower[best] > max(upper[:best] + upper[best + 1 :]):
                outcome, winner = AuditOutcome.BEST, best
                reason = f"its interval is above all others, with probability about {1 - self.config.delta:g}"
        return self._verdict(outcome, reason, self._estimates(values, lower, upper), INTERVALS, winner=winner)
