"""Settings that race each other: the host's options that an arm may have of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lm_eval.utils import simple_parse_args_string

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.secrets import quoted
from evalbudget.untrusted import parsed_json
from evalbudget_lm_eval.arms.arm import Arm

TASK = "tasks"
_GENERATION = "gen_kwargs"
SETTINGS = (
    TASK,
    "num_fewshot",
    "system_instruction",
    "apply_chat_template",
    "fewshot_as_multiturn",
    _GENERATION,
)
"""Names of the host's options that may differ between arms."""

_EXAMPLE = "--arm num_fewshot=0 --arm num_fewshot=5,gen_kwargs.temperature=0.7"

Setting = tuple[str, Mapping[str, Any]]
"""A name for all tables, and the options."""


def is_setting(text: str) -> bool:
    """Whether ``--arm`` names options, and not a model."""
    head, _, rest = (part.strip() for part in text.partition("="))
    return head.partition(".")[0] in SETTINGS or rest.startswith("{")


def parse_setting(text: str) -> Setting:
    """Read ``num_fewshot=5,gen_kwargs.temperature=0.7``, or ``NAME={"system_instruction": "Be brief."}``.

    Raises:
        InvalidInputError: it cannot be read.
        UnknownNameError: an option that arms cannot have of their own.
    """
    name, _, rest = (part.strip() for part in text.partition("="))
    if rest.startswith("{"):
        try:
            return name, checked(parsed_json(rest), f"--arm {name}")
        except ValueError as ex:
            raise InvalidInputError(f"--arm {name} is no JSON object ({ex})") from ex
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise InvalidInputError(
                f"--arm {quoted(text)} is not KEY=VALUE,KEY=VALUE; for example {_EXAMPLE}"
            )
        option, dot, inner = key.partition(".")
        read = next(iter(simple_parse_args_string(f"x={value}").values()), value)
        own = given.setdefault(option, {}) if dot else given
        if not isinstance(own, dict) or (inner if dot else option) in own:
            raise InvalidInputError(f"--arm {quoted(text)} has {key} twice; give each setting once")
        own[inner if dot else option] = read
    return text.strip(), checked(given, f"--arm {text.strip()}")


def checked(given: Any, where: str) -> Mapping[str, Any]:
    """The options, if arms can have them of their own.

    Raises:
        InvalidInputError: they are no mapping, or gen_kwargs is none.
        UnknownNameError: one that arms cannot have of their own.
    """
    if not isinstance(given, Mapping) or not given:
        raise InvalidInputError(f"{where} has no settings; for example {_EXAMPLE}")
    for option in given:
        if option not in SETTINGS:
            raise UnknownNameError(f"setting of {where}:", str(option), SETTINGS)
    if not isinstance(given.get(_GENERATION, {}), Mapping):
        raise InvalidInputError(
            f"{where}: {_GENERATION} is {given[_GENERATION]!r}; write {_GENERATION}.temperature=0.7"
        )
    shots, task = given.get("num_fewshot", 0), given.get(TASK, "")
    if not isinstance(shots, int) or isinstance(shots, bool) or shots < 0:
        raise InvalidInputError(f"{where}: num_fewshot is {shots!r}; it is a whole number, 0 or more")
    if not isinstance(task, str):
        raise InvalidInputError(f"{where}: {TASK} is {task!r}; name one task of lm-eval")
    return dict(given)


def every_pair(models: Sequence[Arm], settings: Sequence[Setting], *, named: bool = True) -> list[Arm]:
    """Each model with each setting.

    Args:
        models: with their arguments.
        settings: none, to leave the models as they are.
        named: whether the user named the models, whose names then come before those of the settings.
    """
    if not settings:
        return list(models)
    return [
        replace(model, name=f"{model.name} {name}" if named else name, settings=setting)
        for model in models
        for name, setting in settings
    ]


def with_setting(options: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """The host's options of one arm.

    Args:
        options: of ``simple_evaluate``, of all arms.
        setting: of this one.
    """
    own = {name: value for name, value in setting.items() if name != TASK}
    if _GENERATION in own:
        shared = options.get(_GENERATION) or {}
        shared = simple_parse_args_string(shared) if isinstance(shared, str) else shared
        own[_GENERATION] = {**shared, **own[_GENERATION]}
    if own.get("apply_chat_template") and options.get("fewshot_as_multiturn") is None:
        own.setdefault("fewshot_as_multiturn", True)  # as the host's command does
    return {**options, **own}
