"""Blocks of the pages under ``<!-- run -->`` run offline, in a folder that has the examples."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.claims import is_full

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
    r"^<!-- (?:run|file)(?:, exit code (?P<code>\d))?(?: (?P<name>\S+))? -->\n"
    r"```(?P<kind>\w+)\n(?P<text>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
_MAIN = {
    "evalbudget": "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()",
    "inspect": "import sys; from inspect_ai._cli.main import main; sys.argv[0] = 'inspect'; main()",
}
"""What starts a program in an interpreter that has imported its host."""


@dataclass(frozen=True)
class Block:
    """What stands under a mark: a file to write, or commands to run."""

    kind: str
    text: str
    code: int
    file: str | None

    def commands(self) -> list[list[str]]:
        """Each as its words. Where a block shows output too, what was typed follows a dollar sign."""
        if self.kind == "python":
            return [["python", "-c", self.text]]
        lines = self.text.replace("\\\n", " ").splitlines()
        typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [shlex.split(line, comments=True) for line in typed or lines if line.strip()]


def blocks(page: Path) -> list[Block]:
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(one["kind"], one["text"], int(one["code"] or 0), one["name"]) for one in found]


RUN = [path for path in PAGES if any(block.file is None for block in blocks(path))]


def test_every_guide_has_a_block_that_runs() -> None:
    assert {str(path.relative_to(DOCS).with_suffix("")) for path in RUN} >= GUIDES


def test_no_mark_is_mistyped() -> None:
    for page in PAGES:
        marks = re.findall(r"^<!-- (?:run|file).*", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert len(marks) == len(blocks(page)), page


SLOW = {"start-lm-eval", "comparisons", "audits", "races", "judges/in-a-task", "howto/labelling-with-a-team"}
"""Pages whose blocks take seconds, and show commands that the hosts' tests run: with full claims only."""
QUICK = [page for page in RUN if is_full() or str(page.relative_to(DOCS).with_suffix("")) not in SLOW]


@pytest.mark.host
@pytest.mark.claim
@pytest.mark.parametrize("page", QUICK, ids=lambda page: str(page.relative_to(DOCS)))
def test_its_blocks_run(page: Path, tmp_path: Path) -> None:
    here = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", here)
    for block in blocks(page):
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
            done = warm.run([sys.executable, *given], host=host, cwd=here, timeout=120)
            told = f"{program} {shlex.join(words)}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == block.code, told
