"""What an audit is about: everything that must agree before a store is continued, the scale included."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from evalbudget.errors import InvalidInputError
from evalbudget.scale import STEP, parse_range
from evalbudget.secrets import without_known

if TYPE_CHECKING:
    from evalbudget.audits.policies import AuditPolicy

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
        for name in ("low", "high", "step"):  # 1 and 1.0 are one scale, written alike
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


_SHOWN = 4


@dataclass(frozen=True)
class AuditDesign:
    """Names, scale and policy of an audit; keys in names are masked.

    Attributes:
        models: the systems compared.
        items: what they answer.
        scale: what humans may score.
        policy: name of what draws and decides.
        config: its options, seed included, as JSON can hold them.
        segments: names behind ``AuditDraw.segment``.
        judge: what is known of the judge that is checked (scorer, arguments, model), as JSON can hold it;
            None if nothing is: then any judge will do.

    Raises:
        InvalidInputError: an axis is empty or has a name twice, or JSON cannot hold the config or the judge.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    scale: Scale = field(default_factory=Scale)
    policy: str = "audit-eprocess"
    config: Mapping[str, Any] = field(default_factory=dict)
    segments: tuple[str, ...] = ("all",)
    judge: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for axis in ("models", "items", "segments"):
            names = without_known(tuple(getattr(self, axis)))
            object.__setattr__(self, axis, names)
            if not names:
                raise InvalidInputError(f"an audit without {axis}; give at least one")
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InvalidInputError(f"an audit with {axis} twice: {twice!r}; every name must be unique")
        try:
            # what comes back from the file must equal what went in: tuples become lists on both sides
            object.__setattr__(self, "config", json.loads(json.dumps(dict(self.config), allow_nan=False)))
            if self.judge is not None:
                object.__setattr__(self, "judge", json.loads(json.dumps(dict(self.judge), allow_nan=False)))
        except (TypeError, ValueError) as ex:
            raise InvalidInputError(f"JSON cannot hold the config of this audit: {ex}") from ex

    @classmethod
    def of(
        cls,
        policy: AuditPolicy,
        models: Sequence[str],
        items: Sequence[str],
        scale: Scale,
        segments: Sequence[str] = ("all",),
        judge: Mapping[str, Any] | None = None,
    ) -> AuditDesign:
        """The design of an audit by this policy, with names.

        Args:
            policy: with its settings.
            models: names of ``policy.config.n_models`` systems.
            items: names of ``policy.config.n_items`` items.
            scale: of the labels, and of the judge.
            segments: names behind ``policy.config.segments``.
            judge: what is known of it.
        """
        settings = policy.config.to_json()
        return cls(tuple(models), tuple(items), scale, policy.name, settings, tuple(segments), judge)

    def to_json(self) -> str:
        """Everything, in one canonical line."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> AuditDesign:
        """The opposite of :meth:`to_json`."""
        entry = json.loads(text)
        return cls(**entry | {"scale": Scale(**entry["scale"])})

    def differences(self, other: AuditDesign) -> list[str]:
        """What differs, one line each: the value here, then that of ``other``.

        Where nothing is known of the judge, here or there, any judge will do.
        """
        found = [
            _names(axis, getattr(self, axis), getattr(other, axis))
            for axis in ("models", "items", "segments")
            if getattr(self, axis) != getattr(other, axis)
        ]
        for name in ("scale", "policy"):
            here, there = getattr(self, name), getattr(other, name)
            if here != there:
                found.append(f"{name}: {here} here, {there} there")
        if self.judge is not None and other.judge is not None:
            found += [f"judge's {line}" for line in _values(self.judge, other.judge)]
        return found + _values(self.config, other.config)


def _values(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    return [
        f"{key}: {_short(here.get(key, 'absent'))} here, {_short(there.get(key, 'absent'))} there"
        for key in sorted({*here, *there})
        if here.get(key, "absent") != there.get(key, "absent")
    ]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _names(axis: str, here: tuple[str, ...], there: tuple[str, ...]) -> str:
    only_here, only_there = ([n for n in a if n not in set(b)] for a, b in ((here, there), (there, here)))
    if not only_here and not only_there:
        return f"{axis}: the same names in another order"
    parts = [
        f"only {side}: {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"
        for side, names in (("here", only_here), ("there", only_there))
        if names
    ]
    return f"{axis}: {len(here)} here, {len(there)} there ({'; '.join(parts)})"
