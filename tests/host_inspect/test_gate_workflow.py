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
from tests.host_inspect.worlds import UNWATCHED

EXAMPLES = Path(__file__).parents[2] / "examples"


def steps(candidate: str) -> list[str]:
    """What the workflow runs, without what it installs."""
    text = (EXAMPLES / "gate" / "evalbudget-gate.yml").read_text().replace("simulated/alder", candidate)
    assert text.count("--margin 0.1 ") == 1
    text = text.replace("--margin 0.1 ", "--margin 0.1 --sampler-seed 0 ")  # one gate in 20 may be wrong
    (job,) = yaml.safe_load(text)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0].startswith("pip install")
    return commands[1:]


@pytest.mark.parametrize(
    ("candidate", "code", "sign", "failures"),
    [("simulated/alder", 0, "✅", "0"), ("simulated/ginkgo", 1, "❌", "1")],
)
def test_the_workflow_runs_from_end_to_end(
    tmp_path: Path, candidate: str, code: int, sign: str, failures: str
) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copytree(EXAMPLES / "gate", tmp_path / "examples" / "gate")
    shutil.copy(EXAMPLES / "race_quiz.py", tmp_path / "examples")
    summary = tmp_path / "summary.md"
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        **UNWATCHED,
        "GITHUB_STEP_SUMMARY": str(summary),
        "PATH": scripts + os.pathsep + os.environ["PATH"],
    }
    for command in steps(candidate):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
    assert summary.read_text().startswith(f"### {sign}")
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == failures
    assert list((tmp_path / "logs").glob("*.eval"))
