"""Budgets in money and tokens: the bill never exceeds the cap, and the cap is used."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval.api.registry import register_model
from lm_eval.models.openai_completions import LocalCompletionsAPI
from tests.bills import billed_calls, changed
from tests.claims import variant
from tests.host_lm_eval.judged_worlds import write_judged
from tests.host_lm_eval.money_worlds import GENERATION, PRICES, PaidServer, luck, price_file, run
from tests.host_lm_eval.worlds import CoinModel, bought_in, simple_evaluate, write_task

from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError, JournalError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host import paid_calls
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.run import rounds
from loopback import DROPPED, GARBLED, rating

N = 12


@pytest.fixture
def server() -> Iterator[PaidServer]:
    with PaidServer(answer=luck) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)
    return write_task(tmp_path / "tasks", n=N)


@pytest.mark.parametrize("concurrent", [variant(1), 32])
def test_the_cap_holds_and_is_used(folder: Path, server: PaidServer, concurrent: int) -> None:
    found = run(folder, server, "$0.80", concurrent=concurrent, prices="prices.yaml")
    block = found["evalbudget"]
    assert server.bill == pytest.approx(block["spent"])
    most = max(call["most"] for call in billed_calls("j.db"))
    assert 0.8 - most < server.bill <= 0.8  # what is left does not pay for another call
    assert block["stop_reason"] == "budget used up"
    assert block["unit"] == "usd"
    assert block["failed"] == 0
    readings = [r for r in bought_in("j.db").readings if r.value is not None]
    assert math.fsum(r.cost for r in readings) == pytest.approx(block["spent"])
    assert len({r.cost for r in readings}) > 1
    logged = found["samples"]["numbers"]
    assert math.fsum(sample["cost"] for sample in logged) == pytest.approx(block["spent"])
    text = block["summary"]["text"]
    assert "of $0.80" in text
    assert "Paid to   m $0." in text


@pytest.mark.parametrize("concurrent", [variant(1), 8])
def test_batches_of_prompts(folder: Path, server: PaidServer, concurrent: int) -> None:
    found = run(
        *(folder, server, "$1.10"),
        concurrent=concurrent,
        model="local-completions",
        chat=False,
        args={"batch_size": 4},
        prices="prices.yaml",
    )
    assert any(isinstance(s.body["prompt"], list) and len(s.body["prompt"]) == 4 for s in server.served)
    assert server.bill == pytest.approx(found["evalbudget"]["spent"])
    assert 0.9 * 1.1 <= server.bill <= 1.1


@pytest.mark.parametrize(
    ("status", "concurrent"),
    [variant(GARBLED, 1), (GARBLED, 8), (None, 8), (500, 1), variant(500, 8), (DROPPED, 8)],
)
def test_calls_that_fail_are_billed_at_most(
    folder: Path, server: PaidServer, status: int | None, concurrent: int
) -> None:
    for after in (5, 9, 30):
        server.fail(status, after=after)
    block = run(folder, server, "$0.5", concurrent=concurrent, prices="prices.yaml")["evalbudget"]
    lost = sum(row["unknown"] for row in block["costs"])
    assert lost == block["failed"] == (0 if status == 500 else 3)
    assert ("Failed    3 calls" in block["summary"]["text"]) is (lost > 0)
    assert server.bill <= block["spent"] + 1e-9 <= 0.5 + 1e-9
    if status == 500:
        assert server.bill == pytest.approx(block["spent"])
    assert block["spent"] > 0.95 * 0.5


@pytest.mark.parametrize("usage", ["none", "wrong"])
def test_usage_that_is_missing_or_wrong_counts_at_most(folder: Path, server: PaidServer, usage: str) -> None:
    server.usage = usage
    block = run(folder, server, "$1", concurrent=8, prices="prices.yaml")["evalbudget"]
    (row,) = block["costs"]
    assert row["unknown"] == row["calls"] > 0
    assert server.bill < block["spent"] <= 1
    assert "whose usage nobody said count as the most that they" in " ".join(block["summary"]["text"].split())


def test_a_model_that_costs_nothing_is_not_asked_for_ever(folder: Path, server: PaidServer) -> None:
    Path("free.yaml").write_text("m: {input: 0, output: 0}\n")
    write_task(folder, n=4)
    block = run(folder, server, "$1", concurrent=8, prices="free.yaml")["evalbudget"]
    assert "readings cost nothing; give the budget in calls" in block["stop_reason"]
    assert block["readings"] >= 20 * 4


def test_the_providers_own_figure_stands_above_prices(
    folder: Path, server: PaidServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = server._completion

    def with_cost(*given: object) -> dict[str, object]:
        reply = complete(*given)  # type: ignore[arg-type]
        reply["usage"]["cost"] = 0.003
        return reply

    monkeypatch.setattr(server, "_completion", with_cost)
    block = run(folder, server, "$0.3", concurrent=4, prices="prices.yaml")["evalbudget"]
    assert block["spent"] == pytest.approx(0.003 * server.billed)


def _judged_by_two(folder: Path, server: PaidServer, concurrent: int, rotation: str = "all") -> Path:
    price_file(folder)
    server.answer = rating()
    judges = [server.judge(name, num_concurrent=concurrent) for name in ("j1", "j2")]
    sampling = {"temperature": 1, "max_gen_toks": 20}
    return write_judged(folder / "tasks", judges, rotation=rotation, gen_kwargs=sampling)


def _most(*models: str) -> float:
    """What a call of each costs at most, if every judge is told of twenty tokens of four letters."""
    calls = billed_calls("j.db")
    dearest = [max(call["most"] for call in calls if call["model"] == model) for model in models]
    return math.fsum(dearest) + 4 * 20 * (PRICES["j1"].input + PRICES["j2"].input) / 1e6


@pytest.mark.parametrize("concurrent", [variant(1), 8])
def test_judges_are_paid_from_the_same_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PaidServer, concurrent: int
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = _judged_by_two(tmp_path, server, concurrent)
    server.fail(GARBLED, model="j1", after=3)
    options: dict[str, Any] = {"tasks": "essays", "concurrent": concurrent, "prices": "prices.yaml"}
    block = run(folder, server, "$0.7", **options)["evalbudget"]
    assert server.bill <= block["spent"] + 1e-9 <= 0.7 + 1e-9
    assert block["spent"] > 0.7 - _most("m", "j1", "j2")  # what is left does not pay for another answer
    assert {(row["model"], row["role"]) for row in block["costs"]} == {
        ("m", ""),
        ("j1", "judge"),
        ("j2", "judge"),
    }
    by_model = {row["model"]: row["cost"] for row in block["costs"]}
    assert by_model["j2"] == pytest.approx(server.dollars["j2"])
    readings = [r for r in bought_in("j.db").readings if r.value is not None]
    assert block["readings"] == len(readings) > N
    useful = math.fsum(r.cost for r in readings)
    assert block["wasted"] == pytest.approx(block["spent"] - useful, abs=1e-9)
    assert block["wasted"] == pytest.approx(0.0, abs=1e-9)
    more = run(folder, server, "$0.9", **options)["evalbudget"]
    assert server.bill <= more["spent"] + 1e-9 <= 0.9 + 1e-9
    assert more["readings"] > block["readings"]


@pytest.mark.parametrize(
    ("rotation", "repeat", "concurrent"),
    [
        ("all", None, 1),
        variant("all", None, 8),
        variant("cyclic", None, 1),
        ("cyclic", None, 8),
        variant("all", "judge", 1),
        ("all", "judge", 8),
    ],
)
def test_an_answer_is_begun_only_if_all_its_judges_can_be_paid_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: PaidServer,
    rotation: str,
    repeat: str | None,
    concurrent: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = _judged_by_two(tmp_path, server, concurrent, rotation)
    options: dict[str, Any] = {"tasks": "essays", "concurrent": concurrent, "prices": "prices.yaml"}
    if repeat is not None:
        options["repeat"] = repeat
    for budget in (0.2, 0.3, 0.45):
        block = run(folder, server, f"${budget}", **options)["evalbudget"]
        assert server.bill == pytest.approx(block["spent"])
        assert budget - _most("m", "j1", "j2") < block["spent"] <= budget
        assert block["wasted"] == 0
        judged = server.billed - server.calls("m")
        assert judged == block["readings"] * (2 if rotation == "all" else 1)
    assert server.calls("m") == (block["readings"] if repeat is None else N)


def test_an_answer_that_no_money_was_left_to_judge_is_judged_and_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PaidServer
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = _judged_by_two(tmp_path, server, 4)
    options: dict[str, Any] = {"tasks": "essays", "concurrent": 4, "prices": "prices.yaml"}
    server.fail(GARBLED, model="j1", after=3, times=math.inf)  # lost replies use up what was kept for j2
    block = run(folder, server, "$0.2", **options)["evalbudget"]
    asked = server.calls("m")
    assert block["readings"] < asked
    server.forgive()
    block = run(folder, server, "$0.3", **options)["evalbudget"]
    assert server.bill <= block["spent"] + 1e-9 <= 0.3 + 1e-9
    assert block["readings"] == server.calls("m") >= asked
    calls = Counter((r.request.cell.item, r.request.id) for r in bought_in("j.db").readings)
    assert set(calls.values()) == {1}


def test_money_that_is_kept_for_judges_is_waited_for_while_answers_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PaidServer
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rounds, "MANY", 4)
    score = PrimedTasks.replay

    def slowly(self: PrimedTasks, *given: Any, **named: Any) -> Any:
        time.sleep(0.3)  # until what is left pays for no answer beside those that wait for their judges
        return score(self, *given, **named)

    monkeypatch.setattr(PrimedTasks, "replay", slowly)
    folder = _judged_by_two(tmp_path, server, 4)
    options: dict[str, Any] = {"tasks": "essays", "concurrent": 4, "prices": "prices.yaml"}
    block = run(folder, server, "$0.7", **options)["evalbudget"]
    assert server.bill == pytest.approx(block["spent"])
    assert 0.7 - _most("m", "j1", "j2") < block["spent"] <= 0.7


def test_an_unfinished_run_goes_on_with_its_bill(folder: Path, server: PaidServer) -> None:
    server.fail(500, times=math.inf, after=10)
    with pytest.raises(Exception, match="500"):
        run(folder, server, "$0.8", concurrent=4, prices="prices.yaml", args={"max_retries": 1})
    spent = server.bill
    server.forgive()
    block = run(folder, server, "$0.8", concurrent=8, prices="prices.yaml")["evalbudget"]
    assert server.bill == pytest.approx(block["spent"])
    assert server.bill > spent
    most = max(call["most"] for call in billed_calls("j.db"))
    assert most < 0.025
    assert 0.8 - most < block["spent"] <= 0.8  # what is left does not pay for another call
    assert math.fsum(r.cost for r in bought_in("j.db").readings) == pytest.approx(block["spent"])
    calls = server.calls()
    again = run(folder, server, "$0.8", concurrent=8, prices="prices.yaml")["evalbudget"]
    assert server.calls() == calls
    assert again["spent"] == block["spent"]
    more = run(folder, server, "$1", concurrent=8, prices="prices.yaml")["evalbudget"]
    assert server.bill == pytest.approx(more["spent"])
    assert 0.95 < server.bill <= 1
    calls = server.calls()
    run(folder, server, "$1", concurrent=8, prices="prices.yaml")
    assert server.calls() == calls


@pytest.mark.parametrize("sampler", ["auto", variant("eb-bernstein"), variant("rating-kernel")])
def test_samplers_that_weigh_costs_go_on_where_they_were(
    folder: Path, server: PaidServer, sampler: str
) -> None:
    server.fail(500, times=math.inf, after=40)
    options: dict[str, Any] = {"concurrent": 4, "prices": "prices.yaml", "sampler": sampler}
    with pytest.raises(Exception, match="500"):
        run(folder, server, "$0.5", args={"max_retries": 1}, **options)
    server.forgive()
    block = run(folder, server, "$0.5", **options)["evalbudget"]
    assert 0.95 * 0.5 < server.bill <= 0.5
    assert server.bill == pytest.approx(block["spent"])
    with closing(sqlite3.connect("j.db")) as db:
        (terms,) = db.execute("select value from meta where key = 'terms'").fetchone()
    assert json.loads(terms)["settings"]["costs"]


def test_what_was_under_way_at_a_kill_counts_at_most(folder: Path, server: PaidServer) -> None:
    run(folder, server, "$0.5", concurrent=8, prices="prices.yaml")
    last = max(billed_calls("j.db"), key=lambda call: call["changed"])
    most, cost = last["most"], last["cost"]
    with changed("j.db") as bill:
        ended = "cost = NULL, why = NULL, tokens = NULL"
        bill.execute(f"UPDATE paid_calls SET {ended} WHERE call = ?", (last["call"],))
    block = run(folder, server, "$0.7", concurrent=8, prices="prices.yaml")["evalbudget"]
    assert block["spent"] == pytest.approx(server.bill - cost + most)
    assert block["spent"] <= 0.7


@pytest.mark.parametrize("concurrent", [variant(1), 8])
def test_tokens(folder: Path, server: PaidServer, concurrent: int) -> None:
    block = run(folder, server, "2.5ktok", concurrent=concurrent)["evalbudget"]
    assert 0.97 * 2_500 <= block["spent"] <= 2_500
    assert block["unit"] == "tokens"
    assert "of 2,500 tokens" in block["summary"]["text"]


def test_a_risk_reserves_less(folder: Path, server: PaidServer) -> None:
    run(folder, server, "$0.6", concurrent=32, prices="prices.yaml", risk=0.1)
    assert server.bill <= 1.05 * 0.6  # a tenth of such runs may exceed it
    assert server.bill > 0.97 * 0.6
    assert any(call["bound"] > call["most"] for call in billed_calls("j.db"))


class _Counting(CoinModel):
    """A local model with a tokenizer: one token a word."""

    max_gen_toks = 16

    def tok_encode(self, text: str, **_: object) -> list[int]:
        return list(range(len(text.split())))


class _Slow(_Counting):
    """Takes two milliseconds for an answer, and a little more as time goes by."""

    seconds = 0.0

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self.seconds += (0.002 + 1e-6 * len(self.calls)) * len(requests)
        return super().generate_until(requests)


def test_local_models_count_by_their_tokenizer(folder: Path) -> None:
    lm = _Counting()
    with budgeted(budget="2ktok", sampler="uniform"):
        block = simple_evaluate(folder, lm)["evalbudget"]
    assert block["spent"] == 5 * len(lm.calls) <= 2000  # three words, one said, one that ends it
    assert block["spent"] > 0.97 * 2000


def test_local_models_are_paid_by_time(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.yaml").write_text("_Slow: {second: 3.6}\n")
    lm = _Slow()
    clock = SimpleNamespace(perf_counter=lambda: lm.seconds, sleep=time.sleep)
    monkeypatch.setattr(paid_calls, "time", clock)
    with budgeted(budget="$1", sampler="uniform", prices=tmp_path / "own.yaml"):
        block = simple_evaluate(folder, lm)["evalbudget"]
    assert block["spent"] == pytest.approx(3.6 * lm.seconds)
    assert 0.97 < block["spent"] < 1.01  # the last answers may take longer than any before
    assert block["readings"] == len(lm.calls) > N


class _InParts(_Counting):
    """Takes a millisecond for a batch, and one for each answer: alone, an answer takes longest."""

    seconds = 0.0

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self.seconds += 0.001 * (1 + len(requests))
        return super().generate_until(requests)


@pytest.mark.parametrize("budget", [0.5, 0.7213])
def test_what_is_left_of_a_budget_in_time_is_less_than_an_answer(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    (tmp_path / "own.yaml").write_text("_InParts: {second: 3.6}\n")
    lm = _InParts()
    clock = SimpleNamespace(perf_counter=lambda: lm.seconds, sleep=time.sleep)
    monkeypatch.setattr(paid_calls, "time", clock)
    with budgeted(budget=f"${budget}", sampler="uniform", prices=tmp_path / "own.yaml"):
        block = simple_evaluate(folder, lm)["evalbudget"]
    assert block["spent"] == pytest.approx(3.6 * lm.seconds)
    assert budget - 3.6 * 0.002 < block["spent"] <= budget + 1e-9


class _Writer(_Counting):
    """Takes two milliseconds for an answer."""

    seconds, answers = 0.0, 0

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self.seconds += 0.002 * len(requests)
        self.answers += len(requests)
        return ["an essay"] * len(requests)


@register_model("evalbudget-test-slow-judge")
class _SlowJudge(_Slow):
    """Rates all alike, and takes ten times as long as the writer of what it rates."""

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        _SlowJudge.seconds += 0.02 * len(requests)
        return ["4"] * len(requests)


def test_what_local_judges_are_paid_by_time_is_kept_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices, lm = tmp_path / "own.yaml", _Writer()
    prices.write_text("_Writer: {second: 3.6}\n_SlowJudge: {second: 3.6}\n")
    judges = [{"model": "evalbudget-test-slow-judge"}]
    folder = write_judged(tmp_path / "tasks", judges, n=40, rotation="single")
    monkeypatch.setattr(_SlowJudge, "seconds", 0.0)
    clock = SimpleNamespace(perf_counter=lambda: lm.seconds + _SlowJudge.seconds, sleep=time.sleep)
    monkeypatch.setattr(paid_calls, "time", clock)
    with budgeted(budget="$1", sampler="uniform", prices=prices):
        block = simple_evaluate(folder, lm, "essays")["evalbudget"]
    assert block["spent"] == pytest.approx(3.6 * (lm.seconds + _SlowJudge.seconds))
    assert 0.9 < block["spent"] < 1.01
    assert block["readings"] == lm.answers == pytest.approx(_SlowJudge.seconds / 0.02)  # each was judged


@pytest.mark.parametrize("name", ["AnthropicLM", "GGUFLM", "TextSynthLM", "WatsonxLLM"])
def test_models_that_ask_a_server_by_themselves_are_refused(folder: Path, name: str) -> None:
    """They repeat what failed, unseen, and AnthropicLM's replies are longer than its ``max_gen_toks``."""
    remote = type(name, (CoinModel,), {})()
    with budgeted(budget="2ktok", sampler="uniform"), pytest.raises(BudgetError, match=f"{name} of the host"):
        simple_evaluate(folder, model=remote)
    assert not Path(".evalbudget").exists()


