from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
import pytest
from tests.cli.commands import refused, typed

from evalbudget.backtest import RecordedScores, backtest_rotation
from evalbudget.errors import BudgetError, InvalidInferenceError, InvalidInputError
from evalbudget.judges.schedules import Cyclic, Single
from evalbudget.judges.schedules._schedule import ScheduleOptions

run = typed("backtest", "judges")


def panel(seed: int = 0, models: int = 2) -> RecordedScores:
    rng = np.random.default_rng(seed)
    x = (
        5
        + rng.normal(size=(models, 80, 1, 1))
        + np.array([1.5, 0.0, -0.5, -1.0])[:, None]
        + rng.normal(0, 0.5, size=(models, 80, 4, 2))
    )
    x[:, 3, 1] = np.nan
    names = tuple(f"i{i}" for i in range(80))
    models_ = tuple(f"m{i}" for i in range(models))
    return RecordedScores(x, models_, names, ("a", "b", "c", "d"), categories=tuple("xy" * 40))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "panel.npz"
    panel().save(path)
    return path


def test_rows_have_the_keys_and_order_asked_for(file: Path) -> None:
    rotations = ["all", "random", "cyclic", "priced", "single"]
    result = run(file, "--rotation", ",".join(rotations), "--budget", "2x,100", "--seeds", "5", "--json", "-")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(r["rotation"], r["budget"]) for r in rows] == [(n, b) for b in (160, 100) for n in rotations]
    for key in ("bias", "variance", "rmse", "coverage", "half_width", "seeds"):
        assert all(key in row for row in rows)
    assert {row["calls"] for row in rows} == {160.0, 100.0}


def test_table_and_prices(file: Path) -> None:
    options = ("--model", "m1", "--judge-prices", "a=1,b=2,c=5,d=30", "--seeds", "3")
    result = run(file, "--rotation", "cyclic,priced", *options)
    assert result.exit_code == 0, result.output
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert "1 models, 4 judges, 3 seeds" in " ".join(result.stdout.split())


def test_rotation_removes_the_judges_bias_and_a_single_judge_misses() -> None:
    found = backtest_rotation(panel(), ["random", "cyclic", "single"], [120], 150)
    random, cyclic, single = found.rows
    assert cyclic.rmse < random.rmse < single.rmse
    assert cyclic.coverage > 0.9
    assert single.coverage < 0.4
    assert abs(cyclic.bias) < 4 * np.sqrt(cyclic.variance / 300)
    assert cyclic.variance == pytest.approx((cyclic.half_width / 1.98) ** 2, rel=0.3)


class Dearest(Cyclic):
    """Cannot do without prices."""

    name = "dearest"

    def __init__(
        self,
        items: Sequence[str],
        judges: Sequence[str],
        *,
        prices: Sequence[float],
        **options: Unpack[ScheduleOptions],
    ) -> None:
        super().__init__(items, judges, **options)
        self.dearest = judges[int(np.argmax(prices))]
        self.prices = dict(zip(judges, prices, strict=True))


def test_a_rotation_that_goes_by_prices_is_always_given_them() -> None:
    found = backtest_rotation(panel(), [Dearest, "cyclic"], ["2x"], 3, prices=[1.0, 2.0, 5.0, 30.0])
    dearest, cyclic = found.rows
    assert (dearest.cost, dearest.calls) == (cyclic.cost, cyclic.calls)


def test_truth_against_brute_force_and_same_seeds_same_rows() -> None:
    recorded = panel(models=1)
    found = backtest_rotation(recorded, [Cyclic, Single], ["1x"], range(3))
    means = [np.nanmean(np.nanmean(recorded.scores[0, :, j], axis=1)) for j in (0, 2, 3)]
    x = recorded.scores[0, :, 1]
    means.append(np.mean([row.mean() for row in x if not np.isnan(row).any()]))
    assert found.truth["m0"] == pytest.approx(np.mean(means), rel=1e-6)
    assert backtest_rotation(recorded, [Cyclic, Single], ["1x"], range(3)).rows == found.rows


