import json
import re
import subprocess
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from inspect_ai.log import read_eval_log

import warm
from evalbudget import Allocation, Design
from evalbudget.cli.main import cli
from evalbudget.repeats import RepeatConfig
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.backtest import against_truth
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items, mean_over_sampled_items
from evalbudget_inspect.demo import command as demo
from evalbudget_inspect.demo.story_rating import story_rating
from evalbudget_inspect.providers.reply import AskedCell
from evalbudget_inspect.providers.simulated import SimulatedJudge

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def test_examples_are_files_and_the_demos_task_is_one_of_them() -> None:
    assert not [path for path in (ROOT / "examples").rglob("*") if path.is_symlink()]
    task = ROOT / "plugins/evalbudget-inspect/src/evalbudget_inspect/demo/story_rating.py"
    assert (ROOT / "examples/story_rating.py").read_text() == task.read_text()


CALLS = demo.ITEMS * demo.REPEATS


@cache
def bought(sampler: str, calls: int) -> ItemReadings:
    """What a run of the demo that makes so many calls, one at a time, brings; without a host."""
    samples = story_rating().dataset
    judge = SimulatedJudge("judge")
    order = sorted(range(len(samples)), key=lambda item: str(samples[item].id))  # as the demo has them
    chooser = RepeatConfig(calls, sampler).make_sampler(Design.of_items(len(samples)), budget=calls)

    def rating(item: int, epoch: int) -> float:
        told = judge._rating(AskedCell(str(samples[item].id), epoch + 1, dict(samples[item].metadata or {})))
        assert told is not None
        return float(f"{told:g}")  # as the reply says it

    book = ArrayBook(chooser)
    while book.n < calls and (asked := book.ask(calls - book.n)) is not None:
        book.tell(np.array(list(map(rating, asked.item.tolist(), asked.epoch.tolist()))))
    found = book.bought()
    place = np.array([order.index(item) for item in range(len(samples))])
    return ItemReadings.of(
        place[found.item], found.epoch, found.value, n_items=len(samples), phase=found.phase
    )


def against(sampler: str, calls: int) -> dict[str, Any]:
    """The demo's figures of such a run."""
    samples = sorted(story_rating().dataset, key=lambda sample: str(sample.id))
    truth, sd = (
        np.array([float((sample.metadata or {})[name]) for sample in samples])
        for name in ("simulated_mean", "simulated_sd")
    )
    return asdict(against_truth(sampler, bought(sampler, calls), truth=truth, sd=sd))


def test_demo_prints_what_two_real_runs_bought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a tenth of the calls: what comes of any number of them is computed below, as it is here."""
    started = SimpleNamespace(Popen=partial(warm.Popen, host="inspect"), STDOUT=subprocess.STDOUT)
    monkeypatch.setattr(demo, "subprocess", started)
    monkeypatch.setattr(demo, "REPEATS", demo.REPEATS // 10)
    cli.main(["demo", "--json", "--keep", str(tmp_path)], standalone_mode=False)
    said = capsys.readouterr()
    plain, budgeted = json.loads(said.out)
    assert plain["calls"] == budgeted["calls"] == CALLS // 10
    assert plain == pytest.approx(against("uniform", CALLS // 10), abs=1e-12)
    assert budgeted == pytest.approx(against("auto", CALLS // 10), abs=1e-12)
    assert "$ evalbudget inspect eval story_rating.py" in said.err

    # the estimate that the host prints is the demo's
    (log,) = (tmp_path / "budgeted").rglob("*.eval")
    results = read_eval_log(str(log), header_only=True).results
    assert results is not None
    told = {
        name: metric.value
        for score in results.scores
        for name, metric in score.metrics.items()
        if "estimate" in score.metrics
    }
    assert told["estimate"] == pytest.approx(budgeted["estimate"], abs=1e-12)
    readings, phased = bought("auto", CALLS // 10), {"allocation": Allocation.PHASED}
    for name, estimate in (
        ("stderr", mean_over_sampled_items(readings, **phased)),
        ("repeats_stderr", mean_over_fixed_items(readings, **phased)),
    ):
        assert told[name] == pytest.approx(estimate.standard_error, abs=1e-12)


def test_the_same_calls_cut_the_expected_worst_item_error() -> None:
    plain, budgeted = against("uniform", CALLS), against("auto", CALLS)
    assert plain["calls"] == budgeted["calls"] == 800
    assert budgeted["expected_worst_item_error"] < 0.75 * plain["expected_worst_item_error"]
    assert budgeted["expected_mean_error"] < 1.05 * plain["expected_mean_error"]
    assert budgeted["widest_half_width"] < plain["widest_half_width"]
    # "plain epochs would need" is about plain epochs themselves where plain epochs ran
    assert plain["uniform_calls_for_same_error"] == pytest.approx(800, rel=0.1)

    # errors are no larger than those of plain epochs
    ours, equal = bought("auto", CALLS), bought("uniform", CALLS)
    phased, fixed = {"allocation": Allocation.PHASED}, {"allocation": Allocation.FIXED}
    for mean in (mean_over_sampled_items, mean_over_fixed_items):
        assert mean(ours, **phased).standard_error <= 1.05 * mean(equal, **fixed).standard_error

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
