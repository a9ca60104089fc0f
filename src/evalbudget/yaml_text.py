"""YAML that other people wrote: it takes no more than its size, and what is wrong with it is told."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from evalbudget.errors import InvalidInputError, reason

_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C takes a tenth of the time
_LARGEST = 1 << (20 if _Parser is not yaml.SafeLoader else 17)  # bytes; of names, tens of thousands
_DEEPEST = 50
_TOO_DEEP = f"it is nested more than {_DEEPEST} deep"
_LONGEST = 400  # digits; the reader takes 1:1:1 for a number in base 60, at the square of its length
_LONGEST_KEY = 18  # digits; larger numbers can all have the same hash
_INT = "tag:yaml.org,2002:int"
_TAGS = re.compile("^%TAG", re.MULTILINE)  # each is compared with all before it


class _Loader(_Parser):  # type: ignore[misc, valid-type]
    def construct_yaml_int(self, node: Any) -> Any:
        if len(node.value) > _LONGEST:
            raise ValueError(f"a number has more than {_LONGEST} digits")
        return super().construct_yaml_int(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        if any(key.tag == _INT and len(key.value) > _LONGEST_KEY for key, _ in node.value):
            raise ValueError(f"a key is a number of more than {_LONGEST_KEY} digits; put it in quotes")
        return super().construct_mapping(node, deep)


_Loader.add_constructor(_INT, _Loader.construct_yaml_int)


class _NamesLoader(_Loader):
    """Keys are text as it is written, each once: an item called 1:30, or yes, is no number, nor true."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        return _each_once([(key.value, self.construct_object(value, deep)) for key, value in node.value])


def read_yaml(path: Path, what: str, *, names: bool = False) -> Any:
    """What a file holds.

    Args:
        path: of the file.
        what: it is, for messages, for example "price file".
        names: keys are names that somebody chose: text as it is written, each once.

    Raises:
        InvalidInputError: it cannot be read, is larger than a megabyte (128 KiB where PyYAML has
            no parser in C), or as :func:`parsed_yaml` does.
    """
    where = f"{what} {path}"
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as ex:
        raise InvalidInputError(f"{where} cannot be read: {reason(ex)}") from ex
    if len(data) > _LARGEST:
        raise InvalidInputError(f"{where} has more than {_LARGEST:,} bytes; leave in it what is needed here")
    try:
        return parsed_yaml(data.decode("utf-8-sig"), where, names=names)
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"{where} is not UTF-8 text ({ex.reason}); save it as UTF-8") from ex


def parsed_yaml(text: str, where: str, *, names: bool = False) -> Any:
    """What a text says, of the kinds that JSON has, and dates.

    Args:
        text: YAML without aliases, or JSON.
        where: it stands, for messages.
        names: see :func:`read_yaml`.

    Raises:
        InvalidInputError: it is something else, nested deeply, or holds numbers or dates that are none.
    """
    try:
        if text.lstrip()[:1] in ("{", "["):
            with suppress(RecursionError, json.JSONDecodeError):
                return _of_json(text, names=names)
        _check(text)
        return yaml.load(text, _NamesLoader if names else _Loader)
    except Exception as ex:  # what constructors raise of numbers, dates and tags that are none
        told = getattr(ex, "problem", None) or " ".join(str(ex).split())
        mark = getattr(ex, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        raise InvalidInputError(f"{where} cannot be read as YAML{line}: {told}") from ex


def _of_json(text: str, *, names: bool) -> Any:
    """Of JSON: it has halves of characters as escapes, of which YAML knows nothing."""
    found = json.loads(text, object_pairs_hook=_each_once if names else None)
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text has half a character in it") from None
    if _is_deeper(found, _DEEPEST):
        raise ValueError(_TOO_DEEP)
    return found


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict[str, Any]()
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name} stands there twice")
        found[name] = value
    return found


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _check(text: str) -> None:
    """Refuse what costs more than its size: aliases, with which a few lines fill a memory, depth, %TAG."""
    if _TAGS.search(text):
        raise ValueError("%TAG names kinds of values, which are not read; leave it out")
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(f"*{event.anchor} stands for something else; write that out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ValueError(_TOO_DEEP)
