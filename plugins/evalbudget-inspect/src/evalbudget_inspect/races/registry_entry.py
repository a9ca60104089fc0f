"""``inspect eval evalbudget_inspect/race -T task=my.py -T budget=...``, and settings that race each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai import Task, task

from evalbudget.comparisons import GateConfig
from evalbudget.comparisons.flags import FLAGS as GATE_FLAGS
from evalbudget.errors import InvalidInputError, did_you_mean
from evalbudget.flags import names_of
from evalbudget.races import RaceConfig
from evalbudget.races.flags import FLAGS
from evalbudget_inspect.host.entries import MOST_ARMS, entry_of_arm, whole_paths
from evalbudget_inspect.host.private import parse_cli_args
from evalbudget_inspect.host.refusals import refusing
from evalbudget_inspect.host.tasks import arguments_of_task, load_one
from evalbudget_inspect.races.task import name_of_arm, one_arm
from evalbudget_inspect.repeats.registry_entry import split_arguments, take_spec

_OURS = ("task", *names_of(FLAGS))


@task(name="race")
def race_entry(**args: Any) -> Task:
    """A race of models on any task.

    Args:
        args: ``task`` (file, file@name or registered name) and ``budget`` or ``until_proved`` are needed;
            ``prices``, ``risk``, ``sampler``, ``score``, ``seed``, ``score_range``, ``lower_is_better``,
            ``missing``, ``batch``, ``margin`` and ``history`` as in :func:`~evalbudget_inspect.race`; options
            of the sampler as ``evalbudget.delta`` and the like. Everything else goes to the inner task; where
            a name clashes, prefix ours.
    """
    return _arm(None, args)


@task(name="gate")
def gate_entry(**args: Any) -> Task:
    """A gate: the candidate is evaluated on the task until it is decided whether it is worse than a baseline.

    Args:
        args: ``task`` (file, file@name or registered name), ``baseline`` (a log or a table) and ``margin``
            are needed; ``baseline_model``, ``level``, ``these_items``, ``cluster``, ``repeats``, ``budget``,
            ``prices``, ``risk``, ``score``, ``seed``, ``score_range``, ``lower_is_better``, ``missing`` and
            ``batch`` as after ``evalbudget inspect gate``. Everything else goes to the inner task; where a
            name clashes, prefix ours.
    """
    with refusing():
        ours, inner = split_arguments(args, ("task", *names_of(GATE_FLAGS)))
        spec = take_spec(ours)
        arguments = json.dumps([spec, inner], sort_keys=True, default=str)
        return one_arm(load_one(spec, inner), GateConfig.of(**whole_paths(ours)), arguments=arguments)


def _register(number: int) -> None:
    @task(name=entry_of_arm(number))
    def race_arm(**args: Any) -> Task:
        return _arm(number, args)


for _number in range(1, MOST_ARMS + 1):
    _register(_number)


def _arm(number: int | None, args: dict[str, Any]) -> Task:
    with refusing():
        ours, inner = split_arguments(args, _OURS)
        spec = take_spec(ours)
        arms = ours.pop("arms", None)
        config = RaceConfig.of(**whole_paths(ours))
        arguments = json.dumps([spec, inner, arms], sort_keys=True, default=str)
        if number is None:
            return one_arm(load_one(spec, inner), config, arguments=arguments)
        settings = [parse_arm(arm) for arm in arms or []]
        if number > len(settings):
            raise InvalidInputError(
                f"there is no setting number {number}: -T evalbudget.arms has {len(settings)}"
            )
        label, setting = settings[number - 1]
        _check_setting(label, setting, arguments_of_task(spec))
        loaded = load_one(spec, inner | setting)
        labels = {name_of_arm(loaded.name, each): each for each, _ in settings}
        return one_arm(loaded, config, base=loaded.name, label=label, labels=labels, arguments=arguments)


def _check_setting(label: str, setting: Mapping[str, Any], taken: Sequence[str] | None) -> None:
    """Refuse what the host would drop with a warning: the arm would be the task as it is, and race itself."""
    for name in setting:
        if taken is not None and name not in taken:
            hint = did_you_mean(name, taken)
            raise InvalidInputError(
                f"--arm {label}: the task takes no argument {name!r}; it takes {', '.join(taken) or 'none'}."
                + (hint if hint.startswith(" Did") else "")
            )


def parse_arm(text: str) -> tuple[str, dict[str, Any]]:
    """Read ``prompt=a.txt`` or ``prompt=a.txt,shots=3``: a setting's label and its task arguments.

    Raises:
        InvalidInputError: it is not NAME=VALUE.
    """
    setting: dict[str, Any] = {}
    for part in str(text).split(","):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise InvalidInputError(
                f"--arm {text!r} is not NAME=VALUE; give arguments of the task, for example prompt=short.txt"
            )
        setting |= parse_cli_args([f"{name.strip()}={value}"])  # a value means what it means after -T
    return str(text).strip(), setting


def check_arms(texts: Sequence[str]) -> None:
    """Refuse settings that cannot race.

    Raises:
        InvalidInputError: one that is not NAME=VALUE or stands twice, too many, or only one.
    """
    labels = [parse_arm(text)[0] for text in texts]
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidInputError(f"--arm {label} is given twice; every setting races once")
    if len(labels) > MOST_ARMS:
        raise InvalidInputError(
            f"{len(labels)} settings, and a race by command has {MOST_ARMS} at most; in Python "
            "race({name: task, ...}) takes any number"
        )
