"""What other commands make of the logs of a race."""

from __future__ import annotations

from pathlib import Path

from inspect_ai.model import get_model
from tests.host_inspect.race_tasks import run

from evalbudget.hooks._plugins import plugins
from evalbudget.report import report
from evalbudget.sampler import Allocation
from evalbudget_inspect import race
from evalbudget_inspect.demo.story_rating import story_rating


def test_a_plain_mean_of_a_race_is_refused(tmp_path: Path) -> None:
    """How many items a model was asked followed from its scores."""
    folder = tmp_path / "logs"
    roles = {"grader": get_model("simulated/judge", memoize=False)}
    raced = race(story_rating(12), budget=20, score_range="0..10", batch=2)
    logs = run(raced, ["simulated/a", "simulated/b"], folder, model_roles=roles)
    assert [log.status for log in logs] == ["success", "success"]
    recorded = plugins().open_scores(folder)
    assert recorded.purchases is not None
    assert {(p.allocation, p.fixed_repeats) for p in recorded.purchases} == {(Allocation.ADAPTIVE, 0)}
    assert recorded.race is not None
    (section, *_) = report(recorded).sections
    assert section.to_dict()["sentence"] == recorded.race.sentence
