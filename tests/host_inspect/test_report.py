"""Reports on real logs: the estimates are the log's own, and what may not count does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalSampleSummary
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, get_model
from tests.claims import variant
from tests.host_inspect.worlds import retried

from evalbudget import Allocation
from evalbudget.backtest import Bought, HowBought, Ordinals
from evalbudget.cli.main import cli
from evalbudget_inspect import budgeted
from evalbudget_inspect.host.questions import text_of
from evalbudget_inspect.reading.open_logs import open_scores


def reported(*arguments: str | Path) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["report", *map(str, arguments), "--json", "-"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    "options",
    [
        variant({}),
        variant({"sampler": "uniform"}),
        variant({"objective": "mean"}),
        {"sampler": "robin", "pilot": 2},
        variant({"repeat": "judge"}),
    ],
)
def test_the_estimate_is_the_logs_own(
    run: Any, make_task: Any, metrics: Any, diagnostics: Any, options: dict[str, Any]
) -> None:
    log = run(budgeted(make_task(), budget=44, **options))
    told, ours = metrics(log), diagnostics(log)
    found = reported(Path(log.location))
    for item in found["least_known"]["rows"]:
        assert item["text"] == f"Write story {item['item']}."
    (row,) = found["leaderboard"]["rows"]
    assert row["estimate"] == pytest.approx(told["estimate"])
    assert row["standard_error"] == pytest.approx(told["stderr"])
    assert (row["low"], row["high"]) == pytest.approx((told["lower"], told["upper"]))
    assert row["allocation"] == ours["allocation"]
    assert (row["cost"], row["readings_recorded"]) == (44, 44)
    if ours["allocation"] == "adaptive":
        assert row["readings"] == 8 * ours["fixed_repeats"]
        assert "bought because of the scores" in found["leaderboard"]["notes"][0]


@pytest.mark.parametrize(
    "options",
    [variant({}), variant({"sampler": "eb-bernstein"}), {"sampler": "eb-bernstein", "repeat": "judge"}],
)
def test_a_panels_estimate_is_the_logs_own(
    run: Any, make_task: Any, metrics: Any, options: dict[str, Any]
) -> None:
    judges = [get_model(f"simulated/{name}", mean=m, memoize=False) for name, m in (("x", 3), ("y", 6))]
    log = run(budgeted(make_task(6), budget=36, judges=judges, **options))
    told, found = metrics(log), reported(Path(log.location))
    (row,) = found["leaderboard"]["rows"]
    assert (row["estimate"], row["standard_error"]) == pytest.approx((told["estimate"], told["stderr"]))
    assert (row["low"], row["high"]) == pytest.approx((told["lower"], told["upper"]))
    assert {r["judge"] for r in found["judges"]["rows"]} == {"simulated/x", "simulated/y"}
    assert found["components"]["rows"]


def test_models_of_a_folder_and_logs_that_add_up(
    run: Any, make_task: Any, readings: Any, tmp_path: Path
) -> None:
    first = run(make_task(), epochs=2)
    adaptive = run(budgeted(make_task(), budget=30, sampler="robin", pilot=2))
    other = run(make_task(), model=get_model("simulated/other", memoize=False), epochs=3)
    found = reported(tmp_path / "logs")
    rows = {row["model"]: row for row in found["leaderboard"]["rows"]}
    assert set(rows) == {"simulated/writer", "simulated/other"}
    fixed = adaptive.results.scores[0].metadata["evalbudget"]["fixed_repeats"]
    counted = [(i, v) for i, _, v in readings(first)]
    counted += [(i, v) for i, epoch, v in readings(adaptive) if epoch <= fixed]
    items = {i for i, _ in counted}
    means = [np.mean([v for j, v in counted if j == i]) for i in items]
    assert rows["simulated/writer"]["estimate"] == pytest.approx(np.mean(means))
    assert rows["simulated/writer"]["readings"] == len(counted) == 8 * (2 + fixed)
    assert rows["simulated/writer"]["cost"] == 16 + 30
    assert rows["simulated/other"]["readings"] == len(readings(other))
    assert found["differences"]["rows"][0]["items"] == 8
    one_by_one = reported(*(Path(log.location) for log in (adaptive, other)))
    assert one_by_one["models"] == ["simulated/writer", "simulated/other"]
    apart = reported(*(Path(log.location) for log in (first, adaptive)))["models"]
    assert [name.partition(" (")[0] for name in apart] == ["simulated/writer"] * 2
    assert len(set(apart)) == 2


def test_samples_that_a_retry_took_over_count_once(task_file: Path, run: Any, tmp_path: Path) -> None:
    arguments = {"task": str(task_file), "budget": 40}
    failed = run(
        "evalbudget_inspect/budgeted",
        task_args=arguments,
        writer={"fail": 0.1},
        fail_on_error=4,
        max_samples=1,
    )
    assert failed.status == "error"
    again = retried(failed, max_samples=1)
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(again.location, alone)
    assert len(list((tmp_path / "logs").glob("*.eval"))) == 2
    ours, whole = reported(alone), reported(tmp_path / "logs")
    for key in ("estimate", "standard_error", "readings", "readings_recorded", "allocation"):
        assert whole["leaderboard"]["rows"][0][key] == ours["leaderboard"]["rows"][0][key]
    unfinished = open_scores(Path(failed.location))
    assert unfinished is not None
    assert unfinished.purchases is not None
    (purchase,) = unfinished.purchases
    assert (purchase.allocation, purchase.fixed_repeats) == (Allocation.PHASED, 2)
    assert unfinished.phases is not None


def test_ordinals_keep_what_may_count_apart() -> None:
    fixed, adaptive = Bought(HowBought(cost=3), 3), Bought(HowBought(Allocation.ADAPTIVE, 2, cost=9), 6)
    both = Ordinals([adaptive, fixed])
    assert [both.ordinal(0, e) for e in range(1, 7)] == [0, 1, 5, 6, 7, 8]
    assert [both.ordinal(1, e) for e in range(1, 4)] == [2, 3, 4]
    assert both.purchase == HowBought(Allocation.ADAPTIVE, 5, cost=12)
    phased = Bought(HowBought(Allocation.PHASED, 2, cost=5), 5)
    both = Ordinals([fixed, phased])
    assert [both.ordinal(1, e) for e in range(1, 6)] == [fixed.epochs + e for e in range(5)]
    assert both.purchase.allocation is Allocation.PHASED
    nothing = Bought(HowBought(cost=1), 0)
    assert Ordinals([nothing, phased]).purchase == HowBought(Allocation.PHASED, 2, cost=6)


def test_the_text_of_messages_is_what_the_user_asked() -> None:
    messages = [
        ChatMessageSystem(content="Be brief."),
        ChatMessageUser(content="What is 1 + 1?" + "?" * 2000),
    ]
    asked = EvalSampleSummary(id=1, epoch=1, input=messages, target="2")
    assert text_of(asked).startswith("What is 1 + 1?")
    assert len(text_of(asked)) <= 1000
    only = EvalSampleSummary(id=1, epoch=1, input=messages[:1], target="2")
    assert text_of(only) == "Be brief."
