"""Keys and passwords stay out of whatever is written, shown or compared."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

_NAME = (
    r"(?:\w+_)?(?:api_?key|access_key|secret|password|(?:api|auth|access|bearer|hf)_?token|credentials)\w*"
)
_IS_SECRET = re.compile(rf"{_NAME}|token|headers?|authorization", re.IGNORECASE)
_NAMED = rf"(?:{_NAME}|(?<![\w.-])(?:token|headers?|authorization)(?=[\"']?\s*[=:]))"
_GIVEN = re.compile(
    rf"""(\b{_NAMED}["']?\s*[=:]\s*)(?:\{{[^}}]*\}}?|"[^"]*"|'[^']*'|[^,}}]+)""", re.IGNORECASE
)
# who alone is named to a database is no secret, and the command would not work without
_IN_ADDRESS = re.compile(r"(\w://)(?!(?<=postgresql://)[^/\s@:]+@)[^/\s@]+@")
_LONG_ENOUGH = 8
"""Characters of a variable's value that are taken for a secret, not for a word that occurs anyway."""


def is_secret(name: str) -> bool:
    """Whether an argument of that name holds a key, a password or a header with one."""
    return _IS_SECRET.fullmatch(name) is not None


def without_secrets(text: str) -> str:
    """The text without what is named like a secret in it, or stands in such a variable of the environment."""
    text = _IN_ADDRESS.sub(r"\1***@", _GIVEN.sub(r"\1***", text))
    for name, value in os.environ.items():
        if len(value) >= _LONG_ENOUGH and value in text and is_secret(name):
            text = text.replace(value, "***")
    return text


def cleaned(value: Any) -> Any:
    """JSON values without secrets in them."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {k: "***" if is_secret(str(k)) and v else cleaned(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(inner) for inner in value]
    return value


def said_by(error: BaseException) -> str:
    """Kind and message of an error, without secrets: messages of HTTP clients quote addresses and headers."""
    return f"{type(error).__name__}: {without_secrets(str(error))}"


def shown(words: Iterable[str]) -> str:
    """A command as one line for a shell, to keep and to print, without secrets."""
    return shlex.join(map(without_secrets, words))
