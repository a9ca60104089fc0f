from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from evalbudget.backtest import Average, BacktestResult, RecordedScores, backtest
from evalbudget.cells import CAME, Cells
from evalbudget.design import Design
from evalbudget.errors import BudgetError, InvalidInputError, SamplerError, UnknownNameError
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.samplers import EBBernstein, Note, Readings, RobinHood, Round, Stop, Uniform, Wait
from evalbudget.sampler import Sampler
from evalbudget.statistics._phase_means import phase_means

Change = dict[str, Any]

TOLD: dict[tuple[str, str, int, int, int], float] = {}


def keep(sampler: Sampler, cells: Cells) -> None:
    """Remember readings, and compare them with what any other sampler was told."""
    of = sampler.design.models[0], sampler.design.raters[0], sampler.seed
    came = cells.state == CAME
    columns = (column[came].tolist() for column in (cells.item, cells.epoch, cells.value))
    for item, epoch, value in zip(*columns, strict=True):
        assert TOLD.setdefault((*of, item, epoch), value) == value


class Spy(Uniform):
    """Uniform that keeps what it was given."""

    name = "spy"
    built: ClassVar[list[dict[str, Any]]] = []

    def __init__(
        self,
        design: Design,
        *,
        variances: list[float] | None = None,
        objective: str = "",
        extra: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(design, seed=seed)
        self.built.append({"variances": variances, "objective": objective, "extra": extra, "seed": seed})

    def decide(self, cells: Cells, last: Any) -> Any:
        keep(self, cells)
        return super().decide(cells, last)


class SpyOnBernstein(EBBernstein):
    """Another policy that keeps what it was told in the same place."""

    name = "spy-bernstein"

    def decide(self, cells: Cells, last: Any) -> Any:
        keep(self, cells)
        return super().decide(cells, last)


class Planner(Uniform):
    """Wants to know the budget: asks the first item with whatever is left after one reading each."""

    name = "planner"

    def __init__(self, design: Design, *, budget: int, seed: int = 0) -> None:
        super().__init__(design, seed=seed)
        self.budget = budget

    def plan(self, table: Readings, last: Note | None) -> Any:
        left = self.budget - 1 - table.item.size
        if not left:
            return Stop("one less than it could")
        found = super().plan(table, last)
        return found._replace(item=found.item[:left])


@pytest.fixture(autouse=True)
def _fresh_spies() -> None:
    Spy.built.clear()
    TOLD.clear()


def coin_flips(n_items: int) -> RecordedScores:
    scores = np.tile(np.array([0.0, 1.0]), (1, n_items, 1, 1))
    return RecordedScores(scores, ("m",), tuple(str(i) for i in range(n_items)), ("r",))


def test_robin_against_brute_force(small: RecordedScores) -> None:
    n_seeds, budget = 5, 70
    result = backtest(small, ["uniform", "robin"], [budget], n_seeds, model="b", rater="s", workers=1)
    pool = Pool.of(small, 1, 1, min_repeats=2)
    worst, rmse, bias = [], [], []
    for seed in range(n_seeds):
        draws = Draws(pool, seed)
        order = np.argsort(np.random.default_rng(seed).permutation(12))  # the sampler's rank of each item
        n = np.ones(12, dtype=int)
        for _ in range(budget - 12):
            urgency = pool.variances / n
            n[min(np.flatnonzero(urgency == urgency.max()), key=lambda i: order[i])] += 1
        estimates = np.array([draws.of(np.full(n[i], i), np.arange(n[i])).mean() for i in range(12)])
        errors = estimates - pool.means
        worst.append(np.abs(errors).max())
        rmse.append(math.sqrt(np.mean(errors**2)))
        bias.append(estimates.mean() - pool.means.mean())
    row = result.rows[1]
    assert row.worst_item_error.mean == pytest.approx(np.mean(worst), rel=1e-9)
    assert row.worst_item_error.stderr == pytest.approx(np.std(worst, ddof=1) / math.sqrt(n_seeds), rel=1e-9)
    assert row.rmse.mean == pytest.approx(np.mean(rmse), rel=1e-9)
    assert row.mean_bias.mean == pytest.approx(np.mean(bias), rel=1e-6)
    assert row.mean_error.mean == pytest.approx(np.mean(np.abs(bias)), rel=1e-6)
    assert (row.readings, row.items, row.pools, row.budget, row.seeds) == (budget, 12, 1, budget, n_seeds)


def test_uniform_against_theory() -> None:
    k, n, n_seeds = 60, 12, 60
    (row,) = backtest(coin_flips(k), ["uniform"], [f"{n}x"], n_seeds, workers=1).rows
    deviations = np.arange(n // 2 + 1) / n
    at_most = np.array(
        [
            stats.binom.cdf(n // 2 + d, n, 0.5) - stats.binom.cdf(n // 2 - d - 1, n, 0.5)
            for d in range(n // 2 + 1)
        ]
    )
    expected = float((np.diff(at_most**k, prepend=0.0) * deviations).sum())
    assert abs(row.worst_item_error.mean - expected) < 4 * row.worst_item_error.stderr
    assert row.rmse.mean == pytest.approx(math.sqrt(0.25 / n), rel=0.02)
    assert abs(row.mean_bias.mean) < 4 * row.mean_bias.stderr
    assert row.mean_error.mean == pytest.approx(math.sqrt(2 / math.pi * 0.25 / n / k), rel=0.25)


def test_error_of_the_mean_is_that_of_the_estimate_over_phases(small: RecordedScores) -> None:
    arguments: Change = {"objective": "mean", "model": "b", "rater": "s", "workers": 1}
    row = backtest(small, [EBBernstein], [131], [2], **arguments).rows[0]
    pool = Pool.of(small, 1, 1, min_repeats=2)
    book, draws = ArrayBook(EBBernstein(pool.design, objective="mean", budget=131, seed=2)), Draws(pool, 2)
    while book.n < 131 and (asked := book.ask(131 - book.n)) is not None:
        book.tell(draws.of(*asked))
    found = book.bought()
    items, phases, values = found.item, found.phase, found.value
    assert len(set(np.bincount(items).tolist())) > 1
    truth = np.nanmean(small.scores[1, :, 1].astype(float), axis=1).mean()
    over_phases = phase_means(items, phases, values, 12).mean.mean()
    plain = (np.bincount(items, values) / np.bincount(items)).mean()
    assert row.mean_bias.mean == pytest.approx(over_phases - truth, abs=1e-12)
    assert row.mean_error.mean == pytest.approx(abs(over_phases - truth), abs=1e-12)
    assert row.mean_bias.mean != pytest.approx(plain - truth, abs=1e-6)


def test_readings_are_the_same_for_every_sampler_in_every_pool(small: RecordedScores) -> None:
    backtest(small, [Spy, SpyOnBernstein], ["8x"], 3, workers=1)
    backtest(small, [SpyOnBernstein], ["30x"], 3, workers=1)
    assert len(TOLD) > 4 * 11 * 8 * 3


def test_equal_allocations_give_equal_rows(recorded_data: Callable[[str], RecordedScores]) -> None:
    whole = recorded_data("judge_repeats").select(rater="claude-haiku-4.5/base")
    recorded = RecordedScores(whole.scores[:, :300], whole.models, whole.items[:300], whole.raters)
    result = backtest(recorded, ["uniform", RobinHood], ["20x"], 1, min_repeats=6, workers=1)
    uniform, literal = result.rows  # 20x is the literal method's warm-up: it can decide nothing
    assert uniform.worst_item_error.mean == pytest.approx(literal.worst_item_error.mean, abs=1e-12)
    assert literal.ratio is not None
    assert literal.ratio.mean == pytest.approx(1.0)
    assert result.pools[0].items == 299  # one was read five times only


def test_same_seed_same_result(small: RecordedScores) -> None:
    samplers = ["uniform", "robin", "eb-bernstein"]
    done: list[tuple[int, int]] = []
    results = [
        backtest(
            small, samplers, ["5x", 100], [3, 1, 4], workers=1, progress=lambda d, t: done.append((d, t))
        )
        for _ in range(2)
    ]
    assert results[0].rows == results[1].rows
    assert done == 2 * [(d, 48) for d in range(1, 49)]
    other = backtest(small, samplers, ["5x", 100], [5, 6, 7], workers=1)
    assert other.rows != results[0].rows


def test_snapshots_equal_separate_runs(small: RecordedScores) -> None:
    samplers = ["uniform", "robin", "eb-bernstein"]
    together = backtest(small, samplers, [150, 61, "7x"], 1, workers=1).rows
    apart = [row for b in (150, 61, "7x") for row in backtest(small, samplers, [b], 1, workers=1).rows]
    assert list(together) == apart


def test_a_rater_alone_is_its_part_of_the_pools(small: RecordedScores) -> None:
    everything = backtest(small, ["uniform", "robin"], ["6x"], 4, workers=1).rows[1]
    alone = [
        backtest(small, ["uniform", "robin"], ["6x"], 4, model=m, rater=r, workers=1).rows[1]
        for m in small.models
        for r in small.raters
    ]
    for metric in ("worst_item_error", "rmse", "mean_error", "mean_bias", "ratio"):
        parts: list[Average] = [getattr(row, metric) for row in alone]
        assert getattr(everything, metric).mean == pytest.approx(np.mean([p.mean for p in parts]))
        stderr = math.sqrt(sum(p.stderr**2 for p in parts)) / 4
        assert getattr(everything, metric).stderr == pytest.approx(stderr)
    assert (everything.pools, everything.items) == (4, 10 + 12 + 12 + 12)
    assert everything.budget == round(np.mean([60, 72, 72, 72]))


def test_ratio_is_paired() -> None:
    baseline = np.array([[1.0, 2.0, 3.0]])
    same = Average.ratio(2 * baseline, baseline)
    assert (same.mean, same.stderr) == (2.0, 0.0)
    nothing = Average.ratio(baseline, np.zeros((1, 3)))
    assert math.isnan(nothing.mean)


def test_constructors_are_given_what_they_name(small: RecordedScores) -> None:
    options = {"spy": {"extra": 3}}
    backtest(
        small, [Spy], [50], [9], objective="mse", model="b", rater="r", sampler_options=options, workers=1
    )
    pool = Pool.of(small, 1, 0, min_repeats=2)
    for given in Spy.built:
        assert given["variances"] == pool.variances.tolist()
        assert (given["objective"], given["extra"]) == ("mse", 3)
    assert Spy.built[-1]["seed"] == 9
    Spy.built.clear()
    backtest(small, [Spy], [50], [9], rater="r", sampler_options={"spy": {"variances": None}}, workers=1)
    assert all(given["variances"] is None for given in Spy.built)


def test_a_sampler_that_plans_runs_once_per_budget_and_may_stop_early(small: RecordedScores) -> None:
    rows = backtest(small, [Planner], [30, 60], 2, model="b", rater="r", workers=1).rows
    assert [(row.budget, row.readings, row.ratio) for row in rows] == [(30, 29, None), (60, 59, None)]


def test_one_item_and_no_variance() -> None:
    recorded = RecordedScores(np.ones((1, 1, 1, 3)), ("m",), ("only",), ("r",))
    result = backtest(recorded, ["uniform", "eb-bernstein", "robin"], [5], 2, workers=1)
    for row in result.rows:
        assert (row.worst_item_error.mean, row.rmse.mean, row.mean_error.mean) == (0.0, 0.0, 0.0)
        assert row.ratio is not None
        assert math.isnan(row.ratio.mean)
    assert json.loads(result.to_json())[0]["ratio"] == {"mean": None, "stderr": None}
    assert "eb-bernstein" in str(result.table())


@pytest.fixture(scope="module")
def result() -> BacktestResult:
    return backtest(coin_flips(40), ["uniform", "eb-bernstein"], ["5x", 400], 3, workers=1)


def test_json(result: BacktestResult) -> None:
    rows = json.loads(result.to_json())
    needed = {
        "sampler",
        "budget",
        "seeds",
        "objective",
        "worst_item_error",
        "rmse",
        "mean_error",
        "readings",
        "seconds",
    }
    for row in rows:
        assert set(row) == needed | {"mean_bias", "ratio", "budget_asked", "pools", "items", "reason", "usd"}
        for key in ("worst_item_error", "rmse", "mean_error", "mean_bias", "ratio"):
            assert set(row[key]) == {"mean", "stderr"}
    assert [(r["sampler"], r["budget"], r["budget_asked"]) for r in rows] == [
        ("uniform", 200, "5x"),
        ("eb-bernstein", 200, "5x"),
        ("uniform", 400, "400"),
        ("eb-bernstein", 400, "400"),
    ]
    assert {(r["objective"], r["pools"], r["items"], r["seeds"]) for r in rows} == {("worst-item", 1, 40, 3)}


def test_table_fits_80_columns_and_prints_itself(result: BacktestResult) -> None:
    text = str(result.table())
    assert repr(result.table()) == text
    assert max(len(line) for line in text.splitlines()) <= 80
    lines = text.splitlines()
    assert lines[2].split()[:2] == ["uniform", "5x"]
    assert [line.split()[0] for line in lines[2:6]] == ["uniform", "eb-bernstein"] * 2
    assert "ratio to" in lines[0]
    without = str(backtest(coin_flips(5), ["robin"], [50], 1, workers=1).table())
    assert "ratio" not in without


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"samplers": ["unifrom"]}, UnknownNameError, "Did you mean 'uniform'"),
        ({"samplers": []}, InvalidInputError, "no samplers"),
        ({"samplers": ["uniform", "uniform"]}, InvalidInputError, "'uniform' is listed 2 times"),
        ({"objective": "worst"}, UnknownNameError, "Did you mean 'worst-item'"),
        ({"rater": "q"}, UnknownNameError, "unknown rater 'q'"),
        ({"budgets": []}, BudgetError, "no budgets"),
        ({"budgets": [0]}, BudgetError, "above zero"),
        ({"budgets": ["many"]}, BudgetError, "not an amount"),
        ({"budgets": ["$20"]}, BudgetError, r"\$20 is money, and .*do not say what they cost"),
        ({"budgets": [9]}, BudgetError, r"too small for uniform on the 10 items.*10 readings.*\(1x\)"),
        ({"seeds": 0}, InvalidInputError, "seeds is 0"),
        ({"seeds": []}, InvalidInputError, "no seeds"),
        ({"seeds": [1, 1]}, InvalidInputError, "different integers"),
        ({"seeds": [-1]}, InvalidInputError, "at least 0"),
        ({"workers": 0}, InvalidInputError, "workers is 0"),
        ({"min_repeats": 9}, InvalidInputError, "most in the file is 6"),
        ({"sampler_options": {"eb-bernstein": {"warmpu": 3}}}, InvalidInputError, "Did you mean 'warmup'"),
        (
            {"sampler_options": {"robin": {"pilot": 3}}},
            UnknownNameError,
            "sampler in sampler_options 'robin'",
        ),
        ({"sampler_options": {"uniform": {"seed": 3}}}, InvalidInputError, "which the backtest sets itself"),
        (
            {"sampler_options": {"eb-bernstein": {"objective": "meen"}}},
            UnknownNameError,
            "Did you mean 'mean'",
        ),
    ],
)
def test_bad_arguments(small: RecordedScores, change: Change, error: type[Exception], message: str) -> None:
    arguments: Change = {
        "samplers": ["uniform", "eb-bernstein"],
        "budgets": ["5x"],
        "seeds": 2,
        "model": "a",
        "rater": "r",
        **change,
    }
    with pytest.raises(error, match=message):
        backtest(small, **arguments)


