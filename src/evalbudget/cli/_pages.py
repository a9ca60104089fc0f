"""Writing a folder of pages: refuse early, and write over nothing but pages of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evalbudget.cli._output import write_text
from evalbudget.errors import InvalidInputError, reason

INDEX = "index.html"


def is_folder(path: Path) -> bool:
    """Whether pages go into a folder of that name: one that is there, or a name without a suffix."""
    return path.is_dir() or (not path.suffix and not path.is_file())


def check_folder(path: Path, option: str) -> None:
    """Refuse before the work rather than after it.

    Raises:
        InvalidInputError: the folder above does not exist, or somebody else's pages are there.
    """
    if not path.parent.is_dir():
        raise InvalidInputError(f"{option} {path}: the folder {path.parent} does not exist; create it first")
    from evalbudget.report._html_document import GENERATOR

    index = path / INDEX
    try:
        ours = not index.exists() or GENERATOR in index.read_text(encoding="utf-8", errors="replace")[:1000]
    except OSError as ex:
        raise InvalidInputError(f"{option} {path}: {index} cannot be read: {reason(ex)}") from ex
    if not ours:
        raise InvalidInputError(
            f"{option} {path} holds an {INDEX} that is no report of evalbudget; give another folder"
        )


def write_pages(folder: Path, pages: Mapping[str, str], option: str) -> None:
    """Each page all or nothing, the index last; pages of names that are no longer there stay.

    Args:
        folder: made if it is not there.
        pages: texts by path within it.
        option: for messages.

    Raises:
        InvalidInputError: it cannot be written.
    """
    for name in sorted(pages, key=lambda name: name == INDEX):
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as ex:
            raise InvalidInputError(f"{option} {path.parent} cannot be created: {reason(ex)}") from ex
        write_text(path, pages[name], option)
