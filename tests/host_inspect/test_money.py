"""Budgets in money and tokens: what is billed never exceeds the cap, and nearly all of it is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import Task
from inspect_ai.model import CachePolicy, ModelCost, ModelInfo, get_model, set_model_info
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from tests.bills import paid_in
from tests.claims import variant
from tests.host_inspect.paid_model import Till, judged_by, paid_model, self_rated, tills
from tests.host_inspect.worlds import UNWATCHED

from evalbudget.cli.main import cli
from evalbudget.errors import BudgetError
from evalbudget.prices import Price
from evalbudget_inspect import budgeted
from evalbudget_inspect.host import bill as gate
from evalbudget_inspect.host.refusals import take_refusals

PRICE = Price(input=10.0, output=100.0)


@pytest.fixture
def till() -> Iterator[Till]:
    tills["here"] = Till(PRICE)
    yield tills["here"]
    assert not gate._accounts  # a run that has ended is let go


@pytest.fixture
def run(run: Any) -> Any:
    """Without a grader, unless there is one."""
    return lambda task, **options: run(task, **{"model_roles": {}, **options})


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.yaml"
    path.write_text("paid/*: {input: 10, output: 100}\n")
    return str(path)


def _ask(make_task: Any, **task: Any) -> Task:
    return make_task(**{"scorer": self_rated(), **task})


def _paid(name: str = "w", **args: Any) -> Any:
    return paid_model(name, "here", **args)


@pytest.mark.parametrize("at_once", [1, 50])
def test_the_bill_is_never_above_the_cap_and_nearly_all_of_it_is_used(
    make_task: Any, run: Any, diagnostics: Any, till: Till, prices: str, at_once: int
) -> None:
    task = _ask(make_task, solver=_asks_twice(), scorer=judged_by(lambda: get_model(role="grader")))
    latency = 0.002 if at_once == 1 else 0.02  # long enough to overlap on a busy machine
    log = run(
        budgeted(task, budget="$0.3", prices=prices, sampler="uniform"),
        model=_paid(refuses=0.1, latency=latency),
        model_roles={"grader": _paid("j", refuses=0.1, latency=latency)},
        max_samples=at_once,
        max_connections=at_once,
    )
    assert log.status == "success"
    ours = diagnostics(log, "judged")
    assert 0.95 * 0.3 <= ours["spent"] <= 0.3
    assert ours["spent"] == pytest.approx(till.total)
    assert ours["stop_reason"] == "budget used up"
    rows = {row["model"]: row for row in ours["costs"]}
    for name, role in (("w", ""), ("j", "grader")):
        row = rows[f"paid/{name}"]
        assert (row["role"], row["calls"], row["unknown"]) == (role, till.calls(name), 0)
    assert ours["readings"] + ours["failed"] == len(log.samples)
    assert till.peak <= at_once
    assert (till.peak > 1) == (at_once > 1)
    assert "Paid to   paid/" in ours["summary"]["text"]


@solver
def _asks_twice() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        return await generate(state)

    return solve


def test_calls_that_bring_no_reply_and_retries_of_samples_are_on_the_bill(
    make_task: Any, run: Any, diagnostics: Any, till: Till, prices: str
) -> None:
    log = run(
        budgeted(_ask(make_task), budget="$0.3", prices=prices),
        model=_paid(fails=0.2),
        max_samples=4,
        retry_on_error=2,
        fail_on_error=False,
    )
    assert log.status == "success"
    ours = diagnostics(log, "self_rated")
    assert till.total <= ours["spent"] <= 0.3
    (row,) = ours["costs"]
    assert row["calls"] == till.calls("w")
    assert row["unknown"] > 0  # no reply: each counts as the most that it can cost
    assert row["unknown_cost"] < ours["spent"]
    assert 0 <= ours["wasted"] < ours["spent"]


@pytest.mark.parametrize("said", ["missing", variant("nothing"), "negative"])
def test_usage_that_is_missing_or_wrong_counts_at_the_worst_and_is_said(
    make_task: Any, run: Any, diagnostics: Any, till: Till, prices: str, said: str
) -> None:
    log = run(budgeted(_ask(make_task), budget="$0.15", prices=prices), model=_paid(said=said), max_samples=4)
    ours = diagnostics(log, "self_rated")
    (row,) = ours["costs"]
    assert row["unknown"] == row["calls"] == till.calls("w")
    assert till.total < ours["spent"] <= 0.15
    text = " ".join(ours["summary"]["text"].split())
    assert "whose usage nobody said count as the most that they can cost" in text


def test_tokens_need_no_prices(make_task: Any, run: Any, diagnostics: Any, till: Till) -> None:
    log = run(budgeted(_ask(make_task), budget="1ktok"), model=_paid(max_tokens=5), max_samples=4)
    ours = diagnostics(log, "self_rated")
    assert 1000 - 90 <= till.tokens == ours["spent"] <= 1000  # less than a call may take is left
    assert ours["unit"] == "tokens"


def test_a_risk_lets_more_calls_go_at_once(make_task: Any, run: Any, till: Till, prices: str) -> None:
    peaks = []
    for risk in (None, 0.5):
        till.peak = 0
        before = till.total
        log = run(
            budgeted(_ask(make_task, items=50), budget="$0.09", prices=prices, risk=risk),
            model=_paid(latency=0.02),
            max_samples=50,
            max_connections=50,
            epochs=2,
        )
        assert log.status == "success"
        if risk is None:
            assert till.total - before <= 0.09
        peaks.append(till.peak)
    assert peaks[0] <= 0.09 / PRICE.most(1, 40)


def test_the_host_or_a_plugin_may_know_the_price(
    make_task: Any, run: Any, diagnostics: Any, till: Till
) -> None:
    cost = ModelCost(input=10, output=100, input_cache_read=1, input_cache_write=12)
    set_model_info("paid/known", ModelInfo(cost=cost))
    log = run(budgeted(_ask(make_task), budget="$0.1"), model=_paid("known"), max_samples=2)
    assert diagnostics(log, "self_rated")["spent"] == pytest.approx(till.total)
    assert till.total <= 0.1


def test_a_reply_from_the_cache_costs_nothing(
    make_task: Any, run: Any, diagnostics: Any, till: Till, prices: str, monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    task = _ask(make_task, solver=generate(cache=CachePolicy(per_epoch=False)))
    log = run(budgeted(task, budget="$1", prices=prices, sampler="uniform"), model=_paid(), limit=2)
    ours = diagnostics(log, "self_rated")
    assert ours["spent"] == pytest.approx(till.total)
    assert till.calls("w") == 2
    assert ours["stop_reason"] == "the last 100 readings cost nothing; give the budget in scores"


def _refusal(run: Any, task: Task, **options: Any) -> str:
    log = run(task, **options)
    assert log.status == "error"
    return str(take_refusals()[0])


def test_an_item_above_the_whole_budget_does_not_end_the_run(
    make_task: Any, run: Any, diagnostics: Any, till: Till, prices: str
) -> None:
    task = _ask(make_task)
    task.dataset[3].input = "word " * 12_000
    log = run(
        budgeted(task, budget="$0.15", prices=prices, sampler="uniform"),
        model=_paid(),
        max_samples=1,
        max_connections=1,
    )
    ours = diagnostics(log, "self_rated")
    assert 0.95 * 0.15 <= till.total <= 0.15
    assert ours["spent"] == pytest.approx(till.total)
    assert ours["failed"] >= 1
    said = {sample.limit.reason for sample in log.samples if sample.limit and sample.id == "item-3"}
    assert any("more than the budget of $0.15" in reason for reason in said)


def test_a_call_that_cannot_be_measured_is_not_made(
    make_task: Any, run: Any, till: Till, prices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> int:
        raise RuntimeError("odd")

    monkeypatch.setattr(gate, "input_at_most", fails)
    task = budgeted(_ask(make_task), budget="$0.5", prices=prices, sampler="uniform")
    said = _refusal(run, task, model=_paid())
    assert "what a call of paid/w can cost is not known (RuntimeError: odd)" in said
    assert till.paid == []


def test_what_cannot_be_kept_is_refused_before_the_first_call(
    make_task: Any, run: Any, till: Till, prices: str, tmp_path: Path
) -> None:
    task = budgeted(_ask(make_task), budget="$5")
    said = _refusal(run, task, model=_paid("unheard"), model_roles={"grader": _paid("also")})
    assert "no price is known for paid/unheard, paid/also" in said
    assert "\n  paid/unheard: {input: ..., output: ...}" in said

    (tmp_path / "one.yaml").write_text("paid/w: {input: 1, output: 2}\n")
    task = budgeted(_ask(make_task), budget="$5", prices=str(tmp_path / "one.yaml"))
    said = _refusal(run, task, model=_paid(), model_roles={"grader": _paid("unpriced")})
    assert "no price is known for paid/unpriced," in said

    for roles in ({}, {"grader": _paid("j", max_tokens=None)}):
        task = budgeted(_ask(make_task), budget="$5", prices=prices)
        said = _refusal(run, task, model=_paid(max_tokens=None if not roles else 40), model_roles=roles)
        assert f"nothing limits the length of replies of paid/{'j' if roles else 'w'}" in said

    task = budgeted(_ask(make_task), budget="$0.003", prices=prices)
    said = _refusal(run, task, model=_paid(), model_roles={})
    assert "the budget of $0.0030 is below one call of paid/w, which may cost $0.0045" in said
    assert "Raise --budget to $0.0045 or more" in said
    assert not till.paid


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": "$0"}, "must be above zero"),
        ({"budget": "$-1"}, "must be above zero"),
        ({"budget": "-$1"}, "must be above zero"),
        ({"budget": "€5"}, "is not in US dollars"),
        ({"budget": "$5", "risk": 1.5}, "write a chance"),
        ({"budget": 20, "risk": 0.1}, "--risk is for a budget in money or tokens"),
        ({"budget": 20, "prices": "p.yaml"}, "--prices is for a budget in money or tokens"),
    ],
)
def test_bad_input(make_task: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message.replace("$", r"\$")):
        budgeted(_ask(make_task), **given)


def test_other_currencies_are_refused(make_task: Any, tmp_path: Path) -> None:
    path = tmp_path / "euro.yaml"
    path.write_text("paid/w: {input: 1, output: 2, currency: EUR}\n")
    with pytest.raises(Exception, match="prices are in US dollars"):
        budgeted(_ask(make_task), budget="$5", prices=str(path))


def test_logs_elsewhere_have_no_bill() -> None:
    from evalbudget_inspect.host.bill_file import path_of_bill

    with pytest.raises(BudgetError, match="is no folder of this machine"):
        path_of_bill(["memory://logs"], "x")


TWO = """\
from inspect_ai import Task, task
from evalbudget_inspect.demo.story_rating import story_rating

