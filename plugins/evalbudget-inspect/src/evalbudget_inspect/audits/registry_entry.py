"""``evalbudget_inspect/audited``: the task with the items that its audit wants of one model now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalSample
from inspect_ai.model import get_model, model_roles
from inspect_ai.scorer import Scorer

from evalbudget.audits.store import AuditDesign, AuditRun, AuditSettings, AuditStore, begin_bill
from evalbudget.errors import InvalidInputError
from evalbudget_inspect.audits.answers import TAG, keep_answers
from evalbudget_inspect.audits.labels_by_scorer import without_scorer
from evalbudget_inspect.audits.money import AuditMoney, Doorkeeper, ScaleWatch
from evalbudget_inspect.audits.which_judge import find_judge, judge_identity, models_of_roles, pick
from evalbudget_inspect.host.chosen_samples import number_samples
from evalbudget_inspect.host.how_bought import JUDGE, LOWER_IS_BETTER
from evalbudget_inspect.host.listening import listen
from evalbudget_inspect.host.models_asked import models_of_scorers
from evalbudget_inspect.host.private import ModelName
from evalbudget_inspect.host.refusals import refusing
from evalbudget_inspect.host.scoring import scorer_names
from evalbudget_inspect.host.spread import refuse_worker
from evalbudget_inspect.host.tasks import load_one
from evalbudget_inspect.repeats.registry_entry import PREFIX, split_arguments
from evalbudget_inspect.repeats.task import check_task


@dataclass
class Plan:
    """What the command that runs the host knows beyond the store.

    Attributes:
        command: goes on with the audit.
        answered: sample ids that earlier logs answer, by model.
        kept: what earlier logs have of answers that have no score yet, by model and sample id.
        watch: ends the run at the first score that is no good, whatever model it is of.
        money: pays for the calls, where they have a budget.
    """

    command: str = ""
    answered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    kept: Mapping[tuple[str, str], EvalSample] = field(default_factory=dict)
    watch: ScaleWatch = field(default_factory=ScaleWatch)
    money: AuditMoney | None = None


plan = Plan()


@task(name="audited")
def audited_entry(**args: Any) -> Task:
    """One batch of an audit of any task; ``evalbudget inspect audit STORE`` runs it.

    Args:
        args: all prefixed with ``evalbudget.``: ``task``, ``store``, ``models`` and what the audit is set to;
            the others are the inner task's.
    """
    with refusing():
        ours, inner = split_arguments(args, ("task",))
        models = ours.pop("models", [])
        for name in ("task", "store"):
            if isinstance(ours.get(name), list):  # the host splits values at commas, paths may hold one
                ours[name] = ",".join(str(part) for part in ours[name])
            if not ours.get(name):
                raise InvalidInputError(
                    f"an audit needs -T {PREFIX}{name}; run it by evalbudget inspect audit"
                )
        spec = ours.pop("task")
        settings = AuditSettings.of(models=models if isinstance(models, list) else [models], **ours)
        return _batch(load_one(spec, inner), settings)


@dataclass(frozen=True)
class Prepared:
    """What an audit makes of its task.

    Attributes:
        samples: its items, with ids.
        scorers: without the one that labels.
        judge: of these; None where nobody judges.
        design: what the store must be about.
        models: that scorers and roles are known to ask.
    """

    samples: list[Sample]
    scorers: list[Scorer]
    judge: str | None
    design: AuditDesign
    models: list[str]


def prepared(loaded: Task, settings: AuditSettings, given: Mapping[str, Any]) -> Prepared:
    """Adapt a task for its audit.

    Args:
        loaded: the task; the scorer that labels is taken off it.
        settings: of the audit.
        given: models of roles.

    Raises:
        EvalbudgetError: it cannot be audited.
    """
    refuse_worker(
        "an audit goes on in batches: which answers the next one needs follows from those of all models, and "
        "evalbudget inspect audit, which runs batch after batch, reads them. Run that command in one process"
    )
    scorers = every = check_task(loaded, "audited")
    if settings.labels_from is not None:
        scorers = loaded.scorer = without_scorer(scorers, settings.labels_from)
    asks_judge = settings.policy.asks_judge
    if asks_judge and not scorers:
        raise InvalidInputError(
            f"{settings.labels_from!r} is the task's only scorer; an audit needs another one as its judge, "
            "or --sampler human-only, which asks none"
        )
    roles = models_of_roles({**(loaded.model_roles or {}), **given})
    judge = find_judge(settings.judge, scorers, roles) if asks_judge else None
    by_role = [name for names in roles.values() for name in names.split(",")]
    samples = list(loaded.dataset)[: settings.items]
    number_samples(samples)
    known = judge_identity(judge, scorers, loaded.version, roles) if judge else None
    design = settings.design([str(sample.id) for sample in samples], known)
    return Prepared(samples, scorers, judge, design, [*by_role, *models_of_scorers(every)])


def _batch(loaded: Task, settings: AuditSettings) -> Task:
    listen()
    found = prepared(loaded, settings, model_roles())
    samples, scorers, judge, design = found.samples, found.scorers, found.judge, found.design
    if plan.money is not None:
        plan.money.check([*settings.models, *found.models])
    if AuditStore.exists(settings.store):
        store = AuditStore.open(settings.store, design)
    else:
        store = AuditStore.create(settings.store, design, command=plan.command)
        begin_bill(settings.store, None if plan.money is None else plan.money.budget)
    with store:
        contexts = AuditRun(store).contexts
        tag = store.id
    model = str(ModelName(get_model()))
    if model not in settings.models:
        raise InvalidInputError(f"inspect calls a model {model!r}; name it so in --model")
    arm = settings.models.index(model)
    wanted = {design.items[context.item] for context in contexts if arm in context.models}
    wanted -= plan.answered.get(model, frozenset())
    if plan.money is not None:  # what is drawn first counts even if the money ends before the rest
        drawn = {design.items[context.item]: place for place, context in enumerate(contexts)}
        samples.sort(key=lambda sample: drawn.get(str(sample.id), len(drawn)))
    loaded.dataset = MemoryDataset(
        [sample for sample in samples if str(sample.id) in wanted],
        name=loaded.dataset.name,
        location=loaded.dataset.location,
    )
    kept: Mapping[str, EvalSample] = {}
    if not any(context.judged for context in contexts):
        loaded.scorer = None  # the judge is not worth its price: humans label everything
    elif judge is not None:
        names = scorer_names(scorers)
        name, key, _ = pick(judge, scorers, "--judge")
        loaded.scorer = [
            plan.watch.over(scorer, name, key, settings.scale) if each == name else scorer
            for scorer, each in zip(scorers, names, strict=True)
        ]
        kept = {item: sample for (m, item), sample in plan.kept.items() if m == model and item in wanted}
        keep_answers(loaded, kept, name, names)
    if plan.money is not None:
        plan.money.over(loaded)
    if plan.money is not None or (loaded.scorer and judge is not None):
        loaded.early_stopping = Doorkeeper(plan.watch, plan.money, kept)
    loaded.epochs = 1
    about = {JUDGE: judge, LOWER_IS_BETTER: settings.scale.lower_is_better} if judge else {}
    loaded.metadata = {**(loaded.metadata or {}), TAG: tag, **about}
    if loaded.fail_on_error is None:
        loaded.fail_on_error = False
    return loaded
