"""The budget is kept on the bill: calls that a client sends again, and what Ctrl-C finds under way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inspect_ai.hooks import RunStart
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.util import LimitExceededError
from tests.host_inspect.worlds import COMMAND, entry_of

import warm
from evalbudget.run import UNANSWERED
from evalbudget_inspect.host import current_run, sent_again
from evalbudget_inspect.host.interrupts import Interrupts
from evalbudget_inspect.host.sent_again import UNPAID, _Calls, _counting, paying, retried
from loopback import Server

ITEMS, BUDGET = 6, 18
ROOT = Path(__file__).parents[2]


def test_what_is_sent_again_is_on_the_bill(tmp_path: Path) -> None:
    script = Path(__file__).with_name("sent_again_runs.py")
    own = [str(ROOT), str(ROOT / "benchmarks")]
    path = os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(script), str(tmp_path)]
    done = warm.run(command, host="inspect", env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])

    for name in ("hung up", "garbled"):  # paid each time
        one = found[name]
        assert one["billed"] == one["spent"] == BUDGET
        assert (one["readings"], one["samples"]) == (BUDGET - 2, BUDGET - 2)
        assert (one["kept"], one["limits"]) == (BUDGET, [])
        assert (one["failed"], one["failures"]) == (2, {UNANSWERED: 2})
        assert one["summary"]["failures"] == one["failures"]
        assert f"Failed 2 calls: {UNANSWERED}" in " ".join(one["summary"]["text"].split())

    one = found["parked"]  # by a sample that failed and was to be tried again when the run ended
    assert (one["before"], one["spent before"]) == (["cancelled", "item-1", "item-2"], 3.0)
    assert one["billed"] == one["spent"] in (BUDGET - 1, BUDGET)  # the last one may cost two
    assert (one["readings"], one["failures"]) == (one["spent"] - 1, {UNANSWERED: 1})

    one = found["error"]  # of the server, which costs nothing
    assert one["billed"] == one["spent"] == one["readings"] == BUDGET
    assert (one["kept"], one["failed"]) == (BUDGET, 0)

    one = found["unpaid"]  # by the budget, and so not sent again
    assert one["billed"] == one["calls"] == one["spent"] == BUDGET
    assert (one["readings"], one["limits"]) == (BUDGET - 1, [UNPAID])

    one = found["judge unpaid"]  # nor is a judge's call, and the run goes on
    assert one["status"] == "success"
    assert one["judged"] == one["spent"] == BUDGET
    assert (one["readings"], one["samples"]) == (BUDGET - 1, BUDGET)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(latency=0.2) as there:
        monkeypatch.setenv("HERE_BASE_URL", f"{there.url}/v1")
        monkeypatch.setenv("HERE_API_KEY", "unused")
        yield there


def _bill(server: Server) -> int:
    return sum(one.billed for one in server.served)


def test_samples_under_way_are_waited_for_and_kept(server: Server, tmp_path: Path) -> None:
    flags = ["--display", "plain", "--log-buffer", "1", "--log-dir", str(tmp_path)]

    def start(*arguments: str) -> warm.Popen:
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return warm.Popen([*COMMAND, *arguments, *flags], host="inspect", **output)

    task_file = ROOT / "benchmarks" / "chaos_sections" / "inspect_tasks.py"
    server.hold(5)
    run = start(
        *("eval", f"{task_file}@quiz", "-T", f"items={ITEMS}", "--model", "openai-api/here/m"),
        *("--max-samples", "2", "--budget", str(BUDGET), "--sampler", "uniform"),
    )
    while server.held < 2 and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    server.release()
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 130, said[-2000:]
    assert "so they are waited for" in " ".join(said.split())
    (path,) = list_eval_logs(str(tmp_path))
    log = read_eval_log(path)
    answered = [sample for sample in log.samples or [] if sample.error is None]
    assert log.status == "cancelled"
    assert 5 <= len(answered) == _bill(server) < BUDGET
    server.latency = 0.0
    again = start("eval-retry", path.name)
    said, _ = again.communicate(timeout=120)
    assert again.returncode == 0, said[-2000:]
    whole = read_eval_log(list_eval_logs(str(tmp_path))[0])
    entry = entry_of(whole)
    assert (_bill(server), entry["spent"], len(whole.samples or [])) == (BUDGET, BUDGET, BUDGET)
    assert (entry["failed"], entry["failures"]) == (0, {})


# the account itself


class _World:
    """A sample's calls against a client that does as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pays: int = 9) -> None:
        self.paid: list[float] = []
        self.left = pays
        self.sent = 0
        self.then: list[Any] = []
        self.model = "m"
        header = sent_again.HttpHooks.REQUEST_ID_HEADER
        self.request = SimpleNamespace(headers={header: "1"})
        event = SimpleNamespace(get=lambda: SimpleNamespace(model=self.model))
        monkeypatch.setattr(sent_again, "active_model_event", event)

    async def pays(self, calls: float) -> bool:
        self.left -= calls > 0
        if self.left >= 0 or calls < 0:
            self.paid.append(calls)
        return self.left >= 0

    async def send(self, client: Any, request: Any) -> Any:
        self.sent += 1
        then = self.then.pop(0)
        if isinstance(then, BaseException):
            raise then
        return SimpleNamespace(status_code=then)

    def play(self, *then: Any, again: tuple[int, ...] = ()) -> list[float]:
        """Send one request after the other; after those numbered in ``again`` the host says it retries."""
        self.then = list(then)

        async def playing() -> None:
            counting = _counting(self.send)
            async with paying(self.pays):
                for number in range(len(then)):
                    with suppress(LimitExceededError, OSError, TimeoutError):
                        await counting(None, self.request)
                    if number in again:
                        await retried()

        asyncio.run(playing())
        return self.paid


