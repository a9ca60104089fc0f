"""Replies of judges, prices, preferences, tables: a result, or our own error, in linear time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.claims import replications
from tests.hostile.damage import FULL, always_the_same, check_damage, check_linear
from tests.hostile.test_core_files import CSV, JSON_LINES, reader

from evalbudget.comparisons import Baseline
from evalbudget.errors import InvalidInputError
from evalbudget.prices import read_prices
from evalbudget.recorded._files import open_scores
from evalbudget.repeats._variances import read_variances
from evalbudget_pairwise import load_preferences, parse_verdict, read_template

PIECES = (
    "[[A]]", "[[B]]", "[[C]]", "[[tie]]", "[[A>>B]]", "[[", "]]", "[[ A", "[[A>", ">", "**", "<think>",
    "</think>", "<thinking>", "</THINKING>", "verdict", "verdict is", "verdict: ", "better answer is ", "A",
    "B", "tie", "is better", "not ", "n't", "worse choice is ", "other ", "It is ", " ", "\n", "\t", "> ",
    "(", "`", "\u2028", "\ud800", "\0", "x",
)  # fmt: skip


@pytest.mark.claim
def test_any_reply_of_a_judge_has_a_verdict_or_none() -> None:
    @always_the_same(replications(120, FULL), seconds=1.0)
    @given(
        st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12), st.integers(1, 300)
    )
    def each(pieces: list[str], times: int) -> None:
        assert parse_verdict("".join(pieces) * times) in (None, 0.0, 0.5, 1.0)

    each()


def test_replies_take_linear_time() -> None:
    pieces = [
        *PIECES,
        "[[A]] ",
        "[[A]]\n",
        "not [[A]] ",
        "verdict is A ",
        "A\n",
        "<think></think>",
        "verdict is\n",
    ]
    read: Callable[[bytes], object] = lambda data: parse_verdict(data.decode(errors="surrogatepass"))  # noqa: E731
    check_linear(read, [piece.encode(errors="surrogatepass") for piece in pieces])


def test_long_replies_are_read_to_their_end() -> None:
    began = thread_time()
    assert parse_verdict("[[A]]" * 20_000) == 1.0
    assert parse_verdict("[[A]]" * 20_000 + " not [[A]]") is None
    assert thread_time() - began < 0.5
    assert parse_verdict("word " * 1_000_000 + "\n[[B]]") == 0.0
    assert parse_verdict("word " * 1_000_000 + "verdict: A") == 1.0
    assert parse_verdict("not " * 2_000 + "verdict: A") is None
    assert parse_verdict("[[A]] because " + "it is good " * 10_000) == 1.0
    assert parse_verdict("<think>" * 20_000) is None
    assert parse_verdict("<think>" * 20_000 + "</think>[[A]]") == 1.0


PRICES = b"""\
openai/gpt-4o-mini: {input: 0.15, output: 0.60, cached: 0.075}
google/*:
  input: 1.25
  output: 10
  max_output: 100
  tiers:
    - {above: 200000, input: 2.50, output: 1e-05}
a: {call: 0.004, input: 0, output: 0}
"""
YAML = (
    b"[",
    b"{a: ",
    b"- ",
    b"? ",
    b"a: b\n",
    b"- a\n",
    b"'",
    b'"',
    b"#",
    b"&a ",
    b"!a ",
    b"1:",
    b" ",
    b"\n",
    b"|\n",
)


@pytest.mark.claim
def test_prices_after_any_damage(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    for valid in (PRICES, b'{"a": {"input": 0.4, "output": 1e-05}, "\\ud83d\\ude00*": {"call": 1}}'):
        assert read_prices(reader_of(path, valid))
        check_damage(valid, reader(path, read_prices), path)
    check_linear(reader(path, read_prices), YAML, size=2_000)


@pytest.mark.claim
def test_variances_after_any_damage(tmp_path: Path) -> None:
    path, table = tmp_path / "variances.yaml", tmp_path / "earlier.csv"
    valid = b"q1: 0.25\n1:30: 1e-3\nyes: 0\n'a b': 2\n"
    assert len(read_variances(reader_of(path, valid))) == 4
    check_damage(valid, reader(path, read_variances), path)
    check_linear(reader(path, read_variances), YAML, size=2_000)
    earlier = b"item,repeat,score\nx,0,1\nx,1,0\ny,0,1\ny,1,\n"
    assert len(read_variances(reader_of(table, earlier))) == 2
    check_damage(earlier, reader(table, read_variances), table)


BASELINE = b'''\
item,score,model,rater,task,version,field,digest,better,cluster
'=a,0.5,m,r,t,1,x,d1,higher,c1
b,,m,r,t,1,y,d2,higher,c1
"'""c\\u001b""",1,m,r,t,1,x,d3,higher,c2
'''


@pytest.mark.claim
def test_a_baseline_after_any_damage(tmp_path: Path) -> None:
    path = tmp_path / "baseline.csv"

    def read(path: Path) -> Baseline:
        found = open_scores(path, category="field")
        assert found is not None
        return Baseline.of(found, name=str(path))

    assert read(reader_of(path, BASELINE)).lower_is_better is False
    check_damage(BASELINE, reader(path, read), path)


def reader_of(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


ROWS = [
    {"item": "x", "first": "a", "second": "b", "winner": "a", "judge": "j"},
    {"item": "x", "first": "b", "second": "a", "winner": "tie", "judge": "j"},
    {"item": "y", "first": "a", "second": "b", "winner": "", "judge": "k"},
]
TEXT = "\n".join(",".join(row.values()) for row in [{name: name for name in ROWS[0]}, *ROWS])
PREFERENCES = {
    ".csv": TEXT,
    ".tsv": TEXT.replace(",", "\t"),
    ".json": json.dumps(ROWS),
    ".jsonl": "\n".join(map(json.dumps, ROWS)),
}
REPEATS = (
    b",",
    b"\n",
    b'"',
    b"a,",
    b"[",
    b"{",
    b'{"a":',
    b"9",
    b"\t",
    b'"a",',
    b'{"item":1}\n',
    b"\0",
    b"1,2\n",
)


@pytest.mark.claim
@pytest.mark.parametrize("suffix", list(PREFERENCES))
def test_preferences_after_any_damage(tmp_path: Path, suffix: str) -> None:
    path, valid = tmp_path / f"preferences{suffix}", PREFERENCES[suffix].encode()
    assert load_preferences(reader_of(path, valid)).models == ("a", "b")
    check_damage(valid, reader(path, load_preferences), path)
    check_linear(reader(path, load_preferences), [*REPEATS, valid + b"\n"])


@pytest.mark.parametrize("apart", [0, 1])
def test_preferences_of_thousands_of_models_take_no_time(tmp_path: Path, apart: int) -> None:
    path = tmp_path / "preferences.csv"
    rows = (f"x,m{i},m{i + 1},1\n" for i in range(0, 8000, 1 + apart))
    path.write_text("".join(["item,first,second,value\n", *rows]))
    began = thread_time()
    if apart:
        with pytest.raises(InvalidInputError, match="fall into 4000 groups"):
            load_preferences(path)
    else:
        assert load_preferences(path).is_connected
    assert thread_time() - began < 3.0


@pytest.mark.claim
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl"])
def test_tables_after_any_damage(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"scores{suffix}"
    array = b"[" + b",".join(JSON_LINES.splitlines()) + b"]"
    valid = {".csv": CSV, ".tsv": CSV.replace(b",", b"\t"), ".json": array, ".jsonl": JSON_LINES}[suffix]
    check_damage(valid, reader(path, open_scores), path)
    check_linear(reader(path, open_scores), [*REPEATS, valid])


@pytest.mark.claim
def test_a_template_after_any_damage(tmp_path: Path) -> None:
    path = tmp_path / "template.txt"
    check_damage(b"{input} {first} or {second}, {token}?", reader(path, read_template), path)
