"""Keys and passwords stay out of whatever is written, shown or compared."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from evalbudget.errors import InvalidInputError

_HIDDEN = "***"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS = frozenset(
    {"authorization", "bearer", "cookie", "credential", "credentials", "passphrase", "passwd", "password"}
    | {"cookies", "passwords", "secret", "secrets"}
)
_GLUED = ("accesskey", "apikey", "authtoken", "passwd", "password", "privatekey", "secretkey")
"""Ends of words that are written as one: PGPASSWORD."""
_KEYS = frozenset(
    {"access", "account", "api", "auth", "encryption", "private", "secret", "service", "ssh", "subscription"}
    | {"signing"}
)
"""What stands before the word key where that opens something."""
_LAST = frozenset({"auth", "header", "headers", "token"})
_SCHEME = re.compile(r"(?:basic|bearer|token)\s+", re.IGNORECASE)
_NO_TOKENS = frozenset(
    {
        "begin",
        "bos",
        "cls",
        "end",
        "eos",
        "first",
        "image",
        "last",
        "mask",
        "max",
        "min",
        "next",
        "pad",
        "per",
    }
    | {"sep", "special", "start", "stop", "think", "unk"}
)
"""What stands before the word token where that is a piece of text."""
_ABOUT = frozenset({"count", "dir", "env", "file", "folder", "length", "name", "path"})
"""Last words of names that say where a secret is, not what it is."""
_IN_QUERIES = frozenset({"key", "sig", "signature"})

# each begins where a word does and takes what it read: a text is gone through once
_NAMED = re.compile(r"(?<![\w.%-])([\w.%-]++)\\*+[\"']?\s*+[=:]\s*+")
_VALUE = re.compile(
    r"""\\+"[^"]*"?|\\+'[^']*'?|"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|[^,}\n]+""", re.DOTALL
)
_IN_QUERY = re.compile(r"[^&#\s\"']*")
_BRACKET = re.compile(r"[\[({\])}]")
_BEARER = re.compile(r"\bbearer\s++([\w.~+/=-]{8,}+)", re.IGNORECASE)
_ADDRESS = re.compile(r"(?<!\w)(\w++)://([^\s\"'<>]++)")
_DATABASE = re.compile(r"postgres(?:ql)?|psycopg")
_LONG_ENOUGH = 8
"""Characters of a value that are taken for a secret, not for a word that occurs anyway."""

_PRIVATE = 0o600

_given: set[str] = set()
"""Values of secrets that this process was given in another way than by a variable."""


@lru_cache(maxsize=1024)
def is_secret(name: str) -> bool:
    """Whether an argument of that name holds a key, a password or a header with one."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():  # OPENAI_API_KEY_2
        words.pop()
    if not words or words[-1] in _ABOUT:
        return False
    if any(word in _ALWAYS or word.endswith(_GLUED) for word in words):
        return True
    pairs = list(pairwise(words))
    if any(before in _KEYS and word in ("key", "keys") for before, word in pairs):
        return True
    if words[-1] == "pwd":
        return bool(pairs)  # alone it is where a shell is
    return words[-1] in _LAST and not (words[-1] == "token" and pairs and pairs[-1][0] in _NO_TOKENS)


def without_secrets(text: str) -> str:
    """The text without what is named like a secret in it, and without values of secrets that are known."""
    parts, end = [], 0
    for begin, stop in _named_secrets(text):
        parts += [text[end:begin], _HIDDEN]
        end = stop
    text = "".join([*parts, text[end:]])
    text = _BEARER.sub(lambda found: found[0] if found[1].isalpha() else f"Bearer {_HIDDEN}", text)
    text = _ADDRESS.sub(_without_password, text)
    return str(without_known(text))


def without_known(value: Any) -> Any:
    """JSON values without values of secrets that are known: of variables, and as :func:`keep_out` was told.

    Names in mappings are left as they are.
    """
    known = _known()
    return _without(value, known) if known else value


def keep_out(value: Any) -> None:
    """Remember the secrets in a command's words, arguments or a text: servers quote them in what they say."""
    if isinstance(value, str):
        for begin, end in _named_secrets(value):
            if value[begin] in "{[(":
                keep_out(value[begin + 1 : end])
            else:
                _remember(value[begin:end])
        for found in _ADDRESS.finditer(value):
            _remember((_login(*found.groups()) or "").partition(":")[2])
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str) and is_secret(str(name)):
                _remember(inner)
            keep_out(inner)
    elif isinstance(value, list | tuple):
        for before, inner in pairwise(["", *value]):
            if isinstance(inner, str) and _is_secret_flag(before):
                _remember(inner)
            keep_out(inner)


def refuse_secrets(value: Any, what: str) -> None:
    """Refuse keys and passwords in something that is written into logs; headers that hold none may stay.

    Args:
        value: of JSON's kinds.
        what: holds it, for the message.

    Raises:
        InvalidInputError: there is one; its name is told, and not its value.
    """
    found = next(_names_of_secrets(value), None)
    if found is not None:
        raise InvalidInputError(
            f"{what} has a secret in {found}, and would be written into logs; leave it out, and set the "
            "variable that is read in its place, such as OPENAI_API_KEY"
        )


