"""Every block of commands on the pages is run, or says why not.

Those under ``<!-- run -->`` run as printed in a folder that has the examples, those under
``<!-- run on yours -->`` in one that has what a reader has. Blocks under ``<!-- not run: REASON -->`` cannot
be run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.claims import is_full
from tests.core.readers import Reader, reader

import warm

pytest.importorskip("evalbudget_inspect")
pytest.importorskip("evalbudget_lm_eval")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "benchmarks" not in path.parts]
GUIDES = {
    *("repeats", "judges", "races", "audits", "comparisons", "doctor", "money", "using", "plugins"),
    *("start-inspect", "start-lm-eval"),
    *(f"howto/{path.stem}" for path in (DOCS / "howto").glob("*.md")),
}
_BLOCK = re.compile(
    r"^<!-- (?:run(?P<yours> on yours)?|file)(?:, exit code (?P<code>\d))?(?: (?P<name>\S+))? -->\n"
    r"```(?P<kind>\w+)\n(?P<text>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
_COMMANDS = re.compile(r"(?:^<!-- (.*) -->\n)?^```(?:console|bash|shell)\n", re.MULTILINE)
_MAIN = {
    "evalbudget": "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()",
    "inspect": "import sys; from inspect_ai._cli.main import main; sys.argv[0] = 'inspect'; main()",
}
"""What starts a program in an interpreter that has imported its host."""
# the host's own thousands of tasks, whose index takes seconds, are not the reader's
_OWN_TASKS = """
from lm_eval.tasks import TaskManager
init = TaskManager.__init__
def own(self, *args, **more):
    more["include_path"] = more.get("include_path") or "tasks"
    init(self, *args, **more | {"include_defaults": False})
TaskManager.__init__ = own
"""
_UNWATCHED = {"INSPECT_EVAL_NO_LOG_REALTIME": "1"}
"""The host keeps no buffer of its events."""
_VERDICTS = {0, 1, 3}
"""What a command that gives a verdict ends with: on the reader's logs it may be any."""


@dataclass(frozen=True)
class Block:
    """What stands under a mark: a file to write, or commands to run."""

    kind: str
    text: str
    code: int
    file: str | None
    yours: bool = False

    def commands(self) -> list[list[str]]:
        """Each as its words. Where a block shows output too, what was typed follows a dollar sign."""
        if self.kind == "python":
            return [["python", "-c", self.text]]
        return [shlex.split(line, comments=True) for line in self.lines()]

    def lines(self) -> list[str]:
        """Each command on a line."""
        text = re.sub(r"(\\\n|(?<=\|)\n)\s*", " ", self.text)
        lines = [line for line in text.splitlines() if line.strip()]
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")] or lines


def blocks(page: Path) -> list[Block]:
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [
        Block(one["kind"], one["text"], int(one["code"] or 0), one["name"], bool(one["yours"]))
        for one in found
    ]


RUN = [path for path in PAGES if any(block.file is None and not block.yours for block in blocks(path))]
YOURS = [path for path in PAGES if any(block.yours for block in blocks(path))]


def test_no_block_of_commands_is_forgotten() -> None:
    for page in PAGES:
        for mark in _COMMANDS.findall(page.read_text(encoding="utf-8")):
            assert re.match(r"run|file|not run: \w", mark), f"{page.name}: neither run nor a reason why not"


def test_every_guide_has_a_block_that_runs() -> None:
    assert {str(path.relative_to(DOCS).with_suffix("")) for path in RUN} >= GUIDES


