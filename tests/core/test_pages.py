"""Pages are as long as a person reads, stand in the site's menu, and quote the figures of their pictures."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TABLES = {"api.md", "hosts.md"}  # generated, to look things up in
PAGES = [
    path
    for path in (*sorted(DOCS.rglob("*.md")), *sorted((ROOT / "plugins").glob("*/README.md")))
    if "benchmarks" not in path.parts and path.name not in TABLES
]
LONGEST = 900  # words, blocks of code not counted


def _words(path: Path) -> int:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return len(re.findall(r"\w[^\s|]*", text))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_person_reads_the_page(path: Path) -> None:
    assert _words(path) <= LONGEST, "part it by what a reader wants to do"


def test_every_page_is_in_the_menu() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    menu = set(re.findall(r"[\w/-]+\.md", str(yaml.safe_load(text)["nav"])))
    generated = {"reference/commands/index.md", "reference/names/index.md"}
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} | generated == menu


def test_the_page_of_intervals_has_the_figures_of_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(DOCS))
    drawn = importlib.import_module("draw_intervals")
    monkeypatch.setattr(drawn, "PICTURES", tmp_path)
    page = " ".join((DOCS / "intervals.md").read_text(encoding="utf-8").split())
    for name, make in drawn.PAINTED.items():
        picture = make()
        assert picture.told in page
        drawn.write(name, picture)
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
        assert re.search(rf"!\[[^\]]{{80,}}\]\(pictures/{name}\.svg\)", page), (
            "says in words what is to be seen"
        )
    assert {path.stem for path in (DOCS / "pictures").iterdir()} == set(drawn.PAINTED)
