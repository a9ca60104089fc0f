"""What a user asks of an audit by flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.audits.flags import FLAGS
from evalbudget.audits.policies import AuditPolicy
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._scale import Scale
from evalbudget.errors import InvalidInputError
from evalbudget.hooks import plugins

DEFAULT_SAMPLER = "audit-eprocess"


@dataclass(frozen=True)
class AuditSettings:
    """An audit before its items are known.

    Attributes:
        store: file of the audit.
        models: as the host is given them.
        judge: whose scores are audited, as the host names it; None for the task's first.
        scale: of judge and labels.
        items: only the first so many items; None for all.
        labels_from: scorer of the task that labels; None for humans.
        policy: what draws and decides.
        options: of its config.
    """

    store: Path
    models: tuple[str, ...]
    judge: str | None
    scale: Scale
    items: int | None
    labels_from: str | None
    policy: type[AuditPolicy]
    options: Mapping[str, Any]

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Refuse, as options of the sampler, what the command says otherwise.

        Raises:
            InvalidInputError: there is one.
        """
        for name in ("store", "task", "models", "n_models", "n_items"):
            if name in options:
                raise InvalidInputError(
                    f"{name} is no option of an audit's sampler; name task and models as ever"
                )

    @classmethod
    def of(
        cls,
        *,
        store: str,
        models: Sequence[str],
        sampler: str | None = None,
        judge: str | None = None,
        score_range: str | None = None,
        items: Any = None,
        labels_from: str | None = None,
        **options: Any,
    ) -> AuditSettings:
        """Settings as typed, None where not given.

        Raises:
            InvalidInputError: one that cannot be used.
        """
        known = plugins().auditors
        policy = known.get(sampler or DEFAULT_SAMPLER)
        if policy is None:
            *others, last = known
            raise InvalidInputError(
                f"--sampler {sampler} keeps no audit store; use {', '.join(others)} or {last}"
            )
        if labels_from is not None and labels_from == judge:
            raise InvalidInputError(
                f"{judge!r} cannot check itself; name another scorer to label or as the judge"
            )
        if items is not None and (not isinstance(items, int) or items < 1):
            raise InvalidInputError(f"items is {items}; give a whole number, 1 or more")
        given = {k: v for k, v in options.items() if v is not None}
        for flag in FLAGS:
            if flag.name in given and flag.name not in policy.options():
                raise InvalidInputError(f"{flag.option} has no meaning with --sampler {policy.name}; drop it")
        scale = Scale.parse(score_range or "0..1")
        settings = cls(Path(store), tuple(models), judge, scale, items, labels_from, policy, given)
        settings.start(items or 1_000)  # refuse bad values before the host starts
        return settings

    def start(self, n_items: int) -> AuditPolicy:
        """The policy before its first draw, for a number of items."""
        return self.policy.of({**self.options, "n_models": len(self.models), "n_items": n_items})

    def design(self, items: Sequence[str], judge: Mapping[str, Any] | None = None) -> AuditDesign:
        """What the store must be about; None where the judge is not known yet."""
        return AuditDesign.of(self.start(len(items)), self.models, items, self.scale, judge=judge)
