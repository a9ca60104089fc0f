"""Reducers of epochs other than the mean: another quantity than ours, and not one for uneven counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import wraps

import numpy as np
from inspect_ai.scorer import Score, ScoreReducer

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.private import reducer_log_names, registry_lookup

logger = shown_logger(__name__)

_MEAN = "mean"

MEANS = ("accuracy", "mean")
"""Metrics of the host that are the mean of an item's scores, over items."""

_SPREADS = ("stderr", "bootstrap_stderr", "std", "var", "ci", "ci_wilson")


def of_the_task(rows: Iterable[str]) -> list[str]:
    """Of a scorer's metrics, those that make what only the task knows of the scores; none beside a mean.

    Args:
        rows: their names, as a log has them.
    """
    names = [(row, row.rpartition("/")[2]) for row in rows]
    if any(name in MEANS for _, name in names):
        return []
    return [row for row, name in names if name not in _SPREADS]


def other_than_mean(names: Iterable[str] | None) -> list[str]:
    """Of the reducers that a log names; the host takes the mean where it names none."""
    return [name for name in names or () if name != _MEAN]


def names_of(reducers: ScoreReducer | Sequence[ScoreReducer] | None) -> list[str]:
    """As a log names them."""
    given = list(reducers) if isinstance(reducers, Sequence) else reducers
    return reducer_log_names(given) or []


def refuse_as_score(wanted: str | None, declared: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a reducer where the score that decides is named.

    Args:
        wanted: what was named.
        declared: reducers of the task, as a log names them.
        names: of the task's scorers, which come before reducers of the same name.

    Raises:
        InvalidInputError: as said.
    """
    if wanted is None or wanted in names:
        return
    last = wanted.replace("/", ".").replace("[", ".").rstrip("]").rpartition(".")[2]
    if any(wanted.startswith(f"{name}.") for name in names) and last not in declared:
        return
    if last in declared or registry_lookup("score_reducer", last) is not None:
        raise InvalidInputError(
            f"--score {wanted}: {last} is a reducer, which makes one score of all readings of an item, and "
            "the sampler goes by single readings: the score that decides is their mean. Name a scorer "
            f"({', '.join(names)}); what {last} makes of the readings stays in inspect's own rows"
        )


def said_before(reducers: Sequence[str]) -> str:
    """What is to be said of them before anything is bought."""
    return (
        f"the task reduces epochs by {' and '.join(reducers)}; the budget is spent by the mean of an item's "
        "readings, and `estimate` is of that mean: another quantity. What inspect's own rows say depends on "
        "how often each item is asked"
    )


def said_of_rows(
    score: str,
    rows: Sequence[str],
    reducers: Sequence[str],
    allocation: Allocation,
    table: ItemReadings,
) -> list[str]:
    """Of the host's own rows of a scorer, where they are not what the estimate is of.

    Args:
        score: whose rows they are.
        rows: their names; where there are none, nothing is said.
        reducers: of the run, as its log names them; empty for the mean.
        allocation: how the sampler's counts depend on scores.
        table: what was read.
    """
    read = table.counts[table.counts > 0]
    if not rows or not read.size:
        return []
    least, most = int(read.min()), int(read.max())
    times = f"{least} to {most}" if least < most else f"{least}"
    noun, are = ("row", "is") if len(rows) == 1 else ("rows", "are")
    which = f"inspect's own {noun} of {score} ({', '.join(rows)})"
    found = []
    for name in other_than_mean(reducers):
        grows = ", and one that depends on how often an item was asked" if least < most else ""
        found.append(
            f"{which} {are} by reducer {name} of the {times} readings of each item: another quantity than "
            f"the estimate, which is of their mean{grows}."
        )
    by_scores = allocation is not Allocation.FIXED and least < most and table.may_follow_scores
    if by_scores and (_MEAN in reducers or not reducers):
        found.append(
            f"{which} {are} of plain means, which are biased where counts ({times} per item) depend on "
            "scores; the estimate is not."
        )
    if own := of_the_task(rows):
        found.append(
            f"inspect's own {'row' if len(own) == 1 else 'rows'} of {score} ({', '.join(own)}) "
            f"{'is a metric' if len(own) == 1 else 'are metrics'} of the task's own; the estimate is of the "
            "mean score."
        )
    if "stderr" in rows and np.ptp(table.value) == 0.0:
        found.append(f"inspect's own stderr of {score} is 0 since no score differs, which proves nothing.")
    return [sentence[0].upper() + sentence[1:] for sentence in found]


def spare(reducer: ScoreReducer) -> ScoreReducer:
    """The same reducer, but what it cannot reduce is unscored: an error would cost the run its results."""
    if hasattr(reducer, _SPARED):
        return reducer
    told: list[bool] = []

    @wraps(reducer)
    def reduce(scores: list[Score]) -> Score:
        try:
            return reducer(scores)
        except Exception as ex:  # whatever a task's own function raises
            if not told:
                logger.warning(
                    f"reducer {names_of(reducer)[0]!r} failed on {len(scores)} readings of an item "
                    f"({type(ex).__name__}: {ex}): inspect's own rows lack such items; the estimate has them"
                )
            told.append(True)
            return Score(value=float("nan"))

    setattr(reduce, _SPARED, True)
    return reduce


_SPARED = "__evalbudget_spared__"
