"""``budgeted``: wrap an existing inspect task so that a sampler decides its repeats."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.scorer import Metric, Scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.flags import said_in
from evalbudget.repeats import Repeat
from evalbudget_inspect.host.chosen_samples import emptied, number_samples, refuse_keys, strata_of_items
from evalbudget_inspect.host.dict_scores import by_row
from evalbudget_inspect.host.entries import whole_paths
from evalbudget_inspect.host.how_bought import ALLOCATION, BUDGET, FIXED_REPEATS, ITEMS
from evalbudget_inspect.host.listening import listen
from evalbudget_inspect.host.live_metadata import LiveMetadata
from evalbudget_inspect.host.plugin_scorer import plugin_scorer
from evalbudget_inspect.host.private import registry_log_name
from evalbudget_inspect.host.reducers import names_of, refuse_as_score
from evalbudget_inspect.host.refusals import refused
from evalbudget_inspect.host.scoring import (
    asks,
    decides,
    declared_cluster,
    declared_clusters,
    gives_numbers,
    has_accuracy,
    own_metrics,
    require_key,
    rotates,
    scorer_names,
    with_metrics,
)
from evalbudget_inspect.host.viewer import lead_with_estimate, show_epochs
from evalbudget_inspect.judges.judge_names import Judges
from evalbudget_inspect.judges.panel import Panel, Prices
from evalbudget_inspect.judges.panel_metrics import panel_estimates
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.diagnostics import asked_for
from evalbudget_inspect.repeats.flags import FLAGS
from evalbudget_inspect.repeats.metrics import budget_estimates
from evalbudget_inspect.repeats.sample_source import BudgetedSource


def budgeted(
    task: Task,
    *,
    budget: str | int | None = None,
    prices: str | None = None,
    risk: float | None = None,
    sampler: str | None = None,
    repeat: str | None = None,
    score: str | Sequence[str] | None = None,
    seed: int | None = None,
    score_range: str | Sequence[float] | None = None,
    estimators: str | Sequence[str] | None = None,
    scorer: str | None = None,
    judges: Judges | None = None,
    rotation: str | None = None,
    judge_prices: Prices | None = None,
    judge_role: str | None = None,
    until: str | None = None,
    strata: str | None = None,
    cluster: str | None = None,
    variances: str | Path | None = None,
    store: str | Path | None = None,
    **options: Any,
) -> Task:
    """The same task under a budget: a sampler decides how often each item is asked.

    Like inspect's own ``task_with``, this adapts the task in place and returns it.

    Args:
        task: an inspect task with a dataset and a scorer; it is not edited otherwise.
        budget: scores to buy: ``2000``, or ``"20x"`` for 20 per item. With ``judges`` it may be left out:
            then the epochs that inspect runs are all there is. ``"$5"`` or ``"2Mtok"`` is a cap on what all
            calls of each run of this task cost, judges and retries included.
        prices: price file for a budget in money; models that it does not name have the price that inspect or
            a plugin knows.
        risk: accepted chance that the last calls exceed a budget in money or tokens; more of it is used then.
        sampler: registered name; default ``auto`` (in phases, each planned from the scores of those before),
            with ``judges`` ``uniform`` (every item equally often), and where the budget does not pay for two
            readings of all items ``sample`` (as many items as it pays for, once each). Samplers see the
            scores of ``judges`` with the judges' deviations taken out.
        repeat: ``generation`` (default): a repeat is a fresh epoch; ``judge``: the first generation of each
            item is kept and scored again.
        score: the scorer whose scores drive the sampler, ``name`` or ``name.key``; default the first. The
            summary and the item table are about it, every scorer's metrics about its own scores.
        seed: of the sampler.
        score_range: the smallest and the largest possible score, ``"1..10"``; with it every item gets a
            guaranteed interval, and a score outside counts as failed. C/I/P/N scores are within 0..1.
        estimators: names of further estimates of the benchmark that plugins bring, ``"median,mode"``.
        scorer: of a plugin, in place of the task's own scorers.
        judges: models that take turns as the judge of an unmodified task: the role its scorers ask for is
            another one of them for each item and epoch. The estimate is then the mean of the judges' means.
        rotation: who scores what: ``cyclic`` (the default), ``random``, ``priced``, ``single``, or ``all``
            with ``repeat="judge"``. Balanced within the sample metadata's ``category``, where there is one.
        judge_prices: of one call of each judge, ``"a=1,b=5"``: what ``priced`` goes by, and for the log.
        judge_role: the role the scorers ask for; default ``grader``.
        until: ``"item±0.5"``, to end before the budget is used up, once every item is known that well.
        strata: field of the samples' metadata in proportion to whose values a sample of the items is drawn,
            where the budget pays for no more than that.
        cluster: field of the samples' metadata; samples that share a value are not independent of each other,
            and intervals are between clusters. Default: what a scorer's metrics declare, as in
            ``stderr(cluster="passage")``.
        variances: how much each sample's scores vary, where that is known: a YAML file of lines
            ``id: variance``, or a log of earlier epochs; for sampler ``robin``, which learns them otherwise.
        store: where processes that run the same task and model meet, to share the budget: a file, or
            ``"postgresql://user@host/database#name"``. Each has a log of its own samples, with the estimates
            of all.
        options: further arguments of the sampler, for example ``objective="mean"``.

    Raises:
        EvalbudgetError: the task cannot be budgeted (no scorer, own early stopping, already dynamic), or one
            of the arguments is no good; the message says the remedy.

    Example::

        @task
        def my_eval():
            return budgeted(base_task(), budget=2000)
    """
    said = whole_paths(said_in(locals(), FLAGS))
    listen()
    if scorer is not None:
        task.scorer = [plugin_scorer(scorer)]
    scorers = check_task(task, "budgeted")
    names = scorer_names(scorers)
    score = _one_score(score, names)
    refuse_as_score(score, names_of(task.epochs_reducer), names)
    name, key = driving_score(score, names)
    drives = scorers[names.index(name)]
    require_key(drives, name, key, "--score")
    turns = {n: rotates(scorer) for n, scorer in zip(names, scorers, strict=True)}
    panels = {n: found.panel for n, found in turns.items() if found is not None}
    _check_panels(panels, judges=judges, rotation=rotation, judge_prices=judge_prices, judge_role=judge_role)
    config = Config.of(**{**said, "score": score}, rotating=panels.get(name), **options)
    if config.store is not None and (len(scorers) > 1 or key is not None):
        raise InvalidInputError(
            f"processes that share a budget (--store) take one score, and task {task.name!r} has several; "
            "give it one scorer, or run it in one process"
        )
    told = _told_to_ask(config.panel, scorers)
    dataset = task.dataset
    holds_back = config.store is not None or config.for_items(len(dataset)).draws
    refuse_keys(dataset)
    if holds_back:
        number_samples(dataset)
        strata_of_items(dataset, strata)  # what it refuses
    held_back = {ITEMS: [sample.id for sample in dataset]} if holds_back else {}
    needed = {
        field: f"stderr(cluster={field!r}) of scorer {of!r}"
        for of, scorer_ in zip(names, scorers, strict=True)
        for field in declared_clusters(scorer_)
    }
    if config.cluster is not None:
        needed[config.cluster] = ""
    source = BudgetedSource(
        config,
        dataset,
        holds_back=holds_back,
        cluster=config.cluster or declared_cluster(drives, key),
        clusters_needed=needed,
        rows=[] if _alone(drives, config) else [registry_log_name(m) for m in own_metrics(drives, key)],
        told=told,
        reckons=gives_numbers(drives),
        score=(name, key),
        refused=refused,
        accuracy=has_accuracy(drives),
    )
    adapted = task_with(
        task,
        dataset=source,
        setup=[
            setup_of(BUDGET, source.before_solving, **_how_bought(config, held_back)),
            *solvers_of(task.setup),
        ],
        cleanup=_cleanup(source, task.cleanup) if config.repeat is Repeat.JUDGE else task.cleanup,
        scorer=[
            _scorer(scorer, config, source, drives=own == name, key=key)
            for scorer, own in zip(scorers, names, strict=True)
        ],
        name=task.name,
    )
    # the dataset's name and location for the log
    adapted.dataset = emptied(dataset) if holds_back else dataset
    lead_with_estimate(adapted, drives, name, key)
    show_epochs(adapted)
    source.serve(adapted)
    return adapted


def _told_to_ask(panel: Panel | None, scorers: Sequence[Scorer]) -> bool:
    """Whether it is known that the judges are asked; otherwise the first score shows it.

    Raises:
        InvalidInputError: it is known that they are not.
    """
    if panel is None or panel.owner is not None:
        return True
    found = {asks(scorer, panel.role) for scorer in scorers}
    if found == {False}:
        raise InvalidInputError(panel.unused)
    return True in found


def _scorer(
    scorer: Scorer, config: Config, source: BudgetedSource, *, drives: bool, key: str | None
) -> Scorer:
    if rotates(scorer) is not None and not drives:  # it deals its own judges and reports on them
        return with_metrics(scorer, None, metadata=None, before=source.before_scoring)

    def metric(own: str | None, *, bounded: bool) -> Metric:
        return _metric(
            config,
            drives=drives,
            decides=bounded,
            accuracy=has_accuracy(scorer),
            cluster=config.cluster or declared_cluster(scorer, own),
        )

    return with_metrics(
        scorer,
        metric(None, bounded=drives),
        metadata=LiveMetadata(asked_for(config, source.scores_as), source.told if drives else dict),
        before=source.before_scoring,
        seat=source.seat if config.panel is not None else None,
        alone=_alone(scorer, config),
        by_key=lambda own: by_row(metric(own, bounded=drives and decides(scorer, own, key))),
    )


def _alone(scorer: Scorer, config: Config) -> bool:
    """Whether our rows take the place of a scorer's own, which are not of all judges, or of all processes."""
    return rotates(scorer) is not None or config.store is not None