def test_a_local_model_without_a_tokenizer_counts_at_most(folder: Path) -> None:
    with (
        budgeted(budget="5ktok", sampler="uniform", prices=None),
        pytest.raises(BudgetError, match="limits"),
    ):
        simple_evaluate(folder, CoinModel())
    lm: Any = CoinModel()
    lm.max_gen_toks = 16
    with budgeted(budget="5ktok", sampler="uniform"):
        block = simple_evaluate(folder, lm)["evalbudget"]
    (row,) = block["costs"]
    assert row["unknown"] == row["calls"] == len(lm.calls)
    assert 0.97 * 5_000 <= block["spent"] <= 5_000


@pytest.mark.parametrize(
    ("budget", "priced", "message"),
    [
        ("$0", ["m"], "must be above zero"),
        ("$-1", ["m"], "must be above zero"),
        ("-1", ["m"], "must be above zero"),
        ("EUR 5", ["m"], "is not in US dollars"),
        ("$5", ["j1"], r"no price is known for m, .*\n  m: \{input"),
        ("$0.001", ["m"], r"budget of \$0\.0010 is below what one call of m can cost here: \$0\.02"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_call(
    folder: Path, server: PaidServer, tmp_path: Path, budget: str, priced: list[str], message: str
) -> None:
    price_file(tmp_path, *priced)
    with pytest.raises(EvalbudgetError, match=message):
        run(folder, server, budget, prices="prices.yaml")
    assert server.calls() == 0
    assert not list(tmp_path.glob("*.db"))


def test_prices_that_miss_a_judge_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PaidServer
) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path, "m", "j1")
    folder = write_judged(tmp_path / "tasks", [server.judge("j1"), server.judge("j2")])
    with pytest.raises(BudgetError, match=r"no price is known for j2, .*\n  j2: "):
        run(folder, server, "$5", tasks="essays", prices="prices.yaml")
    assert server.calls() == 0


def test_a_budget_below_one_answer_and_its_judging_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PaidServer
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = _judged_by_two(tmp_path, server, 1)
    with pytest.raises(BudgetError, match=r"below what one answer and its judging can cost here: \$0\.0"):
        run(folder, server, "$0.045", tasks="essays", prices="prices.yaml")
    assert server.calls("m") == 0


@pytest.mark.parametrize(
    ("prompt", "lacks"), [("{{ topic }}: {{ response.split('. ')[1] }}", False), ("{{ nothing }}", True)]
)
def test_a_prompt_of_a_judge_may_take_an_answer_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PaidServer, prompt: str, lacks: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)
    said = rating()
    server.answer = lambda asked: said(asked) if asked.model == "j1" else "First. Second."
    asked: dict[str, Any] = {"prompt": prompt, "rotation": "single", "gen_kwargs": {"max_gen_toks": 20}}
    folder = write_judged(tmp_path / "tasks", [server.judge("j1")], **asked)
    options: dict[str, Any] = {"tasks": "essays", "prices": "prices.yaml"}
    if lacks:
        with pytest.raises(InvalidInputError, match="'nothing' is undefined; the document has topic"):
            run(folder, server, "$0.3", **options)
        assert server.calls() == 0
    else:
        block = run(folder, server, "$0.3", **options)["evalbudget"]
        assert server.calls("j1") == server.calls("m") == block["readings"] > 3
        assert server.bill <= block["spent"] + 1e-9 <= 0.3 + 1e-9


