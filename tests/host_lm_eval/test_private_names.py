"""Names of lm-eval that it does not promise are in one file, and one that is missing is told in words."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from tests.claims import variant

import evalbudget_lm_eval
from evalbudget_lm_eval.host import private

HOME = Path(evalbudget_lm_eval.__file__).parent
DELETE = """
import sys
{first}
import {module} as host
del host.{name}
from evalbudget.cli.main import main
sys.argv = ["evalbudget", "lm-eval", "run", "--budget", "100", "--model", "dummy", "--tasks", "x"]
main()
"""


@pytest.mark.usefixtures("no_collection")
def test_private_names_of_the_host_are_imported_in_one_place() -> None:
    found = {}
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lm_eval":
                parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                moved = set(parts) & set(private._HOME)
                if moved or any(p.startswith("_") and p != "__main__" for p in parts):
                    found.setdefault(path.relative_to(HOME).as_posix(), []).append(node.lineno)
    assert found == {}


@pytest.mark.parametrize(
    ("name", "first"),
    [("HarnessCLI", ""), variant("get_sample_size", "import lm_eval.evaluator  # which uses it itself")],
)
def test_a_name_that_is_missing_is_no_traceback(name: str, first: str) -> None:
    script = DELETE.format(module=private._HOME[name], name=name, first=first)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2, done.stderr
    assert f"it has no {name} in {private._HOME[name]}. Install another one" in done.stderr
    assert f"pip install 'lm_eval[api]{private.WORKS_WITH}'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_declared_is_what_is_told_and_tested() -> None:
    project = HOME.parents[1] / "pyproject.toml"
    declared = tomllib.loads(project.read_text())["project"]["dependencies"]
    assert f"lm_eval[api]{private.WORKS_WITH}" in declared
    if ".dev" not in version("lm_eval"):  # make next tries what comes
        assert version("lm_eval") in SpecifierSet(private.WORKS_WITH)
