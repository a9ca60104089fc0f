"""The task's own scorers, but scores carry epoch and judge, results our metrics; judges may take turns."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from typing import Any, Protocol

from inspect_ai.scorer import Metric, Score, Scorer, Target
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError, RegistryInfo

from evalbudget.errors import InvalidInputError
from evalbudget.secrets import without_known
from evalbudget_inspect.host.bill import gave_up
from evalbudget_inspect.host.private import (
    SCORER_METRICS,
    registry_info,
    registry_log_name,
    registry_params,
    scorer_metrics,
    set_registry_info,
    set_registry_params,
    unique_scorer_name,
)
from evalbudget_inspect.host.private_registry import registry_lookup

METADATA = "evalbudget"
"""Key of our entries in a host's metadata."""

SHARE = "evalbudget_share"
"""Key in a sample's metadata: how its reading was bought, also for scores that it is given later."""

LABEL = "evalbudget_label"
"""Key in a score's metadata: it is a label of an audit, which only the answers that coins picked have."""

RACE_METRIC = "race"
"""Name of the metric that a race adds."""

MetricList = list[Metric | dict[str, list[Metric]]]
BeforeScoring = Callable[[TaskState], Awaitable[Mapping[str, int] | None]]
"""Finds how the reading about to be scored was bought; None if it is not to be scored at all."""


_ROTATES = "__evalbudget_rotates__"


def mark_rotating(scorer: Scorer, owner: object) -> None:
    """Note that a scorer has judges take turns by itself, and who deals them."""
    setattr(scorer, _ROTATES, owner)


def rotates(scorer: Scorer) -> Any:
    """Who deals the judges of a scorer that has them take turns; None for any other scorer."""
    return getattr(scorer, _ROTATES, None)


def own_metrics(scorer: Scorer, key: str | None = None) -> list[Metric]:
    """A scorer's own metrics, in order.

    Args:
        scorer: of the task.
        key: of a score that is a dict, for those of this key only; None for all.
    """
    metrics = scorer_metrics(scorer)
    found: list[Metric] = []
    for entry in [metrics] if isinstance(metrics, dict) else metrics:
        found += _of_key(entry, key) if isinstance(entry, dict) else [entry]
    return found


def _of_key(by_key: Mapping[str, Sequence[Metric]], key: str | None) -> list[Metric]:
    """As the host takes them: of what several patterns say of a key, the first of each name."""
    every = [m for name, own in by_key.items() if key is None or stands_for(name, key) for m in own]
    return every if key is None else list({registry_log_name(m): m for m in every[::-1]}.values())[::-1]


def narrowest(patterns: Iterable[str], key: str | None = None) -> list[str]:
    """Keys of a scorer's metrics, those before a pattern that stands for them, too.

    Args:
        patterns: the keys.
        key: only those that stand for it; None for all.
    """
    every = [name for name in patterns if key is None or stands_for(name, key)]
    return sorted(every, key=lambda own: -sum(stands_for(name, own) for name in every))


def decides(scorer: Scorer, own: str, key: str | None) -> bool:
    """Whether metrics under ``own`` are those of the key that decides; its own come before a pattern's."""
    metrics = scorer_metrics(scorer)
    entries = [metrics] if isinstance(metrics, dict) else [m for m in metrics if isinstance(m, dict)]
    return key is None or any(narrowest(entry, key)[:1] == [own] for entry in entries)


def stands_for(name: str, key: str) -> bool:
    """Whether metrics under a name are a key's; both may be patterns."""
    return name == key or fnmatch(key, name)


def has_accuracy(scorer: Scorer) -> bool:
    """Whether the host's ``accuracy`` is among a scorer's own metrics."""
    return any(registry_log_name(metric) == "accuracy" for metric in own_metrics(scorer))


