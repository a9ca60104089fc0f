"""Keys and passwords stay out of whatever is written, shown or compared."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from evalbudget.errors import InvalidInputError

_HIDDEN = "***"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS = frozenset(
    {"authorization", "bearer", "cookie", "credential", "credentials", "jwt", "passphrase", "passwd"}
    | {"cookies", "password", "passwords", "secret", "secrets"}
)
_GLUED = (
    *("accesskey", "accesstoken", "apikey", "authtoken", "clientsecret", "hftoken", "passwd", "password"),
    *("privatekey", "secretkey", "sshpass"),
)
"""Ends of words that are written as one: PGPASSWORD."""
_KEYS = frozenset(
    {"access", "account", "api", "app", "auth", "consumer", "deploy", "encryption", "fernet", "functions"}
    | {"license", "master", "private", "secret", "service", "signing", "ssh", "storage", "subscription"}
    | {"anthropic", "azure", "cohere", "deepseek", "fireworks", "gemini", "google", "groq", "mistral", "ngc"}
    | {"nvidia", "openai", "openrouter", "together", "xai"}
)
"""What stands before the word key where that opens something."""
_BEFORE_PASS = frozenset({"admin", "db", "mail", "mysql", "pg", "redis", "smtp", "ssh", "user"})
_BEFORE_HEADER = frozenset({"auth", "default", "extra", "http", "request"})
_LAST = frozenset({"auth", "headers", "token"})
_SCHEME = re.compile(r"\A(?:basic|bearer|token)\s+", re.IGNORECASE)
_NO_TOKENS = frozenset(
    {
        "answer",
        "audio",
        "begin",
        "bos",
        "cls",
        "end",
        "eom",
        "eos",
        "eot",
        "first",
        "image",
        "input",
        "last",
        "mask",
        "max",
        "min",
        "next",
        "output",
        "pad",
        "per",
    }
    | {"sep", "special", "start", "stop", "think", "tool", "unk", "video"}
    | {"assistant", "delimiter", "newline", "prefix", "prompt", "system"}
)
"""What stands before the word token where that is a piece of text."""
_ABOUT = frozenset({"count", "dir", "env", "file", "folder", "length", "name", "path"})
"""Last words of names that say where a secret is, not what it is."""
_ITSELF = frozenset({"content", "contents", "file", "string", "value"})
"""Last words of names that say no more than what stands before them: TOKEN_VALUE, TOKEN_FILE_CONTENTS."""
_IN_QUERIES = frozenset({"key", "sig", "signature"})

# each begins where a word does and takes what it read: a text is gone through once
_NAMED = re.compile(r"(?<![\w.%-])([\w.%-]++)\\*+[\"']?\s*+[=:]\s*+")
_VALUE = re.compile(
    r"""\\+"[^"]*"?|\\+'[^']*'?|"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|[^,}\n"']+""", re.DOTALL
)
_IN_QUERY = re.compile(r"[^&#\s\"']*")
_BRACKET = re.compile(r"""(?<!\\)"(?:[^"\\]|\\.)*+"?|(?<![\w\\])'(?:[^'\\]|\\.)*+'?|[\[({\])}]""", re.DOTALL)
"""Also texts in quotes, in which a bracket is none."""
_BEFORE_VALUE = re.compile(r"[bBfFrRuU]{1,2}(?=[\"'])|[A-Za-z_][\w.]*+(?=\()")
"""Of Python: ``b'...'``, ``Key('...')``."""
_BEARER = re.compile(r"\bbearer\s++([\w.~+/=-]{8,}+)", re.IGNORECASE)
_FORMS = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^-]++(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?"
    r"|(?<![\w-])(?:sk-ant-[\w-]{80,}+|sk-(?:admin|proj|svcacct)-[\w-]{48,}+|github_pat_\w{60,}+"
    r"|eyJ[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]{20,}+|glpat-[\w-]{20,}+|nvapi-[\w-]{50,}+|xox[a-z]-[0-9]+-[\w-]{20,}+"
    r"|(?:sk-[A-Za-z0-9]{32}|sk-[A-Za-z0-9]{48}|sk-or-v1-[0-9a-f]{64}|AIza[\w-]{35}|A[KS]IA[A-Z0-9]{16}"
    r"|gh[opsru]_[A-Za-z0-9]{36}|gsk_[A-Za-z0-9]{52}|hf_[A-Za-z0-9]{34}|xai-[A-Za-z0-9]{80})(?![\w-]))"
)
"""Keys of vendors, as long as theirs are, and keys in files and tokens that say what they are: names of items
and models, and hashes, are none."""
_ADDRESS = re.compile(r"(?<!\w)(\w++)://([^\s\"'<>]++)")
_DATABASE = re.compile(r"postgres(?:ql)?|psycopg")
_LONG_ENOUGH, _SURELY_LONG_ENOUGH = 8, 16
_WORDS = re.compile(r"[a-z]+(?:[ ._-][a-z]+)*|[A-Z]?[a-z]+")
"""Values that occur anyway, such as ``lm-studio`` or ``postgres``, are no secrets wherever they stand, unless
they are as long as the second."""

