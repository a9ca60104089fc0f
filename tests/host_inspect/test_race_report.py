"""What other commands make of the logs of a race."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as host_eval
from inspect_ai.model import get_model

from evalbudget.errors import InvalidInferenceError
from evalbudget.hooks._plugins import plugins
from evalbudget.report import report
from evalbudget.sampler import Allocation
from evalbudget_inspect import race
from evalbudget_inspect.demo.story_rating import story_rating


def test_a_plain_mean_of_a_race_is_refused(tmp_path: Path) -> None:
    """How many items a model was asked followed from its scores."""
    folder = str(tmp_path / "logs")
    options: dict[str, Any] = {
        "model": ["simulated/a", "simulated/b"],
        "model_roles": {"grader": get_model("simulated/judge", memoize=False)},
        "display": "none",
        "log_dir": folder,
        "log_realtime": False,
        "ctl_server": False,
    }
    logs = host_eval(race(story_rating(12), budget=20, score_range="0..10", batch=2), **options)
    assert [log.status for log in logs] == ["success", "success"]
    recorded = plugins().open_scores(Path(folder))
    assert recorded.purchases is not None
    assert {(p.allocation, p.fixed_repeats) for p in recorded.purchases} == {(Allocation.ADAPTIVE, 0)}
    with pytest.raises(InvalidInferenceError, match="a race has a leaderboard of its own"):
        report(recorded)
