"""Rows of the inspect plugin cover the mean where the task's items are clustered."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from inspect_ai.scorer import SampleScore, Score
from tests.repeats.clustered_worlds import CASES, World, check_coverage

from evalbudget_inspect.repeats.metrics import budget_estimates

pytestmark = pytest.mark.claim


def rows_of(world: World) -> Mapping[str, float]:
    """As the host computes the metric of a finished run."""
    metric = budget_estimates(allocation="fixed", fixed_repeats=2, cluster="passage")
    scores = [
        SampleScore(
            score=Score(value=float(value), metadata={"evalbudget": {"epoch": epoch + 1}}),
            sample_id=item,
            sample_metadata={"passage": f"passage {world.cluster[item]}"},
            scorer="graded",
        )
        for item, row in enumerate(world.scores)
        for epoch, value in enumerate(row)
    ]
    found = metric(scores)  # type: ignore[arg-type, call-arg]
    assert isinstance(found, Mapping)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize(("case", "missed"), list(zip(CASES, (7, 1, 1), strict=True)))
def test_intervals_over_declared_clusters_cover(case: tuple[int, int], missed: int) -> None:
    check_coverage(rows_of, *case, missed)
