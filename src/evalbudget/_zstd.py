"""How much Zstandard data (RFC 8878) unpacks to, by the headers of its blocks, without unpacking it."""

from __future__ import annotations

from typing import IO

_FRAME = 0xFD2FB528
_SKIPPED = range(0x184D2A50, 0x184D2A60)
_RAW, _REPEATED, _PACKED = 0, 1, 2
_BLOCK = 1 << 17
"""Bytes that a packed block holds at most."""
_SIZES_OF_IDS, _SIZES_OF_SIZES = (0, 1, 2, 4), (0, 2, 4, 8)


def unpacks_to_at_most(file: IO[bytes]) -> int | None:
    """Bytes that come out of all frames of a file, or some more; None if it is something else."""
    size = 0
    while len(magic := file.read(4)) == 4:
        number = int.from_bytes(magic, "little")
        if number in _SKIPPED:
            _pass(file, int.from_bytes(file.read(4), "little"))
        elif number == _FRAME:
            told = _byte(file)
            single = told >> 5 & 1
            _pass(file, 1 - single + _SIZES_OF_IDS[told & 3] + (_SIZES_OF_SIZES[told >> 6] or single))
            if (of_blocks := _blocks(file)) is None:
                return None
            size += of_blocks
            _pass(file, 4 * (told >> 2 & 1))
        else:
            return None
    return size


def _blocks(file: IO[bytes]) -> int | None:
    size, is_last = 0, 0
    while not is_last and len(header := file.read(3)) == 3:
        told = int.from_bytes(header, "little")
        is_last, kind, length = told & 1, told >> 1 & 3, told >> 3
        if kind not in (_RAW, _REPEATED, _PACKED):
            return None
        size += _BLOCK if kind == _PACKED else length
        _pass(file, 1 if kind == _REPEATED else length)
    return size


def _byte(file: IO[bytes]) -> int:
    return int.from_bytes(file.read(1), "little")


def _pass(file: IO[bytes], length: int) -> None:
    """Read on; a length may be told that the file has not."""
    while length > 0 and (read := file.read(min(length, _BLOCK))):
        length -= len(read)
