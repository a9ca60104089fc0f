"""The pages as a site: built without a warning, every public name and every command on it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock
from tests.labelling import chromium

import warm

ROOT = Path(__file__).resolve().parents[2]
# as `mkdocs build --strict`, without the index for searching, the process that lays out each signature, the
# colours of code, and a look whether a template has changed each time: half of the time, and no test looks at
# any of these
BUILD = """
import logging, sys
from pathlib import Path
import jinja2
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.utils.yaml import yaml_load
from mkdocstrings_handlers.python._internal import rendering
rendering._get_formatter = lambda: lambda code, length: code
logging.basicConfig(level=logging.WARNING)
plugins = [one for one in yaml_load(Path("mkdocs.yml").read_text())["plugins"] if one != "search"]
jinja2.Template.is_up_to_date = True
config = load_config("mkdocs.yml", strict=True, site_dir=sys.argv[1], plugins=plugins)
config["mdx_configs"]["pymdownx.highlight"] = {"use_pygments": False}
build(config)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("material") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs-material and mkdocstrings are not installed; the dev group has them")
    # one for all workers of a run; whoever comes first makes it
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    folder = tmp_path_factory.getbasetemp().parent / f"site-{run}"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    begun = folder.with_suffix(".begun")
    done = warm.run(
        [sys.executable, "-c", BUILD, str(begun)],
        host="inspect",  # whose commands are on the pages, too
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    begun.rename(folder)


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


def test_no_docstring_is_shown_in_the_markup_of_editors(site: Path) -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from docstrings import as_markdown
    finally:
        sys.path.pop(0)
    for page in (site / "reference" / "names").rglob("index.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r":(?:class|meth|func|mod|math):|::</p>", text), page
    assert as_markdown("See :meth:`~a.b.C.d` and :class:`e.F`::") == "See `d` and `e.F`:"
    formula = "Args.\n\n    .. math:: x_i\n              + :math:`y`\n\n    After."
    assert as_markdown(formula) == "Args.\n\n    ```latex\n    x_i\n    + `y`\n    ```\n\n    After."


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|href)="(https?://(?!inspect|github)[^"]+\.(?:js|css|woff2?))"', text)


def test_it_is_quiet_and_fits_a_phone(site: Path, tmp_path: Path) -> None:
    pages = (
        "",
        "intervals/",
        "benchmarks/repeats/",
        "reference/commands/inspect-race/",
        "reference/names/evalbudget/",
    )
    with serving(site) as address, chromium.Chromium(tmp_path) as browser:
        for page in pages:
            tab = browser.visit(address + page, 375, "dark")
            assert tab.overflow() == 0, page
            assert tab.run("document.body.dataset.mdColorScheme") == "slate", page
            tab.close()
        assert browser.logged == []
        assert [url for url in browser.requested if not url.startswith((address, "data:"))] == []


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join(10)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""
