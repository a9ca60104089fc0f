"""The pages as a site: built without a warning, every public name and every command on it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("material") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs-material and mkdocstrings are not installed; the dev group has them")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_every_public_name_is_on_a_page(site: Path) -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from write_api import FACES
    finally:
        sys.path.pop(0)
    for face in FACES:
        page = (site / "reference" / "names" / face / "index.html").read_text(encoding="utf-8")
        names = importlib.import_module(face).__all__
        missing = [name for name in names if not re.search(rf">\s*{re.escape(name)}\s*<", page)]
        assert not missing, face


def test_every_command_has_its_options(site: Path) -> None:
    pages = site / "reference" / "commands"
    assert "--until-proved" in (pages / "inspect-race" / "index.html").read_text(encoding="utf-8")
    assert "--margin" in (pages / "compare" / "index.html").read_text(encoding="utf-8")
    assert "--label_price" in (pages / "lm-eval-audit" / "index.html").read_text(encoding="utf-8")


def test_no_link_is_dead(site: Path) -> None:
    dead = set()
    for page in site.rglob("index.html"):
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|//", link):
                target = site / link.lstrip("/") if link.startswith("/") else page.parent / link
                if not (target / "index.html" if target.is_dir() else target).is_file():
                    dead.add(f"{page.parent.relative_to(site)}: {link}")
    assert not dead


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|href)="(https?://(?!inspect|github)[^"]+\.(?:js|css|woff2?))"', text)
