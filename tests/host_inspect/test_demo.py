import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.host


def test_demo_spends_the_same_calls_and_cuts_the_expected_worst_item_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evalbudget", "demo", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plain, budgeted = json.loads(done.stdout)
    assert plain["sampler"] == "uniform"
    assert budgeted["sampler"] == "eb-bernstein"
    assert plain["calls"] == budgeted["calls"] == 800
    assert budgeted["expected_worst_item_error"] < 0.75 * plain["expected_worst_item_error"]
    assert budgeted["widest_half_width"] < plain["widest_half_width"]
    # "plain epochs would need" is about plain epochs themselves where plain epochs ran
    assert plain["uniform_calls_for_same_error"] == pytest.approx(800, rel=0.1)
    assert "$ evalbudget inspect eval story_rating.py" in done.stderr
