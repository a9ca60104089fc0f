"""``cyclic_judge`` and ``rotate``: scorers whose judges take turns, with or without a budget."""

from __future__ import annotations

import inspect as introspection
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from inspect_ai.model import Model
from inspect_ai.scorer import Metric, Score, Scorer, Target, model_graded_fact, model_graded_qa
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError, RegistryInfo

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges import DEFAULT_ROTATION, check_seed
from evalbudget.secrets import said_by
from evalbudget.statistics import known_mean
from evalbudget_inspect.host.current_run import current_run, scored_state
from evalbudget_inspect.host.dict_scores import by_row
from evalbudget_inspect.host.listening import listen
from evalbudget_inspect.host.live_metadata import LiveMetadata
from evalbudget_inspect.host.private import (
    SCORER_METRICS,
    TerminateSampleError,
    is_registry_object,
    registry_name,
    registry_tag,
    scorer_metrics,
    scorer_register,
)
from evalbudget_inspect.host.refusals import refusing
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import (
    METADATA,
    MetricList,
    declared_cluster,
    mark_rotating,
    rotates,
    scorer_names,
    shaped,
    without_repeated,
)
from evalbudget_inspect.judges.judge_names import JudgeModel, read_judges
from evalbudget_inspect.judges.panel import DEFAULT_ROLE, Panel, Prices
from evalbudget_inspect.judges.panel_metrics import panel_estimates
from evalbudget_inspect.judges.scorer_turns import Pass, Turns, number_of

GRADERS: dict[str, Callable[..., Scorer]] = {
    "model_graded_qa": model_graded_qa,
    "model_graded_fact": model_graded_fact,
}


def cyclic_judge(
    judges: str | Sequence[Any] | Mapping[str, Any],
    *,
    rotation: str = DEFAULT_ROTATION,
    prices: Prices | None = None,
    seed: int = 0,
    names: Sequence[str] | None = None,
    grader: str = "model_graded_qa",
    template: str | None = None,
    instructions: str | None = None,
    grade_pattern: str | None = None,
    include_history: bool | Callable[[TaskState], str] = False,
    partial_credit: bool = False,
) -> Scorer:
    """A scorer whose judges take turns: another one for each item and epoch, and the panel's estimate.

    Works in any task, and re-judges a finished log: ``inspect score LOG --scorer
    evalbudget_inspect/cyclic_judge -S judges=a,b,c``. Which judge scores a cell depends on the samples, the
    seed and the epoch alone; judges are balanced overall and within the sample metadata's ``category``.

    Metrics are those of :func:`~evalbudget_inspect.judges.panel_metrics.panel_estimates`.

    Args:
        judges: models (names, ``Model`` objects or mappings as ``--judges`` takes them), which grade with
            inspect's own ``model_graded_qa``; or scorers, as for :func:`rotate`.
        rotation: ``cyclic``, ``random``, ``priced``, ``single``; or ``all``: every judge scores every
            generation, and the score is the mean of their readings.
        prices: of one call of each judge, ``"a=1,b=5"``: what ``priced`` goes by, and for the metrics.
        seed: of the rotation.
        names: of the judges, in logs and metrics; as given, if None.
        grader: ``model_graded_qa`` or ``model_graded_fact``.
        template: of the grader, as are all that follow.
        instructions: see the grader.
        grade_pattern: see the grader.
        include_history: see the grader.
        partial_credit: see the grader.

    Raises:
        InvalidInputError: no panel (one judge, one twice), a model that inspect does not know, or models
            mixed with scorers.
        UnknownNameError: no such rotation or grader, or a price of nobody.
    """
    arguments = _given(locals())
    if grader not in GRADERS:
        raise UnknownNameError("grader", grader, GRADERS)
    options = {
        option: value
        for option, value in arguments.items()
        if option in ("template", "instructions", "grade_pattern", "include_history", "partial_credit")
    }
    scorers = _scorers(judges)
    models: tuple[JudgeModel, ...] = ()
    if scorers is None:
        models = _renamed(read_judges(judges), names)
        panel = Panel(tuple(judge.name for judge in models), rotation, models=models)
        scorers = {
            judge.name: GRADERS[grader](model=judge.instance(DEFAULT_ROLE), model_role=None, **options)
            for judge in models
        }
    elif options or "grader" in arguments:
        raise InvalidInputError(
            f"{', '.join(options) or 'grader'} is for judges that are models; these are scorers, which have "
            "options of their own"
        )
    else:
        panel = _panel_of_scorers(scorers, names, rotation)
        scorers = dict(zip(panel.judges, scorers.values(), strict=True))
    turns = Turns(panel.at(prices), name="cyclic_judge", seed=check_seed(seed))
    return _rotating(turns, list(scorers.values()), cyclic_judge, arguments)


