"""Audits in money: every call of models, judges and scorers that label is on one bill beside the store."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.bills import paid_in
from tests.claims import is_full
from tests.host_inspect.audited_money_tasks import right
from tests.host_inspect.paid_model import Till, tills
from tests.host_inspect.worlds import UNWATCHED

import warm
from evalbudget.audits.store import AuditStore, weigh
from evalbudget.audits.store._money import spent_before
from evalbudget.budget import Unit, shown_amount
from evalbudget.cli.main import cli
from evalbudget.prices import Price
from evalbudget.store import Address
from evalbudget_inspect.host import bill as gate
from postgresql_server import Server

PRICE = Price(input=10.0, output=100.0)
TASK = Path(__file__).with_name("audited_money_tasks.py")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(TASK, tmp_path / "stories.py")
    (tmp_path / "prices.yaml").write_text("paid/*: {input: 10, output: 100}\n")


@pytest.fixture
def till() -> Iterator[Till]:
    tills["here"] = Till(PRICE)
    yield tills["here"]
    assert not gate._accounts  # a run that has ended is let go


MODELS = ("paid/a", "paid/b")


def run(
    *more: str,
    budget: str | None = "$5",
    labelled_by: str | None = None,
    items: int = 40,
    pilot: int | None = 12,
    store: str = "a.sqlite",
    **model: object,
) -> Result:
    command = ["inspect", "audit", store, "stories.py@graded", "--model", ",".join(MODELS)]
    for name, value in model.items():
        command += ["-M", f"{name}={value}"]
    for role in ("grader", "panel"):
        command += ["--model-role", f"{role}={{model: paid/{role}, max_tokens: 40}}"]
    command += ["--max-tokens", "40", "--score-range", "1..9", "--judge", "grader"]
    command += ["--sampler-option", f"items={items}"]
    command += [] if pilot is None else ["--sampler-option", f"pilot={pilot}"]
    if budget is not None:
        command += ["--budget", budget, *(["--prices", "prices.yaml"] if "$" in budget else [])]
    if labelled_by is not None:
        command += ["--labels-from", labelled_by]
    return CliRunner(env=UNWATCHED).invoke(cli, [*command, *more])


def billed() -> float:
    """By the file, what is under way at the most."""
    return paid_in("a.bill.db")


def label_all(*, alike: bool = False) -> int:
    with AuditStore.open("a.sqlite") as store:
        draws = {draw.index: draw for draw in store.draws.all()}
        wanted = weigh(store).wanted
        for index in wanted:
            draw = draws[index]
            score = right(MODELS[0 if alike else draw.model], store.design.items[draw.item])
            store.labels.add(index, score, "ann")
        return len(wanted)


def test_every_call_is_on_the_bill_and_a_larger_budget_goes_on(till: Till) -> None:
    done = run(budget="$0.05", labelled_by="panel", refuses=0.1)
    assert done.exit_code in (1, 3), done.output
    assert "The budget of $0.050 is used up, and " in done.output
    assert "of this batch are missing. The same command goes on with a larger --budget" in done.output
    assert "Paid $0.0" in done.output
    assert 0.8 * 0.05 <= till.total <= 0.05
    assert billed() == pytest.approx(till.total)
    done = run(budget="$0.6", labelled_by="panel", refuses=0.1)
    assert done.exit_code == 0, done.output
    assert "paid/a is the best" in done.output
    assert till.total <= 0.6
    assert billed() == pytest.approx(till.total)
    with AuditStore.open("a.sqlite") as store:
        draws, labels = store.draws.all(), store.labels.counting()
    # what the first run paid for is not bought again
    for name in ("a", "b"):
        assert till.calls(name) == len({draw.item for draw in draws if f"paid/{name}" == MODELS[draw.model]})
    judged = {(draw.model, draw.item) for draw in draws if not math.isnan(draw.judge)}
    assert till.calls("grader") == len(judged)
    assert till.calls("panel") == len(labels)


@pytest.mark.variant
def test_the_bill_of_an_audit_in_a_database_is_there_too(till: Till, postgresql: Server) -> None:
    store = f"{postgresql.url}#paid_on_inspect"
    for budget in ("$0.02", "$0.04"):
        done = run(budget=budget, labelled_by="panel", store=store)
        assert f"The budget of {budget}0 is used up, and " in done.output
        assert 0.7 * float(budget[1:]) <= till.total <= float(budget[1:])
        assert spent_before(Address.parse(store)) == (Unit.USD, pytest.approx(till.total))
    without = run(budget=None, store=store)
    assert without.exit_code == 2
    assert "was begun with a budget in money or tokens (bill of postgresql" in without.output
    assert not list(Path().glob("*.bill.db"))


def test_labels_that_the_money_does_not_buy_are_left_to_people(till: Till) -> None:
    done = run(budget="$5", labelled_by="panel", items=6)
    spent = till.total - sum(cost for name, cost in till.paid if name == "panel")
    Path("a.sqlite").unlink()
    Path("a.bill.db").unlink()
    shutil.rmtree("logs")
    till.paid.clear()
    done = run(budget=f"${spent * 1.3:.3f}", labelled_by="panel", items=6)
    assert done.exit_code == 3, done.output
    assert "is used up. People can label what is left" in done.output, done.output
    assert billed() == pytest.approx(till.total)
    with AuditStore.open("a.sqlite") as store:
        attempts = store.attempts.all()
        labels = store.labels.counting()
    assert 0 < len(labels) == till.calls("panel") < 12
    assert sum(each.reply is not None and bool(each.reply.failure) for each in attempts) <= 16
    left = label_all()
    assert 0 < left <= 12 - len(labels)
    with AuditStore.open("a.sqlite") as store:
        assert len(store.labels.counting()) == len(labels) + left
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # as before


def test_tokens_need_no_prices(till: Till) -> None:
    done = run(budget="1ktok", labelled_by="panel")
    assert "The budget of 1,000 tokens is used up" in done.output
    assert till.tokens == billed() <= 1000


def test_calls_that_bring_no_reply_count_at_the_most(till: Till) -> None:
    done = run(budget="$0.1", fails=0.3)
    assert done.exit_code in (1, 3), done.output
    assert "of them count at the most that they can cost" in done.output
    assert till.total < billed() <= 0.1


def test_labels_of_people_are_not_on_the_bill_and_weigh_by_what_the_judge_cost(till: Till) -> None:
    done = run("--label-price", "$0.004")
    assert done.exit_code == 3, done.output
    with AuditStore.open("a.sqlite") as store:
        assert store.design.config["label_price"] == 0.004
        assert store.design.config["judge_price"] == pytest.approx(0.0002)
        (price,) = store.judge_prices.all().values()
        judged = store.progress().drawn
    graded = sum(cost for name, cost in till.paid if name not in "ab")
    assert price == pytest.approx(graded / judged)
    before = till.total
    while label_all():
        done = run("--label-price", "$0.004")
    assert done.exit_code == 0, done.output
    assert till.total > before
    assert billed() == pytest.approx(till.total)
    with AuditStore.open("a.sqlite") as store:
        # a score that costs nearly as much as a label is not worth it, which the first batch did not know
        assert any(math.isnan(draw.judge) for draw in store.draws.all() if draw.policy)
        assert set(store.judge_prices.all()) >= {0}


@pytest.mark.parametrize(
    ("budget", "more", "message"),
    [
        ("100", [], "--budget has no meaning in an audit; the labels it may ask for: --max-labels N"),
        ("$0", [], "must be above zero"),
        ("€5", [], "is not in US dollars"),
        (None, ["--prices", "prices.yaml"], "--prices is for a budget in money or tokens"),
        (None, ["--label-price", "$2"], "add --budget '$5'"),
        ("2Mtok", ["--label-price", "$2"], "only a --budget in dollars"),
        ("$5", ["--label-price", "dear"], "--label-price dear is no price"),
        ("$5", ["--risk", "2"], "write a chance"),
        ("$5", ["--sampler", "pp-lucb", "--label-price", "$2"], "--sampler pp-lucb does not learn that"),
        ("$0.001", [], "the budget of $0.0010 is below one call of paid/"),
    ],
)
def test_what_is_refused(till: Till, budget: str | None, more: list[str], message: str) -> None:
    extra = [] if "pp-lucb" in more else ["--sampler-option", "pilot=12"]
    done = run(*more, *extra, budget=budget, pilot=None)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())
    assert not till.paid


def test_models_without_a_price_are_refused_before_the_first_call(till: Till) -> None:
    Path("prices.yaml").write_text("paid/?: {input: 10, output: 100}\n")
    done = run()
    assert done.exit_code == 2
    assert "no price is known for paid/grader, paid/panel" in done.stderr
    assert not till.paid
    assert not Path("a.sqlite").exists()
    assert not Path("a.bill.db").exists()


def test_an_audit_is_gone_on_with_as_it_was_begun(till: Till) -> None:
    assert run(items=4).exit_code == 3
    without = run(items=4, budget=None)
    assert without.exit_code == 2
    assert "was begun with a budget in money or tokens" in without.stderr
    Path("a.bill.db").unlink()
    gone = run(items=4)
    assert gone.exit_code == 2
    assert "what it cost is not known" in gone.stderr


def test_answers_of_several_calls_that_are_cut_off_are_asked_again(till: Till) -> None:
    done = run("-T", "calls=3", budget="$0.08", latency=0.002)
    assert "The budget of $0.080 is used up" in done.output
    assert till.total <= 0.08
    assert billed() == pytest.approx(till.total)
    done = run("-T", "calls=3", budget="$2", latency=0.002)
    assert done.exit_code == 3, done.output
    assert billed() == pytest.approx(till.total)
    with AuditStore.open("a.sqlite") as store:
        texts = [store.draws.answer(draw.item, draw.model) for draw in store.draws.all()]
        assert not any(math.isnan(draw.judge) for draw in store.draws.all())
    assert not any(text is None or text.response.startswith("(no answer") for text in texts)


def test_eval_with_an_audit_s_sampler_takes_money_too(till: Till) -> None:
    command = ["inspect", "eval", "stories.py@graded", "--model", ",".join(MODELS), "--score-range", "1..9"]
    command += ["--sampler", "audit-eprocess", "--sampler-option", "items=4", "--max-tokens", "40"]
    for role in ("grader", "panel"):
        command += ["--model-role", f"{role}={{model: paid/{role}, max_tokens: 40}}"]
    done = CliRunner(env=UNWATCHED).invoke(cli, [*command, "--budget", "$1", "--prices", "prices.yaml"])
    assert done.exit_code == 3, done.output
    assert "Paid $0." in done.output
    assert Path("logs/audit.bill.db").exists()
    refused = CliRunner().invoke(cli, [*command, "--budget", "9"])
    assert "the labels it may ask for: --sampler-option max_labels=N; drop it" in refused.stderr


def test_a_dry_run_says_what_would_be_asked_and_asks_nobody(till: Till) -> None:
    done = run("--dry-run", "--label-price", "$2", "--max-labels", "50")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Task graded with paid/a, paid/b Items 40 Sampler audit-eprocess Budget $5.00, for calls;" in said
    assert "A call $0.0045 of a model at most" in said
    assert "Next 24 answers to 12 items, scored by the judge ($0.11 at most, one call each, without" in said
    assert "Labels about 12 after the first batch ($24.00)" in said
    assert "Expected not known before the first answers" in said
    assert "At most 80 answers, 50 labels ($100.00); $5.00, whatever happens No call was made." in said
    assert not till.paid
    assert not Path("a.sqlite").exists()
    assert not Path("a.bill.db").exists()
    assert "but for a chance of 1% (--risk)" in run("--dry-run", "--risk", "0.01").output

    assert run(items=30).exit_code == 3
    paid = till.total
    with AuditStore.open("a.sqlite") as store:
        drawn, wanted = len(store.draws.all()), len(weigh(store).wanted)
    said = " ".join(run("--dry-run", items=30).output.split())
    assert f"So far {drawn} answers, {shown_amount(billed(), Unit.USD)} by the bill; $" in said
    assert f"are left Next {wanted} labels; no call before they are in" in said
    tokens = run("--dry-run", items=30, budget="2Mtok")
    assert (tokens.exit_code, "was begun with a budget in dollars" in tokens.stderr) == (2, True)
    label_all(alike=True)
    said = " ".join(run("--dry-run", items=30).output.split())
    assert f"So far {drawn} answers" in said
    assert " answers to " in said
    assert till.total == paid


@pytest.mark.parametrize(
    ("budget", "more", "message"),
    [
        ("100", [], "--budget has no meaning in an audit"),
        ("$0.001", [], "is below one call of paid/a, which may cost"),
        ("$5", ["--judge", "nobody"], "unknown judge 'nobody'"),
        ("$5", ["--limit", "5"], "--sampler-option items=N"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would(till: Till, budget: str, more: list[str], message: str) -> None:
    done = run("--dry-run", *more, budget=budget)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())
    Path("prices.yaml").write_text("paid/?: {input: 10, output: 100}\n")
    assert "no price is known for paid/grader, paid/panel" in run("--dry-run").stderr
    assert not till.paid


KILLED = """\
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, solver

