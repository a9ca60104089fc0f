"""The scale humans label on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalbudget.errors import InvalidInputError
from evalbudget.scale import STEP, parse_range

_MOST_LEVELS = 1001
DEFAULT_RANGE = "0..1 by 1"
"""No or yes."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Which scores a human may give.

    Attributes:
        low: smallest score.
        high: largest score.
        step: distance of neighbouring scores; None for any number from low to high.
        lower_is_better: the best system is the one with the lowest mean. Policies always take 1 for the best,
            so scores are turned round here, on the way to them and back, and nowhere else.

    Raises:
        InvalidInputError: bounds that are no range, or a step that does not lead from low to high.
    """

    low: float = 0.0
    high: float = 1.0
    step: float | None = None
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):  # 1 and 1.0 are one scale, with one fingerprint
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(getattr(self, name)))
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidInputError(
                f"a scale from {self.low:g} to {self.high:g} is no range; give the smallest score first"
            )
        if self.step is None:
            return
        if not (math.isfinite(self.step) and self.step > 0):
            raise InvalidInputError(f"a scale with steps of {self.step:g}; give a positive step")
        steps = (self.high - self.low) / self.step
        if abs(steps - round(steps)) > 1e-9 or not 1 <= round(steps) < _MOST_LEVELS:
            raise InvalidInputError(
                f"steps of {self.step:g} do not lead from {self.low:g} to {self.high:g} in "
                f"1 to {_MOST_LEVELS - 1} steps; leave the step out for any number"
            )

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Read ``1..10`` (any number), ``1..10 by 1`` (whole numbers), ``0..1 by 1`` (no or yes).

        Raises:
            InvalidInputError: it is none of these.
        """
        low, high = parse_range(text)
        step = text.partition(STEP)[2].strip()
        try:
            return cls(low, high, float(step) if step else None)
        except ValueError as ex:
            if isinstance(ex, InvalidInputError):
                raise
            raise InvalidInputError(
                f"score range {text!r} has steps of {step!r}; write for example '1..10 by 1' (whole numbers)"
            ) from None

    def __str__(self) -> str:
        return f"{self._scores}{', lower is better' * self.lower_is_better}"

    @property
    def _scores(self) -> str:
        if self.step is None:
            return f"{self.low:g} to {self.high:g}"
        if self.step == 1 and self.low.is_integer():
            if (self.low, self.high) == (0.0, 1.0):
                return "0 or 1"
            return f"whole numbers {self.low:g} to {self.high:g}"
        return f"{self.low:g} to {self.high:g} in steps of {self.step:g}"

    @property
    def levels(self) -> tuple[float, ...] | None:
        """Every score there is; None for a continuum."""
        if self.step is None:
            return None
        n = round((self.high - self.low) / self.step)
        return tuple(self._level(i, n) for i in range(n + 1))

    def check(self, score: float) -> float:
        """The score, exactly on its level.

        Raises:
            InvalidInputError: it is not on the scale.
        """
        value = float(score)
        if not math.isfinite(value) or not self.low <= value <= self.high:
            raise InvalidInputError(f"score {score!r} is outside the scale of this audit: {self}")
        if self.step is None:
            return value
        n = round((self.high - self.low) / self.step)
        level = self._level(round((value - self.low) / self.step), n)
        if abs(level - value) > 1e-9 * max(1.0, abs(level)):
            raise InvalidInputError(f"score {score!r} is not on the scale of this audit: {self}")
        return level

    def to_unit(self, score: float) -> float:
        """A score rescaled to [0, 1], 1 the best."""
        value = min(1.0, max(0.0, (score - self.low) / (self.high - self.low)))
        return 1.0 - value if self.lower_is_better else value

    def from_unit(self, value: float) -> float:
        """A number in [0, 1], 1 the best, on this scale."""
        value = 1.0 - value if self.lower_is_better else value
        return self.low + value * (self.high - self.low)

    def _level(self, i: int, n: int) -> float:
        return self.high if i == n else self.low + i * (self.step or 0.0)
