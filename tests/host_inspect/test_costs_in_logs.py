"""What readings cost is read from logs: by the bill beside them, by providers, or by the host's prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai.model import ModelCost, ModelInfo, get_model, set_model_info
from tests.host_inspect.paid_model import Till, judged_by, paid_model, self_rated, tills

from evalbudget.budget import Unit, shown_amount
from evalbudget.cli.main import cli
from evalbudget.prices import Price
from evalbudget_inspect import budgeted
from evalbudget_inspect.reading.open_logs import open_scores


@pytest.fixture
def till() -> Till:
    tills["here"] = Till(Price(input=10.0, output=100.0))
    return tills["here"]


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.yaml"
    path.write_text("paid/*: {input: 10, output: 100}\n")
    return str(path)


def test_a_run_in_money_is_replayed_in_money(
    make_task: Any, run: Any, till: Till, prices: str, tmp_path: Path
) -> None:
    task = make_task(scorer=judged_by(lambda: get_model(role="grader")))
    run(
        budgeted(task, budget="$0.2", prices=prices, sampler="uniform"),
        model=paid_model("w", "here"),
        model_roles={"grader": paid_model("j", "here")},
        max_samples=4,
    )
    recorded = open_scores(tmp_path / "logs")
    assert recorded is not None
    assert recorded.costs is not None
    read = ~np.isnan(recorded.scores)
    assert np.isfinite(recorded.costs[read]).all()
    assert 0.9 * till.total < recorded.costs[read].sum() <= till.total + 1e-9
    command = ["backtest", "repeats", str(tmp_path / "logs"), "--budget", "$0.2", "--sampler", "uniform"]
    command += ["--seeds", "2"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output


def test_usage_counts_at_the_prices_that_the_host_knows(
    make_task: Any, run: Any, till: Till, tmp_path: Path
) -> None:
    log = run(make_task(scorer=self_rated()), model=paid_model("unknown", "here"), model_roles={}, epochs=2)
    assert log.status == "success"
    recorded = open_scores(tmp_path / "logs")
    assert recorded is not None
    assert recorded.costs is None
    cost = ModelCost(input=10, output=100, input_cache_read=1, input_cache_write=12)
    set_model_info("paid/unknown", ModelInfo(cost=cost))
    recorded = open_scores(tmp_path / "logs")
    assert recorded is not None
    assert recorded.costs is not None
    assert np.nansum(recorded.costs) == pytest.approx(till.total)


def test_a_plan_takes_the_prices_of_its_pilot(
    make_task: Any, run: Any, till: Till, prices: str, tmp_path: Path
) -> None:
    task = make_task(scorer=judged_by(lambda: get_model(role="grader")))
    judges = [paid_model(name, "here") for name in ("j", "k")]
    run(
        budgeted(task, budget="$0.15", prices=prices, judges=judges, sampler="uniform"),
        model=paid_model("w", "here"),
        model_roles={"grader": judges[0]},
        max_samples=4,
    )
    recorded = open_scores(tmp_path / "logs")
    assert recorded is not None
    assert recorded.costs is not None
    assert len(recorded.raters) == 2
    done = CliRunner().invoke(cli, ["plan", str(tmp_path / "logs"), "--usd", "50"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    mean = np.nanmean(recorded.costs[0, :, 0])
    assert "its answer included: " in said
    assert f"{recorded.raters[0]} {shown_amount(float(mean), Unit.USD)}" in said
    given = CliRunner().invoke(
        cli, ["plan", str(tmp_path / "logs"), "--usd", "50", "--generation-price", "1"]
    )
    assert "its answer included" not in given.output