@task
def one() -> Task:
    return story_rating(3)

@task
def two() -> Task:
    return story_rating(6)
"""


def test_one_budget_for_all_runs_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    (tmp_path / "p.yaml").write_text("simulated/*: {input: 1, output: 10, max_output: 60}\n")
    command = ["inspect", "eval", str(tmp_path / "two.py"), "--model", "simulated/a,simulated/b"]
    command += [
        "--model-role",
        "grader=simulated/j",
        "--display",
        "none",
        "--log-dir",
        str(tmp_path / "logs"),
    ]
    command += ["--budget", "$0.018", "--prices", str(tmp_path / "p.yaml")]
    result = CliRunner(env=UNWATCHED).invoke(cli, command)
    assert result.exit_code == 0, result.output
    said = "one $0.0030, two $0.0060, for each of 2 models; $0.018 in all"
    assert f"one budget for all runs: {said}" in result.output
    assert len(list((tmp_path / "logs").glob("*.eval"))) == 4
    total = 0.0
    for path in (tmp_path / "logs").glob(".evalbudget-*.bill"):
        total += paid_in(path)
    assert 0.8 * 0.018 <= total <= 0.018


@pytest.mark.parametrize("at_once", [variant(1), None])
def test_a_sample_of_the_items_is_as_large_as_the_money_pays_for(
    make_task: Any, run: Any, diagnostics: Any, till: Till, prices: str, at_once: int | None
) -> None:
    log = run(
        budgeted(_ask(make_task, items=200), budget="$0.15", prices=prices, sampler="sample"),
        model=_paid(),
        max_samples=at_once,
    )
    assert log.status == "success"
    ours = diagnostics(log, "self_rated")
    assert 0.95 * 0.15 <= ours["spent"] == pytest.approx(till.total)
    assert till.total <= 0.15
    read = [sample.id for sample in log.samples if sample.scores]
    assert len(set(read)) == len(read) == ours["readings"] < 200
    assert len(log.samples) - len(read) <= 20  # begun as the money ended
    assert f"{len(read)} of 200 items, once each" in " ".join(ours["summary"]["text"].split())