def rotate(
    scorers: Sequence[Scorer] | Mapping[str, Scorer],
    *,
    rotation: str = DEFAULT_ROTATION,
    names: Sequence[str] | None = None,
    prices: Prices | None = None,
    seed: int = 0,
) -> Scorer:
    """Scorers of one's own that take turns as judges: another one for each item and epoch.

    They must score on one scale. Their own metrics are left out, which would mix the judges; values by key
    get ours for each key.

    Args:
        scorers: the judges; a mapping names them.
        rotation: as in :func:`cyclic_judge`.
        names: of the judges, in logs and metrics; None for the scorers' own.
        prices: as in :func:`cyclic_judge`.
        seed: of the rotation.

    Raises:
        InvalidInputError: no panel, something that is no scorer, or one that rotates already.
        UnknownNameError: no such rotation, or a price of nobody.
    """
    arguments = _given(locals())
    found = _scorers(scorers)
    if found is None:
        raise InvalidInputError("rotate() takes scorers; for models use cyclic_judge()")
    panel = _panel_of_scorers(found, names, rotation).at(prices)
    turns = Turns(panel, name="rotate", seed=check_seed(seed))
    return _rotating(turns, list(found.values()), rotate, arguments)


def _rotating(
    turns: Turns, scorers: list[Scorer], factory: Callable[..., Scorer], arguments: dict[str, Any]
) -> Scorer:
    listen()
    panel = turns.panel
    turns.clustered = declared_cluster(scorers[0], None) is not None
    own = scorer_metrics(scorers[0])
    if panel.calls_per_generation > 1 and _by_key(own):
        raise InvalidInputError(
            f"the rotation {panel.rotation!r} averages the judges' readings, and these scorers return "
            "several values; use scorers of a single value, or rotation='cyclic'"
        )

    async def score(state: TaskState, target: Target) -> Score | None:
        before = scored_state.set(state)
        try:
            current, judges = await turns.next(state)
            ask = [partial(_ask, scorers[judge], state, target, current, judge) for judge in judges]
            if len(ask) == 1:
                return await _one(ask[0], panel.judges[judges[0]], state, current)
            return await _several(ask, [panel.judges[judge] for judge in judges], state, current)
        finally:
            scored_state.reset(before)

    def metric(key: str | None = None) -> Metric:
        return panel_estimates(
            judges=list(panel.judges),
            weighs_judges=panel.weighs_judges,
            cluster=declared_cluster(scorers[0], key),
        )

    info = RegistryInfo(
        type="scorer",
        name=registry_name(factory, factory.__name__),
        metadata={
            SCORER_METRICS: shaped(own, metric(), alone=True, by_key=lambda key: by_row(metric(key))),
            METADATA: LiveMetadata(turns.asked_for(), turns.told),
        },
    )
    registry_tag(factory, score, info, **arguments)
    mark_rotating(score, turns)
    return score


Ask = Callable[[], Awaitable[Score | None]]


async def _ask(
    scorer: Scorer, state: TaskState, target: Target, current: Pass | None, judge: int
) -> Score | None:
    value = float("nan")
    try:
        result = await scorer(state, target)
        if result is not None:
            value = number_of(result)
        return result
    finally:
        if current is not None:
            current.tell(str(state.sample_id), state.epoch, judge, value)


async def _one(ask: Ask, judge: str, state: TaskState, current: Pass | None) -> Score | None:
    try:
        result = await ask()
    except (LimitExceededError, TerminateSampleError):
        raise
    except Exception as ex:
        if current_run.get() is not None:
            raise  # the host retries samples, and knows which errors to bear
        # where a log is scored, it would throw away what all other judges said
        if current is not None:
            current.bear(judge, ex)
        result = Score.unscored(reason="grader_failed", explanation=f"judge {judge!r} failed: {said_by(ex)}")
    if result is None:
        return None
    ours = {"judge": judge, "epoch": state.epoch}
    return without_repeated(result, {**(result.metadata or {}), METADATA: ours})


