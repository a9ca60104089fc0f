"""Logs say in which phase each cell was asked, whatever became of it, and a run goes on with these phases."""

from __future__ import annotations

from typing import Any

import pytest
from inspect_ai.log import EvalLog
from tests.claims import variant
from tests.host_inspect.worlds import retried

from evalbudget_inspect.host.scoring import SHARE

Cell = tuple[str, int]


def asked_in(log: EvalLog) -> dict[Cell, int]:
    """The phase of every cell, in the order in which they began; the first where the log does not say."""
    samples = sorted(log.samples or [], key=lambda sample: sample.started_at or "")
    return {(str(s.id), s.epoch): s.metadata.get(SHARE, {"phase": 0})["phase"] for s in samples}


@pytest.mark.parametrize("repeat", ["generation", variant("judge")])
def test_a_cell_that_failed_keeps_the_phase_it_was_asked_in(task_file: Any, run: Any, repeat: str) -> None:
    log = run(
        "evalbudget_inspect/budgeted",
        task_args={"task": str(task_file), "budget": 40, "repeat": repeat},
        judge={"fail": 0.2, "seed": 2},
        fail_on_error=False,
        max_samples=1,
    )
    before = asked_in(log)
    assert list(before.values()) == sorted(before.values())  # what failed was asked again in its phase
    failed = {(str(s.id), s.epoch) for s in log.samples if s.error is not None}
    assert max(before[cell] for cell in failed) > 0
    log.status = "error"
    after = asked_in(retried(log, max_samples=1, fail_on_error=False))
    assert after == before
