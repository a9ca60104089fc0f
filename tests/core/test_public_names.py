"""The public surface: faces, what they list, and who may reach past them."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "evalbudget"
NO_FACES = {"builtin", "cli.main"}  # entry points


def _page() -> Any:
    spec = importlib.util.spec_from_file_location("write_api", ROOT / "docs" / "write_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = _page()
PUBLIC = {*PAGE.FACES, *(f"evalbudget.{name}" for name in PAGE.MODULES)}


def test_the_page_lists_the_names_there_are() -> None:
    assert PAGE.PAGE.read_text(encoding="utf-8") == PAGE.page(), "run python docs/write_api.py"


def test_every_public_name_says_what_it_is() -> None:
    assert re.findall(r"^\| (`\w+`) \|  ?\|$", PAGE.page(), flags=re.MULTILINE) == []


def test_modules_are_listed_or_begin_with_an_underscore() -> None:
    files = [path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py")]
    names = {".".join(path.parts) for path in files if not path.name.startswith("_")}
    assert names == {*PAGE.MODULES, "backtest", *NO_FACES}


IMPORT = re.compile(r"^\s*(from evalbudget\b.* import (?:\([^)]*\)|.*)|import evalbudget\b.*)$", re.MULTILINE)


def _imports(text: str) -> Iterator[tuple[str, str]]:
    """Modules of evalbudget that are imported, with the names taken from them."""
    lines = IMPORT.findall(text)
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "evalbudget":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("evalbudget."))


OUTSIDERS = [*(ROOT / "plugins").glob("*/src/**/*.py"), *(ROOT / "examples").rglob("*.py")]
PAGES = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "plugins").glob("*/README.md")]
BLOCKS = [
    (f"{path.relative_to(ROOT)} {number}", block)
    for path in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL))
]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(
    ("where", "text"), [*((str(path.relative_to(ROOT)), path.read_text()) for path in OUTSIDERS), *BLOCKS]
)
def test_outsiders_import_public_names_only(where: str, text: str) -> None:
    for module, name in _imports(text):
        assert module in PUBLIC, f"{where} imports {module}, which is no face"
        listed = getattr(importlib.import_module(module), "__all__", None)
        assert listed is None or name in listed, f"{where} imports {name}, which {module} does not list"
