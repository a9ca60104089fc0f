"""Files that other people made: none takes more memory or time than it may."""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from evalbudget._zstd import unpacks_to_at_most
from evalbudget.errors import InvalidInputError

VARIABLE = "EVALBUDGET_LARGEST_GIB"
_USUAL = 2.0  # GiB: hundreds of readings of each of a million items
_CHUNK, _PACKED, _ENDLESS = 1 << 20, 1 << 12, 1 << 62  # bytes
_DEFLATED_AT_MOST = 1032  # bytes that come out of one
_ZSTANDARD = 93  # of members, as zipfile calls it from Python 3.14 on
MORE = f"set {VARIABLE} to what your memory holds"
"""The remedy that there always is."""


def parsed_json(text: str | bytes | bytearray) -> Any:
    """Of JSON, and of NaN and Infinity in it.

    Raises:
        ValueError: it is none, is nested too deeply, or has a number that is too long.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_plain_file(path: Path) -> bool:
    """Whether reading it comes to an end: it is a file, and no pipe, device, socket or folder."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):  # links in a circle, a folder that may not be entered
        return False


def largest() -> int:
    """Bytes that are unpacked of one file: 2 GiB, or what ``EVALBUDGET_LARGEST_GIB`` says.

    Raises:
        InvalidInputError: it says no number above 0.
    """
    told = os.environ.get(VARIABLE, "")
    try:
        gibibytes = float(told or _USUAL)
    except ValueError:
        gibibytes = math.nan
    if not 0.0 < gibibytes < math.inf:
        raise InvalidInputError(f"{VARIABLE} is {told!r}; give a number of GiB above 0, or leave it out")
    return int(gibibytes * 2**30)


def check_size(path: Path, size: int, remedy: str = "get it again from where it was written") -> None:
    """Refuse a file for what it unpacks to.

    Args:
        path: of the file.
        size: in bytes.
        remedy: beside raising the limit.

    Raises:
        InvalidInputError: it is more than :func:`largest`.
    """
    if size > (most := largest()):
        raise InvalidInputError(
            f"{path} unpacks to {size / 2**30:,.1f} GiB or more, and at most {most / 2**30:g} are read; "
            f"{remedy}, or {MORE}"
        )


def check_archive(path: Path, wanted: Callable[[str], bool] | None = None, *, together: bool = True) -> None:
    """Refuse an archive whose members would fill the memory, whatever sizes it declares.

    Args:
        path: of the archive.
        wanted: which members, by name, are read; None for all.
        together: they are; else one after the other.

    Raises:
        InvalidInputError: they unpack to more than :func:`largest`.
        OSError: it cannot be read.
        zipfile.BadZipFile: it is no archive, or damaged.
    """
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if wanted is None or wanted(member.filename)]
        for some in [members] if together else ([member] for member in members):
            _check_members(path, archive, some)


def _check_members(path: Path, archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo]) -> None:
    check_size(path, sum(max(member.file_size, member.compress_size) for member in members))
    packed = [member for member in members if member.compress_type != zipfile.ZIP_STORED]
    if sum(_at_most(archive, member) for member in packed) > largest():
        size = 0
        for member in packed:
            size += _unpacked(archive, member, largest() - size)
            check_size(path, size)


def _at_most(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Bytes that come out of a member, or some more, as far as that is known without unpacking it."""
    most = None
    if member.compress_type == zipfile.ZIP_DEFLATED:
        most = member.compress_size * _DEFLATED_AT_MOST
    elif member.compress_type == _ZSTANDARD:
        as_it_is = copy(member)
        as_it_is.compress_type, as_it_is.file_size = zipfile.ZIP_STORED, member.compress_size
        as_it_is.CRC = None  # type: ignore[assignment]  # that of what is unpacked
        with archive.open(as_it_is) as file:
            most = unpacks_to_at_most(file)
    return largest() + 1 if most is None else most


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> int:
    """Bytes that come out of a member, whatever it declares; counted up to some more than ``most``."""
    member.file_size, size = _ENDLESS, 0
    # other kinds unpack as much as they are given at once
    chunk = _CHUNK if member.compress_type == zipfile.ZIP_DEFLATED else _PACKED
    with archive.open(member) as file:
        while size <= most and (read := file.read(chunk)):
            size += len(read)
    return size
