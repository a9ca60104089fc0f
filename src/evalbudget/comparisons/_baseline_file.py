"""The baseline as a small table of text that is kept in a repository."""

from __future__ import annotations

import csv
import json
from io import StringIO

from evalbudget.comparisons._baseline import Baseline
from evalbudget.recorded._declared import UNKNOWN
from evalbudget.spreadsheets import name_as_cell

_COLUMNS = (
    "item",
    "score",
    "model",
    "rater",
    "task",
    "version",
    "category",
    "digest",
    "better",
    "cluster",
    "not_applicable",
    "settings",
)


def as_csv(baseline: Baseline, cluster: str | None = None) -> str:
    """One row per item, in the order of their names; ``evalbudget`` reads it as any other table of scores.

    An item of which answers are missing has a row without a score, too, and so has one that no score applies
    to. The first row has the settings.

    Args:
        baseline: to write.
        cluster: what its clusters are called, which names their column; None for ``category``.
    """
    text = StringIO()
    columns = [name for name in _COLUMNS if name != "category" or baseline.clusters]
    columns = [name for name in columns if name not in ("task", "version") or baseline.task is not None]
    columns = [name for name in columns if name != "digest" or any(baseline.digests.values())]
    columns = [name for name in columns if name != "cluster" or baseline.sampled]
    columns = [name for name in columns if name != "not_applicable" or baseline.outside]
    way = {True: "lower", False: "higher", None: UNKNOWN if baseline.direction_note else ""}
    columns = [name for name in columns if name != "settings" or baseline.settings]
    better = way[baseline.lower_is_better]
    columns = [name for name in columns if name != "better" or better]
    settings = json.dumps(dict(baseline.settings), ensure_ascii=False)
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([name_as_cell(cluster or name) if name == "category" else name for name in columns])
    for item in sorted((*baseline.items, *baseline.outside), key=lambda item: (len(item), item)):
        known = {
            "item": item,
            "score": repr(baseline.scores[item]) if item in baseline.scores else "",
            "model": baseline.name,
            "rater": baseline.score,
            "task": baseline.task.name if baseline.task else "",
            "version": (baseline.task.version or "") if baseline.task else "",
            "category": baseline.clusters.get(item, ""),
            "digest": baseline.digests.get(item, ""),
            "cluster": baseline.sampled.get(item, ""),
            "better": better,
            "not_applicable": "true" if item in baseline.outside else "",
            "settings": settings,
        }
        known, settings = {name: name_as_cell(text) for name, text in known.items()}, ""
        rows.writerow([known[name] for name in columns])
        if item in baseline.scores and baseline.missing.get(item, 0.0) > 0.0:
            rows.writerow([(known | {"score": "", "settings": ""})[name] for name in columns])
    return text.getvalue()
