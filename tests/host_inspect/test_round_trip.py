"""A run's own rows come back from its log, by whatever reads it, to the last digits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import get_model
from tests.host_inspect.log_worlds import read
from tests.host_inspect.worlds import rows_of

import evalbudget
from evalbudget.report import report
from evalbudget_inspect import budgeted
from evalbudget_inspect.demo.story_rating import story_rating

PRICES = "simulated/*: {call: 0.001, max_output: 60}\n"
KINDS: dict[str, dict[str, Any]] = {
    "auto": {"budget": 60},
    "adaptive": {"budget": 60, "sampler": "eb-bernstein", "hold_out": False},
    "uniform": {"budget": "6x", "sampler": "uniform"},
    "judge again": {"budget": 60, "repeat": "judge"},
    "judges": {"budget": 72, "judges": ("x", "y")},
    "judges of one answer": {"budget": 72, "judges": ("x", "y"), "repeat": "judge"},
    "money": {"budget": "$0.09"},
    "a sample of items": {"budget": 7},
    "a declared range": {"budget": 60, "score_range": "1..10"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_gives_its_own_rows(kind: str, run: Any, tmp_path: Path) -> None:
    options = dict(KINDS[kind])
    if "judges" in options:
        means = {"x": 3.0, "y": 6.0}
        options["judges"] = [get_model(f"simulated/{n}", mean=means[n], memoize=False) for n in ("x", "y")]
    if str(options["budget"]).startswith("$"):
        (tmp_path / "prices.yaml").write_text(PRICES)
        options["prices"] = str(tmp_path / "prices.yaml")
    log = run(budgeted(story_rating(10), **options))
    assert log.status == "success"
    told = rows_of(log, "judge_rating")
    recorded = read(tmp_path / "logs")
    (row,) = report(recorded)["leaderboard"].rows
    assert math.isfinite(told["estimate"])
    found = {"estimate": row.estimate, "stderr": row.standard_error, "lower": row.low, "upper": row.high}
    assert found == {name: pytest.approx(told[name], rel=1e-12, abs=1e-12) for name in found}
    (frame,) = evalbudget.read(tmp_path / "logs").models().to_dict("records")
    assert {name: frame[name] for name in found} == pytest.approx(found, rel=1e-12, abs=1e-12)
