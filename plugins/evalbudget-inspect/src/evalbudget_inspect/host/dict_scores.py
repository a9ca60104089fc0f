"""Rows for scores that are dicts: one metric each, because the host names them by metric and not by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Value
from inspect_ai.util import RegistryInfo

from evalbudget_inspect.host.private import (
    metric_create,
    registry_info,
    registry_log_name,
    registry_params,
    registry_tag,
)
from evalbudget_inspect.host.private_registry import registry_add

PREFIX = "eb/"
"""Short, for the host puts four tables side by side; also an entry point, so that logs find the metrics."""

ROWS = ("estimate", "stderr", "lower", "upper")
"""Of a dict's entry; those of the repeats stand in the metadata and in the summary."""

GROUPS = ("bias", "variance", "share")
"""Rows of a panel that share the beginning of their names: the host puts it before each."""


def by_row(metric: Metric) -> list[Metric]:
    """The same metric as one metric for each of its main rows, called ``eb/estimate`` and so on.

    Args:
        metric: returns rows; registered, so that a log can make it again.
    """
    last: list[tuple[list[SampleScore], Value]] = []
    arguments = {"of": registry_log_name(metric), **registry_params(metric)}
    groups = GROUPS if "judges" in arguments else ()
    return [_row(metric, row, last, arguments) for row in (*ROWS, *groups)]


def _row(
    metric: Metric, row: str, last: list[tuple[list[SampleScore], Value]], arguments: Mapping[str, Any]
) -> Metric:
    def compute(scores: list[SampleScore]) -> Value:
        # the host asks for one row after the other, with the same list
        if not last or last[0][0] is not scores:
            last[:] = [(scores, metric(scores))]  # type: ignore[arg-type]
        found = last[0][1] if isinstance(last[0][1], Mapping) else {}
        if row in GROUPS:
            start = f"{row}_"
            return {name.removeprefix(start): v for name, v in found.items() if name.startswith(start)}
        value = found.get(row)
        return {} if value is None else value

    info = RegistryInfo(type="metric", name=f"{PREFIX}{row}", metadata=registry_info(metric).metadata)
    registry_tag(_factory(row), compute, info, **arguments)
    return compute


def _factory(row: str) -> Any:
    def make(of: str, **arguments: Any) -> Metric:
        metric = metric_create(of, **arguments)
        return _row(metric, row, [], {"of": of, **arguments})

    return make


def register() -> None:
    """Let the host find the rows by name."""
    for row in (*ROWS, *GROUPS):
        registry_add(_factory(row), RegistryInfo(type="metric", name=f"{PREFIX}{row}", metadata={}))


register()
