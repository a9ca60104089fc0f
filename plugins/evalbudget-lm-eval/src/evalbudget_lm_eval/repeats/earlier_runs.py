"""Records of earlier runs in the same folder: which one a run goes on with, and which it leaves alone."""

from __future__ import annotations

import glob
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalbudget import Budget
from evalbudget.errors import EvalbudgetError
from evalbudget.run import is_held
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.repeats.purchase import counted_by
from evalbudget_lm_eval.run.record import END, FOLDER, as_recorded, digest_of, look, path_named

_DECIDE = ("sampler", "seed", "options", "strata", "until", "variances")
_NAMES = {"prompts": "prompts or settings of the task", "score": "the metric or filter that decides"}


def record_path(config: Config, primed: PrimedTasks, run: Mapping[str, Any], folder: Path) -> Path:
    """The record the user named, or the one of this run in ``folder``.

    The same command goes on with the record of a run that did not end, also with a larger budget, and finds
    that of one that did: its results may never have reached the disk.
    """
    if config.journal is not None:
        return path_named(config.journal, config.store)
    documents = ((name, doc) for name in primed.names for doc in primed.documents(name))
    budget = config.resolve_budget(sum(primed.cost(*document) for document in documents))
    arguments = {name: getattr(config, name) for name in _DECIDE}
    stem = re.sub(r"[^\w.-]+", "-", "+".join(primed.names))[:60].strip("-.") or "run"
    digest = digest_of({**arguments, "unit": budget.unit, "run": run})
    paths = (folder / FOLDER / f"{stem}-{digest}-{number}{END}" for number in itertools.count(1))
    return next(path for path in paths if config.store is not None or _goes_on(path, config, budget))


def _goes_on(path: Path, config: Config, budget: Budget) -> bool:
    """Whether a run may begin there, or go on: answers count alike, and the budget has paid for them."""
    if not path.exists():
        return True
    found, told, _ = look(path)
    if found.counted not in (None, counted_by(config)) or told.spent > budget.amount:
        return False
    # not with one that runs beside this with another budget; one that has just begun says none yet
    return told.cap in (0.0, budget.amount) or not is_held(path)


def left_alone(path: Path, run: Mapping[str, Any], counted: Mapping[str, Any]) -> list[str]:
    """What to say before a run buys anew what an earlier one of these tasks and this model bought in part.

    Args:
        path: of this run's record, which does not exist yet; its name begins with those of the tasks.
        run: what must be the same for a record to be gone on with.
        counted: by what settings answers count as scores.

    Returns:
        A sentence about the newest of them, of such a run if there is one; none if there are none.
    """
    of_others: list[str] = []
    tasks = path.name.rsplit("-", 2)[0]
    paths = path.parent.glob(f"{glob.escape(tasks)}-*{END}")
    wanted = as_recorded(run)
    for other in sorted((one for one in paths if one.exists()), key=_age, reverse=True):
        try:
            found, told, _ = look(other)
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
                f"{other} has {readings:,} answers of such a run with another sampler, seed or kind of "
                "budget, or a larger one, or of one that runs now, and this run buys its own. To go on from "
                "them, give what it had, once it has ended"
            ]
        of_others = of_others or [
            f"{other} has {readings:,} answers to {tasks}, and this run buys all anew, since what differs "
            f"is: {', '.join(differ)}. If that was no intention, undo it and give the same command again"
        ]
    return of_others


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _differing(had: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in {**had, **wanted} if had.get(name) != wanted.get(name))
