"""The command as typed, to keep in a store and show to people."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_SECRET = re.compile(
    r"""(\b(?:\w+_)?(?:api_?key|access_key|secret|password|(?:api|auth|access|bearer)_?token)\w*["']?\s*[=:]\s*)"""
    r"""(?:"[^"]*"|'[^']*'|[^,}]+)""",
    re.IGNORECASE,
)


def shown(words: Iterable[str]) -> str:
    """One line for a shell; keys and passwords, which people do not mean to send around, are left out."""
    return shlex.join(map(without_secrets, words))


def without_secrets(text: str) -> str:
    """The text with what is named like a key or a password left out."""
    return _SECRET.sub(r"\1***", text)
