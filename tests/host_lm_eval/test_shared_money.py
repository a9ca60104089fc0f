"""A race in money whose arms run in several processes: the server's own bill stays below the one cap."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bills import paid_in
from tests.host_lm_eval.money_worlds import PaidServer, price_file
from tests.host_lm_eval.race_worlds import arms_at_once, manager
from tests.host_lm_eval.worlds import EVALBUDGET, CoinModel, environment

import warm
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.races.api import race
from evalbudget_lm_eval.run.record import FILE
from loopback import Asked

ARMS = ("m", "j1", "j2")


def answer(asked: Asked) -> str:
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    return f"{number}" if asked.luck < {"m": 0.9, "j1": 0.6, "j2": 0.5}[asked.model] else "no idea"


@pytest.fixture
def server() -> Iterator[PaidServer]:
    with PaidServer(answer=answer) as running:
        yield running


def asked_for(server: PaidServer, folder: Path, arms: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """What a process asks for that runs these arms."""
    args = {arm: ("local-chat-completions", server.args_of(arm, num_concurrent=4)) for arm in arms}
    return {
        "arms": args,
        "task": "numbers",
        "budget": "$0.15",
        "prices": folder / "prices.yaml",
        "all_arms": 3,
        "store": folder / "store.db",
        "apply_chat_template": True,
        "gen_kwargs": {"max_gen_toks": 20},
        "task_manager": manager(folder / "own", n=60),
        **more,
    }


def started(server: PaidServer, folder: Path, arms: tuple[str, ...]) -> subprocess.Popen[str]:
    """A process that runs these."""
    model = "local-chat-completions"
    own = [f"--arm={arm}={model}:{server.chat_args(arm, num_concurrent=4)}" for arm in arms]
    command = [
        *(sys.executable, "-c", EVALBUDGET, "lm-eval", "race", "--tasks", "numbers", *own),
        *("--include_path", str(folder / "own"), "--apply_chat_template", "--gen_kwargs", "max_gen_toks=20"),
        *("--budget", "$0.15", "--prices", str(folder / "prices.yaml"), "--sampler", "uniform"),
        *("--store", str(folder / "store.db"), "--all_arms", "3", "--journal", str(folder / f"j{len(arms)}")),
        *("--json", str(folder / f"{arms[0]}.json")),
    ]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return warm.Popen(command, host="lm-eval", env=environment(), **options)


def test_the_cap_holds_for_two_processes(server: PaidServer, tmp_path: Path) -> None:
    price_file(tmp_path)
    manager(tmp_path / "own", n=60)
    running = [started(server, tmp_path, arms) for arms in (ARMS[:1], ARMS[1:])]
    told = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    board, other = (json.loads((tmp_path / f"{arm}.json").read_text()) for arm in ARMS[:2])
    assert board == other
    assert board["stop_reason"] == "budget used up"
    assert board["paid"] == pytest.approx(server.bill)
    assert 0.75 * 0.15 < server.bill <= 0.15
    assert all(standing["paid"] for standing in board["standings"])
    assert any(note.startswith("Paid $0.") and "of $0.15: m $0." in note for note in board["notes"])


class Counting(CoinModel):
    """A model on this machine, whose answers are 5 tokens."""

    max_gen_toks = 16

    def tok_encode(self, text: str, **_: object) -> list[int]:
        return list(range(len(text.split())))


def test_models_here_that_wait_for_each_other(tmp_path: Path) -> None:
    arms = {"a": Counting(seed=1), "b": Counting(seed=2)}
    given: dict[str, Any] = {"budget": "400tok", "sampler": "uniform", "store": tmp_path / "s.db"}
    tasks = manager(tmp_path / "own", n=60)
    with arms_at_once(here=True):
        board = race(arms, "numbers", task_manager=tasks, all_arms=2, **given).leaderboard
    calls = sum(len(lm.calls) for lm in arms.values())
    assert board.spent == calls
    assert 0.95 * 400 - 5 <= 5 * calls <= 400
    assert board.paid == 5 * calls


def test_answers_of_another_store_are_refused(server: PaidServer, tmp_path: Path) -> None:
    price_file(tmp_path)
    given = asked_for(server, tmp_path, ARMS, budget="$0.05", output_path=tmp_path / "out")
    board = race(**given).leaderboard
    assert board.paid == pytest.approx(server.bill)
    (copy,) = (tmp_path / "out").rglob("*.db")
    assert paid_in(copy, FILE) == pytest.approx(server.bill)
    again = race(**given).leaderboard
    assert again.paid == board.paid == pytest.approx(server.bill)
    with pytest.raises(InvalidInputError, match="goes on from logs of another race"):
        race(**given | {"store": tmp_path / "two.db"})
