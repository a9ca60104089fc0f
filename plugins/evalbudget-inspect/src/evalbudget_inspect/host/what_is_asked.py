"""What a run asks of its model, as a short text that processes can compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSpec
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import Solver

from evalbudget_inspect.host.private import is_registry_object, registry_log_name, registry_params

_HOW_FAST = {"max_connections", "max_retries", "timeout", "attempt_timeout", "batch", "adaptive_connections"}
_WHERE = ("device", "devices", "base_url", "port")
_LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")


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
        {name: getattr(spec.config, name, None) for name in _LIMITS},
    )
    for sample in samples:
        text = (
            sample.input
            if isinstance(sample.input, str)
            else [[message.role, message.text] for message in sample.input]
        )
        _add(digest, sample.id, text, sample.target, sample.choices, sample.metadata)
    return digest.hexdigest()[:16]


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
