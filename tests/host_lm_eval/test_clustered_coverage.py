"""Rows of the lm-eval plugin cover the mean where documents are clustered by a field."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from tests.repeats.clustered_worlds import CASES, World, check_coverage

from evalbudget import Allocation
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.rows import named_rows
from evalbudget_lm_eval.repeats.refusals import clusters_of
from evalbudget_lm_eval.repeats.task_estimates import totals_of

pytestmark = pytest.mark.claim

TASK, KEY = "numbers", "acc,none"


class Primed:
    """The one task of a run, and its documents."""

    names = (TASK,)

    def __init__(self, world: World) -> None:
        self.world = world

    def task(self, name: str) -> Any:
        return SimpleNamespace(config=SimpleNamespace(process_results=None))

    def documents(self, name: str) -> tuple[int, ...]:
        return tuple(range(len(self.world.cluster)))

    def doc(self, name: str, number: int) -> dict[str, str]:
        return {"passage": f"passage {self.world.cluster[number]}"}

    def values(self, name: str, key: str) -> list[float]:
        return []

    def numbers(self, name: str) -> dict[str, Any]:
        return {KEY: {}}


def rows_of(world: World) -> Mapping[str, float]:
    """As a run makes them of its readings for the host's results."""
    config = SimpleNamespace(cluster="passage", score_range=None, further=())
    primed = Primed(world)
    book = SimpleNamespace(
        primed=primed,
        config=config,
        sampler=SimpleNamespace(allocation=Allocation.FIXED, fixed_repeats=2),
        scores={TASK: KEY},
        strata=None,
        given_up=(),
        documents=[(TASK, document) for document in primed.documents(TASK)],
        clusters=clusters_of(config, primed),  # type: ignore[arg-type]
    )
    scored = {
        Asked(TASK, document, epoch): SimpleNamespace(value=float(value))
        for document, row in enumerate(world.scores)
        for epoch, value in enumerate(row)
    }
    account = SimpleNamespace(
        scored=scored, phases=dict.fromkeys(scored, float("nan")), readings=(), phase_sizes=()
    )
    totals = totals_of(book, account)[TASK]  # type: ignore[arg-type]
    found = named_rows(KEY, totals.mean.rows)
    return {"estimate": found["acc,none"], "lower": found["acc_lower,none"], "upper": found["acc_upper,none"]}


@pytest.mark.parametrize(("case", "missed"), list(zip(CASES, (7, 1, 1), strict=True)))
def test_intervals_over_clusters_of_documents_cover(case: tuple[int, int], missed: int) -> None:
    check_coverage(rows_of, *case, missed)
