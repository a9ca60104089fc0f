"""Audits in money: one bill for all arms and their judges, beside the store."""

from __future__ import annotations

import functools
import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lm_eval.tasks
import pytest
from click.testing import CliRunner, Result
from tests.bills import paid_in
from tests.claims import variant
from tests.host_lm_eval.judged_worlds import write_judged
from tests.host_lm_eval.money_worlds import PaidServer, price_file
from tests.host_lm_eval.test_race_command import EVALBUDGET, environment

import warm
from evalbudget.audits.store import AuditStore, weigh
from evalbudget.audits.store._money import spent_before
from evalbudget.budget import Unit
from evalbudget.cli.main import cli
from evalbudget.store import Address
from loopback import Asked, rating
from postgresql_server import Server as PostgreSQL

ARMS = ("m", "j1")


def _answer(asked: Asked) -> str:
    if asked.model == "j2":
        return rating()(asked)
    return f"An essay by {asked.model}, {asked.luck:.3f}" + " and more" * int(3 * asked.luck)


@pytest.fixture
def server() -> Iterator[PaidServer]:
    with PaidServer(answer=_answer) as running:
        yield running


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = functools.partial(lm_eval.tasks.TaskManager, include_defaults=False)
    monkeypatch.setattr(lm_eval.tasks, "TaskManager", few)
    price_file(tmp_path)


def _command(
    server: PaidServer, *more: str, budget: str | None = "$5", n: int = 40, store: str = "a.sqlite"
) -> list[str]:
    write_judged(Path("judged"), [server.judge("j2")], n=n, rotation="single")
    arms = [
        f"--arm={name}=local-chat-completions:{server.chat_args(name, num_concurrent=4, max_retries=3)}"
        for name in ARMS
    ]
    paid = (
        []
        if budget is None
        else ["--budget", budget, *(["--prices", "prices.yaml"] if "$" in budget else [])]
    )
    return [
        *("lm-eval", "audit", store, *arms, "--tasks", "essays", "--include_path", "judged"),
        *("--apply_chat_template", "--score_range", "1.0..5.0", "--gen_kwargs", "max_gen_toks=20"),
        *(*paid, *more),
    ]


def _run(server: PaidServer, *more: str, **given: Any) -> Result:
    return CliRunner().invoke(cli, _command(server, *more, **given))


def _billed() -> float:
    """By the file, what is under way at the most."""
    return paid_in("a.bill.db")


def test_every_call_is_on_the_bill_and_a_larger_budget_goes_on(server: PaidServer) -> None:
    done = _run(server, budget="$0.3")
    assert done.exit_code in (1, 3), done.output
    assert "The budget of $0.30 is used up, and " in done.output
    assert "Paid $0." in done.output
    assert 0.8 * 0.3 <= server.bill <= 0.3
    assert _billed() == pytest.approx(server.bill)
    done = _run(server, budget="$5")
    assert done.exit_code == 3, done.output
    assert "labels wanted" in done.output
    assert _billed() == pytest.approx(server.bill)
    bought = Counter((one.model, one.prompt) for one in server.served)
    assert max(bought.values()) == 1
    with AuditStore.open("a.sqlite") as store:
        draws = store.draws.all()
    assert bought.total() == 2 * len(draws)
    assert not any(math.isnan(draw.judge) for draw in draws)


def test_the_bill_of_an_audit_in_a_database_is_there_too(server: PaidServer, postgresql: PostgreSQL) -> None:
    store = f"{postgresql.url}#paid_on_lm_eval"
    for budget in ("$0.20", "$0.30"):
        done = _run(server, budget=budget, store=store)
        assert f"The budget of {budget} is used up, and " in done.output, done.output
        assert 0.7 * float(budget[1:]) <= server.bill <= float(budget[1:])
        assert spent_before(Address.parse(store)) == (Unit.USD, pytest.approx(server.bill))
    without = _run(server, budget=None, store=store)
    assert without.exit_code == 2
    assert "was begun with a budget in money or tokens (bill of postgresql" in without.output
    assert not list(Path().glob("*.bill.db"))


def test_replies_without_usage_count_at_the_most(server: PaidServer) -> None:
    server.usage = "none"
    done = _run(server, budget="$1", n=12)
    assert done.exit_code in (1, 3), done.output
    assert "of them count at the most that they can cost" in done.output
    assert server.bill < _billed() <= 1


def test_tokens_need_no_prices(server: PaidServer) -> None:
    done = _run(server, budget="3ktok", n=12)
    assert "The budget of 3,000 tokens is used up" in done.output
    assert 0 < _billed() <= 3000


