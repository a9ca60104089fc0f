"""Pages of Parquet: their own headers, which nothing contradicts, say how much is unpacked."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import check_size

VALUE = 8  # bytes of one, though a page says once what it repeats
REMEDY = "split it"
_PREFIXES = 7  # the encoding that repeats the beginning of the text before

# kinds of values in a header, in the compact protocol of Thrift
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class CheckedPages(io.BufferedReader):
    """A Parquet file that refuses to give more than may be unpacked of it.

    Args:
        path: of the file.

    Attributes:
        are_read: what is read from now on is whole columns, page by page.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self.are_read = False
        self._path = path
        self._size = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """As of any file.

        Raises:
            InvalidInputError: too much, with all before it, would be unpacked of it.
            ValueError: it holds something else than pages.
        """
        data = super().read(size)
        if self.are_read:
            for unpacked in _sizes(data, self._path):
                self._size += unpacked
                check_size(self._path, self._size, REMEDY)
        return data


def _sizes(column: bytes, path: Path) -> Iterator[int]:
    """Of the pages of a part of a column: bytes that each unpacks to."""
    at = 0
    try:
        while at < len(column):
            header, at = _struct(column, at)
            unpacked, packed = header[2], header[3]
            first, words, second = (header.get(field, {}) for field in (5, 7, 8))
            if _PREFIXES in (first.get(2), second.get(4)):
                raise InvalidInputError(
                    f"{path} has texts in the encoding DELTA_BYTE_ARRAY, of which a few bytes unpack to any "
                    "size; write it with another"
                )
            if min(unpacked, packed) < 0:
                raise ValueError("the size of a page is below 0")
            at += packed
            yield max(unpacked, packed, *(VALUE * page.get(1, 0) for page in (first, words, second)))
    except (AttributeError, LookupError, RecursionError, TypeError) as ex:
        raise ValueError("a page has no header") from ex


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Its numbers and structs by the number of the field, and where it ends."""
    found: dict[int, Any] = {}
    field = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        at += 1
        field += step
        if not step:
            field, at = _number(data, at)
        value, at = _value(data, at, kind)
        if kind in (_INT, _STRUCT):
            found[field] = value
    return found, at + 1


def _value(data: bytes, at: int, kind: int, *, in_list: bool = False) -> tuple[Any, int]:
    """What stands there; None for what no page is unpacked by."""
    if kind == _STRUCT:
        return _struct(data, at)
    if kind in (_SHORT, _INT, _LONG):
        return _number(data, at)
    if kind in (_TRUE, _FALSE):
        return None, at + in_list
    if kind == _BINARY:
        length, at = _bits(data, at)
        return None, at + length
    if kind in (_LIST, _SET):
        count, inner = divmod(data[at], 16)
        at += 1
        if count == 15:
            count, at = _bits(data, at)
        for _ in range(count):
            _, at = _value(data, at, inner, in_list=True)
            if at > len(data):
                raise LookupError("a list counts more than there are")
        return None, at
    return None, at + {_BYTE: 1, _DOUBLE: 8}[kind]  # no header has a map


def _number(data: bytes, at: int) -> tuple[int, int]:
    bits, at = _bits(data, at)
    return (bits >> 1) ^ -(bits & 1), at


def _bits(data: bytes, at: int) -> tuple[int, int]:
    """Seven of each byte, the lowest first, until a byte has no eighth; no more than 32 of them count."""
    found = 0
    for place in range(10):
        found |= (data[at + place] & 127) << 7 * place
        if data[at + place] < 128:
            return found & 0xFFFFFFFF, at + place + 1
    raise ValueError("a number has no end")