def _check_panels(panels: Mapping[str, Panel], **given: object) -> None:
    """The judges of a scorer that rotates are dealt by the budget, and are not to take turns twice."""
    for scorer in panels:
        for option, value in given.items():
            if value is not None:
                raise InvalidInputError(
                    f"scorer {scorer!r} has its own judges take turns already: drop "
                    f"--{option.replace('_', '-')} and say it to the scorer"
                )


def _metric(config: Config, *, drives: bool, decides: bool, accuracy: bool, cluster: str | None) -> Metric:
    # the declared range is that of the score that decides; another scorer's zeros must not fall out of it
    low, high = config.score_range if decides and config.score_range else (None, None)
    if config.panel is None:
        return budget_estimates(
            allocation=config.allocation.value,
            fixed_repeats=config.fixed_repeats,
            low=low,
            high=high,
            accuracy=accuracy,
            cluster=cluster,
            estimators=list(config.estimators) if drives else [],
        )
    return panel_estimates(
        judges=list(config.panel.judges),
        weighs_judges=config.panel.weighs_judges,
        kept=config.repeat is Repeat.JUDGE,
        allocation=config.allocation.value,
        fixed_repeats=config.fixed_repeats,
        low=low,
        high=high,
        cluster=cluster,
    )


def check_task(task: Task, what: str) -> list[Scorer]:
    """The task's scorers.

    Args:
        task: to adapt.
        what: is to be done with it: ``budgeted``, ``raced`` or ``audited``.

    Raises:
        InvalidInputError: it cannot be adapted.
    """
    if task.sample_source is not None:
        raise InvalidInputError(
            f"task {task.name!r} has a dynamic dataset already (a SampleSource, or it is {what} twice); "
            "give evalbudget the task with its plain dataset"
        )
    if task.early_stopping is not None:
        raise InvalidInputError(
            f"task {task.name!r} has its own early stopping, which would skip cells that the sampler "
            "asks for; remove early_stopping from the task"
        )
    if not task.scorer:
        raise InvalidInputError(
            f"task {task.name!r} has no scorer, so there are no scores and it cannot be {what}; "
            "add a scorer to the task"
        )
    return task.scorer