def test_labels_of_people_are_not_on_the_bill_and_weigh_by_what_the_judge_cost(server: PaidServer) -> None:
    priced = ("--label_price", "$0.01", "--sampler_option", "pilot=8")
    done = _run(server, *priced, n=24)
    assert done.exit_code == 3, done.output
    with AuditStore.open("a.sqlite") as store:
        assert store.design.config["label_price"] == 0.01
        ((batch, price),) = store.judge_prices.all().items()
        assert batch == 0
        assert price == pytest.approx(server.dollars["j2"] / len(store.draws.all()))
        for index in weigh(store).wanted:
            store.labels.add(index, 1.0 + 3.0 * (index % 2), "ann")
        assert len(store.draws.all()) < 48
    done = _run(server, *priced, n=24)
    assert done.exit_code in (0, 1, 3), done.output
    assert _billed() == pytest.approx(server.bill)


@pytest.mark.parametrize(
    ("budget", "more", "message"),
    [
        ("20x", [], "--budget has no meaning in an audit; the labels it may ask for: --max_labels N"),
        ("$0", [], "must be above zero"),
        (None, ["--prices", "prices.yaml"], "--prices is for a budget in money or tokens"),
        (None, ["--label_price", "$2"], "add --budget '$5'"),
        ("$5", ["--risk", "2"], "write a chance"),
        ("$0.001", [], "a budget of $0.0010 is below what one call of m can cost here"),
    ],
)
def test_what_is_refused(server: PaidServer, budget: str | None, more: list[str], message: str) -> None:
    done = _run(server, *more, budget=budget, n=4)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())
    assert server.calls() == 0


def test_models_without_a_price_are_refused_before_the_first_call(server: PaidServer) -> None:
    price_file(Path(), "m")
    done = _run(server, n=4)
    assert done.exit_code == 2
    assert "no price is known for j1, j2" in done.stderr
    assert server.calls() == 0
    assert not Path("a.sqlite").exists()
    assert not Path("a.bill.db").exists()


def test_an_audit_is_gone_on_with_as_it_was_begun(server: PaidServer) -> None:
    assert _run(server, n=4).exit_code == 3
    without = _run(server, n=4, budget=None)
    assert without.exit_code == 2
    assert "was begun with a budget in money or tokens" in without.stderr
    other = _run(server, n=4, budget="2Mtok")
    assert other.exit_code == 2
    assert "was begun with a budget in dollars" in other.stderr
    Path("a.bill.db").unlink()
    gone = _run(server, n=4)
    assert gone.exit_code == 2
    assert "what it cost is not known" in gone.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, variant(signal.SIGINT)])
def test_stopped_and_run_again(server: PaidServer, tmp_path: Path, number: int) -> None:
    server.hold(20)
    command = [sys.executable, "-c", EVALBUDGET, *_command(server, budget="$0.6")]
    options: dict[str, Any] = {"host": "lm-eval", "cwd": tmp_path, "env": {**os.environ, **environment()}}
    with warm.Popen(command, **options) as process:
        while not server.held and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        server.release()
        assert process.wait() != 0
    assert server.bill - 1e-9 <= _billed() <= 0.6 + 1e-9
    done = _run(server, budget="$0.6")
    assert done.exit_code in (1, 3), done.output
    assert "is used up" in done.output
    assert server.bill - 1e-9 <= _billed() <= 0.6 + 1e-9
    assert server.bill > 0.7 * 0.6
    bought = Counter((one.model, one.prompt) for one in server.served)
    assert sum(n - 1 for n in bought.values()) <= 6  # what was under way


def test_a_dry_run_says_what_would_be_asked_and_asks_nobody(server: PaidServer) -> None:
    done = _run(server, "--dry_run", "--label_price", "$2", "--sampler_option", "pilot=8", "--risk", "0.01")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Task essays with m, j1 Items 40 Sampler audit-eprocess Budget $5.00, for calls;" in said
    assert "Next 16 answers to 8 items, scored by the judge" in said
    assert "Labels about 8 after the first batch ($16.00)" in said
    assert "At most 80 answers, 80 labels ($160.00); $5.00, but for a chance of 1% (--risk) that" in said
    assert "No call was made." in said
    price_file(Path(), "m")
    assert "no price is known for j1, j2" in _run(server, "--dry_run").stderr
    assert server.calls() == 0
    assert not Path("a.sqlite").exists()
    assert not Path("a.answers.db").exists()