def test_no_mark_is_mistyped() -> None:
    for page in PAGES:
        marks = re.findall(r"^<!-- (?:run|file)\b.*", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert len(marks) == len(blocks(page)), page


SLOW = {
    *("start-inspect", "start-lm-eval", "comparisons", "audits", "races", "doctor", "judges/in-a-task"),
    *("howto/labelling-with-a-team", "howto/ci-gate", "judges", "money", "repeats/samples", "using/backtest"),
}
"""Pages whose blocks take seconds, and show commands that the hosts' tests run: with full claims only."""

QUICK = [page for page in RUN if is_full() or str(page.relative_to(DOCS).with_suffix("")) not in SLOW]


@pytest.mark.host
@pytest.mark.claim
@pytest.mark.parametrize("page", QUICK, ids=lambda page: str(page.relative_to(DOCS)))
def test_its_blocks_run(page: Path, tmp_path: Path) -> None:
    here = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", here)
    for block in blocks(page):
        if block.yours:
            continue
        if block.file is not None:
            (here / block.file).write_text(block.text, encoding="utf-8")
            continue
        if block.kind == "python":
            pytest.importorskip("pandas")
        for program, *words in block.commands():
            if program == "cp":
                pattern, name = words
                (found,) = here.glob(pattern)
                shutil.copy(found, here / name)
                continue
            assert program in ("python", *_MAIN), f"{page.name}: nobody runs {program} here"
            given = ["-c", _MAIN[program], *words] if program in _MAIN else words
            host = "lm-eval" if "lm-eval" in words else "inspect"
            env = {**os.environ, **_UNWATCHED}
            done = warm.run([sys.executable, *given], host=host, cwd=here, env=env, timeout=120)
            told = f"{program} {shlex.join(words)}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == block.code, told


QUICK_YOURS = {"lm-eval/options"}
"""Commands in a way that nothing else runs, for a few seconds; all others, minutes, with full claims only."""
TYPED = [page for page in YOURS if is_full() or str(page.relative_to(DOCS).with_suffix("")) in QUICK_YOURS]


@pytest.mark.host
@pytest.mark.claim
@pytest.mark.parametrize("page", TYPED, ids=lambda page: str(page.relative_to(DOCS)))
def test_its_blocks_run_on_what_the_reader_has(page: Path, tmp_path: Path) -> None:
    with reader(tmp_path) as one:
        at_hand = Shell(one)
        for block in blocks(page):
            if block.file is not None:
                (tmp_path / block.file).write_text(one.own(block.text), encoding="utf-8")
            elif block.yours:
                for line in block.lines():
                    at_hand.type(line)


class Shell:
    """Where the reader types."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._env = {**os.environ, **_UNWATCHED, **reader.environment(), "COLUMNS": "80", "BROWSER": "true"}

    def type(self, line: str) -> None:
        """Run a line as printed."""
        if line.startswith(("pip install", "export LABEL_STUDIO")):
            return  # it is there
        self._reader.prepare(line, self.type)
        line = self._reader.own(line)
        if " audit serve " in line:
            self._serve(line)
        elif "|" in line:
            self._pipe(line)
        else:
            self._finish(line, shlex.split(line, comments=True))

    def _check(self, line: str, code: int, told: str) -> None:
        fine = _VERDICTS if re.search(r" (gate|audit|race) ", line) else {0}
        assert code in fine, f"{line}\n{code}\n{told}"
        assert "Traceback" not in told, f"{line}\n{told}"

    def _start(self, words: list[str], **pipes: Any) -> warm.Popen:
        program, *more = words
        host = "lm-eval" if "lm-eval" in more else "inspect"
        code = (_OWN_TASKS if host == "lm-eval" else "") + _MAIN[program]
        env = self._env | ({"EVALBUDGET_DISABLE_PLUGINS": "inspect"} if host == "lm-eval" else {})
        command = [sys.executable, "-c", code, *more]
        return warm.Popen(command, host=host, cwd=self._reader.folder, env=env, text=True, **pipes)

    def _finish(self, line: str, words: list[str], text: str | None = None) -> str:
        """What it said."""
        pipe = subprocess.PIPE
        with self._start(words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            try:
                out, err = process.communicate(text, timeout=300)
            except BaseException:
                process.kill()
                raise
        self._check(line, process.returncode, out + err)
        return str(out)

    def _serve(self, line: str) -> None:
        """Until somebody presses Ctrl-C, once it has said where."""
        words = [*shlex.split(line, comments=True), "--port", "0"]
        with self._start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as served:
            try:
                assert served.stdout.readline().startswith("Labelling"), served.communicate()
                assert served.stdout.readline().strip().startswith("http://127.0.0.1:")
                served.send_signal(signal.SIGINT)
                out, err = served.communicate(timeout=300)
            except BaseException:
                served.kill()
                raise
        self._check(line, served.returncode, out + err)

    def _pipe(self, line: str) -> None:
        """Each as far as the next one reads it."""
        text: str | None = None
        for part in line.split("|"):
            words = shlex.split(part, comments=True)
            if words[0] not in _MAIN:
                words = [sys.executable, str(self._reader.folder / words[0]), *words[1:]]
                text = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
                continue
            text = self._finish(line, words, text)
