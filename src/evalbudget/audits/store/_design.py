"""What an audit is about: everything that must agree before a store is continued."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evalbudget.audits.store._scale import Scale
from evalbudget.errors import InvalidInputError
from evalbudget.secrets import without_known

if TYPE_CHECKING:
    from evalbudget.audits.policies import AuditPolicy

_SHOWN = 4

_BATCH = "labels_per_batch"


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

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of everything."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def as_far_as_known(self, other: AuditDesign) -> AuditDesign:
        """The same, with what the other one has where nothing is said here: of the judge, and of batches.

        Nothing said of the judge there counts too: then any judge will do.
        """
        judge = other.judge if None in (self.judge, other.judge) else self.judge
        config = dict(self.config)
        if config.get(_BATCH, 0) is None and _BATCH in other.config:
            config[_BATCH] = other.config[_BATCH]
        return replace(self, judge=judge, config=config)

    def differences(self, other: AuditDesign) -> list[str]:
        """What differs, one line each: the value here, then that of ``other``."""
        found = [
            _names(axis, getattr(self, axis), getattr(other, axis))
            for axis in ("models", "items", "segments")
            if getattr(self, axis) != getattr(other, axis)
        ]
        for name in ("scale", "policy"):
            here, there = getattr(self, name), getattr(other, name)
            if here != there:
                found.append(f"{name}: {here} here, {there} there")
        judges = (self.judge or {}, other.judge or {})
        found += [f"judge's {line}" for line in _values(*judges)] + _values(self.config, other.config)
        return found


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
