"""How the runs of this process ended, as inspect's logs say: its exit code is 0 whatever happened to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inspect_ai.log import EvalLog

from evalbudget.exit_codes import ExitCode
from evalbudget.shown import shown

_LONGEST = 300
_CODES = {"success": ExitCode.DONE, "cancelled": ExitCode.INTERRUPTED}


@dataclass(frozen=True, slots=True)
class Ending:
    """Of one task with one model.

    Attributes:
        told: what there is to say of it; empty where it ended well.
        exit_code: of a command that asked for it.
    """

    told: str
    exit_code: ExitCode


_endings: dict[str, Ending] = {}


def note_endings(logs: Iterable[EvalLog]) -> None:
    """Remember how these ended; a task that is tried again counts with its last attempt."""
    for log in logs:
        told = ""
        if log.status != "success":
            told = f"{log.eval.task} with {log.eval.model} ended with status {log.status}"
            if log.error is not None:
                told += f": {' '.join(log.error.message.split())[:_LONGEST]}"
            elif log.results is not None and log.results.completed_samples < log.results.total_samples:
                lost = log.results.total_samples - log.results.completed_samples
                told += f": {lost:,} of {log.results.total_samples:,} samples ended in an error"
        _endings[log.eval.task_id] = Ending(shown(told), _CODES.get(log.status, ExitCode.FAILED))


def take_endings() -> list[Ending]:
    """All that were noted since the last call."""
    taken = list(_endings.values())
    _endings.clear()
    return taken
