"""The budget is kept on the bill: calls under way, lost, and sent again because a reply cannot be read."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import signal
from pathlib import Path
from typing import Any

import aiohttp
import lm_eval.evaluator
import pytest
import requests
from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr
from lm_eval.models.openai_completions import LocalChatCompletion
from lm_eval.tasks import TaskManager
from tests.host_lm_eval.race_worlds import manager
from tests.host_lm_eval.worlds import CoinModel, bought_in, rounds_of, write_task

from evalbudget.run import UNANSWERED
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.billing import at_a_kill, may_be_billed
from evalbudget_lm_eval.host.used_up import UsedUpError
from evalbudget_lm_eval.host.wire import Final, Halt, Wire, halt_of_all, wired
from evalbudget_lm_eval.races.api import race
from loopback import GARBLED, Server

N = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks", n=N)


def _run(
    folder: Path,
    server: Server,
    concurrent: int,
    *,
    max_retries: int = 3,
    model: str = "local-chat-completions",
    rounds: int = 32,
    **options: Any,
) -> dict[str, Any]:
    with rounds_of(rounds), budgeted(**{"sampler": "uniform", "journal": "j.db", **options}):
        found = lm_eval.evaluator.simple_evaluate(
            model=model,
            model_args=server.chat_args(num_concurrent=concurrent, max_retries=max_retries),
            tasks=["numbers"],
            apply_chat_template=True,
            gen_kwargs={"temperature": 1.0, "do_sample": True, "seed": None},
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        )
    block: dict[str, Any] = found["evalbudget"]
    return block


def _model(concurrent: int = 1, batch: int = 1) -> LocalChatCompletion:
    lm = LocalChatCompletion(base_url="http://127.0.0.1:9/v1", num_concurrent=concurrent)
    lm._batch_size = batch
    return lm


@pytest.mark.parametrize("concurrent", [1, 4])
def test_calls_that_the_host_sends_again_are_paid(folder: Path, server: Server, concurrent: int) -> None:
    server.fail(GARBLED, times=2, after=3)
    block = _run(folder, server, concurrent, budget=2 * N, rounds=N)
    assert block["spent"] == server.billed == 2 * N
    assert (block["readings"], block["failed"]) == (2 * N - 2, 2)
    assert block["failures"] == {UNANSWERED: 2}
    assert "cut off, or no reply" in block["summary"]["text"]
    more = _run(folder, server, concurrent, budget=3 * N, rounds=N)  # the record knows of them
    assert more["spent"] == server.billed == 3 * N
    assert more["failed"] == 2


def test_what_is_on_its_way_when_one_fails_is_waited_for(folder: Path, server: Server) -> None:
    server.latency = 0.1
    server.fail(500, times=math.inf, when=lambda body: "say 7 please" in json.dumps(body))
    block = _run(folder, server, 2, budget="1x", max_retries=1)
    assert (block["readings"], block["failed"]) == (N - 1, 1)
    assert server.billed == N - 1
    assert server.calls() == N - 1 + 2  # it was asked again, by itself
    assert block["rounds"] == 2  # and nobody else: they had been sent all the same


def test_several_that_fail_for_good_are_told_once(
    folder: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail(500, times=math.inf)
    with pytest.raises(aiohttp.ClientResponseError, match="500"):
        _run(folder, server, 2, budget="3x", max_retries=1, rounds=3 * N)
    gc.collect()  # asyncio speaks when a task that nobody asked is thrown away
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("concurrent", [1, 4])
def test_an_outage_costs_nothing(folder: Path, server: Server, concurrent: int) -> None:
    server.fail(500, times=math.inf, after=5)
    with pytest.raises(Exception, match="500"):
        _run(folder, server, concurrent, budget=3 * N, max_retries=1)
    assert bought_in("j.db").spent == server.billed == 5
    server.forgive()
    block = _run(folder, server, concurrent, budget=3 * N)
    assert (block["spent"], block["readings"]) == (3 * N, 3 * N)
    assert server.billed == 3 * N


@pytest.mark.parametrize("concurrent", [1, 4])
def test_what_the_budget_does_not_pay_is_not_sent_again(
    folder: Path, server: Server, concurrent: int
) -> None:
    server.latency = 0.05
    server.fail(GARBLED, times=math.inf, when=lambda body: "say 7 please" in json.dumps(body))
    block = _run(folder, server, concurrent, budget="1x")
    assert block["spent"] == server.billed == N
    assert block["readings"] == N - 1  # nobody else is cut off


def test_refusals_and_outages_cost_nothing(folder: Path, server: Server) -> None:
    server.fail(500, times=2, after=2)
    server.fail(429, after=6)
    block = _run(folder, server, 4, budget=2 * N)
    assert (block["spent"], block["readings"], block["failed"]) == (2 * N, 2 * N, 0)
    assert server.billed == 2 * N


def test_a_server_whose_replies_nobody_can_read_is_paid_all_the_same(folder: Path, server: Server) -> None:
    server.fail(GARBLED, times=math.inf)
    with pytest.raises(requests.exceptions.JSONDecodeError):
        _run(folder, server, 1, budget=6 * N, max_retries=1)
    server.forgive()
    block = _run(folder, server, 4, budget=6 * N)
    assert block["spent"] == server.billed == 6 * N
    assert block["readings"] == 6 * N - block["failed"] > 3 * N


def test_races_pay_for_them_too(server: Server, tmp_path: Path) -> None:
    server.fail(GARBLED, times=2, after=4)
    arms = {
        name: ("local-chat-completions", server.args_of(name, num_concurrent=4, max_retries=3))
        for name in ("a", "b")
    }
    host = {"task_manager": manager(tmp_path / "own", n=40), "apply_chat_template": True}
    board = race(arms, "numbers", budget=30, output_path=tmp_path / "out", **host).leaderboard
    assert board.spent == server.billed <= 30
    assert sum(board.of(name).readings for name in arms) == board.spent - 2
    assert sum(board.of(name).failed for name in arms) == 2
    assert {reason for name in arms for reason in board.of(name).errors} == {UNANSWERED}
    board = race(arms, "numbers", budget=50, output_path=tmp_path / "out", **host).leaderboard
    assert board.spent == server.billed <= 50


def test_how_many_may_be_under_way_at_a_kill() -> None:
    assert at_a_kill(_model(6, batch=2)) == 12
    assert at_a_kill(_model()) == 1
    assert at_a_kill(CoinModel()) == 0


def _status(status: int) -> aiohttp.ClientResponseError:
    info: Any = type("Info", (), {"real_url": "u"})
    return aiohttp.ClientResponseError(info, (), status=status)


def _refused() -> requests.exceptions.ConnectionError:
    with pytest.raises(requests.exceptions.ConnectionError) as caught:
        requests.get("http://127.0.0.1:9/", timeout=300)
    return caught.value


def test_what_may_be_billed() -> None:
    answered = requests.Response()
    answered.status_code = 503
    unsent = (ValueError("no key"), NotImplementedError(), KeyError("choices"))
    for error in (_status(429), _status(400), _refused(), requests.ConnectTimeout(), *unsent):
        assert not may_be_billed(error), error
    assert not may_be_billed(aiohttp.ClientConnectionError("Connector is closed."), sent=True)
    assert not may_be_billed(RuntimeError("Session is closed"), sent=True)
    assert may_be_billed(RuntimeError("broke off"), sent=True)
    assert not may_be_billed(requests.HTTPError(response=answered))
    for error in (_status(200), TimeoutError(), requests.ReadTimeout(), OSError("reset"), RuntimeError()):
        assert may_be_billed(error), error
    assert all(may_be_billed(error, sent=True) for error in unsent)
    assert not may_be_billed(_status(429), sent=True)


class Purse:
    """Has so much, and pays with it."""

    def __init__(self, free: int = 0) -> None:
        self.free = free
        self.owed = 0

    def pays(self, calls: int) -> bool:
        if calls > self.free:
            return False
        self.free -= calls
        return True

    def owes(self, calls: int) -> None:
        self.owed += calls


def test_the_model_is_left_as_it_was() -> None:
    lm = _model()
    with wired(lm, Purse()):
        assert {"model_call", "amodel_call", "parse_generations"} < vars(lm).keys()
    assert not {"model_call", "amodel_call", "parse_generations"} & vars(lm).keys()


def test_a_second_signal_does_not_wait_and_says_what_that_costs(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyboardInterrupt):  # nothing is on its way
        Wire(_model(), Purse()).stop()
    wire = Wire(_model(), Purse())

    def send(messages: list[str]) -> str:
        wire.stop()
        with pytest.raises(KeyboardInterrupt):
            wire.stop()
        return "said"

    wire._send = send
    assert wire.call(["q"]) == "said"
    assert "1 calls are given up; they may be billed, and count as spent" in caplog.text
    with pytest.raises(KeyboardInterrupt):
        wire.heard()  # read, and recorded
    with pytest.raises(KeyboardInterrupt):
        wire.call(["r"])


def test_a_stop_between_two_looks_leaves_no_task_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """An asyncio.run() that cancels nothing is what notebooks have, and processes that inspect ran in."""
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, "run", loop.run_until_complete)
    lm, halt = _model(concurrent=4), Halt()
    before = halt_of_all.set(halt)
    try:
        with pytest.raises(KeyboardInterrupt):
            _stopped_round(lm, halt)
        assert not asyncio.all_tasks(loop)
    finally:
        halt_of_all.reset(before)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def test_a_request_that_fails_at_once_waits_for_those_not_begun(server: Server) -> None:
    lm = LocalChatCompletion(base_url=f"{server.url}/v1/chat/completions", num_concurrent=4)
    sent: list[Any] = []
    asend = lm.amodel_call

    async def paid(session: Any, sem: Any, messages: Any, **more: Any) -> Any:
        sent.append(messages)
        if len(sent) == 1:
            raise UsedUpError("$1")
        return await asend(session, sem, messages, **more)

    vars(lm)["amodel_call"] = paid
    heard: list[Any] = []
    lm.cache_hook.add_partial = lambda kind, request, answer: heard.append(answer)
    with pytest.raises(UsedUpError), wired(lm, Purse()):
        lm.generate_until([_request(n) for n in range(9)], disable_tqdm=True)
    assert (len(sent), len(heard), server.billed) == (9, 8, 8)


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_failure_is_told_before_the_want_of_money(at_once: int) -> None:
    lm = _model(concurrent=4)
    lm.max_retries = 1
    wire = Wire(lm, Purse(free=9))

    async def ends(session: Any, sem: Any, messages: list[str]) -> list[str]:
        raise OSError("reset") if messages == ["b"] else UsedUpError("$1")

    async def asked() -> list[Any]:
        sem = asyncio.Semaphore(at_once)
        wire._asend = ends
        return await asyncio.gather(
            *(wire.acall(None, sem, [text]) for text in "abc"), return_exceptions=True
        )

    told = [end.error for end in asyncio.run(asked()) if isinstance(end, Final)]
    assert [str(error) for error in told] == ["reset"]


def _stopped_round(lm: LocalChatCompletion, halt: Halt) -> None:
    with wired(lm, Purse()):
        halt.error = KeyboardInterrupt()
        lm.generate_until([_request(n) for n in range(9)], disable_tqdm=True)


def _request(number: int) -> Instance:
    prompt = JsonChatStr(json.dumps([{"role": "user", "content": f"say {number}"}]))
    return Instance(
        request_type="generate_until", doc={}, arguments=(prompt, {"until": [], "max_gen_toks": 8}), idx=0
    )


@pytest.mark.parametrize("alone", [False, True])
def test_calls_that_nobody_has_the_answer_of(alone: bool) -> None:
    purse = Purse(free=2)
    wire = Wire(_model(), purse, alone=alone)

    def lost() -> int:
        wire.settle()
        return wire.billed if alone else 2 - purse.free + purse.owed

    wire._send = lambda messages: "said"
    assert wire.call(["q"]) == "said"
    wire.heard()
    wire.heard()  # of a judge, say
    assert lost() == 0
    wire.call(["r", "s"])
    wire.call(["t"])
    wire.heard()
    assert lost() == 2  # the host failed before it read them

    def cut(messages: list[str]) -> str:
        raise KeyboardInterrupt

    wire._send = cut
    with pytest.raises(KeyboardInterrupt):
        wire.call(["u", "v"])
    assert lost() == 4
    assert purse.owed == (0 if alone else 2)


@pytest.mark.parametrize("alone", [False, True])
def test_every_time_that_may_be_billed_is_paid_once(alone: bool) -> None:
    purse = Purse(free=5)
    wire = Wire(_model(), purse, alone=alone)
    garbled = iter([True, True, False, True, True, True])

    def send(messages: list[str]) -> str:
        if next(garbled):
            raise OSError("reset")
        return "said"

    wire._send = send
    request = ["a", "b"]
    for free in (3, 1):
        with pytest.raises(OSError, match="reset"):
            wire.call(request)
        assert purse.free == free
    assert wire.call(request) == "said"
    for _ in request:
        wire.heard()
    with pytest.raises(Final):  # the third may not be sent again: there is too little left
        wire.call(request)
    assert (purse.free, purse.owed, wire.billed) == ((1, 0, 2) if alone else (1, 2, 0))
    assert not wire._unread


def test_the_last_time_of_a_cell_by_itself_is_its_own_cost() -> None:
    lm, purse = _model(), Purse(free=9)
    lm.max_retries = 1
    wire = Wire(lm, purse, alone=True)
    wire._send = _reset
    with pytest.raises(Final):
        wire.call(["a"])
    assert (purse.free, wire.billed) == (9, 1)


def _reset(messages: list[str]) -> str:
    raise OSError("reset")


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with wired(_model(), Purse()):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_replies_without_content_are_answers(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch, concurrent: int
) -> None:
    complete = server._completion

    def without_content(*given: Any) -> dict[str, Any]:
        reply = complete(*given)
        reply["choices"][0]["message"]["content"] = None
        return reply

    monkeypatch.setattr(server, "_completion", without_content)
    server.fail(500, after=N - 1)
    block = _run(folder, server, concurrent, budget="1x", max_retries=1)
    assert (block["spent"], block["readings"]) == (N, N)
    assert server.billed == N


@pytest.mark.parametrize("concurrent", [1, 4])
def test_what_a_document_was_answered_in_part_is_not_asked_again(
    tmp_path: Path, server: Server, concurrent: int
) -> None:
    folder = write_task(tmp_path / "tasks", n=3, repeats=8)
    server.fail(500, after=20)
    block = _run(folder, server, concurrent, budget=24, max_retries=1)
    assert block["spent"] == server.billed == 24
    assert (block["readings"], block["failed"]) == (3, 0)


def test_nothing_is_paid_before_it_is_sent(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ValueError, match="API key not found"):
        _run(folder, server, 4, budget=2 * N, model="openai-chat-completions", max_retries=2)
    assert bought_in("j.db").spent == 0
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    block = _run(folder, server, 4, budget=2 * N, model="openai-chat-completions")
    assert (block["readings"], server.billed) == (2 * N, 2 * N)


def test_what_a_loop_leaves_under_way_is_lost_and_sends_nothing_more() -> None:
    purse, lm = Purse(free=9), _model(2)
    wire = Wire(lm, purse)
    sent: list[str] = []

    async def hangs(session: Any, sem: Any, messages: list[str]) -> list[str]:
        sent.extend(messages)
        await asyncio.sleep(0.2)
        raise ConnectionResetError

    wire._asend = hangs

    async def shared_loop() -> None:
        sem = asyncio.Semaphore(2)
        tasks = [asyncio.ensure_future(wire.acall(None, sem, [text])) for text in "abc"]
        await asyncio.sleep(0.05)
        wire.settle()
        assert purse.free == 7
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ends] == [ConnectionResetError, ConnectionResetError, Final]

    asyncio.run(shared_loop())
    assert (sent, purse.free) == (["a", "b"], 7)


def test_a_signal_before_an_answer_is_read_waits_for_it() -> None:
    wire = Wire(_model(), Purse())
    wire._send = lambda messages: "said"
    wire.call(["q"])
    wire.stop()
    with pytest.raises(KeyboardInterrupt):
        wire.heard()


def test_every_request_has_its_own_tries() -> None:
    lm = _model()
    lm.max_retries = 2
    wire = Wire(lm, Purse(free=9))
    request = ["a"]  # one object, as the host may come to use again
    wire._send = lambda messages: "said"
    wire.call(request)
    wire._send = _reset
    with pytest.raises(OSError, match="reset"):
        wire.call(request)
    with pytest.raises(Final):
        wire.call(request)
