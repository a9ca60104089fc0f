"""One race of lm-eval whose arms run in several processes: the decisions, the budget and a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.race_worlds import is_right, manager
from tests.host_lm_eval.worlds import EVALBUDGET, environment

import warm
from evalbudget.errors import StoreError
from evalbudget_lm_eval.races.api import race
from loopback import Asked, Server

SKILLS = {"a": 0.9, "b": 0.6, "c": 0.3}
BUDGET = 60


def skilled(asked: Asked) -> str:
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    return f"{number}" if is_right(ord(asked.model), SKILLS[asked.model], number) else "?"


def started(server: Server, folder: Path, arm: str) -> subprocess.Popen[Any]:
    """One arm in a process of its own."""
    command = [
        *(sys.executable, "-c", EVALBUDGET, "lm-eval", "race", "--tasks", "numbers"),
        *("--include_path", str(folder / "tasks"), "--apply_chat_template", "--batch", "8"),
        *("--arm", f"{arm}=local-chat-completions:{server.chat_args(arm, max_retries=1)}"),
        *("--budget", str(BUDGET), "--store", str(folder / "store.db"), "--all_arms", "3"),
        *("--output_path", str(folder / arm), "--json", str(folder / f"{arm}.json")),
    ]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return warm.Popen(command, host="lm-eval", env=environment(), **options)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_three_processes_one_killed_and_run_again(server: Server, tmp_path: Path) -> None:
    manager(tmp_path / "tasks", n=40)
    server.answer = skilled
    server.hold(3, model="b")
    running = {arm: started(server, tmp_path, arm) for arm in SKILLS}
    while not server.held and running["b"].poll() is None:
        time.sleep(0.01)
    running["b"].send_signal(signal.SIGKILL)
    running["b"].communicate()
    server.release()
    running["b"] = started(server, tmp_path, "b")
    told = [process.communicate(timeout=120)[0] for process in running.values()]
    assert [process.returncode for process in running.values()] == [0, 0, 0], told
    boards = [json.loads((tmp_path / f"{arm}.json").read_text()) for arm in SKILLS]
    for board in boards:
        board.pop("notes")
    assert boards[0] == boards[1] == boards[2]
    assert boards[0]["spent"] == BUDGET
    assert boards[0]["standings"][0]["name"] == "a"
    asked = Counter((served.model, served.prompt) for served in server.served)
    assert BUDGET - 8 <= asked.total() <= BUDGET
    assert asked.total() - len(asked) <= 8  # the round that was under way when it was killed
    assert (tmp_path / "b").is_dir()


def test_all_arms_here_race_as_without_a_store(server: Server, tmp_path: Path) -> None:
    server.answer = skilled
    tasks = manager(tmp_path / "tasks", n=40)
    arms = {arm: ("local-chat-completions", server.args_of(arm, max_retries=1)) for arm in SKILLS}
    given: dict[str, Any] = {"budget": BUDGET, "batch": 8, "apply_chat_template": True, "task_manager": tasks}
    alone = race(arms, "numbers", **given)
    shared = race(arms, "numbers", store=tmp_path / "store.db", all_arms=3, **given)
    assert shared.leaderboard.as_json == alone.leaderboard.as_json
    assert shared.results.keys() == alone.results.keys()
    with pytest.raises(StoreError, match="seed = '0' there, '1' here"):
        race(arms, "numbers", store=tmp_path / "store.db", all_arms=3, seed=1, **given)
