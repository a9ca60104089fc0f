"""The committed pages are what their data say, and are rendered anew without measuring anything."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.quick import ROOT

PAGES, RESULTS = ROOT / "docs" / "benchmarks", ROOT / "benchmarks" / "results"


def copied(folder: Path, name: str) -> Any:
    """The data of a page, alone in a folder."""
    places = importlib.import_module("places").Places.of(folder)
    places.make()
    shutil.copy(RESULTS / f"{name}.json", places.results)
    return places


NAMES = {
    "judges": "judges",
    "racing": "races",
    "audits": "audits",
    "chaos": "chaos",
    "load": "load",
    "papers": "papers",
    "costs": "costs",
    "comparisons": "comparisons",
    "pairwise": "pairwise",
    "scale": "scale",
}


@pytest.mark.parametrize(("script", "name"), NAMES.items())
def test_a_page_is_rendered_from_its_data(script: str, name: str, tmp_path: Path) -> None:
    page = importlib.import_module(script).PAGE
    assert (page.script, page.name) == (script, name)
    importlib.import_module("sections").write_page(page, copied(tmp_path, name))
    assert (tmp_path / f"{name}.md").read_bytes() == (PAGES / f"{name}.md").read_bytes()


def test_the_page_of_repeats_is_rendered_from_its_data_and_its_picture(tmp_path: Path) -> None:
    places = copied(tmp_path, "repeats")
    shutil.copy(PAGES / "repeats.png", tmp_path)
    importlib.import_module("repeats_sections.page").write_page(places)
    assert (tmp_path / "repeats.md").read_bytes() == (PAGES / "repeats.md").read_bytes()


def test_what_is_written_goes_to_the_folders_of_the_repository_by_default() -> None:
    places = importlib.import_module("places").Places.of(None)
    assert (places.pages, places.results) == (PAGES, RESULTS)
