"""What the host is given to read: plain files that do not unpack to more than fits into the memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import check_archive, is_plain_file

_EVAL = ".eval"
_ENDLESS = re.compile(rb"[:,\[]\s*-?[0-9]{4301}")
"""A whole number that Python does not convert: at one, the host's reader of JSON ends the whole process."""


def check_log(log: str | Path, wanted: Callable[[str], bool] | None = None, *, together: bool = True) -> None:
    """Refuse what the host would wait for without end, or fill the memory with.

    Args:
        log: its path or address; what is not on this machine is left to the host.
        wanted: which members of the archive, by name, are read; None for all.
        together: they are; else one after the other.

    Raises:
        InvalidInputError: it is a pipe, a device, a socket or a folder, unpacks to more than a limit, or has
            an endless number.
        OSError: it cannot be read.
        zipfile.BadZipFile: it is damaged.
    """
    path = _here(str(log))
    if path is None or not path.exists():
        return
    if not is_plain_file(path):
        raise InvalidInputError(
            f"{path} is no file, but a pipe, a device, a socket or a folder; move it away"
        )
    if path.suffix == _EVAL:
        check_archive(path, wanted, together=together)
    elif path.stat().st_size:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as text:
            if _ENDLESS.search(text):
                raise InvalidInputError(
                    f"{path} is damaged: it has a number of more than 4,300 digits, which ends the host"
                )


def is_summary(member: str) -> bool:
    """Whether a member of a log holds more than one sample."""
    return not member.startswith("samples/")


def _here(log: str) -> Path | None:
    """Its path; None if it is elsewhere."""
    if "://" not in log:
        return Path(log)
    return Path(url2pathname(urlsplit(log).path)) if log.startswith("file://") else None
