"""What a user asks of an audit by flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.audits.policies import AuditConfig
from evalbudget.audits.store import AuditDesign, Scale
from evalbudget.audits.store.weighing import POLICIES
from evalbudget.errors import InvalidInputError

DEFAULT_SAMPLER = POLICIES[0]
_RENAMED = {"label_price": "price_label", "labels_per_batch": "batch"}


@dataclass(frozen=True)
class AuditSettings:
    """An audit before its items are known.

    Attributes:
        store: file of the audit.
        models: as the host is given them.
        judge: scorer of the task whose scores are audited, ``name`` or ``name.key``, or the model role that
            it asks; None for the first.
        scale: of judge and labels.
        items: only the first so many items; None for all.
        labels_from: scorer of the task that labels; None for humans.
        options: of ``AuditConfig``.
    """

    store: Path
    models: tuple[str, ...]
    judge: str | None
    scale: Scale
    items: int | None
    labels_from: str | None
    options: Mapping[str, Any]

    @property
    def policy(self) -> str:
        """What draws and decides."""
        return DEFAULT_SAMPLER if self.options["use_judge"] else "human-only"

    @classmethod
    def of(
        cls,
        *,
        store: str,
        models: Sequence[str],
        sampler: str | None = None,
        judge: str | None = None,
        score_range: str | None = None,
        items: int | None = None,
        labels_from: str | None = None,
        **options: Any,
    ) -> AuditSettings:
        """Settings as typed, None where not given.

        Raises:
            InvalidInputError: one that cannot be used.
        """
        sampler = sampler or DEFAULT_SAMPLER
        if sampler not in POLICIES:
            raise InvalidInputError(f"--sampler {sampler} keeps no audit store; use {' or '.join(POLICIES)}")
        if labels_from is not None and labels_from == judge:
            raise InvalidInputError(
                f"{judge!r} cannot check itself; name another scorer as the labels_from or as the judge"
            )
        if items is not None and items < 1:
            raise InvalidInputError(f"items is {items}; give 1 or more")
        given = {_RENAMED.get(k, k): v for k, v in options.items() if v is not None}
        given["use_judge"] = sampler == DEFAULT_SAMPLER
        scale = Scale.parse(score_range or "0..1")
        settings = cls(Path(store), tuple(models), judge, scale, items, labels_from, given)
        settings.config(items or 1_000)  # refuse bad values before the host starts
        return settings

    def config(self, n_items: int) -> AuditConfig:
        """Settings of the policy, for a number of items."""
        return AuditConfig.from_json({"n_models": len(self.models), "n_items": n_items, **self.options})

    def design(self, items: Sequence[str]) -> AuditDesign:
        """What the store must be about."""
        return AuditDesign.of(self.config(len(items)), self.models, items, self.scale)