def test_every_recorded_repeat_may_answer() -> None:
    rng = np.random.default_rng(5)
    x = 5 + rng.normal(0, 0.1, size=(1, 60, 3, 2)) + np.array([-2.0, 2.0])
    recorded = RecordedScores(x, ("m",), tuple(map(str, range(60))), ("a", "b", "c"))
    (row,) = backtest_rotation(recorded, ["cyclic"], ["2x"], 60).rows
    assert abs(row.bias) < 4 * np.sqrt(row.variance / 60)
    assert row.without_interval == 0.0


def test_replays_without_an_interval_are_told() -> None:
    x = (np.random.default_rng(2).random((1, 60, 3, 4)) < 0.99).astype(float)
    recorded = RecordedScores(x, ("m",), tuple(map(str, range(60))), ("a", "b", "c"))
    found = backtest_rotation(recorded, ["cyclic"], [12], 100)
    (row,) = found.rows
    assert 0.5 < row.without_interval <= 1.0 - row.coverage
    assert f"Up to {row.without_interval:.1%}" in " ".join(str(found.table()).split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rotation", "cyclc"], "unknown rotation 'cyclc'. Did you mean 'cyclic'"),
        (["--rotation", ","], "no rotations to compare"),
        (["--rotation", "all,all"], "rotation 'all' is listed 2 times"),
        (["--rotation", "all", "--budget", "7"], "too small for 4 judges on model 'm0'"),
        (["--rotation", "all", "--budget", "$3"], "write a number of judge calls"),
        (["--rotation", "all", "--model", "m7"], "unknown model 'm7'"),
        (["--rotation", "all", "--rater", "a"], "No such option '--rater"),
        (["--rotation", "all", "--sampler", "uniform"], "No such option '--sampler"),
        (["--rotation", "all", "--judge-prices", "z=1"], "unknown judge in --judge-prices 'z'"),
    ],
)
def test_bad_options_exit_with_2(file: Path, arguments: list[str], message: str) -> None:
    refused(run(file, *arguments), message)


def test_one_file_one_judge_mixed_scales(file: Path) -> None:
    assert "unexpected extra argument" in run(file, file, "--rotation", "all").stderr
    recorded = panel(models=1)
    with pytest.raises(InvalidInputError, match="only the judge 'a'"):
        backtest_rotation(recorded.select(rater="a"))
    mixed = np.array(recorded.scores)
    mixed[:, :, 2] *= 10
    scaled = RecordedScores(mixed, recorded.models, recorded.items, recorded.raters)
    with pytest.raises(InvalidInferenceError, match="score on different scales"):
        backtest_rotation(scaled, seeds=2)
    assert backtest_rotation(scaled, ["cyclic"], seeds=2, rescale=True).rows[0].rmse < 1
    silent = np.array(recorded.scores)
    silent[:, :, 2] = np.nan
    with pytest.raises(InvalidInputError, match="judge 'c' has no recorded score of model 'm0'"):
        backtest_rotation(RecordedScores(silent, recorded.models, recorded.items, recorded.raters), seeds=2)
    with pytest.raises(BudgetError, match="no budgets"):
        backtest_rotation(recorded, budgets=[])
    with pytest.raises(InvalidInputError, match="seeds"):
        backtest_rotation(recorded, seeds=0)


def test_real_panels(data_dir: Path) -> None:
    result = run(
        data_dir / "hanna_multijudge.npz",
        *("--rotation", "cyclic,single", "--budget", "200", "--seeds", "3", "--json", "-"),
    )
    cyclic, single = json.loads(result.stdout)
    assert (cyclic["models"], cyclic["judges"]) == (11, 20)
    assert cyclic["rmse"] < 0.25 * single["rmse"]
