import json
import re
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inspect_ai.log import read_eval_log

import warm
from evalbudget import Allocation
from evalbudget.cli.main import cli
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items, mean_over_sampled_items

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def test_examples_are_files_and_the_demos_task_is_one_of_them() -> None:
    assert not [path for path in (ROOT / "examples").rglob("*") if path.is_symlink()]
    task = ROOT / "plugins/evalbudget-inspect/src/evalbudget_inspect/demo/story_rating.py"
    assert (ROOT / "examples/story_rating.py").read_text() == task.read_text()


def test_demo_spends_the_same_calls_and_cuts_the_expected_worst_item_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = SimpleNamespace(Popen=partial(warm.Popen, host="inspect"), STDOUT=subprocess.STDOUT)
    monkeypatch.setattr("evalbudget_inspect.demo.command.subprocess", started)
    cli.main(["demo", "--json", "--keep", str(tmp_path)], standalone_mode=False)
    said = capsys.readouterr()
    plain, budgeted = json.loads(said.out)
    assert plain["sampler"] == "uniform"
    assert budgeted["sampler"] == "auto"
    assert plain["calls"] == budgeted["calls"] == 800
    assert budgeted["expected_worst_item_error"] < 0.75 * plain["expected_worst_item_error"]
    assert budgeted["expected_mean_error"] < 1.05 * plain["expected_mean_error"]
    assert budgeted["widest_half_width"] < plain["widest_half_width"]
    # "plain epochs would need" is about plain epochs themselves where plain epochs ran
    assert plain["uniform_calls_for_same_error"] == pytest.approx(800, rel=0.1)
    assert "$ evalbudget inspect eval story_rating.py" in said.err

    # the estimate that the host prints is the demo's, and its errors are no larger than those of plain epochs
    logs = {
        name: read_eval_log(str(next((tmp_path / name).rglob("*.eval"))), header_only=name == "budgeted")
        for name in ("plain-epochs", "budgeted")
    }
    assert logs["budgeted"].results is not None
    told = {
        name: metric.value
        for score in logs["budgeted"].results.scores
        for name, metric in score.metrics.items()
        if "estimate" in score.metrics
    }
    assert told["estimate"] == pytest.approx(budgeted["estimate"], abs=1e-12)
    scored = [
        (str(s.id), s.epoch, score.as_float())
        for s in logs["plain-epochs"].samples or []
        for score in (s.scores or {}).values()
    ]
    items = sorted({item for item, *_ in scored})
    equal = ItemReadings.of(
        [items.index(item) for item, *_ in scored],
        [epoch - 1 for _, epoch, _ in scored],
        [value for *_, value in scored],
    )
    fixed: dict[str, Any] = {"allocation": Allocation.FIXED}
    assert told["stderr"] <= 1.05 * mean_over_sampled_items(equal, **fixed).standard_error
    assert told["repeats_stderr"] <= 1.05 * mean_over_fixed_items(equal, **fixed).standard_error

    # the README shows what the demo prints
    readme = README.read_text()
    for label, form, attribute in (
        ("worst-item error, this run", "{:.2f}", "worst_item_error"),
        ("  mean of 100 simulated runs", "{:.2f}", "expected_worst_item_error"),
        ("benchmark mean's error, this run", "{:.3f}", "mean_error"),
        ("  mean of 100 simulated runs", "{:.3f}", "expected_mean_error"),
        ("widest item interval, 95%", "± {:.2f}", "widest_half_width"),
        ("true score inside", "{} of 40 items", "items_covered"),
    ):
        cells = [re.escape(form.format(row[attribute])) for row in (plain, budgeted)]
        assert re.search(rf"^{label} +{cells[0]} +{cells[1]}$", readme, re.MULTILINE), label
