"""What a valid file may turn into: cut off, flipped, foreign, or valid JSON with absurd values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from time import thread_time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.claims import replications

from evalbudget.errors import EvalbudgetError

VALUES = (
    b"null", b"true", b"-1", b"0", b"1e400", b"-1e400", b"NaN", b"Infinity", b"9" * 400, b"9" * 5000, b"0.5",
    b'""', b'"x"', b'"[red]x[/"', b'"\\ud800"', b'"\\u0000"', b"[]", b"{}", b"[[]]", b'{"x":1}', b"[1,2,3,4]",
    b"[" * 3000, b'{"a":' * 3000, b"9223372036854775808",
)  # fmt: skip
_TOKEN = re.compile(rb'-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|"(?:[^"\\]|\\.)*"|true|false|null|\[[^\[\]]*\]')
FULL = 10_000
_ACCIDENTS = ("value", "value", "value", "cut", "flip", "insert", "drop", "foreign")


class _Damaged(bytes):
    def __repr__(self) -> str:
        """Short: hypothesis refuses to print a whole store, and with it whatever it found."""
        return f"<{len(self)} bytes>"


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """A valid file after one or two accidents."""
    data = valid
    for _ in range(draw(st.integers(1, 2))):
        data = _accident(draw, data)
    return _Damaged(data)


def _accident(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    match draw(st.sampled_from(_ACCIDENTS)):
        case "value":
            tokens = list(_TOKEN.finditer(data))
            if not tokens:
                return data
            token = tokens[draw(st.integers(0, len(tokens) - 1))]
            return data[: token.start()] + draw(st.sampled_from(VALUES)) + data[token.end() :]
        case "cut":
            return data[:at]
        case "flip" if data:
            return data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
        case "insert":
            return data[:at] + draw(st.binary(min_size=1, max_size=20)) + data[at:]
        case "drop":
            return data[:at] + data[at + draw(st.integers(1, 40)) :]
    return draw(st.binary(max_size=60))


def refusal(read: Callable[[], object], named: Path) -> str:
    """What our own error says, which must name the file; empty if there is a result."""
    try:
        read()
    except EvalbudgetError as ex:
        told = str(ex)
    else:
        return ""
    assert str(named) in told, told
    return told


def always_the_same(examples: int, seconds: float = 5.0) -> Callable[[Any], Any]:
    """So many examples, the same each time, none of which takes longer, whatever else the machine does."""
    fixed = settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    def timed(test: Any) -> Any:
        each = test.hypothesis.inner_test

        @wraps(each)
        def one(*values: object, **named: object) -> None:
            began = thread_time()
            each(*values, **named)
            assert thread_time() - began < seconds

        test.hypothesis.inner_test = one
        return fixed(test)

    return timed


def check_damage(valid: bytes, read: Callable[[bytes], object], named: Path, *, examples: int = 60) -> None:
    """Whatever became of a file, reading it has a result or ends in our own error, which names it.

    Args:
        valid: the file.
        read: reads it.
        named: what the error must name.
        examples: how many files to try; always the same ones. Where claims are tested in full, 10,000.
    """

    @always_the_same(replications(examples, FULL))
    @given(damaged(valid))
    def each(data: bytes) -> None:
        refusal(lambda: read(data), named)

    each()


def check_linear(read: Callable[[bytes], object], repeats: Sequence[bytes], *, size: int = 20_000) -> None:
    """Four times of what is repeated takes not much more than four times as long.

    Args:
        read: reads bytes, or ends in our own error.
        repeats: pieces, of which each is repeated until there are ``size`` bytes, and four times that.
        size: in bytes.
    """

    def seconds(data: bytes) -> float:
        began = thread_time()
        with suppress(EvalbudgetError):
            read(data)
        return thread_time() - began

    for piece in repeats:
        once = piece * -(-size // len(piece))
        for left in (2, 1, 0):  # another look, where the machine was busy
            short, long = seconds(once), seconds(4 * once)
            if long < 8.0 * short + 0.2:
                break
            assert left, (piece, short, long)
