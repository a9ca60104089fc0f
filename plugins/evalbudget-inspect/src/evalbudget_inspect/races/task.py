"""``race``: wrap an inspect task so that models, or settings, race each other on its items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, overload

from inspect_ai import Task, task_with
from inspect_ai.scorer import Metric

from evalbudget.comparisons import GateConfig
from evalbudget.comparisons.flags import FLAGS as GATE_FLAGS
from evalbudget.errors import InvalidInputError
from evalbudget.flags import said_in
from evalbudget.races import RaceConfig
from evalbudget.races.flags import FLAGS as RACE_FLAGS
from evalbudget_inspect.host.chosen_samples import emptied, number_samples
from evalbudget_inspect.host.current_run import before_eval_sets
from evalbudget_inspect.host.dict_scores import by_row
from evalbudget_inspect.host.entries import whole_paths
from evalbudget_inspect.host.how_bought import RACE
from evalbudget_inspect.host.listening import listen
from evalbudget_inspect.host.live_metadata import LiveMetadata
from evalbudget_inspect.host.models_asked import models_of_scorers
from evalbudget_inspect.host.scoring import require_key, scorer_names, with_metrics
from evalbudget_inspect.host.spread import refuse_worker
from evalbudget_inspect.host.viewer import lead_with_estimate
from evalbudget_inspect.races.arm import Group
from evalbudget_inspect.races.direction import say_other_direction
from evalbudget_inspect.races.metrics import race_estimates
from evalbudget_inspect.races.sample_source import RaceSource
from evalbudget_inspect.repeats.task import check_task, driving_score, setup_of, solvers_of

Factory = Task | Callable[[], Task]


@overload
def race(task: Factory, *, budget: str | int | None = None, **options: Any) -> Task: ...
@overload
def race(task: Mapping[str, Factory], *, budget: str | int | None = None, **options: Any) -> list[Task]: ...


def race(
    task: Factory | Mapping[str, Factory],
    *,
    budget: str | int | None = None,
    prices: str | None = None,
    risk: float | None = None,
    sampler: str | None = None,
    score: str | None = None,
    seed: int | None = None,
    score_range: str | Sequence[float] | None = None,
    history: str | None = None,
    until_proved: bool = False,
    until: str | None = None,
    lower_is_better: bool = False,
    missing: str | None = None,
    store: str | Path | None = None,
    all_arms: int | None = None,
    **options: Any,
) -> Task | list[Task]:
    """The same task as a race: which model, or which setting, is best, for a part of all evaluations.

    Each model is asked for each item once at most, and the sampler decides who is asked next. Give the result
    to inspect's ``eval`` or ``eval_set`` with several models; there is one log per model, and
    :func:`~evalbudget_inspect.leaderboard` makes one table of them. Like inspect's own ``task_with``, this
    adapts the task in place.

    A failed evaluation is asked again, until the item is given up since the model fails more often on it than
    on others, and does not fail the task, unless the task or the command sets ``fail_on_error``; a model that
    keeps failing leaves the race.

    Args:
        task: an inspect task with a dataset and a scorer, or a function that makes one; or several of them
            by name, which race each other: prompts, tools, or whatever else differs. Their items must have
            the same ids.
        budget: evaluations to buy, of all models together: ``5000``, or ``"20x"`` for 20 per item; or what
            all calls may cost, of judges too: ``"$5"``, or ``"2Mtok"`` in tokens.
        prices: price file for a budget in money; models that it does not name have the price that inspect or
            a plugin knows.
        risk: the accepted chance that the last calls exceed a budget in money or tokens; default 0.
        sampler: registered name of a sampler of models; default ``race``. ``uniform`` gives all models the
            same items.
        score: the scorer that decides, ``name`` or ``name.key``; default the first.
        seed: of the sampler.
        score_range: the smallest and the largest possible score, ``"1..10"``; default 0 to 1.
        history: a folder of earlier logs, a file of recorded scores or a file of factors, of other models on
            the same items: predictions make intervals shorter and the search faster.
        until_proved: go on until the best model is proved; the budget is then a cap, by default the whole
            grid.
        until: ``"±0.02"``, to go on until every model's mean is known that well; a single model will do.
        lower_is_better: lower scores are better.
        missing: what an item counts as that was given up for a model: ``worst`` (the default) for what is
            said, ``zero`` (a wrong answer) or ``drop`` (only items that two models both answered).
        store: where processes that run some of the models each meet, such as the workers of an eval set: the
            path of a file, or ``postgresql://user@host/database#name``. They share budget and race.
        all_arms: with ``store``, how many models or settings race, over all these processes.
        options: further arguments of the sampler, for example ``batch=16``, ``margin=.01``, ``delta=.05``.

    Returns:
        The task; a list of tasks where several were given.

    Raises:
        EvalbudgetError: the task cannot be raced (no scorer, own early stopping, already dynamic), or one of
            the arguments is no good; the message says the remedy.

    Example::

        eval(race(my_task(), budget=5000), model=["openai/a", "openai/b", "openai/c"])
        eval(race({"short": my_task("short.txt"), "long": my_task("long.txt")}, budget=800), model="openai/a",
             max_tasks=2)
    """
    said = said_in(locals(), RACE_FLAGS)
    config = RaceConfig.of(**whole_paths(said), **options)
    if not isinstance(task, Mapping):
        return one_arm(_made(task), config)
    if not task:
        raise InvalidInputError(
            "there is nothing to race; give tasks by name, or one task and several models"
        )
    tasks = {label: _made(each) for label, each in task.items()}
    if len({id(each) for each in tasks.values()}) < len(tasks):
        raise InvalidInputError(
            "the same Task object stands under two names, and a task is adapted in place; make one for each"
        )
    base = next(iter(tasks.values())).name
    labels = {name_of_arm(base, label): label for label in tasks}
    return [one_arm(each, config, base=base, label=label, labels=labels) for label, each in tasks.items()]


def gate(
    task: Factory,
    *,
    margin: float,
    baseline: str | Path | None = None,
    baseline_model: str | None = None,
    level: float | None = None,
    these_items: bool = False,
    cluster: str | None = None,
    repeats: int | None = None,
    budget: str | int | None = None,
    prices: str | None = None,
    risk: float | None = None,
    score: str | None = None,
    seed: int | None = None,
    score_range: str | Sequence[float] | None = None,
    lower_is_better: bool = False,
    missing: str | None = None,
    batch: int | None = None,
) -> Task:
    """The same task as a gate: a model is asked its items until it is decided whether it is worse.

    Give the result to inspect's ``eval`` with one model, or with two if the baseline is asked. The verdict is
    in the log, as ``gate`` in the metadata that evalbudget adds to the score that decides;
    :class:`evalbudget.comparisons.Gate` has its fields.

    Args:
        task: an inspect task with a dataset and a scorer, or a function that makes one.
        baseline: a log, or a table of scores, of what the model is compared with.
        baseline_model: asked on items that the baseline has no score on; give it to ``eval`` as well.
        margin: what the model may be worse by, in the units of the score, above 0.
        level: confidence that a verdict is right; default .95.
        these_items: the verdict is about these items as scored once each.
        cluster: field of the samples' metadata that says which belong together.
        repeats: answers of each item; default 1, and more if a baseline with several to each shows that one
            cannot decide.
        budget: evaluations at most, or ``"$5"``, or ``"2Mtok"``; default all items.
        prices: as in :func:`race`.
        risk: as in :func:`race`.
        score: the scorer that decides, ``name`` or ``name.key``; default the first.
        seed: of the order of items; by default every gate has one of its own.
        score_range: the smallest and the largest possible score, ``"1..10"``; default 0 to 1.
        lower_is_better: lower scores are better.
        missing: as in :func:`race`.
        batch: items in the first round; later ones go by what a verdict lacks.

    Raises:
        EvalbudgetError: the task cannot be raced, or one of the arguments is no good.

    Example::

        (log,) = eval(gate(my_task(), baseline="main.eval", margin=0.02), model="openai/new")
    """
    said = said_in(locals(), GATE_FLAGS)
    config = GateConfig.of(**whole_paths(said))
    return one_arm(_made(task), config)


def name_of_arm(task: str, label: str) -> str:
    """The name of a setting's task, in logs."""
    return f"{task}-{label}"


