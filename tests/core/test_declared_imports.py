"""What a distribution imports is declared by it, and what it declares is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT, *sorted((ROOT / "plugins").iterdir())]
IMPORTED_AS = {"pyyaml": "yaml"}
BY_THE_CALLER = {
    "evalbudget": {"pytest"},  # contracts, for tests of plugins
    # each host's own part is imported by that host, and its adapter's plugin
    "evalbudget-pairwise": {"inspect_ai", "lm_eval", "evalbudget_inspect", "evalbudget_lm_eval"},
}


def _module(requirement: str) -> str:
    name = re.split(r"[^\w.-]", requirement)[0].lower()
    return IMPORTED_AS.get(name, name.replace("-", "_"))


def _types_alone(tree: ast.AST) -> set[int]:
    """Statements under ``if TYPE_CHECKING``."""
    tests = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    return {id(inner) for test in tests for statement in test.body for inner in ast.walk(statement)}


def _imported(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    unused = _types_alone(tree)
    for node in ast.walk(tree):
        if id(node) in unused:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _project(folder: Path) -> Mapping[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_imported_is_declared_and_the_other_way_round(folder: Path) -> None:
    project = _project(folder)
    needed = {_module(each) for each in project["dependencies"]}
    extras = {_module(each) for given in project.get("optional-dependencies", {}).values() for each in given}
    own = {path.name for path in (folder / "src").iterdir()}
    found = {name for path in (folder / "src").rglob("*.py") for name in _imported(path)} - own
    found -= sys.stdlib_module_names
    assert found - needed - extras <= BY_THE_CALLER.get(project["name"], set())
    assert needed <= found


def test_one_floor_for_what_several_declare() -> None:
    floors: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for each in _project(folder)["dependencies"]:
            if not _module(each).startswith("evalbudget"):
                floors.setdefault(_module(each), set()).add(each.partition(">=")[2])
    assert {name: of for name, of in floors.items() if len(of) > 1} == {}