class Lazy(Uniform):
    """Asks one item only."""

    name = "lazy"
    minimum_readings = 1

    def plan(self, table: Readings, last: Note | None) -> Any:
        return Round(np.zeros(1, np.int64), Note(table.item.size))


class Silent(Lazy):
    """Neither asks nor stops."""

    name = "silent"

    def plan(self, table: Readings, last: Note | None) -> Any:
        return Wait(table.settled + 1)


def test_samplers_that_leave_items_out(small: RecordedScores) -> None:
    with pytest.raises(
        BudgetError, match="lazy left 9 of 10 items of model 'a', rater 'r' without a reading"
    ):
        backtest(small, [Lazy], [20], 1, model="a", rater="r", workers=1)
    with pytest.raises(SamplerError, match="waits with nothing under way"):
        backtest(small, [Silent], [20], 1, workers=1)


SCRIPT = """
from evalbudget.backtest import RecordedScores, backtest
from evalbudget.repeats.samplers import Uniform

print("once")
table = backtest(RecordedScores.load("scores.npz"), samplers=["uniform", "eb-bernstein"], budgets=[50],
                 seeds=range(2), workers=2).table()
print(table)

class Mine(Uniform):
    name = "mine"

print(backtest(RecordedScores.load("scores.npz"), samplers=[Mine], budgets=[50], seeds=2, workers=2).table())
"""


def test_a_script_needs_no_main_guard(small: RecordedScores, tmp_path: Path) -> None:
    small.save(tmp_path / "scores.npz")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("once") == 1
    assert "eb-bernstein" in done.stdout
    assert "mine" in done.stdout