async def _several(
    ask: Sequence[Ask], judges: Sequence[str], state: TaskState, current: Pass | None
) -> Score:
    results: dict[str, Score | None] = dict.fromkeys(judges)
    errors: dict[str, Exception] = {}

    async def run(judge: str, ask: Ask) -> None:
        try:
            results[judge] = await ask()
        except (LimitExceededError, TerminateSampleError):
            raise
        except Exception as ex:  # the other judges of this generation are paid for
            errors[judge] = ex
            if current is not None:
                current.bear(judge, ex)

    try:
        async with anyio.create_task_group() as group:
            for judge, call in zip(judges, ask, strict=True):
                group.start_soon(run, judge, call)
    except ExceptionGroup as ex:
        raise ex.exceptions[0] from None
    if len(errors) == len(judges) and current_run.get() is not None:
        raise next(iter(errors.values()))
    readings = {
        judge: None if result is None else score_to_float(result, judge, strict=True)
        for judge, result in results.items()
    }
    value = known_mean(readings.values())

    def said(judge: str) -> str | None:
        result = results[judge]
        return said_by(errors[judge]) if judge in errors else result.explanation if result else None

    found = Score(
        value=value,
        reason="grader_failed" if math.isnan(value) else None,
        answer=next((r.answer for r in results.values() if r is not None), None),
        explanation="\n\n".join(f"{judge}: {said(judge)}" for judge in results),
    )
    return without_repeated(
        found,
        {
            METADATA: {
                "epoch": state.epoch,
                "readings": {judge: None if value != value else value for judge, value in readings.items()},
            },
            "judges": {
                judge: result.model_dump(include={"value", "reason", "metadata"})
                for judge, result in results.items()
                if result is not None
            },
        },
    )


# what was given


def _scorers(judges: Any) -> dict[str, Scorer] | None:
    """By name, if they are scorers; None if they are something else."""
    if isinstance(judges, str) or not isinstance(judges, Mapping | Sequence):
        return None
    given = list(judges.values() if isinstance(judges, Mapping) else judges)
    are = [callable(judge) and not isinstance(judge, Model) for judge in given]
    if not any(are):
        return None
    if not all(are):
        raise InvalidInputError(
            "these judges are models and scorers; a model grades by model_graded_qa, so make it one: "
            "rotate([model_graded_qa(model='...'), my_scorer()])"
        )
    for judge in given:
        if not is_registry_object(judge, type="scorer"):
            raise InvalidInputError(
                f"judge {getattr(judge, '__name__', judge)!r} is no scorer; call a function decorated with "
                "inspect's @scorer"
            )
        if rotates(judge) is not None:
            raise InvalidInputError("one of these scorers rotates judges itself; list its judges here")
    if isinstance(judges, Mapping):
        return {str(name): judge for name, judge in judges.items()}
    return dict(zip(scorer_names(given), given, strict=True))


def _panel_of_scorers(scorers: Mapping[str, Scorer], names: Sequence[str] | None, rotation: str) -> Panel:
    if len(set(map(id, scorers.values()))) < len(scorers):
        raise InvalidInputError(
            "one scorer is listed more than once; list each judge once (asking a judge again is a repeat, "
            "not another judge)"
        )
    return Panel(tuple(_names(names, len(scorers)) or scorers), rotation)


def _renamed(judges: tuple[JudgeModel, ...], names: Sequence[str] | None) -> tuple[JudgeModel, ...]:
    given = _names(names, len(judges))
    if given is None:
        return judges
    return tuple(replace(judge, name=name) for name, judge in zip(given, judges, strict=True))


def _names(names: Sequence[str] | None, judges: int) -> list[str] | None:
    if names is None:
        return None
    given = names.split(",") if isinstance(names, str) else [str(name) for name in names]
    if len(given) != judges:
        raise InvalidInputError(f"there are {len(given)} names for {judges} judges; give each judge one")
    return given


def _by_key(metrics: MetricList | dict[str, Any]) -> bool:
    return isinstance(metrics, dict) or any(isinstance(metric, dict) for metric in metrics)


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are not the default: all the log needs."""
    defaults = {
        **{name: p.default for name, p in introspection.signature(rotate).parameters.items()},
        **{name: p.default for name, p in introspection.signature(cyclic_judge).parameters.items()},
    }
    return {name: value for name, value in arguments.items() if value is not defaults[name]}


# inspect's registry


def _registered(factory: Callable[..., Scorer]) -> None:
    known = list(introspection.signature(factory).parameters)

    def create(**arguments: Any) -> Scorer:
        with refusing():
            for option in arguments:
                if option not in known:
                    raise UnknownNameError(f"argument of {factory.__name__}", option, known)
            if known[0] not in arguments:
                raise InvalidInputError(f"which judges? Add -S {known[0]}=a,b,c")
            whole = {name: _whole_text(name, value) for name, value in arguments.items()}
            return factory(**whole)

    create.__doc__ = factory.__doc__
    create.__annotations__["return"] = Scorer
    scorer_register(create, name=registry_name(factory, factory.__name__), metadata={SCORER_METRICS: []})


def _whole_text(name: str, value: Any) -> Any:
    """The host's command line splits texts at commas."""
    if name in ("template", "instructions", "grade_pattern") and isinstance(value, list):
        return ",".join(str(part) for part in value)
    return value


_registered(cyclic_judge)
_registered(rotate)