def test_other_currencies_and_prices_without_money(folder: Path, server: PaidServer, tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("m: {input: 1, output: 1, currency: EUR}\n")
    with pytest.raises(InvalidInputError, match="prices are in US dollars"):
        run(folder, server, "$5", prices="prices.yaml")
    with pytest.raises(BudgetError, match="--prices is for a budget in money"):
        run(folder, server, "50", prices="prices.yaml")


def test_a_record_in_money_does_not_go_on_in_calls(folder: Path, server: PaidServer) -> None:
    run(folder, server, "30", journal="calls.db")
    with pytest.raises(JournalError, match="has no bill"):
        run(folder, server, "$1", prices="prices.yaml", journal="calls.db")
    run(folder, server, "$0.3", concurrent=4, prices="prices.yaml")
    with pytest.raises(JournalError, match="was begun with a budget in money"):
        run(folder, server, "50")


def test_a_document_that_is_refused_for_good_costs_nothing_and_is_told(
    folder: Path, server: PaidServer
) -> None:
    server.fail(400, times=math.inf, when=lambda body: "say 7 please" in json.dumps(body))
    options: dict[str, Any] = {"concurrent": 2, "prices": "prices.yaml", "args": {"max_retries": 1}}
    block = run(folder, server, "$0.4", **options)["evalbudget"]
    assert block["closed_items"] == ["numbers:7"]
    assert block["failed"] >= 3
    assert "400" in next(iter(block["failures"]))
    lost = sum(row["unknown"] for row in block["costs"])
    assert lost <= 1  # the other one that was under way when the round broke off
    assert server.bill <= block["spent"] + 1e-9
    if not lost:
        assert server.bill == pytest.approx(block["spent"])


def test_several_tasks_share_one_bill(folder: Path, server: PaidServer) -> None:
    write_task(folder, name="others", n=5)
    options: dict[str, Any] = {"tasks": "numbers,others", "concurrent": 4, "prices": "prices.yaml"}
    found = run(folder, server, "$0.4", **options)
    assert server.bill == pytest.approx(found["evalbudget"]["spent"])
    assert server.bill <= 0.4
    costs = [sample["cost"] for own in found["samples"].values() for sample in own]
    assert math.fsum(costs) == pytest.approx(server.bill)


def test_one_answer_scored_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PaidServer
) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)
    server.answer = rating()
    judges = [server.judge(name, num_concurrent=4) for name in ("j1", "j2")]
    folder = write_judged(tmp_path / "tasks", judges, gen_kwargs={"temperature": 1, "max_gen_toks": 20})
    options: dict[str, Any] = {"tasks": "essays", "concurrent": 4, "prices": "prices.yaml"}
    block = run(folder, server, "$0.3", repeat="judge", **options)["evalbudget"]
    assert server.count()["m"] == N
    assert 0.9 * 0.3 < server.bill <= block["spent"] + 1e-9 <= 0.3 + 1e-9
    assert block["readings"] == server.billed - N


