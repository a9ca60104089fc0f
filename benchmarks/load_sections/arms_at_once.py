"""One race on lm-eval with more and more arms at once, on a server that takes its time for every reply."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

from lm_eval.tasks import TaskManager

from evalbudget_lm_eval.arms import places
from evalbudget_lm_eval.races.api import race
from lm_eval_overhead import write_task

_HERE = Path(__file__).resolve().parents[1]
_ARMS = ("a", "b", "c", "d")


@contextmanager
def slow_server(latency: float) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, str(_HERE / "loopback.py"), "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"{process.stdout.readline().strip()}/v1/chat/completions"
        finally:
            process.terminate()


def arms_at_once(
    at_once: list[int], concurrent: list[int], documents: int, latency: float
) -> dict[str, float]:
    """Seconds of a race by requests and arms at once, as ``8 x 4``, and whether all decided the same."""
    logging.disable(logging.WARNING)
    seconds: dict[str, float] = {}
    boards = []
    with tempfile.TemporaryDirectory() as scratch, slow_server(latency) as url:
        task = write_task(Path(scratch), documents)
        options: dict[str, Any] = {
            "budget": len(_ARMS) * documents,
            "sampler": "uniform",
            "apply_chat_template": True,
            "gen_kwargs": "temperature=0",
            "task_manager": TaskManager(include_path=scratch, include_defaults=False),
        }

        def run(requests: int, arms: int, name: str) -> dict[str, Any]:
            args = {"base_url": url, "num_concurrent": requests}
            given = {model: ("local-chat-completions", {"model": model, **args}) for model in _ARMS}
            with patch.object(places, "AT_ONCE", arms):
                board = race(given, task, journal=f"{scratch}/{name}", **options).leaderboard
            return {key: value for key, value in board.as_json.items() if key != "notes"}

        run(32, 4, "first")  # the data set is prepared once
        for requests, arms in product(concurrent, at_once):
            begun = perf_counter()
            boards.append(run(requests, arms, f"{requests} {arms}"))
            seconds[f"{requests} x {arms}"] = perf_counter() - begun
    return seconds | {"same": float(all(board == boards[0] for board in boards))}