def driving_score(wanted: str | Sequence[str] | None, names: Sequence[str]) -> tuple[str, str | None]:
    """Scorer and key of the score that drives the sampler; the first scorer if none is named.

    Raises:
        UnknownNameError: the task has no such scorer.
        InvalidInputError: several scores were named.
    """
    wanted = _one_score(wanted, names)
    if wanted is None:
        return names[0], None
    if wanted in names:
        return wanted, None
    own = max((name for name in names if wanted.startswith(f"{name}.")), key=len, default=None)
    if own is not None:  # keys may have dots
        return own, wanted.removeprefix(f"{own}.")
    raise UnknownNameError("score", wanted, names)


def _one_score(wanted: str | Sequence[str] | None, names: Sequence[str]) -> str | None:
    """What was named, which inspect splits at commas; None for nothing.

    Raises:
        InvalidInputError: several scores were named.
    """
    score = wanted if wanted is None or isinstance(wanted, str) else ",".join(wanted)
    if score is not None and "," in score and score not in names:
        raise InvalidInputError(f"{score!r} names several scores, and one of them decides; name that one")
    return score or None


def _how_bought(config: Config, held_back: Mapping[str, Any]) -> dict[str, Any]:
    """For the header of the log, which keeps it when the samples are scored again."""
    return {ALLOCATION: config.allocation.value, FIXED_REPEATS: config.fixed_repeats, **held_back}


def setup_of(name: str, before: Callable[[TaskState], Awaitable[None]], **told: Any) -> Solver:
    """A solver that comes before the task's own, by its name in logs, what it calls, and what it tells."""

    @solver(name=f"evalbudget_inspect/{name}")
    def ours(**told: Any) -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            await before(state)
            return state

        return solve

    return ours(**told)


def _cleanup(
    source: BudgetedSource, base: Callable[[TaskState], Awaitable[None]] | None
) -> Callable[[TaskState], Awaitable[None]]:
    async def cleanup(state: TaskState) -> None:
        try:
            await source.after_scoring(state)
        finally:
            if base is not None:
                await base(state)

    return cleanup


def solvers_of(setup: Solver | Sequence[Solver] | None) -> list[Solver]:
    """A task's setup as a list."""
    if setup is None:
        return []
    return list(setup) if isinstance(setup, Sequence) else [setup]