def declared_clusters(scorer: Scorer, key: str | None = None) -> list[str]:
    """Fields by which a scorer's metrics put samples into clusters, as ``stderr(cluster="passage")`` does.

    Args:
        scorer: of the task.
        key: of a score that is a dict; None for any.
    """
    given = (registry_params(metric).get("cluster") for metric in own_metrics(scorer, key))
    return list(dict.fromkeys(field for field in given if isinstance(field, str) and field))


def declared_cluster(scorer: Scorer, key: str | None = None) -> str | None:
    """The first of these, by which intervals are; None where the scorer declares none."""
    return next(iter(declared_clusters(scorer, key)), None)


def require_key(scorer: Scorer, name: str, key: str | None, flag: str) -> None:
    """Refuse a dict score of which no entry is named, or one that its metrics do not have.

    Args:
        scorer: of the task.
        name: of it.
        key: the entry that was named; None for none.
        flag: by which it is named.

    Raises:
        InvalidInputError: as said, with the entries there are.
    """
    metrics = scorer_metrics(scorer)
    entries = [metrics] if isinstance(metrics, dict) else metrics
    keys = [k for entry in entries if isinstance(entry, dict) for k in entry]
    if keys and (key is None or not any(fnmatch(key, k) for k in keys)):
        named = "" if key is None else f" and {key!r} is none of them"
        raise InvalidInputError(
            f"scorer {name!r} returns several values{named}; name the one to go by: "
            + " or ".join(f"{flag} {name}.{'KEY' if k == '*' else k}" for k in keys)
        )


def parameters_of(scorer: Scorer) -> Mapping[str, inspect.Parameter]:
    """Of the function that made a scorer; none where it cannot be found."""
    made_by = registry_lookup("scorer", registry_info(scorer).name)
    return inspect.signature(made_by).parameters if callable(made_by) else {}


def role_of(scorer: Scorer) -> str | None:
    """The role that a scorer is made to ask, as ``model_graded_qa`` and its like tell by an argument."""
    given = registry_params(scorer)
    if given.get("model") is not None:
        return None
    parameter = parameters_of(scorer).get("model_role")
    role = given.get("model_role", None if parameter is None else parameter.default)
    role = role.get("name") if isinstance(role, Mapping) else getattr(role, "name", role)
    return role if isinstance(role, str) and role else None


_ASK_NOBODY = frozenset(
    f"inspect_ai/{name}"
    for name in ("answer", "choice", "exact", "f1", "includes", "match", "math", "pattern", "perplexity")
)
_GRADE = frozenset({"inspect_ai/model_graded_fact", "inspect_ai/model_graded_qa"})


def asks(scorer: Scorer, role: str) -> bool | None:
    """Whether a scorer asks for a model by this role; None if that is known only once it has scored.

    Of a scorer that the host does not bring along it is known from an argument ``model_role``, or from the
    role being named in its source; such a one may still ask for some answers only.
    """
    name = registry_info(scorer).name
    if name in _ASK_NOBODY:
        return False
    if role_of(scorer) == role:
        return True
    if name in _GRADE:
        return False
    try:
        source = inspect.getsource(registry_lookup("scorer", name))  # type: ignore[arg-type]
    except (OSError, TypeError):
        return None
    return True if re.search(rf"""(['"]){re.escape(role)}\1""", source) else None


def gives_numbers(scorer: Scorer) -> bool:
    """Whether its scores are known to be numbers or grades: the host brings it along."""
    return registry_info(scorer).name in _ASK_NOBODY | _GRADE


def in_place_of(base: Scorer, score: Scorer, **metadata: Any) -> Scorer:
    """A scorer under the name and with the arguments of another, and with its metrics."""
    info = registry_info(base)
    set_registry_info(
        score, RegistryInfo(type=info.type, name=info.name, metadata={**info.metadata, **metadata})
    )
    set_registry_params(score, registry_params(base))
    return score


class JudgeSeat(AbstractContextManager[Any], Protocol):
    """Entered while a scorer runs: the judge it finds under its role."""

    def entry(self) -> dict[str, Any]:
        """For the score's metadata."""
        ...


