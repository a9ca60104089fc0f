"""Writing results to files: refuse early, all or nothing."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console, RenderableType

from evalbudget.errors import InvalidInputError, reason
from evalbudget.shown import shown_json, shown_lines
from evalbudget.tables import as_text

STDOUT = Path("-")
"""What people give for standard output."""


def json_option(what: str, *, alone: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--json PATH``, refused before the work rather than after it.

    Args:
        what: is written, for help.
        alone: without a path it is standard output; for commands that cannot take an argument for the path.
    """
    extra: dict[str, Any] = {"is_flag": False, "flag_value": "-"} if alone else {}

    def checked(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            check_target(path)
        return path

    return click.option(
        "--json",
        "json_path",
        metavar="PATH",
        type=click.Path(path_type=Path, allow_dash=True),
        callback=checked,
        help=f"Write the {what}.",
        **extra,
    )


TEXT_OR_JSON = "result as JSON; to standard output instead of the text without a PATH"
"""What commands of people's labels write."""


def say(what: object, *, err: bool = False) -> None:
    """Print lines of text; what they quote is shown, not obeyed."""
    click.echo(shown_lines(str(what)), err=err)


def publish(text: str, json_path: str | Path | None, *tables: RenderableType) -> None:
    """The tables, and the JSON where :func:`json_option` wants it; on stdout it takes their place."""
    for table in tables if json_path is None or Path(json_path) != STDOUT else ():
        Console().print(as_text(table, lines=True))
    if json_path is not None:
        write_text(Path(json_path), shown_json(text) + "\n")


def write_json(found: Any, path: str | Path) -> None:
    """What was found, as JSON; to standard output if the path is ``-``."""
    from evalbudget.replay._rows import defined  # numpy takes its time: not for --help

    publish(json.dumps(defined(found), indent=2, allow_nan=False, ensure_ascii=False), path)


def check_targets(outputs: Iterable[tuple[str, str | Path | None]]) -> bool:
    """Refuse before the work rather than after it.

    Args:
        outputs: options, and what is given for them.

    Returns:
        Whether one of them is standard output; nothing else is then printed there.

    Raises:
        InvalidInputError: see :func:`check_target`, or two are standard output.
    """
    given = [(option, Path(path)) for option, path in outputs if path is not None]
    for option, path in given:
        check_target(path, option)
    printed = [option for option, path in given if path == STDOUT]
    if len(printed) > 1:
        raise InvalidInputError(
            f"{' and '.join(printed)} are both -, standard output; give a file for all but one"
        )
    return bool(printed)


def check_target(path: Path, option: str = "--json") -> None:
    """Refuse before the work rather than after it; ``-`` is standard output.

    Raises:
        InvalidInputError: the path is a folder, or its folder does not exist.
    """
    if path == STDOUT:
        return
    if path.is_dir():
        raise InvalidInputError(f"{option} {path} is a folder; give a file")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{option} {path}: the folder {path.parent} does not exist; create it first")


def write_text(path: Path, text: str, option: str = "--json") -> None:
    """As :func:`write_bytes`, in UTF-8 (halves of characters written out); to standard output for ``-``."""
    if path == STDOUT:
        click.echo(text, nl=False)
        return
    write_bytes(path, text.encode(errors="backslashreplace"), option)


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
        raise InvalidInputError(f"{option} {path} cannot be written: {reason(ex)}") from ex
