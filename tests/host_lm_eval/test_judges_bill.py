"""The budget is kept on the bill of judges: calls sent again, lost at a kill, and ended by a signal."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ALL_COMPLETED, wait
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.judged_worlds import evaluate, write_judged
from tests.host_lm_eval.worlds import bought_in, rounds_of, written_in

from evalbudget.errors import JournalError
from evalbudget.run import UNANSWERED
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.answers import SCORED
from evalbudget_lm_eval.judges.asking import Asking
from evalbudget_lm_eval.run.kept import Kept
from loopback import GARBLED, Server, rating

BUDGET = 36
PANEL = ["a", "b"]


def _folder(server: Server, concurrent: int, judges: list[str] = PANEL, **options: Any) -> Path:
    for name in judges:
        server.answers[name] = rating()
    panel = [server.judge(name, num_concurrent=concurrent, max_retries=3) for name in judges]
    return write_judged(Path("tasks"), panel, n=12, gen_kwargs={"temperature": 1}, **options)


def _run(folder: Path, server: Server) -> dict[str, Any]:
    with rounds_of(12), budgeted(budget=BUDGET, sampler="uniform", journal="j.db"):
        found = evaluate(folder, server.chat_args("writer"))
    block: dict[str, Any] = found["evalbudget"]
    return block


def _bill(server: Server) -> int:
    return sum(one.billed and one.model in PANEL for one in server.served)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_a_judge_that_is_asked_again_is_paid_again(server: Server, concurrent: int) -> None:
    server.fail(GARBLED, model="b", after=2, times=2)
    block = _run(_folder(server, concurrent), server)
    assert _bill(server) == block["spent"] == BUDGET
    assert block["failures"] == {UNANSWERED: 2}


def test_what_the_budget_does_not_pay_is_not_asked_again(server: Server) -> None:
    server.fail(GARBLED, model="b", after=6, times=9)
    block = _run(_folder(server, 1), server)
    assert _bill(server) == block["spent"] == BUDGET
    assert block["readings"] == BUDGET - block["failed"]


def test_an_error_of_a_judges_server_costs_nothing(server: Server) -> None:
    server.fail(500, model="a", times=2)
    block = _run(_folder(server, 1), server)
    assert (_bill(server), block["spent"], block["readings"]) == (BUDGET, BUDGET, BUDGET)


def test_calls_of_judges_under_way_at_a_kill_are_spent(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(server, 2)
    keep, kept = Asking._keep, count()

    def killed(self: Asking, *given: Any) -> Any:
        if next(kept) >= 7:  # nobody hears the rest
            raise KeyboardInterrupt
        return keep(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Asking, "_keep", killed)
        with pytest.raises(KeyboardInterrupt):
            _run(folder, server)
    lost = _bill(server) - 7
    assert lost >= 1
    block = _run(folder, server)
    assert _bill(server) == block["spent"] == BUDGET
    assert block["failures"] == {UNANSWERED: lost}
    assert block["readings"] == BUDGET - lost
    assert server.calls("writer") <= BUDGET
    calls = server.calls()
    again = _run(folder, server)  # what was lost is counted once
    assert (server.calls(), again["failed"]) == (calls, lost)


def test_what_a_judge_said_is_on_record_before_it_is_asked_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(running: Any, *_: Any) -> Any:  # the thread that hears of replies, on a busy machine
        return wait(running, return_when=ALL_COMPLETED)

    monkeypatch.setattr("evalbudget_lm_eval.judges.asking.wait", late)
    _run(_folder(server, 1), server)
    under_way: Counter[str] = Counter()
    for row in written_in("j.db"):
        if row.kind == "asks":
            under_way[row.what] += 1
            assert under_way[row.what] == 1
        elif row.kind == "said" and row.what[0] == SCORED:
            under_way[json.loads(row.what[1])["evalbudget_judge"]] -= 1
    assert under_way == Counter(a=0, b=0)


@pytest.mark.parametrize("method", ["told", "pays"])
def test_what_cannot_be_recorded_ends_the_run(
    server: Server, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    if method == "pays":
        server.fail(GARBLED, model="a", times=1)

    def full(*given: Any) -> None:
        raise JournalError("the disk is full")

    monkeypatch.setattr(Kept, "pay" if method == "pays" else "begin", full)
    with pytest.raises(JournalError, match="disk is full"):
        _run(_folder(server, 1), server)
    asked = [one.prompt for one in server.served if one.model == "a"]
    assert len(asked) == len(set(asked)) <= 3  # the next one may be on its way; nothing is sent again


@pytest.mark.parametrize("budget", [12, 24])
def test_what_judges_said_before_an_interrupt_counts_and_the_budget_holds(
    server: Server, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    """Six of twelve replies are kept, and up to twelve are billed; a budget of twelve is nearly used up."""
    folder = _folder(server, 8)
    options: dict[str, Any] = {"sampler": "uniform", "journal": "j.db"}
    keep, heard = Asking._keep, 0

    def interrupted(asking: Any, *given: Any) -> Any:
        nonlocal heard
        heard += 1
        if heard > 6:
            raise KeyboardInterrupt
        return keep(asking, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Asking, "_keep", interrupted)
        with pytest.raises(KeyboardInterrupt), rounds_of(12), budgeted(budget=budget, **options):
            evaluate(folder, server.chat_args("writer"))
    assert 7 <= _bill(server) <= 12
    with rounds_of(12), budgeted(budget=12, **options):
        block = evaluate(folder, server.chat_args("writer"))["evalbudget"]
    assert _bill(server) <= block["spent"] == 12
    assert block["readings"] >= 6
    assert server.calls("writer") == 12


def test_local_judges_bill_nobody(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder(server, 1)
    monkeypatch.setattr("evalbudget_lm_eval.judges.asking.is_api", lambda lm: False)
    _run(folder, server)
    assert "asks" not in {row.kind for row in written_in("j.db")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_recorded_answers_are_judged_keeps_what_judges_say(
    server: Server, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = _folder(server, 2)

    def broken(self: Asking) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Asking, "run", broken)  # the model answered, nobody was judged
        with pytest.raises(KeyboardInterrupt):
            _run(folder, server)
    assert _bill(server) == 0
    server.latency = 0.2

    def send() -> None:
        while server.calls("a") < 1:
            time.sleep(0.005)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    pool, dealt = Asking._pool, []

    def dealing(self: Asking, judge: int, lm: Any) -> Any:
        dealt.append(judge)
        if len(dealt) == 5:  # the first are asked, the others not dealt yet
            send()
        return pool(self, judge, lm)

    if number == signal.SIGINT:
        monkeypatch.setattr(Asking, "_pool", dealing)
    else:
        sender.start()
    with pytest.raises(KeyboardInterrupt):
        _run(folder, server)
    if number == signal.SIGTERM:
        sender.join()
    monkeypatch.setattr(Asking, "_pool", pool)
    server.latency = 0.0
    assert 1 <= _bill(server) <= 12  # of the first round
    rows = written_in("j.db")
    heard = [row for row in rows if row.kind == "said" and row.what[0] == SCORED]
    assert len(heard) == sum(row.kind == "asks" for row in rows) == _bill(server)
    block = _run(folder, server)
    assert (_bill(server), block["spent"], block["readings"]) == (BUDGET, BUDGET, BUDGET)
    assert bought_in("j.db").spent == BUDGET
