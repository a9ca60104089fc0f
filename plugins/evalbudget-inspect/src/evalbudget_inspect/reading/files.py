"""Which files are logs of the host; without the host, which takes seconds to import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evalbudget.untrusted import is_plain_file

EVAL, JSON = ".eval", ".json"

_HEAD = 512  # bytes
_BEGINS = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')
"""How a log in JSON begins; lists of logs, and whatever else lies beside them, do not."""


def is_log(path: Path) -> bool:
    """Whether a file is a log: by the end of its name or, where that is ``.json``, by how it begins."""
    if path.suffix != JSON or not is_plain_file(path):
        return path.suffix == EVAL
    try:
        with path.open("rb") as file:
            return _BEGINS.match(file.read(_HEAD)) is not None
    except OSError:  # one that may not be read
        return False


def logs_in(path: Path) -> Iterator[Path]:
    """The log at a path, or those in a folder and the folders inside it."""
    yield from filter(is_log, _named_so(path))


def pipes_in(path: Path) -> Iterator[Path]:
    """What is named like a log in JSON and is a pipe, a device or a socket: reading it may never end."""
    named = (file for file in _named_so(path) if file.suffix == JSON)
    yield from (file for file in named if file.exists() and not file.is_dir() and not is_plain_file(file))


def _named_so(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for suffix in (EVAL, JSON):
        yield from path.rglob(f"*{suffix}")