_PRIVATE = 0o600

_given: set[str] = set()
"""Values of secrets that this process was given in another way than by a variable."""

_found: tuple[Mapping[Any, Any], set[str], list[str]] = ({}, set(), [])
"""Values of secrets, and the variables and given values that they are of."""


@lru_cache(maxsize=1024)
def is_secret(name: str) -> bool:
    """Whether an argument of that name holds a key, a password or a header with one."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():  # OPENAI_API_KEY_2
        words.pop()
    if not words or words[-1] in _ABOUT:
        return False
    while words and (words[-1] in _ITSELF or words[-1].isdigit()):
        words.pop()
    if any(word in _ALWAYS or word.endswith(_GLUED) for word in words):
        return True
    pairs = list(pairwise(words))
    last = words[-1] if words else ""
    before = pairs[-1][0] if pairs else ""
    if any(one in _KEYS and word in ("key", "keys") for one, word in pairs):
        return True
    if last == "pwd":
        return bool(pairs)  # alone it is where a shell is
    if last in ("pass", "pat"):
        return before in _BEFORE_PASS or (before, last) in (("github", "pat"), ("gitlab", "pat"))
    if last == "header":  # of a table it is none
        return not before or before in _BEFORE_HEADER
    return last in _LAST and not (last == "token" and pairs and pairs[-1][0] in _NO_TOKENS)


def without_secrets(text: str) -> str:
    """The text without what is named like a secret in it, and as of :func:`without_known`."""
    parts, end = [], 0
    for begin, stop in _named_secrets(text):
        parts += [text[end:begin], _HIDDEN]
        end = stop
    text = "".join([*parts, text[end:]])
    text = _BEARER.sub(lambda found: found[0] if found[1].isalpha() else f"Bearer {_HIDDEN}", text)
    text = _ADDRESS.sub(_without_password, text)
    return str(without_known(text))


def quoted(value: object) -> str:
    """As Python writes it, without secrets: for messages about what somebody gave."""
    return without_secrets(repr(value))


def without_known(value: Any) -> Any:
    """JSON values and dataclasses without values of secrets that are known, and without keys of vendors.

    Known are those of variables, and what :func:`keep_out` was told; of vendors, what has the form of their
    keys. Names in mappings are left as they are.
    """
    return _without(value, _known())


def keep_out(value: Any) -> None:
    """Remember the secrets in a command's words, arguments or a text: servers quote them in what they say."""
    if isinstance(value, str):
        _given.update(_values_in(value))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str) and is_secret(str(name)):
                _given.update(_values(inner))
            keep_out(inner)
    elif isinstance(value, list | tuple):
        for before, inner in pairwise(["", *value]):
            if isinstance(inner, str) and _is_secret_flag(before):
                _given.update(_values(inner))
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
        return {k: _hidden(v) if is_secret(str(k)) else cleaned(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(inner) for inner in value]
    return value


def _hidden(value: Any) -> Any:
    """What a secret's name stands for: results of tasks with such a name stay."""
    if isinstance(value, Mapping):
        return {k: v if isinstance(v, float) else _hidden(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(inner) for inner in value]
    return _HIDDEN if value and not isinstance(value, bool) else value


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
    new files), its group's, too.
    """
    with suppress(OSError):
        about = folder.stat().st_mode
        is_shared = about & stat.S_ISGID or (about & stat.S_IWGRP and not about & stat.S_ISVTX)
        if is_shared or "system.posix_acl_default" in getattr(os, "listxattr", lambda _: ())(folder):
            return 0o660
    return _PRIVATE


def mode_of_lock(folder: Path) -> dict[str, Any]:
    """As :func:`mode_in`, for the lock of a file: one that is given a mode passes over the umask."""
    return {"mode": mode} if (mode := mode_in(folder)) == _PRIVATE else {}


def _named_secrets(text: str, *, inside: bool = False) -> Iterator[tuple[int, int]]:
    """Where values of what is named like a secret begin and end.

    Args:
        text: any.
        inside: a value in brackets is none; what is named in it may be.
    """
    position = 0
    while found := _NAMED.search(text, position):
        position = found.end()
        name, in_query = unquote(found[1]), text[found.start() - 1 : found.start()] in ("?", "&")
        if not (is_secret(name) or (in_query and name.lower() in _IN_QUERIES)):
            continue
        if inside and text[position : position + 1] in ("{", "[", "("):
            continue
        end = _end_of_value(text, position, in_query=in_query)
        if end > position:
            yield position, end
        position = end


def _end_of_value(text: str, begin: int, *, in_query: bool) -> int:
    if not in_query and (before := _BEFORE_VALUE.match(text, begin)) is not None:
        return max(_end_of_plain(_VALUE, text, begin), _end_of_value(text, before.end(), in_query=False))
    if not in_query and text[begin : begin + 1] in ("{", "[", "("):
        depth = 0
        for bracket in _BRACKET.finditer(text, begin):
            if bracket[0][0] not in "\"'":
                depth += 1 if bracket[0] in "{[(" else -1
            if depth == 0:
                return bracket.end()
        return len(text)
    return _end_of_plain(_IN_QUERY if in_query else _VALUE, text, begin)


def _end_of_plain(kind: re.Pattern[str], text: str, begin: int) -> int:
    found = kind.match(text, begin)
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
    """Values of secrets, also as JSON has them, the longest first: one may be part of another.

    Looked for again where variables or given values have changed.
    """
    global _found
    variables = getattr(os.environ, "_data", os.environ)  # that decodes every name and value, each time
    if _found[0] != variables or _found[1] != _given:
        _found = dict(variables), set(_given), _looked_for()
    return _found[2]


def _looked_for() -> list[str]:
    known = set(_given)
    for name, value in os.environ.items():
        if is_secret(name):
            known.update(_values(value))
        else:
            known.update(_values_in(value))
    known.update(form for secret in tuple(known) for form in _repeated(secret))
    return sorted(known, key=len, reverse=True)


def _repeated(secret: str) -> Iterator[str]:
    """As in JSON and in addresses."""
    yield json.dumps(secret)[1:-1]
    with suppress(UnicodeEncodeError):  # half a character stands in no address
        yield quote_plus(secret, errors="surrogateescape")
        for safe in ("", "/"):
            yield quote(secret, safe, errors="surrogateescape")


def _without(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        for secret in known:
            if secret in value:
                value = value.replace(secret, _HIDDEN)
        return _FORMS.sub(_HIDDEN, value) if _FORMS.search(value) else value
    if isinstance(value, Mapping):
        return {name: _without(inner, known) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        inside = [_without(inner, known) for inner in value]
        return tuple(inside) if isinstance(value, tuple) else inside
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **_without(named, known))
    return value


def _values(value: str) -> Iterator[str]:
    """As what a secret may be repeated: with and without its scheme and what is percent-encoded."""
    value = value.strip("\\\"' \t\r\n")
    for each in {value, _SCHEME.sub("", value, count=1), unquote(value)}:
        if len(each) >= _SURELY_LONG_ENOUGH or (len(each) >= _LONG_ENOUGH and not _WORDS.fullmatch(each)):
            yield each


def _values_in(text: str) -> Iterator[str]:
    for begin, end in _named_secrets(text, inside=True):
        yield from _values(text[begin:end])
    yield from _passwords(text)


def _passwords(text: str) -> Iterator[str]:
    """Those in addresses, and as clients send them."""
    for found in _ADDRESS.finditer(text):
        login = _login(*found.groups()) or ""
        for password in _values(login.partition(":")[2]):
            yield password
            yield b64encode(unquote(login).encode(errors="replace")).decode()


def _names_of_secrets(value: Any, name: str = "its text") -> Iterator[str]:
    if isinstance(value, str):
        one_word = " " not in value or value.startswith('{"')  # others may be prompts
        addresses = [found for found in _ADDRESS.finditer(value) if one_word]
        if (
            without_known(value) != value
            or _BEARER.fullmatch(value)
            or any(":" in (_login(*each.groups()) or "") for each in addresses)
            or (one_word and any(True for _ in _named_secrets(value)))
        ):
            yield name
    elif isinstance(value, Mapping):
        for inner_name, inner in value.items():
            told = str(inner_name)
            of_headers = isinstance(inner, Mapping) and told.lower().endswith(("header", "headers"))
            of_query = name.endswith(("query", "params")) and told.lower() in _IN_QUERIES
            if inner and (is_secret(told) or of_query) and not of_headers and not isinstance(inner, bool):
                yield told
            else:
                yield from _names_of_secrets(inner, told)
    elif isinstance(value, list | tuple):
        for before, inner in pairwise(["", *value]):
            yield from [before] if _is_secret_flag(before) else _names_of_secrets(inner, name)
