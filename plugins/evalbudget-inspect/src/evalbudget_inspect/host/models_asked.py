"""Which models a run will ask, as far as that is known before its first call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inspect_ai.log import EvalSpec
from inspect_ai.model import Model
from inspect_ai.scorer import Scorer

from evalbudget_inspect.host.private import registry_params

_HOLDS_MODELS = frozenset(
    each + many for each in ("grader", "judge", "model", "grader_model", "judge_model") for many in ("", "s")
)
"""Arguments of scorers that are named so hold names of models."""


def models_asked(spec: EvalSpec, scorers: Iterable[Scorer]) -> list[str]:
    """The evaluated model, those with a role, and those that scorers are given by name."""
    found = [spec.model]
    for role in (spec.model_roles or {}).values():
        found += [each.model for each in (role if isinstance(role, list) else [role])]
    found += models_of_scorers(scorers)
    return [name for name in dict.fromkeys(found) if name != "none/none"]


def models_of_scorers(scorers: Iterable[Scorer]) -> list[str]:
    """Models that scorers are given by name."""
    found: list[str] = []
    for scorer in scorers:
        for name, given in registry_params(scorer).items():
            if name in _HOLDS_MODELS:
                found += _names(given)
    return found


def _names(given: Any) -> list[str]:
    if isinstance(given, Model):
        return [str(given)]
    if isinstance(given, str):
        return [part.strip() for part in given.split(",") if "/" in part]
    if isinstance(given, Mapping):
        return [name for each in (*given, *given.values()) for name in _names(each)]
    if isinstance(given, list | tuple):
        return [name for each in given for name in _names(each)]
    return []
