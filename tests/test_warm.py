"""A warm start is a start: what such a process is given, and how it ends, is as of a fresh interpreter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import warm

SURROUNDINGS = """
import json, os, random, sys
print(json.dumps({
    "argv": sys.argv, "name": __name__, "folder": os.getcwd(), "here": sys.path[0],
    "given": os.environ.get("GIVEN"), "home": os.environ.get("HOME"),
    "leads": os.getsid(0) == os.getpid(),
    "files": sorted(os.listdir("/proc/self/fd"))[:-1],
}))
"""


def test_what_it_is_given(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SURROUNDINGS)
    environment = {"GIVEN": "1", "PATH": os.environ["PATH"]}
    for command in (["-c", SURROUNDINGS, "a b"], [str(script), "c"]):
        given = [sys.executable, *command]
        told = warm.run(given, host="none", cwd=tmp_path, env=environment, start_new_session=True)
        fresh = subprocess.run(
            given, cwd=tmp_path, env=environment, start_new_session=True, capture_output=True, check=True
        )
        assert json.loads(told.stdout) == json.loads(fresh.stdout)


@pytest.mark.parametrize(
    "code",
    [
        "pass",
        "raise SystemExit(7)",
        "import sys; sys.exit('words')",
        "import os; os._exit(9)",
        "raise KeyError(1)",
    ],
)
def test_how_it_ends(code: str) -> None:
    given = [sys.executable, "-c", "import atexit; atexit.register(print, 'the end')\n" + code]
    told = warm.run(given, host="none")
    fresh = subprocess.run(given, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (fresh.returncode, fresh.stdout)
    assert told.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_reach_it(number: int) -> None:
    code = "import time; print('ready', flush=True); time.sleep(60)"
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with warm.Popen([sys.executable, "-c", code], host="none", **options) as process:
        assert process.poll() is None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(timeout=300) == -number


def test_each_draws_numbers_of_its_own() -> None:
    code = "import random, numpy; print(random.random(), numpy.random.random())"
    drawn = {warm.run([sys.executable, "-c", code], host="none").stdout for _ in range(3)}
    assert len(drawn) == 3
