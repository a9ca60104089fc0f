"""Which files are logs of the host; without the host, which takes seconds to import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

EVAL, JSON = ".eval", ".json"

_HEAD = 512  # bytes
_BEGINS = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')
"""How a log in JSON begins; lists of logs, and whatever else lies beside them, do not."""


def is_log(path: Path) -> bool:
    """Whether a file is a log: by the end of its name or, where that is ``.json``, by how it begins."""
    if path.suffix != JSON:
        return path.suffix == EVAL
    try:
        with path.open("rb") as file:
            return _BEGINS.match(file.read(_HEAD)) is not None
    except OSError:  # a folder of that name, or one that may not be read
        return False


def logs_in(path: Path) -> Iterator[Path]:
    """The log at a path, or those in a folder and the folders inside it."""
    if not path.is_dir():
        yield from [path] if is_log(path) else []
        return
    for suffix in (EVAL, JSON):
        yield from filter(is_log, path.rglob(f"*{suffix}"))
