"""What a user asks of an audit by flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalbudget.audits.flags import FLAGS
from evalbudget.audits.policies import AuditPolicy, PolicyConfig
from evalbudget.audits.store._design import DEFAULT_RANGE, AuditDesign, Scale
from evalbudget.budget import Budget, Unit
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.hooks import plugins
from evalbudget.store import Address

DEFAULT_SAMPLER = "audit-eprocess"
_SCORES = PolicyConfig.label_price / PolicyConfig.judge_price
"""That a label costs by default; in money, as long as nobody knows what a score costs."""


@dataclass(frozen=True)
class AuditSettings:
    """An audit before its items are known.

    Attributes:
        store: of the audit.
        models: as the host is given them.
        judge: whose scores are audited, as the host names it; None for the task's first.
        scale: of judge and labels.
        items: only the first so many items; None for all.
        labels_from: scorer of the task that labels; None for humans.
        policy: what draws and decides.
        options: of its config.
        in_dollars: the price of a label is in dollars, not in scores of the judge.
    """

    store: Address
    models: tuple[str, ...]
    judge: str | None
    scale: Scale
    items: int | None
    labels_from: str | None
    policy: type[AuditPolicy]
    options: Mapping[str, Any]
    in_dollars: bool = False

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
        lower_is_better: bool | None = None,
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
        price, in_dollars = _label_price(options.pop("label_price", None))
        given = {k: v for k, v in {**options, "label_price": price}.items() if v is not None}
        for flag in FLAGS:
            if flag.name in given and flag.name not in policy.options():
                raise InvalidInputError(f"{flag.option} has no meaning with --sampler {policy.name}; drop it")
        if in_dollars and price is not None:
            if policy.asks_judge and not policy.learns_prices:
                raise InvalidInputError(
                    f"--label-price in money is weighed against what the judge's calls turn out to cost, and "
                    f"--sampler {policy.name} does not learn that; give it in scores of the judge (20)"
                )
            given = {"judge_price": price / _SCORES, **given}
        scale = replace(Scale.parse(score_range or DEFAULT_RANGE), lower_is_better=bool(lower_is_better))
        settings = cls(
            *(Address.parse(store), tuple(models), judge, scale, items, labels_from, policy, given),
            in_dollars=in_dollars,
        )
        settings.start(items or 1_000)  # refuse bad values before the host starts
        return settings

    def start(self, n_items: int) -> AuditPolicy:
        """The policy before its first draw, for a number of items."""
        return self.policy.of({**self.options, "n_models": len(self.models), "n_items": n_items})

    def design(self, items: Sequence[str], judge: Mapping[str, Any] | None = None) -> AuditDesign:
        """What the store must be about; None where the judge is not known yet."""
        return AuditDesign.of(self.start(len(items)), self.models, items, self.scale, judge=judge)


def _label_price(given: str | float | None) -> tuple[float | None, bool]:
    """The price of a label, and whether it is in dollars.

    Raises:
        InvalidInputError: it is neither a number nor money.
    """
    try:
        return (None if given is None else float(given)), False
    except ValueError:
        pass
    try:
        price = Budget.parse(str(given))
    except BudgetError:
        price = None
    if price is None or price.unit is not Unit.USD:
        raise InvalidInputError(
            f"--label-price {given} is no price; write a number of the judge's scores (20), or money ('$2')"
        )
    return price.amount, True