class ConnectError(OSError):
    """As httpx names it."""


def test_what_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def paid(*then: Any, **more: Any) -> list[float]:
        return _World(monkeypatch).play(*then, **more)

    lost = TimeoutError()
    assert paid(200, 200) == []  # calls of one sample, nothing sent again
    assert paid(lost, 200) == [1.0]
    assert paid(lost, lost, 200) == [1.0, 1.0]
    assert paid(200, lost, 200) == [0.5]  # half of what a sample of two calls costs
    assert paid(200, 200, lost, 200) == [pytest.approx(1 / 3)]
    assert paid(429, 500, 400, 200) == []
    assert paid(ConnectError(), ConnectError(), 200) == []
    assert paid(200, lost) == [0.5, -0.5]  # the last one is the sample's own
    assert paid(lost, lost) == [1.0, 1.0, -1.0]
    assert paid(200, 200, again=(0,)) == [1.0]  # a reply that the host could not use
    assert paid(500, 200, again=(0,)) == []
    assert paid(399, 200, again=(0,)) == [1.0]


def test_nothing_is_sent_that_is_not_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _World(monkeypatch, pays=1)
    world.play(TimeoutError(), TimeoutError(), 200, 200)
    assert (world.paid, world.sent) == ([1.0], 2)


def test_the_host_is_stopped_where_a_client_hides_that(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _World(monkeypatch, pays=0)
    with pytest.raises(LimitExceededError):
        world.play(TimeoutError(), again=(0,))


def test_models_have_their_own_account() -> None:
    calls = _Calls(_never)
    asyncio.run(calls.lost("judge"))
    calls.before("m")
    for _ in range(2):
        with pytest.raises(LimitExceededError):
            calls.before("judge")


async def _never(calls: float) -> bool:
    return False


def test_other_requests_are_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _World(monkeypatch)
    world.request = SimpleNamespace(headers={})
    assert world.play(TimeoutError(), 200) == []
    assert world.sent == 2


# signals


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Signals that the handler before ours was given."""
    got: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
    yield got
    signal.signal(signal.SIGINT, before)


def test_signals_are_passed_on_once_nothing_is_under_way(heard: list[int]) -> None:
    interrupts = Interrupts()

    async def play() -> None:
        await interrupts.begins("before it watches")
        interrupts.watch()
        interrupts.watch()
        await interrupts.begins("a")
        await interrupts.begins("b")
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.came
        held = asyncio.create_task(interrupts.begins("c"))
        interrupts.ends("a")
        await asyncio.sleep(0.05)
        assert heard == []
        again = asyncio.create_task(interrupts.begins("b"))  # it failed, and would be tried again
        while not heard:
            await asyncio.sleep(0.01)
        assert heard == [signal.SIGINT]
        interrupts.ends("b")
        assert heard == [signal.SIGINT]
        held.cancel()
        again.cancel()

    asyncio.run(play())
    assert interrupts.held == {"b", "c"}
    interrupts.release()
    assert interrupts.ended_a_run
    assert not interrupts.came
    signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGINT] * 2
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("under_way", [True, False])
def test_signals_that_find_nothing_or_come_twice_are_passed_on_at_once(
    heard: list[int], under_way: bool
) -> None:
    interrupts = Interrupts()

    async def play() -> None:
        interrupts.watch()
        if under_way:
            await interrupts.begins("a", "e")
            signal.raise_signal(signal.SIGINT)
            assert heard == []
        signal.raise_signal(signal.SIGINT)
        assert heard == [signal.SIGINT]
        interrupts.ends("a")  # cut off by the host
        assert (interrupts.given_up("e"), interrupts.given_up("other")) == (int(under_way), 0)

    asyncio.run(play())
    interrupts.release()


@pytest.mark.parametrize("ends", [True, False])
def test_a_third_ctrl_c_leaves_no_handler_behind(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    interrupts = Interrupts()
    monkeypatch.setattr(current_run, "interrupts", interrupts)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press() -> None:
        for _ in range(3):  # wait; give up; break the loop
            signal.raise_signal(signal.SIGINT)

    async def play() -> None:
        interrupts.watch()
        try:
            await interrupts.begins("a")
            asyncio.get_running_loop().call_soon(press)
            await asyncio.sleep(60)
        finally:
            if ends:  # as the host's loop closes; it may not come to that
                interrupts.release()

    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(play())
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
    assert not ends or interrupts.ended_a_run
    asyncio.run(current_run.RunHooks().on_run_start(RunStart(None, "next", [])))
    assert not interrupts.came  # the next run of the process begins as ever


def test_a_run_without_a_signal_is_not_interrupted(heard: list[int]) -> None:
    interrupts = Interrupts()

    async def play() -> None:
        interrupts.watch()
        await interrupts.begins("a")
        interrupts.ends("a")

    asyncio.run(play())
    interrupts.release()
    assert (heard, interrupts.ended_a_run) == ([], False)


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupts = Interrupts()
    try:
        interrupts.watch()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        interrupts.release()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