def test_prompts_that_are_sent_as_tokens_are_counted_as_tokens(folder: Path, server: PaidServer) -> None:
    lm: Any = LocalCompletionsAPI(
        base_url=server.completions, model="m", tokenizer_backend="none", num_concurrent=4
    )
    lm.tokenized_requests = True
    lm.tok_encode = lambda texts, **_: [list(text.encode()) for text in texts]
    server.answer = lambda asked: bytes(json.loads(asked.prompt)).decode().split()[1]
    with budgeted(budget="1.5ktok", sampler="uniform", journal="t.db"):
        found = simple_evaluate(folder, lm, gen_kwargs={**GENERATION, "max_gen_toks": 20})
    block = found["evalbudget"]
    assert 0.9 * 1500 < block["spent"] <= 1500
    assert {call["most"] for call in billed_calls("t.db")} == {32.0, 33.0}  # 12 or 13 letters, 20 said
    costs = math.fsum(sample["cost"] for sample in found["samples"]["numbers"])
    assert costs == block["spent"]


@pytest.mark.parametrize("concurrent", [variant(1), 8])
def test_a_sample_of_the_documents_is_as_large_as_the_money_pays_for(
    tmp_path: Path, folder: Path, server: PaidServer, concurrent: int
) -> None:
    write_task(tmp_path / "tasks", n=400)
    found = run(folder, server, "$0.40", concurrent=concurrent, prices="prices.yaml", sampler="sample")
    block = found["evalbudget"]
    assert server.bill == pytest.approx(block["spent"])
    assert 0.9 * 0.4 <= server.bill <= 0.4
    read = [record["doc_id"] for record in found["samples"]["numbers"]]
    assert len(set(read)) == len(read) == block["readings"] < 400
    assert f"{len(read)} of 400 items, once each" in " ".join(block["summary"]["text"].split())
