"""Arms: what is compared, models with their arguments and settings, under names of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import lm_eval.models  # noqa: F401  (the host's models register themselves)
from lm_eval.api.model import LM
from lm_eval.api.registry import get_model, model_registry
from lm_eval.models.api_models import TemplateAPI
from lm_eval.utils import sanitize_model_name, simple_parse_args_string

from evalbudget.errors import InvalidInputError, JournalError, UnknownNameError
from evalbudget.secrets import keep_out, quoted
from evalbudget.untrusted import parsed_json
from evalbudget_lm_eval.host.identity import is_api, telling_args
from evalbudget_lm_eval.run.record import Record

_EXAMPLE = "--arm small=hf:pretrained=gpt2 --arm chat=local-chat-completions:model=m,base_url=URL"


@dataclass(frozen=True)
class Arm:
    """One of the models compared.

    Attributes:
        name: in all tables.
        model: the host's name of the kind of model, or a live model object.
        args: the host's ``model_args``.
        settings: options of the host that this arm has of its own.
    """

    name: str
    model: str | LM
    args: Mapping[str, Any] = field(default_factory=dict, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Whether the caller made the model, and keeps it."""
        return not isinstance(self.model, str)

    @property
    def description(self) -> dict[str, Any]:
        """Kind, telling arguments and settings as JSON values, to know whether two arms are the same."""
        kind = self.model if isinstance(self.model, str) else type(self.model).__name__
        told: dict[str, Any] = {"model": kind, "args": telling_args(self.args)}
        if self.settings:
            told["settings"] = self.settings
        described: dict[str, Any] = json.loads(json.dumps(told, default=str))
        return described


def parse_arm(text: str) -> Arm:
    """Read ``name=model:args``, as ``small=hf:pretrained=gpt2,dtype=float32``.

    Raises:
        InvalidInputError: the name, the model or the arguments are missing or cannot be read.
    """
    name, equals, what = (part.strip() for part in text.partition("="))
    model, _, given = what.partition(":")
    if not equals or not name or not model or ":" in name:
        raise InvalidInputError(f"--arm {quoted(text)} is not NAME=MODEL:ARGS; for example {_EXAMPLE}")
    return Arm(name, model.strip(), parse_args(given, f"--arm {name}"))


def parse_args(text: str, where: str) -> dict[str, Any]:
    """The host's ``model_args``: ``key=value,key=value``, or a JSON object.

    Raises:
        InvalidInputError: they cannot be read.
    """
    text = text.strip()
    try:
        if text.startswith("{"):
            return dict(parsed_json(text))
        for part in filter(None, text.split(",")):
            if "=" not in part:
                raise ValueError(f"{part!r} is not KEY=VALUE")
        return dict(simple_parse_args_string(text))
    except (ValueError, TypeError) as ex:
        raise InvalidInputError(
            f"{where}: the arguments {quoted(text)} cannot be read ({ex}); write "
            "key=value,key=value or a JSON object"
        ) from None


def arms_of(given: Mapping[str, Any]) -> list[Arm]:
    """Arms from a mapping: ``"model:args"``, ``(model, args)`` or a live model object by name."""
    arms = []
    for name, what in given.items():
        if isinstance(what, LM):
            arms.append(Arm(name, what))
        elif isinstance(what, str):
            model, _, text = what.partition(":")
            arms.append(Arm(name, model.strip(), parse_args(text, f"arm {name}")))
        elif isinstance(what, tuple) and len(what) == 2:
            model, args = what
            parsed = parse_args(args, f"arm {name}") if isinstance(args, str) else dict(args or {})
            arms.append(Arm(name, str(model), parsed))
        else:
            raise InvalidInputError(
                f'arm {name!r} is {quoted(what)}; give "model:args", (model, args) or a model object of the '
                "host"
            )
    return arms


def check_arms(arms: Sequence[Arm], least: int = 2) -> None:
    """Refuse arms that cannot be compared.

    Args:
        arms: the models.
        least: so many there must be.

    Raises:
        InvalidInputError: there are fewer, a name given twice, two that are the same, or a live model twice.
        UnknownNameError: the host has no such kind of model.
    """
    if len(arms) < least:
        only = f"there is only {arms[0].name}" if arms else "there is none"
        needed = "a race needs two arms or more" if least > 1 else "an audit needs an arm"
        raise InvalidInputError(f"{needed}, and {only}; for example {_EXAMPLE}")
    folders: dict[str, str] = {}
    described: dict[str, str] = {}
    for arm in arms:
        keep_out(arm.args)  # its server may repeat a key
        if isinstance(arm.model, str) and arm.model not in model_registry:
            raise UnknownNameError(f"model of arm {arm.name}:", arm.model, model_registry.keys())
        folder = folder_of(arm.name)
        if folder in folders:
            same = "" if folders[folder] == arm.name else f" (in file names so is {folders[folder]!r})"
            raise InvalidInputError(
                f"two arms are named {arm.name!r}{same}; give every arm a name of its own"
            )
        folders[folder] = arm.name
        live = f"{id(arm.model)} " if arm.is_live else ""
        key = live + json.dumps(arm.description, sort_keys=True)
        if key in described:
            raise InvalidInputError(
                f"arms {described[key]} and {arm.name} are the same model with the same arguments, so "
                "nothing tells them apart; drop one (to ask one model repeatedly: evalbudget lm-eval run)"
            )
        described[key] = arm.name


def folder_of(name: str) -> str:
    """The name of an arm as part of a path, as the host makes it."""
    return str(sanitize_model_name(name))


def check_known(arms: Sequence[Arm], record: Record, anew: str = "another --journal") -> None:
    """Refuse arms that were other models when the record began.

    Args:
        arms: the models.
        record: of a race or an audit.
        anew: by which one begins anew.

    Raises:
        JournalError: an arm has another model or other arguments.
    """
    for arm in arms:
        before = record.of(arm.name).model
        if before is not None and before != arm.description:
            raise JournalError(
                f"arm {arm.name} was {before} when {record.where} was begun, and is {arm.description} now; "
                f"give it a name of its own, or begin anew with {anew}"
            )


def asks_server(arm: Arm) -> bool:
    """Whether its answers are computed elsewhere, so that others can be asked meanwhile."""
    return is_api(arm.model) if arm.is_live else is_api_arm(arm)


def is_api_arm(arm: Arm) -> bool:
    """Whether nothing is loaded here for it: it asks a server, or the caller keeps its model."""
    if arm.is_live:
        return True
    try:
        return issubclass(get_model(arm.model), TemplateAPI)
    except Exception:  # of a package that is missing: loading the model will say so
        return False
