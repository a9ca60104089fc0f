"""What tells one model from another, whatever way it is asked: answers of two are never mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalbudget.secrets import cleaned, is_secret, without_secrets

# how fast and how often a model is asked, not which one: a run may go on with other values
_TRANSPORT = frozenset(
    {
        "batch_size",
        "device",
        "gpu_memory_utilization",
        "max_batch_size",
        "max_retries",
        "num_concurrent",
        "timeout",
        "verify_certificate",
    }
)
_ATTRIBUTES = ("model", "pretrained", "model_name", "base_url", "revision", "peft", "delta")


def telling_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the host's ``model_args`` that say which model it is; keys and passwords do not."""
    telling = (name for name in args if name not in _TRANSPORT and not is_secret(name))
    return {name: cleaned(args[name]) for name in telling}


def run_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """As :func:`telling_args`, of the only model of a run: it may go on with other random numbers."""
    return {name: value for name, value in telling_args(args).items() if name != "seed"}


def model_name(lm: Any) -> str:
    """What tells one model from another as far as the host's object knows."""
    lm = getattr(lm, "lm", lm)  # behind the host's cache
    parts = [type(lm).__name__]
    for attribute in _ATTRIBUTES:
        value = getattr(lm, attribute, None)
        if isinstance(value, str):
            parts.append(without_secrets(value))
    engine = getattr(lm, "model_args", None)  # of vLLM and SGLang, which keep nothing else
    if isinstance(engine, Mapping):
        own = {name: v for name, v in run_args(engine).items() if isinstance(v, str | int | float | bool)}
        parts += [f"{name}={own[name]}" for name in sorted(own)]
    lora = getattr(getattr(lm, "lora_request", None), "lora_path", None)
    if isinstance(lora, str):
        parts.append(lora)
    return " ".join(parts)


def short_name(lm: Any) -> str:
    """What people call the model: the name that was asked for, else that of the host's class."""
    lm = getattr(lm, "lm", lm)  # behind the host's cache
    engine = getattr(lm, "model_args", None)
    named = [getattr(lm, attribute, None) for attribute in ("pretrained", "model", "model_name")]
    if isinstance(engine, Mapping):
        named += [engine.get("pretrained"), engine.get("model")]
    return next((name for name in named if isinstance(name, str) and name), type(lm).__name__)


def is_api(lm: Any) -> bool:
    """Whether the host asks a server, with a seed in every payload."""
    from lm_eval.api.model import CachingLM  # takes seconds, and a mistyped flag is refused before

    if isinstance(lm, CachingLM):
        lm = lm.lm
    # by name, since importing the class needs packages that local models do without
    return any(base.__name__ == "TemplateAPI" for base in type(lm).__mro__)
