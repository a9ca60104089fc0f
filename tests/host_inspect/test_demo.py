import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

README = Path(__file__).resolve().parents[2] / "README.md"


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

    # the README shows what the demo prints
    readme = README.read_text()
    for label, form, attribute in (
        ("worst-item error, this run", "{:.2f}", "worst_item_error"),
        ("  mean of 100 simulated runs", "{:.2f}", "expected_worst_item_error"),
        ("widest item interval, 95%", "± {:.2f}", "widest_half_width"),
        ("true score inside", "{} of 40 items", "items_covered"),
    ):
        cells = [re.escape(form.format(row[attribute])) for row in (plain, budgeted)]
        assert re.search(rf"^{label} +{cells[0]} +{cells[1]}$", readme, re.MULTILINE), label
