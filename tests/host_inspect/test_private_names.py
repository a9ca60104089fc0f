"""Names of inspect that begin with an underscore, or come from such modules, are in one file."""

from __future__ import annotations

import ast
from pathlib import Path

import evalbudget_inspect

HOME = Path(evalbudget_inspect.__file__).parent


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
    assert set(found) == {"host/private.py"}, found
