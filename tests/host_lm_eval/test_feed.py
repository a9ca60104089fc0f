"""A model behind a server is asked for more while answers come in and are scored; nothing else differs."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalChatCompletion
from tests.host_lm_eval.worlds import bought_in, chat_model, simple_evaluate, write_task, written_in

from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.feed import Feed, can_be_fed
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.responses import Hook
from evalbudget_lm_eval.host.task_requests import Sent
from evalbudget_lm_eval.host.used_up import UsedUpError
from evalbudget_lm_eval.host.wire import Final, Wire
from evalbudget_lm_eval.repeats.progress import Progress
from loopback import Fault, Server

N, BUDGET, AT_ONCE = 40, 400, 4
CHAT: dict[str, Any] = {"apply_chat_template": True, "gen_kwargs": {"temperature": 1.0, "do_sample": True}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks", n=N)


@pytest.fixture(autouse=True)
def _own_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process of lm-eval's own: inspect may have left the loop of notebooks behind in this one."""
    monkeypatch.setattr(asyncio, "run", asyncio.runners.run)


def _run(folder: Path, server: Server, *, budget: int = BUDGET, **more: Any) -> dict[str, Any]:
    options = {"sampler": "uniform", "budget": budget, "journal": "j.db", **more}
    with budgeted(**options):
        model = chat_model(server, num_concurrent=AT_ONCE, max_retries=1)
        block = simple_evaluate(folder, model, **CHAT)["evalbudget"]
    assert not [one for one in threading.enumerate() if one.name.startswith("evalbudget ")]
    return dict(block)


def _number(body: dict[str, Any]) -> int:
    return int(body["messages"][-1]["content"].rsplit("say ", 1)[1].split()[0])


def _once(server: Server, after: int, do: Callable[[dict[str, Any]], Fault | None]) -> None:
    """Disturb one request, when so many were answered."""
    times = iter([True])
    server.disturb = lambda body: do(body) if server.billed >= after and next(times, False) else None


@pytest.mark.parametrize("sampler", ["uniform", "auto"])
def test_calls_go_on_while_answers_are_scored_and_never_more_at_once(
    folder: Path,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    sampler: str,
) -> None:
    here, frozen, told = list[int](), list[bool](), list[int]()
    for name, n in (("freeze", 1), ("unfreeze", -1)):  # the tests have frozen what is loaded themselves
        monkeypatch.setattr(gc, name, partial(told.append, n))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: sum(told))
    score = PrimedTasks.replay

    def scored(self: PrimedTasks, *given: Any, **named: Any) -> Any:
        here.append(server.at_once)
        frozen.append(gc.get_freeze_count() > 0)
        return score(self, *given, **named)

    monkeypatch.setattr(PrimedTasks, "replay", scored)
    server.latency = 0.01
    with caplog.at_level(logging.INFO, "lm_eval"):
        block = _run(folder, server, sampler=sampler)
    assert block["spent"] == block["readings"] == server.billed == BUDGET
    assert server.most_at_once == AT_ONCE
    assert sum(n > 0 for n in here) > 1
    assert any(frozen)  # no call waits while Python looks through all of the host
    assert not sum(told)
    sent = Counter((_number(one.body), one.body["seed"]) for one in server.served)
    assert max(sent.values()) == 1  # every call its own seed
    assert "Requesting API" not in capsys.readouterr().err
    assert "Tokenized requests are disabled" not in caplog.text  # as the host says of every list


def test_one_slow_call_holds_up_nothing_else(folder: Path, server: Server) -> None:
    round_after = threading.Event()

    def slow(body: dict[str, Any]) -> Fault:
        round_after.wait(100)
        return Fault("slow")

    def heard(asked: Any) -> str:
        if server.billed > 60 + 256:
            round_after.set()
        return said(asked)

    said, server.answer = server.answer, heard
    _once(server, 60, slow)
    server.latency = 0.001
    block = _run(folder, server, sampler="uniform")
    assert block["spent"] == block["readings"] == server.billed == BUDGET
    (place,) = [n for n, one in enumerate(server.served) if one.fault is not None]
    assert place > 60 + 256  # more than a round was answered meanwhile
    under_way: set[Asked] = set()
    for row in written_in("j.db"):
        if row.kind == "asked":
            asked = {Asked(*cell[:3]) for cell in row.what[0]}
            assert under_way <= asked  # a run that is killed finds what earlier rows have under way
            under_way = asked
        elif row.kind == "came":
            under_way.discard(row.asked)


