"""Records of earlier runs of the same tasks in the same folder that a run does not go on with."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalbudget.errors import EvalbudgetError
from evalbudget_lm_eval.run.record import END, as_recorded, look

_NAMES = {"prompts": "prompts or settings of the task", "score": "the metric or filter that decides"}


def left_alone(path: Path, run: Mapping[str, Any], counted: Mapping[str, Any]) -> list[str]:
    """What to say before a run buys anew what an earlier one of these tasks and this model bought in part.

    Args:
        path: of this run's record, which does not exist yet; its name begins with those of the tasks.
        run: what must be the same for a record to be gone on with.
        counted: by what settings answers count as scores.

    Returns:
        A sentence about the newest of them; none if there are none.
    """
    tasks = path.name.rsplit("-", 2)[0]
    paths = path.parent.glob(f"{glob.escape(tasks)}-*{END}")
    wanted = as_recorded(run)
    for other in sorted((one for one in paths if one.exists()), key=_age, reverse=True):
        try:
            found, told = look(other)
            had, readings = found.settings, told.readings
            same = had["model"] == wanted["model"] and had["score"].keys() == wanted["score"].keys()
        except (EvalbudgetError, LookupError, TypeError, AttributeError):
            continue
        if not (readings and same):
            continue
        differ = [_NAMES.get(name, name) for name in _differing(had, wanted)]
        if found.counted not in (None, counted):
            differ.append("by what settings answers count (--score_range)")
        if not differ:
            return [
                f"{other} has {readings:,} answers of such a run with another budget or sampler, and this "
                f"run buys its own. To go on from them, give the same sampler and --journal {other}"
            ]
        return [
            f"{other} has {readings:,} answers to {tasks}, and this run buys all anew, since what differs "
            f"is: {', '.join(differ)}. If that was no intention, undo it and give the same command again"
        ]
    return []


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _differing(had: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in {**had, **wanted} if had.get(name) != wanted.get(name))
