"""What a race of ours said of itself in its logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.log import EvalLog

from evalbudget.backtest import RaceRecord
from evalbudget_inspect.host.how_bought import entries_of


def race_entry(header: EvalLog) -> Mapping[str, Any] | None:
    """Ours in the log of a model in a race or a gate that ended; None for any other log."""
    return next((entry for entry in entries_of(header) if "race" in entry and "arm" in entry), None)


def arm_of(header: EvalLog) -> str:
    """The model, or what a race calls it where settings race each other."""
    entry = race_entry(header)
    return header.eval.model if entry is None else str(entry["arm"])


def task_of(header: EvalLog) -> str:
    """The task, or the one that all settings of a race are versions of."""
    entry = race_entry(header)
    base = "" if entry is None else str(entry.get("race_id", "")).partition(" ")[2]
    return base or header.eval.task


def record_of(headers: Sequence[EvalLog], names: Sequence[str]) -> tuple[RaceRecord | None, list[str]]:
    """The verdict of the race or gate whose logs these are, and a note if it cannot be told.

    Args:
        headers: of the logs.
        names: of each log, the name of its model among the recorded scores.
    """
    races: dict[str, Mapping[str, Any]] = {}
    models: dict[str, str] = {}
    for header, name in zip(headers, names, strict=True):
        entry = race_entry(header)
        if entry is None:
            continue
        models[str(entry["arm"])] = name
        race = str(entry.get("race_id"))
        if race not in races or entry["race"]["spent"] >= races[race]["race"]["spent"]:
            races[race] = entry
    if len(races) > 1:
        note = (
            f"These are the logs of {len(races)} races; to see what one of them proved, give its logs only."
        )
        return None, [note]
    return next((RaceRecord.of(last["race"], models, last.get("gate")) for last in races.values()), None), []
