"""What was evaluated beside the model: what tells two evaluations of one model apart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.log import EvalLog

from evalbudget.comparisons.flags import FLAGS as GATE_FLAGS
from evalbudget.flags import names_of
from evalbudget.races.flags import FLAGS as RACE_FLAGS
from evalbudget.secrets import cleaned, is_secret, without_secrets
from evalbudget_inspect.host.what_is_asked import settings_of_run
from evalbudget_inspect.repeats.flags import FLAGS
from evalbudget_inspect.repeats.registry_entry import split_arguments

_OURS = "evalbudget_inspect/"
_OUR_ARGUMENTS = ("task", "arms", *names_of(FLAGS), *names_of(RACE_FLAGS), *names_of(GATE_FLAGS))
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_OF_THE_CALL = frozenset(
    {
        "max_retries",
        "timeout",
        "attempt_timeout",
        "stream_idle_timeout",
        "max_connections",
        "adaptive_connections",
        "seed",
        "cache",
        "cache_prompt",
        "batch",
        "logprobs",
        "top_logprobs",
        "prompt_logprobs",
        "extra_headers",
    }
)
"""Of the settings of calls, those that do not change what a model is asked to do."""

_OF_THE_MACHINE = frozenset(
    {
        "client",
        "client_timeout",
        "timeout",
        "device",
        "device_map",
        "devices",
        "batch_size",
        "max_connections",
        "max_retries",
        "memoize",
        "seed",
        "port",
        "host",
        "num_gpus",
        "tensor_parallel_size",
        "gpu_memory_utilization",
        "custom_outputs",  # of the host's mock model: the answers themselves
    }
)
"""Of the arguments of models, those that say where and how fast it runs."""


def settings_of(headers: Sequence[EvalLog], judges: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Of each log, what its model was evaluated with.

    Arguments of a task that have the value that they have where nobody gave one are left out: a run of ours
    logs those only that were given. Options of a scorer are settings where logs that have it differ in them.

    Args:
        headers: of the logs, all of one task.
        judges: of each log, those that took turns, which are raters and no setting.
    """
    usual: dict[str, str] = {}
    for header in headers:
        if not _is_ours(header):
            passed = header.eval.task_args_passed
            usual |= {k: _text(v) for k, v in header.eval.task_args.items() if k not in passed}
    found = [_settings(header, usual, own) for header, own in zip(headers, judges, strict=True)]
    scorers = [_scorers(header, own) for header, own in zip(headers, judges, strict=True)]
    for name in dict.fromkeys(name for own in scorers for name in own):
        having = [own[name] for own in scorers if name in own]
        if any(options != having[0] for options in having):
            for settings, own in zip(found, scorers, strict=True):
                settings |= own.get(name, {})
    return found


def _scorers(header: EvalLog, judges: Sequence[str]) -> dict[str, dict[str, str]]:
    """Options of each scorer; of none where judges took turns, who are raters."""
    return {
        scorer.name: {
            f"{scorer.name}.{key}": _text(value)
            for key, value in (scorer.options or {}).items()
            if not is_secret(key)
        }
        for scorer in (header.eval.scorers or [] if not judges else [])
    }


def _settings(header: EvalLog, usual: Mapping[str, str], judges: Sequence[str]) -> dict[str, str]:
    spec = header.eval
    found = {"version": str(spec.task_version)}
    found["solver"] = " > ".join(step.solver for step in _steps(header))
    for step in _steps(header):
        own = {f"{step.solver}.{name}": value for name, value in step.params.items() if name != "cache"}
        found |= {name: _text(value) for name, value in own.items() if value is not None}
    config = _given(spec.model_generate_config) | _given(header.plan.config)
    found |= {name: _text(value) for name, value in config.items() if name not in _OF_THE_CALL}
    found |= {f"model.{name}": text for name, text in _model_arguments(spec.model_args).items()}
    if spec.model_base_url:
        found["model.base_url"] = _text(spec.model_base_url)
    for role, models in (spec.model_roles or {}).items():
        several = models if isinstance(models, list) else [models]
        if not {one.model for one in several} <= set(judges):
            found[role] = ", ".join(map(_role, several))
    found |= {name: _text(value) for name, value in settings_of_run(spec.config).items()}
    arguments = {name: _text(value) for name, value in _task_arguments(header).items()}
    given = {name: value for name, value in arguments.items() if usual.get(name) != value}
    # an argument may be called as another setting is
    found = {(f"task.{name}" if name in found else name): value for name, value in given.items()} | found
    return {name: value for name, value in found.items() if not is_secret(name)}


def _is_ours(header: EvalLog) -> bool:
    return str(getattr(header.eval, "task_registry_name", "") or "").startswith(_OURS)


def _task_arguments(header: EvalLog) -> dict[str, Any]:
    if not _is_ours(header):
        return header.eval.task_args
    return split_arguments(header.eval.task_args, _OUR_ARGUMENTS)[1]


def _steps(header: EvalLog) -> list[Any]:
    return [step for step in header.plan.steps if not step.solver.startswith(_OURS)]


def _given(config: Any) -> dict[str, Any]:
    return {name: value for name, value in config.model_dump().items() if value is not None}


def _model_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: _text(value)
        for name, value in arguments.items()
        if name not in _OF_THE_MACHINE and not is_secret(name)
    }


def _role(config: Any) -> str:
    own = {k: _text(v) for k, v in _given(config.config).items() if k not in _OF_THE_CALL}
    told = [f"{name}={value}" for name, value in (_model_arguments(config.args) | own).items()]
    return f"{config.model}({', '.join(told)})" if told else str(config.model)


def _text(value: Any) -> str:
    """A text of several words is a prompt, and may be about a password."""
    if not isinstance(value, str):
        value = json.dumps(cleaned(value), sort_keys=True, default=str, ensure_ascii=False)
    elif " " not in value:
        value = without_secrets(value)
    return _ADDRESS.sub("", value)
