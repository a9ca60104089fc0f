"""Writing results to files: refuse early, all or nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from evalbudget.errors import InvalidInputError


def check_target(path: Path) -> None:
    """Refuse before the work rather than after it.

    Raises:
        InvalidInputError: the path is a folder, or its folder does not exist.
    """
    if path.is_dir():
        raise InvalidInputError(f"--json {path} is a folder; give a file")
    if not path.parent.is_dir():
        raise InvalidInputError(f"--json {path}: the folder {path.parent} does not exist; create it first")


def write_text(path: Path, text: str) -> None:
    """All or nothing: a temporary file in the same folder, then a rename.

    Raises:
        InvalidInputError: it cannot be written.
    """
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
        # a temporary file is private to its owner; a result is as readable as any other file
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as ex:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InvalidInputError(f"--json {path} cannot be written: {ex.strerror or ex}") from ex
