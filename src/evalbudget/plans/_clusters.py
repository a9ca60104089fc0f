"""Clusters of a pilot's items, as its source declares them: what plans count with, and say of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.plans._result import say_below
from evalbudget.recorded._scores import RecordedScores
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._cluster_excess import ClusterExcess
from evalbudget.tables import PrintableTable


def clusters_of(recorded: RecordedScores, means: FloatArray, source: str) -> ClusterExcess | None:
    """What the pilot's clusters add to the error of a mean; None where its source declares none.

    Args:
        recorded: the pilot.
        means: of its items, shape (items,); nan where there is no score. They differ.
        source: names the pilot, for messages.

    Raises:
        InvalidInferenceError: one cluster alone, which says nothing of others.
    """
    declared = recorded.declared
    if declared is None or declared.clusters is None:
        return None
    codes = np.unique(np.asarray(declared.clusters), return_inverse=True)[1].astype(np.int64)
    if np.unique(codes[~np.isnan(means)]).size < 2:
        raise InvalidInferenceError(
            f"all items of {source} are of one cluster ({declared.cluster}), so it does not show how "
            "clusters differ; give a pilot with several"
        )
    return ClusterExcess.of(means, codes)


def cluster_entries(recorded: RecordedScores, found: ClusterExcess | None) -> dict[str, Any]:
    """What JSON says of it."""
    if found is None or recorded.declared is None:
        return {}
    field = recorded.declared.cluster
    return {"cluster": field, "clusters": found.clusters, "design_effect": found.effect}


def say_clusters(table: PrintableTable, recorded: RecordedScores, found: ClusterExcess | None) -> None:
    """That items come in clusters, below the plans."""
    if found is None or recorded.declared is None:
        return
    say_below(
        table,
        f"Items come in clusters ({recorded.declared.cluster}): {found.clusters:,} in the pilot, and as "
        f"large in what is planned. The variance of the mean is {found.effect:.3g} times that of "
        "independent items.",
    )