@solver
def noted():
    async def solve(state, generate):
        state = await generate(state)
        with (Path(__file__).parent / "answered").open("a") as bill:
            bill.write(f"{state.model.name} {state.sample_id}\\n")
        return state

    return solve

@task
def quiz() -> Task:
    half = {"simulated_mean": 0.5}
    samples = [Sample(id=f"item-{i}", input="?", target="C", metadata=half) for i in range(60)]
    return Task(dataset=MemoryDataset(samples), solver=noted(), scorer=match(location="exact"))
"""


@pytest.mark.variant
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_and_run_again(number: int, tmp_path: Path) -> None:
    (tmp_path / "quiz.py").write_text(KILLED)
    Path("p.yaml").write_text("simulated/*: {call: 0.001, max_output: 100}\n")
    evalbudget = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
    arguments = [
        *("inspect", "audit", "a.sqlite", str(tmp_path / "quiz.py"), "--sampler-option", "pilot=60"),
        *("--budget", "$0.07", "--prices", "p.yaml", "--model", "simulated/a,simulated/b"),
        *("--max-samples", "3", "-M", "bernoulli=true", "-M", "template='{grade}'", "-M", "latency=0.1"),
        *("--display", "none"),
    ]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-c", evalbudget, *arguments]
    fresh = number == signal.SIGINT
    started = fresh and is_full()
    process = subprocess.Popen(command, **quiet) if started else warm.Popen(command, host="inspect", **quiet)
    asked, deadline = tmp_path / "answered", time.monotonic() + 120
    while time.monotonic() < deadline and (not asked.exists() or len(asked.read_text().split("\n")) < 12):
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.wait(timeout=120)
    before = len(asked.read_text().splitlines())
    assert 11 <= before < 70
    done = CliRunner(env=UNWATCHED).invoke(cli, arguments)
    assert done.exit_code in (1, 3), done.output
    calls = asked.read_text().splitlines()
    assert "is used up" in done.output
    assert (70 if fresh else 64) <= len(calls) <= 70  # of $0.001 each
    assert 0.001 * len(calls) - 1e-9 <= billed() <= 0.07 + 1e-9
    assert len(calls) == len(set(calls)) or not fresh
    assert len(calls) - len(set(calls)) <= 6  # what was under way, and in no log yet
