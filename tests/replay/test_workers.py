"""Backtests by several processes: the same rows, progress, interruption, and a worker that dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from joblib import parallel_config

from evalbudget.backtest import backtest
from evalbudget.errors import InvalidInputError

HEAD = """
import json, os, sys, time
import numpy as np
from evalbudget.backtest import (
    RecordedScores, backtest, backtest_audits, backtest_race, backtest_rotation
)
from evalbudget.repeats.samplers import Uniform

def recorded(models=4, items=30, raters=3, repeats=6):
    rng = np.random.default_rng(7)
    scores = np.clip(rng.normal(0.5, 0.2, (models, items, raters, repeats)), 0.0, 1.0)
    labels = np.clip(scores.mean(axis=(2, 3))[..., None] + rng.normal(0, 0.1, (models, items, 1)), 0.0, 1.0)
    names = [tuple(f"{name}{i}" for i in range(n)) for name, n in zip("mir", (models, items, raters))]
    return RecordedScores(scores, *names, reference=labels)
"""


def _script(folder: Path, body: str) -> list[str]:
    path = folder / "script.py"
    path.write_text(HEAD + textwrap.dedent(body))
    return [sys.executable, str(path)]


SAME = """
def rows_and_ends(**where):
    scores, told = recorded(), []
    where["progress"] = lambda done, total: told.append((done, total))
    one = scores.select(rater="r1")
    found = [
        backtest(scores, ["uniform", "auto"], ["5x"], 3, model="m0", **where),
        backtest_race(one, ["uniform", "race"], ["40%"], 3, **where),
        backtest_rotation(scores, ["cyclic", "random"], ["2x"], 4, **where),
        backtest_audits(one, ["pp-lucb"], seeds=2, **where),
    ]
    rows = [[{k: v for k, v in row.items() if k != "seconds"} for row in json.loads(each.to_json())]
            for each in found]
    ends = [told[i] for i in range(len(told)) if i + 1 == len(told) or told[i + 1][0] < told[i][0]]
    return {"rows": rows, "ends": ends}

if __name__ == "__main__":
    print(json.dumps([rows_and_ends(workers=1), rows_and_ends(workers=2)]))
"""


def test_rows_and_progress_are_those_of_one_process(tmp_path: Path) -> None:
    done = subprocess.run(_script(tmp_path, SAME), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    alone, spread = json.loads(done.stdout.splitlines()[-1])
    assert spread["rows"] == alone["rows"]
    assert all(alone["rows"])
    assert spread["ends"] == alone["ends"]  # what is told last is that all replays are done
    assert all(done == total for done, total in spread["ends"])


DIES = """
class Deadly(Uniform):
    name = "deadly"

    def plan(self, table, last):
        if table.item.size == 40:
            os._exit(3)
        return super().plan(table, last)

if __name__ == "__main__":
    backtest(recorded(1, 10, 1), [Deadly], ["5x"], 4, workers=2)
"""


def test_a_worker_that_dies_is_told(tmp_path: Path) -> None:
    done = subprocess.run(_script(tmp_path, DIES), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    # not always the last line: joblib's resource tracker may warn after it
    (told,) = (line for line in done.stderr.splitlines() if line.startswith("evalbudget.errors."))
    assert "a worker process of the backtest died" in told
    assert "use fewer workers" in told


SLOW = """
class Slow(Uniform):
    name = "slow"

    def plan(self, table, last):
        time.sleep(0.2)
        return super().plan(table, last)

if __name__ == "__main__":
    backtest(recorded(1, 10, 1), [Slow], ["2x"], 500, workers=2,
             progress=lambda done, total: print(done, flush=True))
"""


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    command = _script(tmp_path, SLOW)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=300)
    assert process.returncode in (1, -signal.SIGINT)
    assert "KeyboardInterrupt" in told
    assert _is_empty(process.pid)


def _is_empty(group: int) -> bool:
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_there_is_a_worker(small: Any) -> None:
    with pytest.raises(InvalidInputError, match="workers is 0; it must be 1 or more"):
        backtest(small, ["uniform"], ["5x"], 2, workers=0)


def test_the_backend_of_the_caller_runs_them(small: Any) -> None:
    told: list[tuple[int, int]] = []
    alone = backtest(small, ["uniform", "auto"], ["5x"], 2, workers=1)
    with parallel_config(backend="threading", n_jobs=2):
        found = backtest(small, ["uniform", "auto"], ["5x"], 2, progress=lambda *n: told.append(n))
    assert _rows(found) == _rows(alone)
    (last,) = told
    assert last[0] == last[1]


def _rows(found: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in json.loads(found.to_json())]
