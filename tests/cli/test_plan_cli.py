from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import refused, typed

from evalbudget.backtest import RecordedScores
from evalbudget.judges.schedules import Priced
from evalbudget.recorded._declared import Declared

run = typed("plan")


def save(path: Path, scores: np.ndarray, judges: tuple[str, ...] = ("gpt", "haiku", "mini")) -> Path:
    models, n = len(scores), scores.shape[1]
    RecordedScores(
        scores, tuple(f"m{i}" for i in range(models)), tuple(str(i) for i in range(n)), judges
    ).save(path)
    return path


def scores(models: int = 1, repeats: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.asarray(
        5
        + rng.normal(size=(models, 60, 1, 1))
        + rng.normal(size=(models, 60, 1, repeats))
        + np.array([0.5, -0.3, -0.2])[:, None]
        + rng.normal(size=(models, 60, 3, repeats))
    )


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    return save(tmp_path / "pilot.npz", scores())


def test_prints_components_and_a_plan_per_rotation(pilot: Path) -> None:
    result = run(pilot, "--half-width", "0.2")
    assert result.exit_code == 0, result.output
    words = [line.split()[0] for line in result.stdout.splitlines() if line.split()]
    at = words.index("rotation")
    assert words[at + 1 : at + 5] == ["all", "random", "cyclic", "priced"]
    assert "--rotation priced --judge-prices gpt=" in " ".join(result.stdout.split())
    assert "60 items, 3 judges, crossed" in result.stdout


def test_json_has_plans_and_components(pilot: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    prices = ("--judge-prices", "gpt=5,haiku=1,mini=0.5", "--generation-price", "0.1")
    result = run(pilot, "--usd", "500", *prices, "--level", ".9", "--max-items", "400", "--json", out)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert [p["strategy"] for p in found["plans"]] == ["all", "random", "cyclic", "priced"]
    assert all(p["cost"] <= 500 and p["items"] <= 400 and p["level"] == 0.9 for p in found["plans"])
    assert sum(c["share"] for c in found["components"]) == pytest.approx(1)
    assert all(c["lower"] <= c["upper"] for c in found["components"])
    to_stdout = run(pilot, "--usd", "500", *prices, "--level", ".9", "--max-items", "400", "--json", "-")
    assert json.loads(to_stdout.stdout) == found


def test_reads_csv_and_says_what_a_rotated_pilot_cannot_tell(tmp_path: Path) -> None:
    x = scores()[0]
    rows = [f"{i},{'abc'[i % 3]},{x[i, i % 3, 0]}" for i in range(60)]
    (tmp_path / "pilot.csv").write_text("item,rater,score\n" + "\n".join(rows))
    result = run(tmp_path / "pilot.csv", "--half-width", "0.3")
    assert result.exit_code == 0, result.output
    assert "all: the variance of" in result.stdout
    assert "rotated, one score per item" in result.stdout


def rotated(path: Path, n: int, K: int) -> Path:
    x = np.full((1, n, K, 1), np.nan)
    x[0, np.arange(n), np.arange(n) % K, 0] = np.random.default_rng(n).normal(size=n)
    return save(path / "rotated.npz", x, tuple(f"j{k}" for k in range(K)))


@pytest.mark.parametrize(("n", "K"), [(4, 2), (6, 3), (5, 5), (6, 5)])
def test_small_rotated_pilots_plan_or_refuse(tmp_path: Path, n: int, K: int) -> None:
    result = run(rotated(tmp_path, n, K), "--usd", "500", "--json", "-")
    if n == K:
        refused(result, "does not support a plan", "too few to tell")
    else:
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["design"] == "rotated, one score per item"


def test_constant_pilots_are_refused(tmp_path: Path) -> None:
    constant = save(tmp_path / "constant.npz", np.full((1, 20, 3, 2), 5.0))
    refused(run(constant, "--usd", "500"), "scores never differ")


def test_a_silent_judge_is_told_and_needs_no_price(tmp_path: Path) -> None:
    x = scores()
    x[:, :, 2] = np.nan
    silent = save(tmp_path / "silent.npz", x)
    for prices in ("gpt=1,haiku=2,mini=3", "gpt=1,haiku=2"):
        result = run(silent, "--usd", "500", "--judge-prices", prices)
        assert result.exit_code == 0, result.output
        assert "no score by mini" in result.stdout
    assert json.loads(run(silent, "--usd", "500", "--json", "-").stdout)["judges_silent"] == ["mini"]


def test_priced_as_deals_the_planned_shares(pilot: Path) -> None:
    prices = ("--judge-prices", "gpt=5,haiku=1,mini=0.5", "--generation-price", "0.4")
    found = json.loads(run(pilot, "--usd", "5000", *prices, "--json", "-").stdout)
    plan = found["plans"][3]
    schedule = Priced([str(i) for i in range(plan["items"])], found["judges"], prices=found["priced_as"])
    dealt = np.bincount(schedule.assign().judge) / plan["items"]
    assert np.allclose(dealt, plan["shares"], atol=0.005)


def test_repeats_of_one_generation(pilot: Path, tmp_path: Path) -> None:
    result = run(pilot, "--half-width", "0.2", "--one-generation")
    assert "item + generation" in result.stdout
    kept = replace(RecordedScores.load(pilot), one_generation=True)
    kept.save(tmp_path / "kept.npz")
    assert RecordedScores.load(tmp_path / "kept.npz").select(model="m0").one_generation
    assert run(tmp_path / "kept.npz", "--half-width", "0.2").stdout == result.stdout


def test_bad_input_exits_with_2(pilot: Path, tmp_path: Path) -> None:
    refused(run(pilot), "give one of --half-width")
    refused(run(pilot, "--usd", "5", "--half-width", "1"), "give one of --half-width")
    refused(run(pilot, "--half-width", "-1"), "half-width is -1")
    refused(run(pilot, "--usd", "0"), "money to spend is 0")
    refused(run(pilot, "--half-width", "1", "--level", "95"), "level 95")
    refused(
        run(pilot, "--usd", "5", "--judge-prices", "gtp=1"),
        "unknown judge in --judge-prices 'gtp'. Did you mean 'gpt'",
    )
    refused(run(pilot, "--usd", "5", "--judge-prices", "gpt:1"), "'gpt:1'; write JUDGE=PRICE")
    refused(run(pilot, "--usd", "5", "--judge-prices", "gpt=1,gpt=2"), "twice")
    refused(run(pilot, "--usd", "5", "--judge-prices", "gpt=1"), "no entry for judge 'haiku'")
    refused(run(pilot, "--usd", "5", "--judge-prices", "gpt=1,haiku=0,mini=1"), "must be above zero")
    refused(run(pilot, "--usd", "5", "--generation-price", "-1"), "price of a generation is -1")
    refused(run(pilot, "--usd", "1"), "does not support a plan", "does not buy enough")
    refused(run(pilot, "--half-width", "1", "--model", "m9"), "unknown model 'm9'")
    refused(run(pilot, "--half-width", "1", "--json", tmp_path / "no" / "x.json"), "does not exist")
    refused(run(tmp_path / "none.npz", "--usd", "5"), "none.npz does not exist")
    two = save(tmp_path / "two.npz", scores(models=2))
    refused(run(two, "--half-width", "1"), "there are 2 models (m0, m1); choose one with --model")
    assert run(two, "--half-width", "1", "--model", "m1").exit_code == 0


def test_scales(tmp_path: Path) -> None:
    x = scores()
    x[:, :, 0] *= 10
    mixed = save(tmp_path / "mixed.npz", x)
    refused(run(mixed, "--half-width", "1"), "the judges seem to score on different scales", "--rescale")
    assert run(mixed, "--half-width", "0.1", "--rescale").exit_code == 0


def test_plans_repeats_until_every_item_is_known(tmp_path: Path) -> None:
    path = save(tmp_path / "one.npz", scores()[:, :30, :1], ("gpt",))
    result = run(path, "--item-half-width", "1", "--sampler", "uniform")
    assert result.exit_code == 0, result.output
    rows = [line.split()[0] for line in result.stdout.splitlines()[1:4]]
    assert rows == ["plain", "uniform", "variances"]
    assert "Until each item is known to ±1 (95%)" in " ".join(result.stdout.split())
    found = json.loads(run(path, "--item-half-width", "1", "--sampler", "uniform", "--json", "-").stdout)
    plain, uniform, known = found["plans"]
    assert known["calls"] < uniform["calls"] <= plain["calls"] <= plain["calls_upper"]
    assert (found["item_half_width"], found["level"]) == (1.0, 0.95)


def test_items_are_planned_for_one_model_and_one_judge(pilot: Path, tmp_path: Path) -> None:
    refused(run(pilot, "--item-half-width", "1"), "there are 3 raters (gpt, haiku, mini); plan judges with")
    refused(run(pilot, "--item-half-width", "1", "--half-width", "1"), "give one of --half-width")
    several = save(tmp_path / "two.npz", scores(2)[:, :, :1], ("gpt",))
    refused(run(several, "--item-half-width", "1"), "there are 2 models (m0, m1); choose one with --model")
    one = save(tmp_path / "one.npz", scores()[:, :, :1, :1], ("gpt",))
    refused(run(one, "--item-half-width", "1"), "one.npz: no item of the pilot has two scores that differ")
    misspelled = run(several, "--model", "m1", "--item-half-width", "1", "--sampler", "robn")
    refused(misspelled, "Did you mean 'robin'")


def clustered(path: Path, judges: tuple[str, ...]) -> Path:
    """Sixty items in twelve passages, which differ more than items do."""
    rng = np.random.default_rng(3)
    passage = np.repeat(np.arange(12), 5)
    items = 5 + rng.normal(size=12)[passage] + rng.normal(size=60)
    table = items[None, :, None, None] + rng.normal(size=(1, 60, len(judges), 1))
    names = tuple(map(str, range(60)))
    labels = {name: f"p{number}" for name, number in zip(names, passage, strict=True)}
    declared = Declared.of(("m",), names, judges, clusters=labels, cluster="passage")
    RecordedScores(table, ("m",), names, judges, declared=declared).save(path)
    return path


@pytest.mark.parametrize("judges", [("gpt",), ("gpt", "haiku", "mini")])
def test_items_of_clusters_are_planned_by_the_interval_that_is_printed(
    judges: tuple[str, ...], tmp_path: Path
) -> None:
    pilot = clustered(tmp_path / "pilot.npz", judges)
    told = json.loads(run(pilot, "--usd", 60 * len(judges), "--json", "-").stdout)
    row = json.loads(typed("report")(pilot, "--json", "-").stdout)["leaderboard"]["rows"][0]
    assert (told["cluster"], told["clusters"]) == ("passage", 12)
    assert told["design_effect"] > 2.0
    assert (told["plans"][0]["items"], told["plans"][0].get("strategy", "all")) == (60, "all")
    assert told["plans"][0]["half_width"] == pytest.approx((row["high"] - row["low"]) / 2, rel=0.02)
    done = run(pilot, "--half-width", "0.3")
    said = " ".join(done.output.split())
    assert "Items come in clusters (passage): 12 in the pilot" in said, said
    passages = replace(RecordedScores.load(pilot), declared=None)
    passages.save(tmp_path / "apart.npz")
    apart = json.loads(run(tmp_path / "apart.npz", "--half-width", "0.3", "--json", "-").stdout)["plans"][0]
    together = json.loads(run(pilot, "--half-width", "0.3", "--json", "-").stdout)["plans"][0]
    assert together["items"] > 2 * apart["items"]


def test_one_scorer_is_enough_to_plan_items() -> None:
    pilot = Path(__file__).parent.parent / "cases" / "one_scorer.csv"
    found = json.loads(run(pilot, "--half-width", "0.2", "--json", "-").stdout)
    (plan,) = found["plans"]
    scores = np.loadtxt(pilot, delimiter=",", skiprows=1, usecols=3)
    quantile = 1.990450  # t of 79 degrees
    assert plan["items"] == math.ceil(scores.var(ddof=1) * (quantile / 0.2) ** 2) == 434
    assert plan["items_upper"] > plan["items"]
    assert plan["half_width"] <= 0.2
    money = json.loads(run(pilot, "--usd", "434", "--json", "-").stdout)["plans"][0]
    assert (money["items"], money["half_width"]) == (434, plan["half_width"])
    refused(run(pilot, "--half-width", "0.2", "--max-items", "300"), "more than the 300 items")
