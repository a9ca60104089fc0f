"""Settings that race each other: the host's options that an arm may have of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lm_eval.utils import simple_parse_args_string

from evalbudget.errors import InvalidInputError, UnknownNameError
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
            return name, checked(json.loads(rest), f"--arm {name}")
        except ValueError as ex:
            raise InvalidInputError(f"--arm {name} is no JSON object ({ex})") from ex
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise InvalidInputError(f"--arm {text!r} is not KEY=VALUE,KEY=VALUE; for example {_EXAMPLE}")
        option, dot, inner = key.partition(".")
        read = next(iter(simple_parse_args_string(f"x={value}").values()), value)
        if dot:
            given.setdefault(option, {})[inner] = read
        else:
            given[option] = read
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
    return dict(given)


def every_pair(models: Sequence[Arm], settings: Sequence[Setting]) -> list[Arm]:
    """Each model with each setting; named by the setting alone where there is one model.

    Args:
        models: with their arguments.
        settings: none, to leave the models as they are.
    """
    if not settings:
        return list(models)
    return [
        replace(model, name=name if len(models) == 1 else f"{model.name} {name}", settings=setting)
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
    return {**options, **own}
