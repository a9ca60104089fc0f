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
    return shlex.join(_SECRET.sub(r"\1***", word) for word in words)
