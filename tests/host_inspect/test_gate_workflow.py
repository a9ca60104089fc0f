"""The workflow in examples/gate: its commands run as they stand, offline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner
from tests.host_inspect.worlds import UNWATCHED

from evalbudget.cli.main import cli

EXAMPLES = Path(__file__).parents[2] / "examples"


def steps() -> list[str]:
    """What the workflow runs, without what it installs."""
    text = (EXAMPLES / "gate" / "evalbudget-gate.yml").read_text()
    assert text.count("--margin 0.1 ") == 1
    text = text.replace("--margin 0.1 ", "--margin 0.1 --sampler-seed 0 ")  # one gate in 20 may be wrong
    (job,) = yaml.safe_load(text)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0].startswith("pip install")
    return commands[1:]


def run_it(folder: Path, programs: Path) -> tuple[int, str, str]:
    """The exit code of the workflow, what it says and its summary; programs are looked for there first."""
    summary = folder / "summary.md"
    environment = {
        **os.environ,
        **UNWATCHED,
        "GITHUB_STEP_SUMMARY": str(summary),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    (command,) = steps()
    bash = ["bash", "-e", "-o", "pipefail", "-c", command]
    done = subprocess.run(bash, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, summary.read_text()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What the workflow finds."""
    (tmp_path / "examples").mkdir()
    shutil.copytree(EXAMPLES / "gate", tmp_path / "examples" / "gate")
    shutil.copy(EXAMPLES / "race_quiz.py", tmp_path / "examples")
    return tmp_path


def stand_in(folder: Path, script: str) -> None:
    """A program of our name that does this instead."""
    program = folder / "evalbudget"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.variant
@pytest.mark.usefixtures("repository")
def test_the_workflow_runs_from_end_to_end(tmp_path: Path) -> None:
    code, told, summary = run_it(tmp_path, Path(sys.executable).parent)
    assert code == 0, told
    assert summary.startswith("### ✅")
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "0"
    assert list((tmp_path / "logs").glob("*.eval"))


def test_the_workflows_command_passes_the_example(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(repository, """printf '%s\\n' "$@" > words; echo told > gate.md""")
    assert run_it(repository, repository)[0] == 0
    monkeypatch.chdir(repository)
    monkeypatch.delenv("INSPECT_LOG_DIR")
    done = CliRunner(env=UNWATCHED).invoke(cli, Path("words").read_text().splitlines())
    assert done.exit_code == 0, done.output
    assert Path("gate.md").read_text().startswith("### ✅")
    assert ElementTree.parse("gate.xml").getroot().get("failures") == "0"
    assert list(Path("logs").glob("*.eval"))


@pytest.mark.parametrize(("verdict", "code"), [(1, 1), (2, 2), (3, 0)])
def test_the_workflow_fails_where_the_gate_does_but_for_an_undecided_one(
    tmp_path: Path, verdict: int, code: int
) -> None:
    stand_in(tmp_path, f"echo told > gate.md; exit {verdict}")
    found, told, summary = run_it(tmp_path, tmp_path)
    assert (found, summary) == (code, "told\n")
    assert ("::warning::undecided" in told) == (verdict == 3)
