"""Notes of rounds as JSON: what a plan must know that cannot be rebuilt from later data."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from evalbudget.untrusted import parsed_json

_KINDS = "biuf"
"""Of arrays."""


def packed(value: Any, kinds: Iterable[type]) -> str:
    """JSON of a note: numbers, texts, arrays, lists, tuples, dicts, and records of these.

    Args:
        value: the note.
        kinds: of records that may be in it: named tuples, and objects that are what their attributes are.

    Raises:
        TypeError: something in it is none of these.
    """
    return json.dumps(_pack(value, {kind.__name__: kind for kind in kinds}), allow_nan=False)


def unpacked(text: str, kinds: Iterable[type]) -> Any:
    """The note.

    Args:
        text: from :func:`packed`.
        kinds: of records that may be in it; no others are made.

    Raises:
        ValueError, TypeError, LookupError: it is none.
    """
    return _unpack(parsed_json(text), {kind.__name__: kind for kind in kinds})


def _pack(value: Any, kinds: Mapping[str, type]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Enum) and kinds.get(type(value).__name__) is type(value):
        return {"record": [type(value).__name__, value.value]}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        said = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.str, list(value.shape), said]}
    name = type(value).__name__
    if kinds.get(name) is type(value):
        return {"record": [name, {key: _pack(each, kinds) for key, each in _state(value).items()}]}
    if type(value) is tuple:
        return {"tuple": [_pack(each, kinds) for each in value]}
    if type(value) is list:
        return [_pack(each, kinds) for each in value]
    if isinstance(value, Mapping):
        return {"dict": [[_pack(key, kinds), _pack(each, kinds)] for key, each in value.items()]}
    raise TypeError(f"{name} in a note, which is none of its note_kinds, and no number, text or array")


def _state(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple):
        return dict(value._asdict())  # type: ignore[attr-defined]
    slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
    own = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    kept = getattr(value, "__dict__", {})
    # what was looked up is no part of it
    return own | {
        k: v for k, v in kept.items() if not isinstance(getattr(type(value), k, None), cached_property)
    }


def _unpack(said: Any, kinds: Mapping[str, type]) -> Any:
    if isinstance(said, list):
        return [_unpack(each, kinds) for each in said]
    if not isinstance(said, dict):
        return said
    ((kind, own),) = said.items()
    if kind == "float":
        return float(own)
    if kind == "array":
        dtype = np.dtype(own[0])
        if dtype.kind not in _KINDS:
            raise TypeError(f"an array of {dtype}")
        found = np.frombuffer(base64.b64decode(own[2], validate=True), dtype)
        return found.reshape([int(n) for n in own[1]]).copy()
    if kind == "record":
        if issubclass(kinds[own[0]], Enum):
            return kinds[own[0]](own[1])
        state = {name: _unpack(each, kinds) for name, each in own[1].items()}
        if issubclass(kinds[own[0]], tuple):
            return kinds[own[0]](**state)
        made: Any = object.__new__(kinds[own[0]])
        for name, each in state.items():
            object.__setattr__(made, name, each)
        return made
    if kind == "tuple":
        return tuple(_unpack(each, kinds) for each in own)
    if kind == "dict":
        return {_unpack(key, kinds): _unpack(each, kinds) for key, each in own}
    raise ValueError(f"{kind!r} in a note")
