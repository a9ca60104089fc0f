"""What people labelled is taken by the host's own scorer of scores from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from inspect_ai import score
from tests.audits.store.audits import audit
from tests.host_inspect.race_tasks import model, quiz, run

from evalbudget_labelling import export

scorers = pytest.importorskip("inspect_ai.scorer")


def test_a_log_gets_the_labels(tmp_path: Path) -> None:
    precomputed = getattr(scorers, "precomputed_scores", None)
    if precomputed is None:
        pytest.skip("this version of inspect has no precomputed_scores")
    (log,) = run(quiz(3), model("old", 0.9), tmp_path / "logs")
    assert log.samples is not None
    items = tuple(str(sample.id) for sample in log.samples)
    with audit(tmp_path / "a.audit", contexts=3, items=items) as store:
        store.labels.add(0, 7, "ann")
        ratings = tmp_path / "ratings.json"
        ratings.write_text(export(store, "inspect-scores", model="alpha"))
    scored = score(log, precomputed(str(ratings)), action="append", display="none")
    assert scored.samples is not None
    found = [(sample.scores or {}).get("precomputed_scores") for sample in scored.samples]
    assert [None if each is None else each.value for each in found] == [7.0, None, None]
    assert found[0] is not None
    assert found[0].explanation == "labelled by ann"
