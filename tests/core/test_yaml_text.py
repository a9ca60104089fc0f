"""YAML of other people: plain values, or an error that names the place; never more than its size."""

from __future__ import annotations

import runpy
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from evalbudget import yaml_text
from evalbudget.errors import InvalidInputError
from evalbudget.yaml_text import read_yaml


@pytest.fixture(params=["C", "Python"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The module with the parser in C, and as where PyYAML has none."""
    if request.param == "C":
        return vars(yaml_text)
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    return runpy.run_path(yaml_text.__file__)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{each}: &{each} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, each in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LAUGHS, r"\*a stands for something else; write that out"),
        ("a: &a [*a]", r"\*a stands for"),
        ("[" * 5000, "nest(ed more than 50 deep|ing depth)"),
        ("{a: " * 5000, "nested more than 50 deep"),
        ("- " * 5000, "nested more than 50 deep"),
        ("? " * 5000, "nested more than 50 deep"),
        ("a: " + "9" * 5000, "a number has more than 400 digits"),
        ("a: 1" + ":59" * 50_000, "a number has more than 400 digits"),
        ("a: 2020-99-99", "month must be in 1..12"),
        ("a: !!timestamp x", "NoneType"),
        ("a: !!int ''", "string index"),
        ("a: !!python/object/apply:os.system [true]", "line 1: could not determine a constructor"),
        ("a: =", "line 1: could not determine"),
        ("a: [", "line [12]: (expected the|did not find expected) node content"),
        ("%TAG !a! b\n" * 10_000 + "--- a", "%TAG names kinds of values"),
        ("".join(f"{i * (2**61 - 1)}:\n" for i in range(1, 9000)), "a key is a number of more than 18"),
        ("\0", "(special|control) characters are not allowed"),
        ("- []\n" * 9 + "a: b", "line 10"),
        ('{"a": ' + "[" * 50 + "]" * 50 + "}", "nested more than 50 deep"),
        ('["\\ud83d"]', "half a character"),
    ],
    ids=lambda value: value[:12],
)
def test_what_is_refused(text: str, told: str, reader: dict[str, Any]) -> None:
    began = thread_time()
    with pytest.raises(InvalidInputError, match=f"the place cannot be read as YAML.*{told}"):
        reader["parsed_yaml"](text, "the place")
    assert thread_time() - began < 5.0


def test_large_files_are_read_by_the_parser_in_c(tmp_path: Path, reader: dict[str, Any]) -> None:
    (path := tmp_path / "a.yaml").write_text("#" * (1 << 17) + "\na: [")
    told = "cannot be read as YAML, line 3: did not find expected node content"
    if reader is not vars(yaml_text):
        told = "has more than 131,072 bytes; leave in it what is needed here"
    with pytest.raises(InvalidInputError, match=f"file {path} {told}"):
        reader["read_yaml"](path, "file")


def test_what_is_read(tmp_path: Path, reader: dict[str, Any]) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("\ufeff- &unused {a: 0x1f, b: 1.5, c: yes}\n", encoding="utf-8")
    assert reader["read_yaml"](path, "file") == [{"a": 31, "b": 1.5, "c": True}]


def test_json_is_read_with_all_its_escapes(reader: dict[str, Any]) -> None:
    parsed = reader["parsed_yaml"]
    assert parsed(' {"\\ud83d\\ude00": [1e-05, "2020-01-01", "\\/\\u007f"]}', "a") == {
        "\U0001f600": [1e-05, "2020-01-01", "/\x7f"]
    }
    assert parsed("[" * 50 + "]" * 50, "a")
    assert parsed('{"a": 1, "1:30": 2}', "a", names=True) == {"a": 1, "1:30": 2}
    with pytest.raises(InvalidInputError, match="a stands there twice"):
        parsed('{"a": 1, "a": 2}', "a", names=True)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    for content, told in (
        (b"\xff\xfea", "is not UTF-8 text"),
        (b"#" * (1 << 20) + b"\n", "has more than 1,048,576 bytes"),
    ):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=f"price file {path} {told}"):
            read_yaml(path, "price file")
    for other in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(InvalidInputError, match=f"price file {other} cannot be read: "):
            read_yaml(other, "price file")
    with pytest.raises(InvalidInputError, match="file /dev/zero has more than"):
        read_yaml(Path("/dev/zero"), "file")