def test_what_is_shown_as_spent_does_not_go_back_while_answers_are_scored(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, show = list[int](), Progress.spent

    def noted(self: Progress, spent: float) -> None:
        shown.append(int(spent))
        show(self, spent)

    monkeypatch.setattr(Progress, "spent", noted)
    server.latency = 0.005
    _run(folder, server)
    assert shown == sorted(shown)
    assert shown[-1] == BUDGET


def test_a_class_that_reports_nothing_as_it_comes_is_asked_round_by_round(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = LocalChatCompletion.amodel_call

    async def silent(self: Any, *given: Any, cache_keys: Any, **named: Any) -> Any:
        return await send(self, *given, cache_keys=None, **named)

    monkeypatch.setattr(LocalChatCompletion, "amodel_call", silent)
    monkeypatch.setattr(PrimedTasks, "fed", None)
    block = _run(folder, server, budget=2 * N)
    assert block["spent"] == block["readings"] == server.billed == 2 * N


def test_a_request_that_fails_while_lists_are_under_way_costs_no_other_answer(
    folder: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.latency = 0.005
    server.fail(400, after=3, times=math.inf, when=lambda body: _number(body) == 7)
    block = _run(folder, server)
    assert block["closed_items"] == ["numbers:7"]
    assert block["spent"] == BUDGET
    assert server.billed == block["readings"] == BUDGET - block["failed"]
    gc.collect()  # asyncio speaks when a task that nobody asked is thrown away
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_server_that_goes_away_costs_nothing(folder: Path, server: Server) -> None:
    server.latency = 0.005
    server.fail(500, after=150, times=math.inf)
    with pytest.raises(Exception, match="500"):
        _run(folder, server)
    assert bought_in("j.db").spent == server.billed == 150
    server.forgive()
    block = _run(folder, server)
    assert block["spent"] == block["readings"] == server.billed == BUDGET


@pytest.mark.parametrize("gives_up", [False, True])
def test_ctrl_c_waits_for_what_is_under_way_and_a_second_one_gives_that_up(
    folder: Path, server: Server, gives_up: bool
) -> None:
    def press(body: dict[str, Any]) -> None:
        server.latency = 2.0 if gives_up else 0.3
        os.kill(os.getpid(), signal.SIGINT)
        if gives_up:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    server.latency = 0.005
    _once(server, 100, press)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _run(folder, server)
    assert not gives_up or time.monotonic() - began < 20
    had = server.billed
    assert 100 <= had < 200
    server.latency = 0.0
    while server.at_once:
        time.sleep(0.01)
    block = _run(folder, server)
    assert block["spent"] == BUDGET
    assert gives_up <= block["failed"] <= (AT_ONCE if gives_up else 0)
    assert server.billed == BUDGET  # what was given up is paid
    assert block["readings"] == BUDGET - block["failed"]


def test_a_score_that_ends_the_run_loses_nothing_that_is_under_way(folder: Path, server: Server) -> None:
    score, times = PrimedTasks.replay, iter(range(99))

    def scored(self: PrimedTasks, *given: Any, **named: Any) -> Any:
        if next(times) == 4:
            raise KeyboardInterrupt
        return score(self, *given, **named)

    server.latency = 0.02
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrimedTasks, "replay", scored)
        with pytest.raises(KeyboardInterrupt):
            _run(folder, server)
    server.latency = 0.0
    block = _run(folder, server)
    assert block["spent"] == block["readings"] == server.billed == BUDGET


def test_whom_the_host_asks_in_another_way_is_asked_round_by_round(server: Server) -> None:
    assert can_be_fed(chat_model(server, num_concurrent=2))
    assert not can_be_fed(chat_model(server))
    assert not can_be_fed(object())


@pytest.mark.parametrize("error", [OSError("reset"), UsedUpError("$1")])
def test_a_list_that_begins_after_another_has_failed_fails_as_that_did(
    server: Server, error: Exception
) -> None:
    lm = chat_model(server, num_concurrent=2, max_retries=1)
    wire = Wire(lm, _Purse())

    async def ends(*_: Any, **__: Any) -> list[str]:
        raise error

    async def asked() -> list[Any]:
        wire.limit, wire._asend = asyncio.Semaphore(2), ends
        first = await asyncio.gather(wire.acall(object(), None, ["a"]), return_exceptions=True)
        second = (wire.acall(session, None, [text]) for session in "bb" for text in "cd")
        return [*first, *await asyncio.gather(*second, return_exceptions=True)]

    first, *second = asyncio.run(asked())
    ends_of = [one.error for one in (first, *second) if isinstance(one, Final)]
    assert ends_of == [error, error]
    assert second.count([]) == 3


class _Slow:
    """Gathers its first list for a minute; takes its time before the next, and to leave the first."""

    def generate_until(self, requests: list[Instance]) -> list[str]:
        first = requests[0].idx == 0
        time.sleep(0.0 if first else 0.2)
        return list(asyncio.run(self.get_batched_requests(first)))

    async def get_batched_requests(self, first: bool) -> list[str]:
        try:
            await asyncio.sleep(60)
        finally:
            time.sleep(0.5 if first else 0.0)
        return ["42"]


def _sent(lm: Any, responses: list[Any], *arguments: Any, doc: int = 0, repeats: int = 1) -> tuple[Any, Hook]:
    instance = Instance("generate_until", {}, ("q", {}, *arguments), doc)
    instance.repeats = repeats
    return Sent(instance, Asked("t", doc, 0), 0), Hook(_Purse(), lambda *told: responses.append(told), None)


def _feed(lm: Any, hook: Hook, sent: dict[Asked, Sent]) -> Feed:
    return Feed(lm, lambda cells: [sent[cell] for cell in cells], hook, lambda: False)


def test_a_model_is_as_it_was_where_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, start = _Slow(), threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "evalbudget calls":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    feed = _feed(lm, Hook(None, lambda *_: None, None), {})
    with pytest.raises(RuntimeError, match="can't start new thread"), feed:
        pass
    assert "get_batched_requests" not in vars(lm)
    assert not [one for one in threading.enumerate() if one.name.startswith("evalbudget ")]


def test_a_list_that_comes_while_calls_are_given_up_is_not_waited_for() -> None:
    lm, made = _Slow(), list[threading.Thread]()
    sent = {Asked("t", n, 0): _sent(lm, [], doc=n)[0] for n in range(2)}
    loop_of = asyncio.new_event_loop

    def begun() -> asyncio.AbstractEventLoop:
        made.append(threading.current_thread())
        return loop_of()

    def give_up() -> None:
        with _feed(lm, _sent(lm, [])[1], sent) as feed:
            for cell in sent:
                feed.send([cell], {})
            time.sleep(0.1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", begun)
        thread = threading.Thread(target=give_up, daemon=True)
        thread.start()
        thread.join(10)
    assert not thread.is_alive()
    assert thread not in made  # in the main thread on Windows it would take the signals


def test_what_was_said_before_is_not_told_again() -> None:
    """Pictures cannot be told apart as they come: they are told when the list is answered."""

    class Model:
        get_batched_requests = None

        def generate_until(self, requests: list[Instance]) -> list[str]:
            return ["new"] * len(requests)

    lm, heard = Model(), list[Any]()
    one, hook = _sent(lm, heard, {"visual": [object()]}, repeats=3)
    with _feed(lm, hook, {one.asked: one}) as feed:
        feed.send([one.asked], {one.asked: {0: ["old"]}})
        assert not feed.wait(list)
    assert heard == [(one.asked, 0, "new")] * 2


class _Purse:
    def pays(self, calls: int) -> bool:
        return True

    def owes(self, calls: int) -> None:
        pass
