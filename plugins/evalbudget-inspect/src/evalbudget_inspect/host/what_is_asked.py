"""What a run asks of its model, as a short text that processes can compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalConfig, EvalSpec
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import Solver

from evalbudget_inspect.host.private import is_registry_object, registry_log_name, registry_params

_HOW_FAST = {"max_connections", "max_retries", "timeout", "attempt_timeout", "batch", "adaptive_connections"}
_WHERE = ("device", "devices", "base_url", "port")
_OF_THE_RUN = (
    "message_limit",
    "token_limit",
    "token_limit_type",
    "turn_limit",
    "time_limit",
    "working_limit",
    "cost_limit",
    "approval",
    "review",
    "sentinel",
)
"""Of the settings of a run, those that change what a model can do on a sample."""


def digest_of(
    spec: EvalSpec,
    config: GenerateConfig,
    solver: Solver | Sequence[Solver] | None,
    samples: Iterable[Sample],
) -> str:
    """Of all by which answers and scores may differ: items, solvers, scorers, models, limits.

    How fast and on which device it is asked is left out.
    """
    digest = hashlib.sha256()
    roles = {
        name: [[one.model, _config(one.config)] for one in (role if isinstance(role, list) else [role])]
        for name, role in (spec.model_roles or {}).items()
    }
    _add(
        digest,
        _config(config),
        {name: value for name, value in spec.model_args.items() if name not in _WHERE},
        roles,
        [spec.solver, spec.solver_args],
        _names(solver),
        [[scorer.name, scorer.options] for scorer in spec.scorers or []],
        settings_of_run(spec.config),
    )
    for sample in samples:
        text = (
            sample.input
            if isinstance(sample.input, str)
            else [[message.role, message.text] for message in sample.input]
        )
        _add(digest, sample.id, text, sample.target, sample.choices, sample.metadata)
    return digest.hexdigest()[:16]


def settings_of_run(config: EvalConfig) -> dict[str, Any]:
    """Limits and policies of a run that change what a model can do on a sample, those that it has."""
    found = config.model_dump(mode="json", include=set(_OF_THE_RUN), exclude_none=True)
    if (
        found.get("token_limit_type") == "all" or "token_limit" not in found
    ):  # what it is where it is not said
        found.pop("token_limit_type", None)
    return found


def _config(config: GenerateConfig) -> Any:
    return config.model_dump(mode="json", exclude_none=True, exclude=_HOW_FAST)


def _names(solver: Solver | Sequence[Solver] | None) -> list[Any]:
    """Names and arguments; of a function that the host does not know, its name."""
    if solver is None:
        return []
    if isinstance(solver, Sequence):  # a chain is one
        return [name for each in solver for name in _names(each)]
    if is_registry_object(solver):
        return [registry_log_name(solver), registry_params(solver)]
    return [getattr(solver, "__qualname__", type(solver).__qualname__)]


def _add(digest: Any, *told: object) -> None:
    text = json.dumps(told, sort_keys=True, default=lambda value: type(value).__qualname__)
    digest.update(text.encode())
