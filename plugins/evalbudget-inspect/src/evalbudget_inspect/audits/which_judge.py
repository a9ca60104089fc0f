"""Which of a task's scorers is the judge that is audited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from inspect_ai.model import Model
from inspect_ai.scorer import Scorer

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.secrets import without_secrets
from evalbudget_inspect.host.private import ModelName, registry_info, registry_params
from evalbudget_inspect.host.scoring import parameters_of, require_key, role_of, scorer_names
from evalbudget_inspect.repeats.task import driving_score

_LONG = 60


def find_judge(wanted: str | None, scorers: Sequence[Scorer], roles: Collection[str]) -> str:
    """The judge as ``name`` or ``name.key``: the scorer of that name, or the one that asks that role.

    Args:
        wanted: scorer or model role; None for the first scorer.
        scorers: of the task, without the one that labels.
        roles: that models were given for.

    Raises:
        UnknownNameError: there is neither such a scorer nor such a role.
        InvalidInputError: several scorers may ask the role, or no entry of a dict score is named.
    """
    judge = _find(wanted, scorers, roles)
    pick(judge, scorers, "--judge")
    return judge


def pick(wanted: str, scorers: Sequence[Scorer], flag: str) -> tuple[str, str | None, Scorer]:
    """The scorer of that name, with the name and the entry of its dict score.

    Args:
        wanted: ``name`` or ``name.key``.
        scorers: of the task.
        flag: by which it is named.

    Raises:
        UnknownNameError: there is none.
        InvalidInputError: no entry of a dict score is named.
    """
    names = scorer_names(scorers)
    name, key = driving_score(wanted, names)
    scorer = scorers[names.index(name)]
    require_key(scorer, name, key, flag)
    return name, key, scorer


def _find(wanted: str | None, scorers: Sequence[Scorer], roles: Collection[str]) -> str:
    names = scorer_names(scorers)
    try:
        driving_score(wanted, names)
        return names[0] if wanted is None else wanted
    except UnknownNameError:
        asking = [role_of(scorer) for scorer in scorers]
        told = sorted({*roles, *(role for role in asking if role is not None)})
        if wanted not in told:
            raise UnknownNameError("judge", str(wanted), [*names, *told]) from None
    # a scorer may ask a role without telling; with only one there is nothing to guess
    found = [name for name, role in zip(names, asking, strict=True) if role == wanted] or names
    if len(found) > 1:
        raise InvalidInputError(
            f"role {wanted!r} may be asked by {len(found)} scorers of the task; name the scorer: --judge "
            f"{' or --judge '.join(found)}"
        )
    return found[0]


def judge_identity(
    judge: str, scorers: Sequence[Scorer], version: int | str, roles: Mapping[str, str]
) -> dict[str, Any]:
    """What the host knows of a judge: two that differ in any of it are two judges.

    A scorer that tells which role it asks is known by the model of that role, any other by those of all.

    Args:
        judge: as :func:`find_judge` names it.
        scorers: of the task.
        version: of the task: what its author raises when a prompt changes.
        roles: names of the models that were given for them.
    """
    _, _, scorer = pick(judge, scorers, "--judge")
    arguments = _text_defaults(scorer) | registry_params(scorer)
    known = {"scorer": judge, "registered name": registry_info(scorer).name, "task version": version}
    known |= {f"argument {name}": _short(name, v) for name, v in arguments.items() if v is not None}
    role = role_of(scorer)
    if role is not None:
        asked = {role: roles[role]} if role in roles else {}
    else:
        asked = {} if registry_params(scorer).get("model") is not None else dict(roles)
    return known | {f"model of role {name}": model for name, model in asked.items()}


def models_of_roles(given: Mapping[str, Any]) -> dict[str, str]:
    """Names of the models that roles were given, as the host has them or as they are typed."""
    return {role: _model_name(model) for role, model in given.items()}


def _model_name(model: Any) -> str:
    if isinstance(model, list | tuple):
        return ",".join(map(_model_name, model))
    if isinstance(model, Mapping):
        return _model_name(model.get("model"))
    return str(ModelName(model)) if isinstance(model, Model | str) else str(model)


def _short(name: str, value: Any) -> str:
    """Long texts, which are prompts, as their beginning and a checksum; keys and passwords are left out."""
    whole = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    text = without_secrets(f"{name}={whole}").removeprefix(f"{name}=")
    if len(whole) <= _LONG:
        return text
    return f"{' '.join(text[:24].split())}... sha256 {hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _text_defaults(scorer: Scorer) -> dict[str, str]:
    return {
        name: parameter.default
        for name, parameter in parameters_of(scorer).items()
        if isinstance(parameter.default, str)
    }
