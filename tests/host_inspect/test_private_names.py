"""Names of inspect that begin with an underscore, or come from such modules, are in one place."""

from __future__ import annotations

import ast
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import evalbudget_inspect
import warm
from evalbudget_inspect.host.private import WORKS_WITH

HOME = Path(evalbudget_inspect.__file__).parent


@pytest.mark.usefixtures("no_collection")
def test_private_names_of_the_host_are_imported_in_one_place() -> None:
    found = {}
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "inspect_ai":
                parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                parts = [p for a in node.names if a.name.startswith("inspect_ai") for p in a.name.split(".")]
            else:
                continue
            if any(part.startswith("_") for part in parts):
                found.setdefault(path.relative_to(HOME).as_posix(), []).append(node.lineno)
    assert set(found) == {"host/private.py", "host/private_registry.py"}, found


DELETE = """
import sys
import inspect_ai._util.registry as host
del host.registry_log_name
from evalbudget.cli.main import main
sys.argv = ["evalbudget", "inspect", "eval", "x.py", "--budget", "100"]
main()
"""


def test_a_name_that_is_missing_is_no_traceback() -> None:
    done = warm.run([sys.executable, "-c", DELETE], host="inspect alone")
    assert done.returncode == 2, done.stderr
    assert f"inspect-ai {version('inspect_ai')} is not what this version of evalbudget works" in done.stderr
    assert "registry_log_name" in done.stderr
    assert f"pip install 'inspect-ai{WORKS_WITH}'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_declared_is_what_is_told_and_tested() -> None:
    declared = tomllib.loads((HOME.parents[1] / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"inspect-ai{WORKS_WITH}" in declared
    assert version("inspect_ai") in SpecifierSet(WORKS_WITH)
