"""What an audit would ask and cost next, before any call is made: ``--dry-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from evalbudget.audits.policies import AuditConfig, Context, PolicyConfig, rebuild
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._money import AuditBudget, place_of_bill, spent_before
from evalbudget.audits.store._settings import AuditSettings
from evalbudget.audits.store._store import AuditStore
from evalbudget.audits.store._store_verdict import labels_of, policy_of, weigh
from evalbudget.budget import Unit, shown_amount
from evalbudget.errors import BudgetError
from evalbudget.run import at_most
from evalbudget.shown import shown
from evalbudget.store import Address


@dataclass(frozen=True, slots=True)
class AuditForecast:
    """The next batch of an audit, and the most that all of it can take.

    Attributes:
        task: its name.
        settings: of the audit.
        budget: on calls; None where they cost what they cost.
        config: of the policy.
        contexts: of the batch under way that are not answered yet; of the first one before it begins.
        labels: that are waited for now.
        drawn: answers that the store has.
        spent: by the bill, in units of the budget; None where there is none yet.
        call: what one call of a model costs at most, in units of the budget; None where it is not known.
        reading: what an answer and its scores cost on average in earlier runs; None where there were none.
        seconds: that one took on average in earlier runs; None where there were none.
    """

    task: str
    settings: AuditSettings
    budget: AuditBudget | None
    config: PolicyConfig
    contexts: Sequence[Context]
    labels: int
    drawn: int
    spent: float | None
    call: float | None = None
    reading: float | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, task: str, design: AuditDesign, settings: AuditSettings, budget: AuditBudget | None) -> Self:
        """Of an audit that is to begin, or to go on; nothing is written.

        Args:
            task: its name.
            design: what the store must be about.
            settings: of the audit.
            budget: on calls.

        Raises:
            AuditStoreError: the store is of another audit.
            JournalError: its bill is damaged.
            BudgetError: its bill is in another unit.
        """
        policy, labels, drawn = settings.start(len(design.items)), 0, 0
        contexts: Sequence[Context] = policy.contexts
        if AuditStore.exists(settings.store):
            with AuditStore.open(settings.store, design) as store:
                draws = store.draws.all()
                labels, drawn = len(weigh(store).wanted), store.progress().drawn
                policy = rebuild(policy_of(store), draws, labels_of(store))
            known = {draw.context for draw in draws}
            contexts = [each for each in policy.contexts if each.number not in known and not each.again]
        return cls(
            task, settings, budget, policy.config, contexts, labels, drawn, _spent(settings.store, budget)
        )

    @property
    def answers(self) -> int:
        """Of models, that are asked for next."""
        return sum(len(context.models) for context in self.contexts)

    @property
    def pilot(self) -> int | None:
        """Labels that the first batch is expected to ask for; None once it was drawn."""
        return self.config.pilot if isinstance(self.config, AuditConfig) and not self.drawn else None

    @property
    def most_labels(self) -> int:
        """That the audit may ask for in all."""
        every, most = self.config.n_items * self.config.n_models, self.config.max_labels
        return every if most is None else min(every, most)

    def knowing(self, *, call: float | None, reading: float | None, seconds: float | None) -> Self:
        """The same, with what is known of calls."""
        return replace(self, call=call, reading=reading, seconds=seconds)

    @property
    def rows(self) -> Mapping[str, str]:
        """What there is to say, by its name."""
        unit = Unit.SCORES if self.budget is None else self.budget.unit
        cap = None if self.budget is None else self.budget.cap
        found = {
            "Task": f"{self.task} with {', '.join(self.settings.models)}",
            "Items": f"{self.config.n_items:,}",
            "Sampler": self.settings.policy.name,
            "Budget": "none" if cap is None else f"{cap}, for calls; labels by people are none",
        }
        if self.drawn:
            found["So far"] = f"{self.drawn:,} answers"
        if self.spent is not None and cap is not None:
            left = max(0.0, cap.amount - self.spent)
            found["So far"] = f"{self.drawn:,} answers, {shown_amount(self.spent, unit)} by the bill; "
            found["So far"] += f"{shown_amount(left, unit)} are left"
        judged = any(context.judged for context in self.contexts)
        scored = ", scored by the judge" if judged else ""
        found["Next"] = f"{self.answers:,} answers to {len(self.contexts):,} items{scored}"
        if not self.answers:
            found["Next"] = f"{self.labels:,} labels; no call before they are in"
        elif self.call is not None:
            found["A call"] = f"{shown_amount(self.call, unit)} of a model at most"
            found["Next"] += f" ({shown_amount(self.answers * self.call, unit)} at most, one call each"
            found["Next"] += ", without the judge)" if judged else ")"
        if self.pilot is not None:
            pilot = min(self.pilot, self.most_labels)
            found["Labels"] = f"about {pilot:,} after the first batch{self._priced(pilot)}"
        elif self.labels:
            found["Labels"] = f"{self.labels:,} are waited for{self._priced(self.labels)}"
        if self.reading is not None and self.answers:
            cost = shown_amount(self.answers * self.reading, unit)
            found["Expected"] = f"{cost} for what is next, at the cost of earlier runs"
        elif self.answers and self.budget is not None:
            found["Expected"] = "not known before the first answers: no earlier run of this task and models"
        if self.seconds is not None and self.answers:
            minutes = max(self.answers * self.seconds / 60.0, 0.1)
            found["Time"] = f"about {minutes:,.1f} minutes for what is next, as fast as earlier runs"
        every = self.config.n_items * self.config.n_models
        found["At most"] = f"{every:,} answers, {self.most_labels:,} labels{self._priced(self.most_labels)}"
        if self.budget is not None and cap is not None:
            found["At most"] += f"; {at_most(cap, self.budget.risk)}"
        return found

    def _priced(self, labels: int) -> str:
        if not self.settings.in_dollars:
            return ""
        return f" ({shown_amount(labels * self.config.label_price, Unit.USD)})"

    def __str__(self) -> str:
        width = max(map(len, self.rows)) + 2
        return "\n".join(f"{name:<{width}}{shown(text)}" for name, text in self.rows.items())


def _spent(store: Address, budget: AuditBudget | None) -> float | None:
    before = None if budget is None else spent_before(store)
    if budget is None or before is None:
        return None
    unit, cost = before
    if unit is not budget.unit:
        raise BudgetError(
            f"{place_of_bill(store)} was begun with a budget in {unit.said}, and this one is in "
            f"{budget.unit.said}; go on with the same unit, or begin another audit"
        )
    return cost
