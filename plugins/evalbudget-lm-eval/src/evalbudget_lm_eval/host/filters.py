"""Which of several answers a task's filters score."""

from __future__ import annotations

from typing import Any

ONE_OF_EACH = frozenset(
    {"lowercase", "map", "multi_choice_regex", "regex", "regex_pos", "remove_whitespace", "uppercase"}
)
"""Filters that change every answer, and choose none."""


def keeps_first(task: Any) -> bool:
    """Whether all filters of a task score the first of several answers alone, whatever the others are."""
    listed = getattr(getattr(task, "config", None), "filter_list", None)
    names = ([str(step.get("function")) for step in one.get("filter") or ()] for one in listed or ())
    chosen = (next((name for name in own if name not in ONE_OF_EACH), None) for own in names)
    return all(name == "take_first" for name in chosen)
