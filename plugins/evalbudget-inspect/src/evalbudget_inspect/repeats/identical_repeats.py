"""Repeats that cannot differ are money thrown away: say so, and name the flag."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from inspect_ai.log import EvalSpec
from inspect_ai.model import CachePolicy, GenerateConfig, ModelConfig

from evalbudget import Reading
from evalbudget.repeats import Repeat

_ENOUGH = 5  # items that must agree with themselves before it looks like more than chance


def identical_repeats(spec: EvalSpec, config: GenerateConfig, repeat: Repeat) -> list[str]:
    """Warnings from the configuration, before anything is spent."""
    warnings: list[str] = []
    if repeat is Repeat.GENERATION:
        if config.temperature == 0 and not spec.model_roles:
            warnings.append(
                f"model {spec.model} runs at temperature 0: repeats of its answers will hardly differ and "
                "buy nothing. Set --temperature above 0, or use --repeat judge with a judge that varies."
            )
        warnings += _cached("model", spec.model, config)
        return warnings
    for role, bound in (spec.model_roles or {}).items():
        for judge in bound if isinstance(bound, list) else [bound]:
            warnings += _judge(role, judge)
    return warnings


def _judge(role: str, judge: ModelConfig) -> list[str]:
    name = f"{role} {judge.model}"
    warnings = _cached("judge", name, judge.config)
    if judge.config.temperature == 0:
        warnings.append(
            f"judge {name} runs at temperature 0 and --repeat judge scores the same answer again: the "
            f"repeats would be identical. Give the role a temperature: --model-role "
            f'\'{role}={{"model": "{judge.model}", "temperature": 1}}\'.'
        )
    return warnings


def _cached(kind: str, name: str, config: GenerateConfig) -> list[str]:
    policy = getattr(config, "cache", None)
    if isinstance(policy, CachePolicy) and not policy.per_epoch:
        return [
            f"{kind} {name} caches its replies across epochs (per_epoch=False): repeats would be identical. "
            "Use CachePolicy(per_epoch=True) or drop --cache."
        ]
    return []


def repeats_were_identical(readings: Sequence[Reading], repeat: Repeat) -> str | None:
    """A warning if every item was read at least twice and always gave the same score, and items differ."""
    values: dict[int, list[float]] = defaultdict(list)
    for reading in readings:
        if reading.value is not None:
            values[reading.request.cell.item].append(reading.value)
    repeated = [v for v in values.values() if len(v) > 1]
    if len(repeated) < _ENOUGH or any(len(set(v)) > 1 for v in repeated):
        return None
    what = "judge" if repeat is Repeat.JUDGE else "model"
    return (
        f"all repeats of each of {len(repeated)} items gave the same score: the {what} seems deterministic "
        f"(temperature 0, fixed seed or cached replies?), and repeats buy nothing. Raise the {what}'s "
        "temperature, or evaluate every item once."
    )
