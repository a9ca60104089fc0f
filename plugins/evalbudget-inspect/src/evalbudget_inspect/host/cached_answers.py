"""Answers that came out of the host's cache: nobody was asked for them now."""

from __future__ import annotations

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample


def is_from_cache(sample: EvalSample) -> bool:
    """Whether all that the evaluated model said in a sample came out of the cache."""
    calls = [event for event in sample.events if isinstance(event, ModelEvent) and event.role is None]
    return bool(calls) and all(call.cache == "read" for call in calls)