FindSeat = Callable[[TaskState], Awaitable[JudgeSeat | None]]


def scorer_names(scorers: Sequence[Scorer]) -> list[str]:
    """The names the host will give these scorers in its log."""
    names: list[str] = []
    for scorer in scorers:
        names.append(unique_scorer_name(scorer, names))
    return names


def with_metrics(
    base: Scorer,
    metric: Metric | None,
    *,
    metadata: dict[str, Any] | None,
    before: BeforeScoring,
    seat: FindSeat | None = None,
    alone: bool = False,
    by_key: Callable[[str], Sequence[Metric]] | None = None,
) -> Scorer:
    """The same scorer under the same name, with one more metric.

    Args:
        base: the task's scorer; it is not changed.
        metric: put before its metrics; None for no more.
        metadata: what the host is to log about the scorer under our key; None for what it logs anyway.
        before: awaited with the state about to be scored; what it finds is for the score's metadata.
        seat: finds the judge of the state about to be scored; None where judges do not take turns.
        alone: the metric takes the place of the scorer's own.
        by_key: what stands for the metric at a key, where the scorer's are by key of a dict score; None for
            itself.
    """

    async def score(state: TaskState, target: Target) -> Score | None:
        bought = await before(state)
        if bought is None:
            return None
        judge = None if seat is None else await seat(state)
        with nullcontext() if judge is None else judge:
            try:
                result = await base(state, target)
            except LimitExceededError:
                if gave_up():  # the host would take it for an error of the sample, or of the run
                    return None
                raise
        if result is None:
            return None
        own = (result.metadata or {}).get(METADATA) or {}  # of a scorer that rotates
        entry = ({} if judge is None else judge.entry()) | own | {"epoch": state.epoch}
        if bought:
            entry |= bought
            state.metadata[SHARE] = dict(bought)
        ours = {**(result.metadata or {}), METADATA: entry}
        return without_repeated(result, ours)

    changed: dict[str, Any] = {} if metadata is None else {METADATA: metadata}
    if metric is not None:
        own = registry_info(base).metadata[SCORER_METRICS]
        changed[SCORER_METRICS] = shaped(own, metric, alone=alone, by_key=by_key)
    return in_place_of(base, score, **changed)


def without_repeated(score: Score, metadata: dict[str, Any]) -> Score:
    """The score with this metadata, and without a key that a server repeated."""
    score = score.model_copy(update={"metadata": metadata})
    said = score.model_dump(include={"answer", "explanation", "metadata"})  # where graders keep messages
    left = without_known(said)
    return score if left == said else score.model_copy(update=left)


def shaped(
    metrics: MetricList | dict[str, list[Metric]],
    metric: Metric,
    *,
    alone: bool = False,
    by_key: Callable[[str], Sequence[Metric]] | None = None,
) -> MetricList | dict[str, list[Metric]]:
    """Metrics with ours first: where a scorer's metrics are by key of a dict score, ours are too.

    The host takes the first metric of a name that any pattern says of a key. So a key with metrics of its own
    comes before the patterns that stand for it, with all of the scorer's that the host would take for it.

    Args:
        metrics: a scorer's own.
        metric: put before them.
        alone: ours in place of them.
        by_key: what stands for ours at a key where metrics are by key; None for itself.
    """

    def group(entry: dict[str, list[Metric]], key: str) -> list[Metric]:
        ours = [metric] if by_key is None else list(by_key(key))
        return ours if alone else [*ours, *_of_key(entry, key)]

    def groups(entry: dict[str, list[Metric]]) -> dict[str, list[Metric]]:
        return {key: group(entry, key) for key in narrowest(entry)}

    if isinstance(metrics, dict):
        return groups(metrics)
    plain = [m for m in metrics if not isinstance(m, dict)]
    grouped: MetricList = [
        groups(m) if isinstance(m, dict) else m for m in metrics if isinstance(m, dict) or not alone
    ]
    return [metric, *grouped] if plain or not metrics else grouped
