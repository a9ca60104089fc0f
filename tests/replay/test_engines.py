"""Backtests on loky, Dask and Ray: the same rows, progress, interruption, and a worker that dies."""

from __future__ import annotations

import importlib.util
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

from evalbudget.backtest import backtest
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.replay._engines import Crew

MODULES = {"dask": "distributed", "ray": "ray"}


def _named(engine: str) -> Any:
    missing = engine in MODULES and importlib.util.find_spec(MODULES[engine]) is None
    return pytest.param(
        engine, marks=pytest.mark.skipif(missing, reason=f"{engine} is not installed (make engines does)")
    )


engines = pytest.mark.parametrize("engine", [_named(name) for name in ("loky", "dask", "ray")])

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
        backtest_race(one, ["uniform", "race"], ["40%"], 3, intervals=False, **where),
        backtest_rotation(scores, ["cyclic", "random"], ["2x"], 4, **where),
        backtest_audits(one, ["pp-lucb"], seeds=2, **where),
    ]
    rows = [[{k: v for k, v in row.items() if k != "seconds"} for row in json.loads(each.to_json())]
            for each in found]
    ends = [told[i] for i in range(len(told)) if i + 1 == len(told) or told[i + 1][0] < told[i][0]]
    return {"rows": rows, "ends": ends}

if __name__ == "__main__":
    print(json.dumps([rows_and_ends(workers=1), rows_and_ends(workers=2, parallel=sys.argv[1])]))
"""


@engines
def test_rows_and_progress_are_those_of_one_process(engine: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*_script(tmp_path, SAME), engine], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    alone, spread = json.loads(done.stdout.splitlines()[-1])
    assert spread["rows"] == alone["rows"]
    assert all(alone["rows"])
    assert spread["ends"] == alone["ends"]  # what is told last is that all replays are done
    assert all(done == total for done, total in spread["ends"])


DIES = """
class Deadly(Uniform):
    name = "deadly"

    def _next(self, eligible):
        if self.asked == 40:
            os._exit(3)
        return super()._next(eligible)

if __name__ == "__main__":
    backtest(recorded(1, 10, 1), [Deadly], ["5x"], 4, workers=2, parallel=sys.argv[1])
"""


@engines
def test_a_worker_that_dies_is_told(engine: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*_script(tmp_path, DIES), engine], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "a worker process of the backtest died" in done.stderr.splitlines()[-1]
    assert "use fewer workers" in done.stderr


SLOW = """
class Slow(Uniform):
    name = "slow"

    def _next(self, eligible):
        time.sleep(0.02)
        return super()._next(eligible)

if __name__ == "__main__":
    backtest(recorded(1, 10, 1), [Slow], ["2x"], 500, workers=2, parallel=sys.argv[1],
             progress=lambda done, total: print(done, flush=True))
"""


@engines
def test_an_interrupt_ends_it(engine: str, tmp_path: Path) -> None:
    command = [*_script(tmp_path, SLOW), engine]
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


@pytest.mark.parametrize("engine", MODULES)
def test_an_engine_that_is_not_installed_names_its_extra(
    engine: str, small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, MODULES[engine], None)
    with pytest.raises(InvalidInputError, match=rf"pip install 'evalbudget\[{engine}\]'"):
        backtest(small, ["uniform"], ["5x"], 2, parallel=engine)


def test_a_cluster_of_dask_that_does_not_answer(small: Any) -> None:
    dask = pytest.importorskip("dask", reason="dask is not installed (make engines does)")
    pytest.importorskip("distributed", reason="dask is not installed (make engines does)")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(InvalidInputError, match=r"the Dask cluster at 127\.0\.0\.1:9 cannot be used"),
    ):
        backtest(small, ["uniform"], ["5x"], 2, parallel="dask", cluster="127.0.0.1:9")


def test_a_cluster_of_ray_that_does_not_answer(small: Any) -> None:
    pytest.importorskip("ray", reason="ray is not installed (make engines does)")
    with pytest.raises(InvalidInputError, match=r"the Ray cluster at ray://127\.0\.0\.1:9 cannot be used"):
        backtest(small, ["uniform"], ["5x"], 2, parallel="ray", cluster="ray://127.0.0.1:9")


def test_a_crew_goes_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://one:1")
    monkeypatch.setenv("RAY_ADDRESS", "two:2")
    assert [Crew.of(None, name, None).cluster for name in ("loky", "dask", "ray")] == [
        None,
        "tcp://one:1",
        "two:2",
    ]
    assert Crew.of(None, "dask", "tcp://three:3").cluster == "tcp://three:3"
    with pytest.raises(InvalidInputError, match="cluster two:2: a cluster that runs already has its workers"):
        Crew.of(2, "ray", None)


def test_what_a_crew_cannot_be() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown engine 'daks'.*dask"):
        Crew.of(None, "daks", None)
    with pytest.raises(InvalidInputError, match="workers is 0; it must be 1 or more"):
        Crew.of(0, "loky", None)
    with pytest.raises(InvalidInputError, match="loky runs on this machine: add --parallel dask"):
        Crew.of(None, "loky", "tcp://host:8786")
    with pytest.raises(InvalidInputError, match="leave --workers out"):
        Crew.of(2, "dask", "tcp://host:8786")
