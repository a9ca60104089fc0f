"""What `make docs` adds to these pages: public names with their docstrings, commands with their options."""

from __future__ import annotations

import inspect
import posixpath
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import as_markdown
from write_api import FACES

from evalbudget.cli.main import cli

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_CLIMBS = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)[^)]*\)")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_NO_CONTENTS = "---\nhide: [toc]\n---\n"  # one heading; its lines are long
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Generated pages, which are nowhere on the disk."""
    from mkdocs.structure.files import File

    names, commands = dict(_of_names()), dict(_of_commands())
    for name, text in (
        *names.items(),
        ("reference/names/index.md", _index("Public names, with their docstrings", names)),
        *commands.items(),
        ("reference/commands/index.md", _index("Commands, with their options", commands)),
    ):
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files of the repository that are no pages become their names."""

    def named(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), found[2]))
        return found[0] if path.startswith("docs/") else f"{found[1]} (`{path}`)"

    return _CLIMBS.sub(named, markdown)


def _index(title: str, pages: Mapping[str, str]) -> str:
    """A page that leads to each of these, by its title; they are in one folder."""
    rows = [f"- [{_HEADING.findall(text)[0]}]({posixpath.basename(name)})" for name, text in pages.items()]
    return f"# {title}\n\n" + "\n".join(rows) + "\n"


def _of_names() -> Iterator[tuple[str, str]]:
    """A page for each package whose names are public."""
    seen: set[str] = set()
    for face in FACES:
        module = import_module(face)
        parts = [f"# {face}", as_markdown(inspect.getdoc(module) or "")]
        for name in sorted(module.__all__):
            value = getattr(module, name)
            path = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
            documented = inspect.isclass(value) or inspect.isroutine(value)
            if not documented or not path.startswith("evalbudget"):
                told = f"`{value!r}`" if isinstance(value, str | int | float) else ""
                parts.append(f"## `{name}`\n\n{told}")
            elif path in seen:
                parts.append(f"## {name}\n\nThe same as [{path}][].")
            else:
                seen.add(path)
                parts.append(f"::: {path}\n    options:\n      show_root_full_path: false")
        yield f"reference/names/{face}.md", "\n\n".join(parts) + "\n"


def _of_commands() -> Iterator[tuple[str, str]]:
    """A page for each command, as its --help says it."""
    with cli.make_context("evalbudget", [], resilient_parsing=True) as root:
        for words, text in _helps(cli, root, ()):
            name = " ".join(("evalbudget", *words))
            page = "-".join(words) or "evalbudget"
            yield f"reference/commands/{page}.md", f"{_NO_CONTENTS}# {name}\n\n```text\n{text}\n```\n"


def _helps(
    command: click.Command, ctx: click.Context, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    ctx.max_content_width = ctx.terminal_width = 100
    yield words, _ANSI.sub("", command.get_help(ctx))
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            if below is not None and not below.hidden:
                real = below.make_context(name, [], parent=ctx, resilient_parsing=True)
                if not (getattr(real.command.callback, "__module__", "") or "").startswith("evalbudget"):
                    continue  # the host's own
                yield from _helps(real.command, real, (*words, name))
