"""Everything that, with the seed, the draws and the labels, fixes what an audit decides."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from evalbudget.errors import InvalidInputError


@dataclass(frozen=True)
class PolicyConfig:
    """What every audit policy is told; a subclass adds the options of its own policy.

    All values are such that JSON can hold them, because stores keep them.

    Attributes:
        n_models: systems compared; 1 for the mean of a single one.
        n_items: size of the pool; every item is drawn at most once, in random order.
        segments: optional, the segment of each item, integers from 0.
        delta: probability of a wrong verdict.
        judge_price: of one score of the judge.
        label_price: of one human label.
        max_labels: never ask for more than this many; None for no limit.
        seed: of the order of items and of the coins.

    Raises:
        InvalidInputError: a value that cannot be used.
    """

    n_models: int
    n_items: int
    segments: tuple[int, ...] | None = None
    delta: float = 0.05
    judge_price: float = 1.0
    label_price: float = 20.0
    max_labels: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._require_whole("n_models", "n_items")
        self._require_whole("seed", least=0)
        if self.max_labels is not None:
            self._require_whole("max_labels")
        if not 0.0 < self.delta < 1.0:
            raise InvalidInputError(f"delta is {self.delta:g}; give a probability, for example 0.05")
        for name in ("judge_price", "label_price"):
            price = getattr(self, name)
            if not (math.isfinite(price) and price >= 0.0):
                raise InvalidInputError(f"{name} is {price:g}; give a finite price of 0 or more")
        if self.segments is not None:
            object.__setattr__(self, "segments", tuple(int(s) for s in self.segments))
            if len(self.segments) != self.n_items or min(self.segments) < 0:
                raise InvalidInputError(
                    f"{len(self.segments)} segments for {self.n_items} items; give one from 0 on per item"
                )

    def _require_whole(self, *names: str, least: int = 1) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InvalidInputError(f"{name} is {value!r}; it must be a whole number of {least} or more")

    @property
    def n_segments(self) -> int:
        """Number of segments."""
        return 1 if self.segments is None else max(self.segments) + 1

    def segment_of(self, item: int) -> int:
        """The segment of an item; 0 where there are none."""
        return 0 if self.segments is None else self.segments[item]

    def to_json(self) -> dict[str, Any]:
        """JSON values, to keep with the draws."""
        return asdict(self)


_SHARE, _FEWEST, _MOST = 10, 10, 50  # of the labels so far one in ten, from 10 to 50


@dataclass(frozen=True)
class AuditConfig(PolicyConfig):
    """Settings of ``audit-eprocess``; scores are on the human scale rescaled to [0, 1].

    Attributes:
        margin: also stop when no system can be better than one by this or more; 0: only for the best.
        half_width: of the interval of a single system's mean, at which to stop; with one system only.
        pilot: labels to expect of the first batch, before anything is known of the judge.
        labels_per_batch: labels to expect of every later batch; the policy is frozen within it. None: a tenth
            of the labels so far, but 10 at least and 50 at most.
        second_pass: once every item is drawn without a verdict, label the contenders' other answers until
            there is one; False ends there, undecided.
        use_judge: False labels everything and never asks the judge: ``human-only``.

    The others are those of :class:`PolicyConfig`.

    Raises:
        InvalidInputError: a value that cannot be used.
    """

    margin: float = 0.0
    half_width: float | None = None
    pilot: int = 40
    labels_per_batch: int | None = None
    second_pass: bool = True
    use_judge: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.second_pass, bool):
            raise InvalidInputError(f"second_pass is {self.second_pass!r}; give true or false")
        self._require_whole("pilot")
        if self.labels_per_batch is not None:
            self._require_whole("labels_per_batch")
        if self.use_judge and not self.label_price > 0.0:
            raise InvalidInputError("label_price is 0; free labels need no judge: label everything")
        if not 0.0 <= self.margin < 1.0:
            raise InvalidInputError(f"margin is {self.margin:g}; it is a share of the scale, in 0 to 1")
        if self.half_width is not None and not 0.0 < self.half_width < 1.0:
            raise InvalidInputError(f"half_width is {self.half_width:g}; it is a share of the scale, below 1")
        if (self.half_width is None) == (self.n_models == 1):
            raise InvalidInputError(
                "one system has nothing to be compared with: give the half-width its mean is wanted to"
                if self.n_models == 1
                else "half_width is for a single system; several are compared, leave it out"
            )

    def batch_after(self, labels: int) -> int:
        """Labels to expect of the next batch: where none is set, waiting adds a tenth at most.

        Args:
            labels: so far.
        """
        if self.labels_per_batch is not None:
            return self.labels_per_batch
        return min(max(labels // _SHARE, _FEWEST), _MOST)

    @property
    def threshold(self) -> float:
        """Evidence that drops an arm.

        Twice 1/delta: half of delta is spent on dropping the best arm, so that a tie of two is not broken
        either way with more than delta, and the other half on calling an arm nearly best that is not.
        """
        return 2.0 / self.delta


@dataclass(frozen=True)
class HumanConfig(AuditConfig):
    """Settings of ``human-only``: those of ``audit-eprocess``, without a judge."""

    use_judge: bool = False
