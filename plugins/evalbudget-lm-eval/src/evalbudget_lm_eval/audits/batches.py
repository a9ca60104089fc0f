"""Goes on with an audit: models answer what it draws, batch after batch, until people have to label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lm_eval.tasks import TaskManager

from evalbudget.audits.policies import Context
from evalbudget.audits.store import (
    AuditBudget,
    AuditDesign,
    AuditForecast,
    AuditRun,
    AuditSettings,
    AuditStore,
    Standing,
    begin_bill,
    check_money,
    database_of,
    only_run,
    weigh,
)
from evalbudget.shown import shown_logger
from evalbudget.store import Address, Database
from evalbudget_lm_eval.arms.arm import Arm, check_known
from evalbudget_lm_eval.arms.loaded_models import Stable
from evalbudget_lm_eval.arms.metric import check_direction, choose_metric, lower_is_better
from evalbudget_lm_eval.arms.one_task import documents_of, one_task, settings_of
from evalbudget_lm_eval.arms.paid_arms import check_prices
from evalbudget_lm_eval.audits.answers import refuse_unreadable
from evalbudget_lm_eval.audits.arm import AuditArm
from evalbudget_lm_eval.audits.money import AuditMoney
from evalbudget_lm_eval.judges.filter import check_judges
from evalbudget_lm_eval.repeats.budgeted import blocks_ignored
from evalbudget_lm_eval.run.record import AUDIT, END, Record

log = shown_logger("evalbudget")

_PART = 32
"""Contexts that all models answer before the next ones, where money may end: a context counts as a whole."""


@dataclass(frozen=True)
class Order:
    """Everything an audit needs to know.

    Attributes:
        arms: the models.
        spec: the one task, as the host's task manager takes it.
        settings: of the audit; its ``judge`` is ``metric`` or ``metric,filter``.
        keep: models loaded at once.
        host: options of ``simple_evaluate``.
        command: goes on with the audit, to show to people.
        budget: on what calls cost; None where they cost what they cost.
    """

    arms: Sequence[Arm]
    spec: Any
    settings: AuditSettings
    keep: int | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    budget: AuditBudget | None = None


@dataclass(frozen=True)
class Ended:
    """How far it came.

    Attributes:
        standing: what is proved, and who has to do what.
        paid: what was paid to whom, in a sentence; empty where nobody counts.
        lacking: answers of the batch that the budget did not pay for.
    """

    standing: Standing
    paid: str = ""
    lacking: int = 0


@dataclass(frozen=True)
class _Audited:
    """The one task, as its audit takes it."""

    name: str
    task: Any
    metric: str | None
    judge: Mapping[str, Any] | None
    documents: Sequence[int]
    design: AuditDesign

    @classmethod
    def of(cls, order: Order, task_manager: TaskManager) -> _Audited:
        """Load it, and refuse what cannot be audited."""
        settings = order.settings
        name, task = one_task(task_manager, order.spec)
        refuse_unreadable(name, task)
        metric, judge = None, None
        if settings.policy.asks_judge:
            metric = choose_metric(name, task, settings.judge, "--judge")
            judge = _judge_identity(name, task, metric)
            lower = settings.scale.lower_is_better or bool(lower_is_better(task, metric))
            check_direction([(name, task, metric)], lower=lower)
            settings = replace(settings, scale=replace(settings.scale, lower_is_better=lower))
        documents = documents_of(name, task, order.host)[: settings.items]
        design = settings.design([str(document) for document in documents], judge)
        return cls(name, task, metric, judge, documents, design)


@blocks_ignored()
def foresee(order: Order, task_manager: TaskManager) -> AuditForecast:
    """What the audit would ask next; models are loaded when they are first asked, so not for this.

    Raises:
        EvalbudgetError: what the audit would refuse before it loads a model.
    """
    found = _Audited.of(order, task_manager)
    check_money(order.settings, order.budget)
    if order.budget is not None:
        check_prices(order.budget.tariff(), order.arms, [found.task])
    return AuditForecast.of(found.name, found.design, order.settings, order.budget)


@blocks_ignored()
def go_on(order: Order, task_manager: TaskManager) -> Ended:
    """Have everything answered that the audit wants, until somebody else has to do something.

    Raises:
        EvalbudgetError: the task cannot be audited, the store is of another audit, a score is not on the
            scale, or a model answers nothing.
    """
    settings, found = order.settings, _Audited.of(order, task_manager)
    name, task, metric, judge = found.name, found.task, found.metric, found.judge
    documents, design = found.documents, found.design
    asked = {"task": name, **settings_of(order.host), **({} if judge is None else {"judge": judge})}
    check_money(settings, order.budget)
    with only_run(settings.store):
        if AuditStore.exists(settings.store):
            AuditStore.open(settings.store, design).close()  # refused before the record is looked at
        record = Record.open(_answers(order, design), AUDIT, asked)
        stable: Stable | None = None
        money: AuditMoney | None = None
        try:
            check_known(order.arms, record, "another STORE")
            bought = any(record.of(arm.name).bought for arm in order.arms)
            check_money(settings, order.budget, bought=bought)
            if order.budget is not None:
                money = AuditMoney(order.budget, order.arms, task, settings.store)
            host = {**order.host, "task_manager": task_manager}
            stable = Stable(
                *(list(order.arms), name, order.spec, {name: documents_of(name, task, order.host)}),
                *(host, {}, record, order.keep),
            )
            seeds_of = f"{settings.store.title} {settings.options.get('seed', 0)}"
            arms = [
                AuditArm(stable, each, task, metric, settings.scale, seeds_of, money)
                for each in stable.entrants
            ]
            part = _PART if money is not None and stable.keep >= len(arms) else len(documents)
            lacking = 0
            with _store(settings.store, design, order.command) as store:
                _note_price(store, settings, arms, money)
                while not lacking and (contexts := AuditRun(store).contexts):
                    for first in range(0, len(contexts), part):
                        _answer(contexts[first : first + part], arms, documents, money)
                    lacking = _record(store, contexts, arms, documents)
                    _note_price(store, settings, arms, money)
                _tell(arms)
                return Ended(weigh(store), "" if money is None else money.text, lacking)
        finally:
            if money is not None:
                money.close()
            if stable is not None:
                stable.close()
            record.close()


def answers_of(store: Path) -> Path:
    """The file beside that of an audit that has every answer, by which it goes on after a kill."""
    return store.with_name(f"{store.stem}.answers{END}")


def _answers(order: Order, design: AuditDesign) -> Path | Database:
    """Where every answer is kept: beside the file of an audit, or in its database, which is begun."""
    store = order.settings.store
    if store.path is not None:
        return answers_of(store.path)
    if not AuditStore.exists(store):
        _store(store, design, order.command).close()
        begin_bill(store, order.budget)
    return database_of(store)


def _store(address: Address, design: AuditDesign, command: str) -> AuditStore:
    if AuditStore.exists(address):
        return AuditStore.open(address, design)
    return AuditStore.create(address, design, command=command)


def _answer(
    contexts: Sequence[Context],
    arms: Sequence[AuditArm],
    documents: Sequence[int],
    money: AuditMoney | None,
) -> None:
    """Ask until every system of every context has answered, or failed for good, or the budget is used up."""
    while money is None or not money.short:
        open_ = {
            number: [
                document
                for context in contexts
                if number in context.models and arm.answer(document := documents[context.item]) is None
            ]
            for number, arm in enumerate(arms)
        }
        if not any(open_.values()):
            return
        # those that are loaded come first: a pass then loads every other model once
        for number in sorted(open_, key=lambda number: not arms[number].is_alive):
            if open_[number]:
                arms[number].ask(list(dict.fromkeys(open_[number])))


def _tell(arms: Sequence[AuditArm]) -> None:
    for arm in arms:
        if arm.unanswered or arm.unjudged:
            log.warning(
                "evalbudget: of arm %s %d documents have no answer after repeated failures, and %d answers "
                "no score; people label them as they are",
                arm.name,
                arm.unanswered,
                arm.unjudged,
            )


def _record(
    store: AuditStore, contexts: Sequence[Context], arms: Sequence[AuditArm], documents: Sequence[int]
) -> int:
    """Keep the contexts that are answered; how many answers are lacking."""
    run, lacking = AuditRun(store), 0
    for context in contexts:
        found = [arms[number].answer(documents[context.item]) for number in context.models]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            lacking += len(found) - len(known)
            continue
        scores = [score for _, score in known] if context.judged else None
        run.record(context, [answer for answer, _ in known], scores)
    return lacking


def _note_price(
    store: AuditStore, settings: AuditSettings, arms: Sequence[AuditArm], money: AuditMoney | None
) -> None:
    """Keep what a score of the judge cost until now, where labels have a price in money."""
    if money is None or not settings.in_dollars:
        return
    price = money.judge_price(sum(arm.judged for arm in arms))
    if price is not None:
        store.judge_prices.note(price)


def _judge_identity(name: str, task: Any, metric: str) -> dict[str, Any]:
    """What is known of the judge that is audited: two that differ in any of it are two judges.

    That is task, score and, where models judge, who they are and how they are asked.

    Raises:
        InvalidInputError: a judge cannot be used.
    """
    known: dict[str, Any] = {"score": metric, "task": name, "task version": str(task.VERSION)}
    panel = check_judges(task)
    if panel is not None:
        known |= {f"judges' {what}": told for what, told in panel.identity.items()}
    return known