def cleaned(value: Any) -> Any:
    """JSON values without secrets in them."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {k: _HIDDEN if is_secret(str(k)) and v else cleaned(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(inner) for inner in value]
    return value


def said_by(error: BaseException) -> str:
    """Kind and message of an error, without secrets: messages of HTTP clients quote addresses and headers."""
    return f"{type(error).__name__}: {without_secrets(str(error))}"


def shown(words: Iterable[str]) -> str:
    """A command as one line for a shell, to keep and to print, without secrets."""
    both = pairwise(["", *words])
    return shlex.join(_HIDDEN if _is_secret_flag(before) else without_secrets(word) for before, word in both)


def _is_secret_flag(word: object) -> bool:
    """Whether the next word of a command is a secret."""
    return isinstance(word, str) and word.startswith("-") and "=" not in word and is_secret(word)


def mode_in(folder: Path) -> int:
    """Mode of a new file that holds what models and people said, before the umask: its owner's alone.

    Where a folder is meant for several (its group may write, or it hands its group or its access list down to
    new files), as any other file's.
    """
    with suppress(OSError):
        about = folder.stat().st_mode
        is_shared = about & stat.S_ISGID or (about & stat.S_IWGRP and not about & stat.S_ISVTX)
        if is_shared or "system.posix_acl_default" in getattr(os, "listxattr", lambda _: ())(folder):
            return 0o666
    return _PRIVATE


def mode_of_lock(folder: Path) -> dict[str, Any]:
    """As :func:`mode_in`, for the lock of a file: one that is given a mode passes over the umask."""
    return {"mode": mode} if (mode := mode_in(folder)) == _PRIVATE else {}


def _named_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Where values of what is named like a secret begin and end."""
    position = 0
    while found := _NAMED.search(text, position):
        position = found.end()
        name, in_query = unquote(found[1]), text[found.start() - 1 : found.start()] in ("?", "&")
        if not (is_secret(name) or (in_query and name.lower() in _IN_QUERIES)):
            continue
        end = _end_of_value(text, position, in_query=in_query)
        if end > position:
            yield position, end
        position = end


def _end_of_value(text: str, begin: int, *, in_query: bool) -> int:
    if not in_query and text[begin : begin + 1] in ("{", "[", "("):
        depth = 0
        for bracket in _BRACKET.finditer(text, begin):
            depth += 1 if bracket[0] in "{[(" else -1
            if depth == 0:
                return bracket.end()
        return len(text)
    found = (_IN_QUERY if in_query else _VALUE).match(text, begin)
    return begin if found is None else found.end()


def _without_password(found: re.Match[str]) -> str:
    login = _login(*found.groups())
    return found[0] if login is None else f"{found[1]}://{_HIDDEN}{found[2][len(login) :]}"


def _login(scheme: str, rest: str) -> str | None:
    """What stands before the host of an address; None if nothing secret does.

    Args:
        scheme: of the address.
        rest: what follows the slashes; a password may have a slash or an @ in it.
    """
    first = rest.partition("/")[0]
    user, at, _ = first.rpartition("@")
    _, colon, word = (user if at else first).partition(":")
    of_database = _DATABASE.match(scheme) is not None
    # without an @ before the slash it may be a port
    if colon and "@" in rest and (at or of_database or not word.isdigit()):
        return rest.rpartition("@")[0]
    # who alone is named to a database is no secret, and the command would not work without
    return user if user and not of_database else None


def _known() -> list[str]:
    """Values of secrets, the longest first: one may be part of another."""
    of_variables = {
        value for name, value in os.environ.items() if len(value) >= _LONG_ENOUGH and is_secret(name)
    }
    return sorted(of_variables | _given, key=len, reverse=True)


def _without(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        for secret in known:
            value = value.replace(secret, _HIDDEN)
            quoted = json.dumps(secret)[1:-1]
            value = value if quoted == secret else value.replace(quoted, _HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {name: _without(inner, known) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without(inner, known) for inner in value]
    return value


def _remember(value: str) -> None:
    value = _SCHEME.sub("", value.strip("\\\"' "))
    _given.update(known for known in (value, unquote(value)) if len(known) >= _LONG_ENOUGH)


def _names_of_secrets(value: Any, name: str = "its text") -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner_name, inner in value.items():
            told = str(inner_name)
            is_a_mapping = isinstance(inner, Mapping)  # of headers: their own names tell
            if inner and is_secret(told) and not is_a_mapping and not isinstance(inner, bool):
                yield told
            else:
                yield from _names_of_secrets(inner, told)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _names_of_secrets(inner, name)
    elif isinstance(value, str):
        addresses = (found[0] for found in _ADDRESS.finditer(value))
        if without_known(value) != value or any(without_secrets(each) != each for each in addresses):
            yield name
