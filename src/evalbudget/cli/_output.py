"""Writing results to files: refuse early, all or nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console, RenderableType

from evalbudget.errors import InvalidInputError


def json_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--json PATH``, refused before the work rather than after it."""

    def checked(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and path != Path("-"):
            check_target(path)
        return path

    return click.option(
        "--json",
        "json_path",
        metavar="PATH",
        type=click.Path(path_type=Path, allow_dash=True),
        callback=checked,
        help=f"Write the {what}.",
    )


def publish(text: str, json_path: Path | None, *tables: RenderableType) -> None:
    """The tables, and the JSON where :func:`json_option` wants it; on stdout it takes their place."""
    if json_path == Path("-"):
        click.echo(text)
        return
    for table in tables:
        Console().print(table)
    if json_path is not None:
        write_text(json_path, text + "\n")


def check_target(path: Path, option: str = "--json") -> None:
    """Refuse before the work rather than after it.

    Raises:
        InvalidInputError: the path is a folder, or its folder does not exist.
    """
    if path.is_dir():
        raise InvalidInputError(f"{option} {path} is a folder; give a file")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{option} {path}: the folder {path.parent} does not exist; create it first")


def write_text(path: Path, text: str, option: str = "--json") -> None:
    """As :func:`write_bytes`, in UTF-8."""
    write_bytes(path, text.encode(), option)


def write_bytes(path: Path, content: bytes, option: str) -> None:
    """All or nothing: a temporary file in the same folder, then a rename; a device or a pipe is written to.

    Raises:
        InvalidInputError: it cannot be written.
    """
    temporary: Path | None = None
    try:
        if path.exists() and not path.is_file():  # a file in place of /dev/null is a machine without it
            path.write_bytes(content)
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        # a temporary file is private to its owner; a result is as readable as any other file
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as ex:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InvalidInputError(f"{option} {path} cannot be written: {ex.strerror or ex}") from ex