def one_arm(
    task: Task,
    config: RaceConfig,
    *,
    base: str | None = None,
    label: str = "",
    labels: Mapping[str, str] | None = None,
    arguments: str = "",
) -> Task:
    """The task as one arm of a race; see :func:`race`.

    Args:
        task: to adapt.
        config: what the user asked for.
        base: name of the task that all are versions of.
        label: of this version; empty where models alone race.
        labels: of all versions, by the names of their tasks.
        arguments: whatever else tells this race from others with the same names.
    """
    listen()
    before_eval_sets(say_other_direction)
    _check_worker(config)
    scorers = check_task(task, "raced")
    names = scorer_names(scorers)
    deciding = name, key = driving_score(config.score, names)
    require_key(scorers[names.index(name)], name, key, "--score")
    group = Group(base or task.name, labels or {task.name: label}, config, deciding, arguments)
    dataset = task.dataset
    number_samples(dataset)
    models = models_of_scorers(scorers)
    source = RaceSource(group, label, dataset, models)
    asked = {**config.as_json, "score": group.series, "history": config.history}
    rows = race_estimates(*deciding)
    adapted = task_with(
        task,
        dataset=source,
        setup=[
            setup_of(RACE, source.before_solving, score=group.series, lower_is_better=config.lower_is_better),
            *solvers_of(task.setup),
        ],
        scorer=[
            with_metrics(
                scorer,
                rows if name == deciding[0] else None,
                metadata=LiveMetadata(asked, source.told if name == deciding[0] else dict),
                before=source.before_scoring,
                by_key=partial(_rows_of_key, by_row(rows), deciding[1]),
            )
            for scorer, name in zip(scorers, names, strict=True)
        ],
        name=name_of_arm(group.task, label) if label else task.name,
    )
    adapted.dataset = emptied(dataset)
    lead_with_estimate(adapted, scorers[names.index(name)], name, key)
    if adapted.fail_on_error is None:
        adapted.fail_on_error = False
    return adapted


def _check_worker(config: RaceConfig) -> None:
    """Refuse what a worker of a spread eval set cannot decide by itself.

    Raises:
        InvalidInputError: it has to know what another worker's model answers.
    """
    if isinstance(config, GateConfig):
        if config.baseline_model is not None:
            refuse_worker(
                f"a gate that asks --baseline-model {config.baseline_model} compares two models as they run, "
                "which may be in two processes. Give it scores of the baseline instead (--baseline, a log or "
                "a table that --save-baseline wrote), or run it in one process"
            )
    elif config.store is None:
        refuse_worker(
            "models that race share a budget and are compared as they run: every process would spend the "
            "whole budget on the models it sees. Have them meet in a store (--store and --all-arms), or run "
            "them in one process"
        )


def _rows_of_key(rows: Sequence[Metric], deciding: str | None, key: str) -> Sequence[Metric]:
    """What stands before a scorer's own metrics of an entry: the rows of the one that decides."""
    return rows if deciding is None or fnmatch(deciding, key) else ()


def _made(task: Factory) -> Task:
    return task if isinstance(task, Task) else task()
