"""The budget is kept on the bill: calls under way, lost, and sent again because a reply cannot be read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import aiohttp
import lm_eval.evaluator
import pytest
import requests
from lm_eval.models.openai_completions import LocalChatCompletion
from lm_eval.tasks import TaskManager
from tests.host_lm_eval.race_worlds import manager
from tests.host_lm_eval.worlds import CoinModel, journal_of, write_task

from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.billing import at_a_kill, may_be_billed, wired
from evalbudget_lm_eval.races.api import race
from loopback import GARBLED, Server

N = 12


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_task(tmp_path / "tasks", n=N)


def _run(
    folder: Path, server: Server, concurrent: int, *, max_retries: int = 3, **options: Any
) -> dict[str, Any]:
    with budgeted(**{"sampler": "uniform", "journal": "j.jsonl", **options}):
        found = lm_eval.evaluator.simple_evaluate(
            model="local-chat-completions",
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
    block = _run(folder, server, concurrent, budget=2 * N, in_flight=N)
    assert block["spent"] == server.billed == 2 * N
    assert (block["readings"], block["failed"]) == (2 * N - 2, 2)
    assert block["failures"] == {"no reply that the host could read; sent again": 2}
    assert "sent again" in block["summary"]["text"]
    more = _run(folder, server, concurrent, budget=3 * N, in_flight=N)  # the record knows of them
    assert more["spent"] == server.billed == 3 * N
    assert more["failed"] == 2


def test_what_is_on_its_way_when_one_fails_is_waited_for(folder: Path, server: Server) -> None:
    server.latency = 0.1
    server.fail(500, times=math.inf, when=lambda body: "say 7 please" in json.dumps(body))
    block = _run(folder, server, 8, budget="1x", max_retries=1)
    assert (block["readings"], block["failed"]) == (N - 1, 1)
    assert server.billed == N - 1
    assert server.calls() == N - 1 + 2  # it was asked again, by itself


@pytest.mark.parametrize("concurrent", [1, 4])
def test_an_outage_costs_nothing(folder: Path, server: Server, concurrent: int) -> None:
    server.fail(500, times=math.inf, after=5)
    with pytest.raises(Exception, match="500"):
        _run(folder, server, concurrent, budget=3 * N, max_retries=1)
    assert journal_of("j.jsonl").spent == server.billed == 5
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
        requests.get("http://127.0.0.1:9/", timeout=5)
    return caught.value


def test_what_may_be_billed() -> None:
    lm = _model()
    answered = requests.Response()
    answered.status_code = 503
    for error in (_status(429), _status(400), _refused(), requests.ConnectTimeout()):
        assert not may_be_billed(lm, error), error
    assert not may_be_billed(lm, requests.HTTPError(response=answered))
    for error in (
        _status(200),
        TimeoutError(),
        requests.ReadTimeout(),
        ValueError(),
        OSError("reset"),
    ):
        assert may_be_billed(lm, error), error
    assert not may_be_billed(CoinModel(), ValueError())


def test_the_model_is_left_as_it_was() -> None:
    lm = _model()
    with wired(lm, lambda calls: True):
        assert {"model_call", "amodel_call"} < vars(lm).keys()
    assert not {"model_call", "amodel_call"} & vars(lm).keys()
