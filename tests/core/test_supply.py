"""What builds, tests and publishes is pinned: actions to commits, tools to versions."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]
TOOLS = [line for line in (ROOT / ".ci/build-tools.txt").read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda p: p.name)
def test_actions_are_pinned_to_commits_with_their_tags_beside_them(workflow: Path) -> None:
    used = re.findall(r"uses: (.+)", workflow.read_text())
    assert used
    for each in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each), each


def test_an_action_has_one_commit() -> None:
    texts = [path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")]
    used = {tuple(each.split("@")) for text in texts for each in re.findall(r"uses: (.+)", text)}
    assert len(used) == len({name for name, _ in used})


def test_what_builds_is_pinned_to_one_version_everywhere() -> None:
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in TOOLS)
    (hatchling,) = (line for line in TOOLS if line.startswith("hatchling=="))
    for path in PROJECTS:
        assert tomllib.loads(path.read_text())["build-system"]["requires"] == [hatchling], path
    assert hatchling in tomllib.loads(PROJECTS[0].read_text())["dependency-groups"]["dev"]
    release = (ROOT / ".github/workflows/release.yml").read_text()
    assert "pip install --requirement .ci/build-tools.txt\n" in release
    assert "python -m build --no-isolation " in release
    (pip,) = (line for line in TOOLS if line.startswith("pip=="))
    assert f"\nPIP := {pip}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("target", ["floors", "next", "audit-dependencies"])
def test_pip_and_the_auditor_are_pinned(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pips = re.findall(r"pip install --quiet (?:--upgrade )?\"?(pip\S+?)\"?(?: |$)", done.stdout, re.MULTILINE)
    assert pips
    assert all(re.fullmatch(r"pip==[\d.]+", pip) for pip in pips)
    if target == "audit-dependencies":
        assert re.search(r"pip-audit==[\d.]+\n", done.stdout)
