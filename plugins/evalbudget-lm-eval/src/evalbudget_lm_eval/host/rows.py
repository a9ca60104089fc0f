"""Our rows in the host's tables and files.

A row is the metric's name and the word that every host of evalbudget uses: ``M`` itself is the estimate, so
that the host's table, its files and whatever reads them lead with it; ``M_stderr``, ``M_lower`` and
``M_upper`` are its error and interval with documents and repeats random; ``M_full_lower`` and
``M_full_upper``, where a sample of the documents was read, hold what one answer of each would have averaged;
``M_repeats_stderr``, ``M_repeats_lower`` and ``M_repeats_upper`` are those of the same documents asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalbudget.repeats import COUNTS

ESTIMATE = {
    "": "estimate",
    "_stderr": "stderr",
    "_lower": "lower",
    "_upper": "upper",
}
REPEATS = {
    "_repeats": "estimate",  # the host's table shows an error only beside a value
    "_repeats_stderr": "repeats_stderr",
    "_repeats_lower": "repeats_lower",
    "_repeats_upper": "repeats_upper",
}
FULL = {
    "_full_lower": "full_lower",
    "_full_upper": "full_upper",
}
ALL_MODELS = {
    "_all_lower": "all_lower",
    "_all_upper": "all_upper",
}
_STANDARD = {*ESTIMATE.values(), *FULL.values(), *REPEATS.values(), *ALL_MODELS.values(), *COUNTS}
PLAIN = "_plain_mean"
"""The host's own mean, where readings that were bought because of earlier scores make it another number."""

UNKNOWN = "N/A"
"""What the host writes for a number that is not defined."""

_OF_THE_TASK = ("name", "alias", "sample_len", "sample_count")


def named_rows(score: str, rows: Mapping[str, float]) -> dict[str, Any]:
    """A metric's rows for the host's ``results``, by ``metric,filter``; what is not defined has none.

    Args:
        score: the host's key ``metric,filter``.
        rows: of :class:`~evalbudget.repeats.BenchmarkMean`.
    """
    metric, _, chosen = score.partition(",")
    if "estimate" not in rows:
        return {}
    again = REPEATS if rows.keys() & {"repeats_stderr", "repeats_lower"} else {}
    endings = ESTIMATE | FULL | again | ALL_MODELS
    endings |= {f"_{word}": word for word in rows if word not in _STANDARD}  # of further estimators
    known: dict[str, Any] = {"stderr": UNKNOWN, "repeats_stderr": UNKNOWN, **rows}
    return {f"{metric}{ending},{chosen}": known[word] for ending, word in endings.items() if word in known}


def lead_with(
    own: Mapping[str, Any], rows: Mapping[str, Any], *, without: Iterable[str] = ()
) -> dict[str, Any]:
    """A task's results with our rows before the host's, in place of those of the same names.

    Args:
        own: the host's results of the task.
        rows: ours.
        without: further rows of the host's that ours replace.
    """
    task = {name: own[name] for name in _OF_THE_TASK if name in own}
    gone = {*task, *rows, *without}
    return task | dict(rows) | {name: value for name, value in own.items() if name not in gone}
