"""Files that somebody else made, or that broke: a result, or our own error that names the file."""

from __future__ import annotations

import io
import json
import os
import random
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audits.store.audits import Told
from tests.claims import replications
from tests.hostile.damage import FULL, always_the_same, check_damage, refusal

from evalbudget import Budget, Design
from evalbudget.audits.store import AuditStore, go_on, import_labels
from evalbudget.backtest import RecordedScores
from evalbudget.book import Book
from evalbudget.budget import Unit
from evalbudget.design import Reading
from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.prices import Price, Tariff, Usage
from evalbudget.races import Entry, RaceConfig, RacePurchase, SharedBill
from evalbudget.races.prediction import FactorModel
from evalbudget.races.prediction._files import load_factors, save_factors
from evalbudget.recorded._files import open_scores
from evalbudget.recorded._parquet_pages import _sizes
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.run import bill_on_file, spent_on
from evalbudget.store import Address
from evalbudget_labelling import export

CSV = b"model,item,rater,repeat,score\na,x,r,0,1.5\na,y,r,0,2\na,y,r,1,\nb,x,r,0,3\n"
BOUGHT_CSV = (
    b"item,score,model,epoch,phase,allocation,fixed_repeats,model_cost,one_measure\n"
    b"x,1,a,0,0,phased,1,9,true\ny,0,a,1,1,phased,1,9,true\nx,1,b,0,,fixed,0,,true\n"
)
JSON_LINES = b"".join(
    json.dumps({"item": item, "score": score, "model": "a", "repeat": repeat, "cost": 0.5}).encode() + b"\n"
    for item, score, repeat in (("x", 1, 0), ("x", None, 1), ("y", True, 0))
)


def reader(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def of(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return of


def archive(arrays: dict[str, Any]) -> bytes:
    """Not compressed: what is damaged are arrays, not checksums of blocks alone."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as pack:
        for name, array in arrays.items():
            member = io.BytesIO()
            if isinstance(array, bytes):
                member.write(array)
            else:
                np.save(member, array, allow_pickle=True)
            pack.writestr(f"{name}.npy", member.getvalue())
    return file.getvalue()


SCORES: dict[str, Any] = {
    "scores": np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2),
    "models": np.array(["a", "b"]),
    "items": np.array(["x", "y", "z"]),
    "raters": np.array(["r", "s"]),
    "phases": np.arange(24).reshape(2, 3, 2, 2) % 2.0,
    "allocation": np.array(["phased", "adaptive"]),
    "phase_sizes": np.array([[2.0, 2.0], [np.nan, np.nan]]),
}
OPTIONAL = ("categories", "reference", "epochs", "one_generation", "fixed_repeats", "cost", "usd")
FACTORS = {"V": np.ones((4, 2)), "U": np.eye(5, 2), "items": np.array(list("abcd"))}


def header(text: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text.encode() + b"\n" + data


def declared(shape: str, kind: str = "<f8") -> bytes:
    return header(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}")


ABSURD: dict[str, Any] = {
    "a number": np.array(1.0),
    "nothing": np.array([]),
    "names": np.array(["x", "[red]y[/"]),
    "names of no characters": np.array([0x110000, 120], dtype=np.uint32).view("U1"),
    "bytes": np.array([b"\xff", b"a"]),
    "complex": np.array([1j, 2j]),
    "dates": np.array(["2020-01-01"], "M8[s]"),
    "records": np.zeros(3, dtype=[("a", "f8")]),
    "infinite": np.array([np.inf, 1.0]),
    "negative": np.array([-1.0, -2.0]),
    "missing": np.array([np.nan, np.nan]),
    "huge": np.full((2, 3, 2, 2), 1e300),
    "huge whole numbers": np.full((2, 3, 2, 2), 2**63, dtype=np.uint64),
    "objects": np.array([{"a": 1}, print], dtype=object),
    "7 TiB": declared("(10**12,)".replace("10**12", "1000000000000")),
    "more than a word counts": declared("(99999999999999999999999,)"),
    "less than nothing": declared("(-1,)"),
    "long names": declared("(3,)", "<U2000000000"),
    "many of no size": declared("(1000000000000,)", "|V0"),
    "code": header("__import__('os').abort()"),
    "open brackets": header("(" * 300),
    "an open quote": header("'"),
    "a flag for a size": header("{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}", b"0" * 8),
    "an unhashable key": header("{[]: 2}"),
    "no bytes": b"",
    "another version": b"\x93NUMPY\x09\x00",
}


@pytest.mark.parametrize("what", list(ABSURD))
def test_absurd_arrays(tmp_path: Path, what: str) -> None:
    scores, factors = tmp_path / "scores.npz", tmp_path / "factors.npz"
    for name in (*SCORES, *OPTIONAL):
        scores.write_bytes(archive(SCORES | {name: ABSURD[what]}))
        refusal(lambda: open_scores(scores), scores)
    for name in FACTORS:
        factors.write_bytes(archive(FACTORS | {name: ABSURD[what]}))
        refusal(lambda: load_factors(factors), factors)


@pytest.mark.claim
def test_recorded_scores_and_factors_after_any_damage(tmp_path: Path) -> None:
    scores, table, factors = (tmp_path / name for name in ("scores.npz", "scores.csv", "factors.npz"))
    check_damage(archive(SCORES), reader(scores, open_scores), scores, examples=60)
    check_damage(CSV, reader(table, open_scores), table)
    check_damage(BOUGHT_CSV, reader(table, open_scores), table)
    lines = tmp_path / "scores.jsonl"
    check_damage(JSON_LINES, reader(lines, open_scores), lines)
    save_factors(factors, FactorModel.of_factors(FACTORS["V"], list("abcd"), FACTORS["U"]))
    check_damage(factors.read_bytes(), reader(factors, load_factors), factors, examples=60)


@pytest.mark.claim
def test_parquet_after_any_damage(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "scores.parquet"
    columns = {
        "item": ["x", "x", "y"],
        "score": [1.0, None, 0.5],
        "repeat": [0, 1, 0],
        "model": ["a", "b", "a"],
    }
    parquet.write_table(pyarrow.table(columns), path, compression="none")
    check_damage(path.read_bytes(), reader(path, open_scores), path, examples=60)


@pytest.mark.parametrize("limit", ["2", "0.0000001"])
def test_parquet_that_ends_the_process_of_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setenv("EVALBUDGET_LARGEST_GIB", limit)
    path = tmp_path / "scores.parquet"
    parquet.write_table(pyarrow.table({"item": ["x", "y"], "score": [1.0, None]}), path, compression="none")
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(footer, footer + 80):  # where each column has a list of sizes
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 2]) + whole[at + 1 :])
        refusal(lambda: open_scores(path), path)
    path.write_bytes(whole.replace(b"x", b"\xf9"))
    assert "is damaged" in refusal(lambda: open_scores(path), path) or limit != "2"


BOMBS = """
import sys, resource
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from evalbudget.errors import InvalidInputError
from evalbudget.recorded._files import open_scores
for path in map(Path, sys.argv[1:]):
    try:
        open_scores(path)
    except InvalidInputError as ex:
        assert str(path) in str(ex), ex
        print(ex)
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])  # of this program alone
"""


def refused_in_a_small_memory(files: list[Path]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, *map(str, files)],
        env={**os.environ, "EVALBUDGET_LARGEST_GIB": "0.15"},  # lest the test itself writes gigabytes
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    *told, used = done.stdout.splitlines()
    assert int(used) < 200 * 1024
    return told


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak")
def test_small_files_that_would_fill_the_memory(tmp_path: Path) -> None:
    names = "item,model,rater,score\n" + "".join(f"i{i},m{i},r{i},1\n" for i in range(1500))
    (tmp_path / "names.csv").write_text(names)
    bomb = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as pack,
        pack.open("scores.npy", "w") as member,
    ):
        member.write(declared(f"(1, 1, 1, {(10 << 24) // 8})"))
        for _ in range(10):
            member.write(bytes(1 << 24))
    assert bomb.stat().st_size < 1 << 21
    table, unpacked = refused_in_a_small_memory([tmp_path / "names.csv", bomb])
    assert "make a table of 25 GiB, nearly all empty" in table
    assert "unpacks to 0.2 GiB or more, and at most 0.15 are read" in unpacked
    assert "or set EVALBUDGET_LARGEST_GIB to what your memory holds" in unpacked


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak")
def test_small_tables_of_parquet_that_would_fill_the_memory(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    same = pyarrow.DictionaryArray.from_arrays(np.zeros(5 << 21, dtype=np.int8), ["x"])
    words = pyarrow.DictionaryArray.from_arrays(np.zeros(170, dtype=np.int8), ["x" * (1 << 20)])
    tables = {
        "many": {"item": same, "score": pyarrow.repeat(1.0, 5 << 21), "model": same},
        "long": {"item": words, "score": pyarrow.repeat(1.0, 170)},
    }
    files = []
    for name, columns in tables.items():
        files.append(tmp_path / f"{name}.parquet")
        parquet.write_table(pyarrow.table(columns), files[-1], compression="zstd", store_schema=False)
        assert files[-1].stat().st_size < 1 << 18
    refused = refused_in_a_small_memory(files)
    assert len(refused) == 2
    for told in refused:
        assert "GiB or more, and at most 0.15 are read; split it, or set" in told


def patched(path: Path, declared: int, told: int) -> None:
    """Have the end of a Parquet file say another number."""
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    was = number_of_thrift(declared)
    assert was in whole[footer:]
    path.write_bytes(whole[:footer] + whole[footer:].replace(was, number_of_thrift(told, len(was))))


def number_of_thrift(number: int, length: int = 1) -> bytes:
    pieces = [2 * number >> 7 * place & 127 for place in range(max(length, number.bit_length() // 7 + 1))]
    return bytes([*(piece | 128 for piece in pieces[:-1]), pieces[-1]])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak")
def test_tables_of_parquet_that_lie_about_their_sizes(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    texts, words = tmp_path / "texts.parquet", tmp_path / "words.parquet"
    long = [f"{'x' * (1 << 20)}{i}" for i in range(170)]
    table = pyarrow.table({"item": long, "score": pyarrow.repeat(1.0, len(long))})
    for path, is_words in ((texts, False), (words, True)):
        parquet.write_table(
            table,
            path,
            compression="zstd",
            use_dictionary=["item"] if is_words else False,
            dictionary_pagesize_limit=1 << 30,
            store_schema=False,
            write_statistics=False,  # takes seconds
        )
        group = parquet.read_metadata(path).row_group(0)
        for size in (group.total_byte_size, group.column(0).total_uncompressed_size):
            patched(path, size, 100)
        assert parquet.read_metadata(path).row_group(0).total_byte_size == 100
        assert path.stat().st_size < 1 << 17
    for told in refused_in_a_small_memory([texts, words]):
        assert "unpacks to 0.2 GiB or more, and at most 0.15 are read; split it, or set" in told


@pytest.mark.parametrize(
    "header",
    [
        b"\x19\xf1\xff\xff\xff\xff\x0f",  # a list of four billion
        b"\x19\xf3\xff\xff\xff\xff\x0f\0",
        b"\x1c" * 10_000,
        b"\x15" + b"\xff" * 11,
        b"\x25\x08\x15\x01\0",  # less than nothing is packed
        b"\x25\x08\x15\x08\x25\0\0",  # a number in place of what it holds
        b"\x1b\x08",
    ],
    ids=lambda header: header[:6].hex(),
)
def test_pages_without_a_header(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(ValueError, match=r"a page|a number"):
        list(_sizes(header, tmp_path))


@pytest.mark.parametrize("kind", ["binary", "string_view", "delta"])
def test_texts_of_parquet_whose_sizes_no_page_tells_are_refused(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "scores.parquet"
    items = pyarrow.array(["x", "y"])
    if kind != "delta":
        items = items.cast(getattr(pyarrow, kind)())
    encoding = {"item": "DELTA_BYTE_ARRAY"} if kind == "delta" else None
    table = pyarrow.table({"item": items, "score": [1.0, 0.0]})
    parquet.write_table(table, path, use_dictionary=kind != "delta", column_encoding=encoding)
    told = refusal(lambda: open_scores(path), path)
    assert ("unpack to any size; write it with another" if kind == "delta" else "write one number or") in told


def test_columns_of_parquet_that_nobody_reads_are_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "scores.parquet"
    columns: dict[str, Any] = {
        "answer": ["x" * 1000 + f"{i}" for i in range(200)],
        "item": [f"i{i}" for i in range(200)],
        "turns": [["y" * 1000]] * 200,
        "score": [1.0] * 200,
    }
    parquet.write_table(pyarrow.table(columns), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"x" * 1000, b"\xff" * 1000))  # no text any more
    monkeypatch.setenv("EVALBUDGET_LARGEST_GIB", "0.0001")  # 107 kB
    found = open_scores(path)
    assert found is not None
    assert found.declared is not None
    assert found.declared.notes == ("Columns that were not read: answer, turns.",)
    assert "unpacks to" in refusal(lambda: open_scores(path, category="answer"), path)


def test_parquet_with_lists_and_with_long_numbers(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "scores.parquet"
    columns: dict[str, Any] = {
        "item": [2**62, 2**62 + 1, 7],
        "score": [1.0, 0.0, 1.0],
        "turns": [[1], [], [2, 3]],
    }
    parquet.write_table(pyarrow.table(columns), path)
    found = open_scores(path)
    assert found is not None
    assert found.items == (f"{2**62}", f"{2**62 + 1}", "7")
    assert found.declared is not None
    assert found.declared.notes == ("Columns that were not read: turns.",)
    parquet.write_table(pyarrow.table(columns | {"score": [[1.0], [0.0], [1.0]]}), path)
    assert "the column score is list<element: double>; write one number" in refusal(
        lambda: open_scores(path), path
    )


WRITTEN = (None, -1, 2**62, 1e400, "x", b"\xff", '{"config":[]}', "[" * 2000)


def sampler() -> EBBernstein:
    return EBBernstein(Design.of_items(5), seed=1)


@pytest.mark.claim
def test_a_book_after_any_damage(tmp_path: Path) -> None:
    path, damaged = tmp_path / "whole.db", tmp_path / "book.db"
    rng = random.Random(1)

    def fill(where: Path, n: int) -> None:
        book = Book(sampler(), Budget(60), Address(path=where))
        try:
            for _ in range(n):
                for request in book.trade((), 2):
                    value = rng.choice((None, 0.0, 0.5, 1.0))
                    book.trade([Reading(request, value, 1.0, None if value is not None else "refused")], 0)
            assert 0.0 <= book.spent <= 60.0
            book.readings()
        finally:
            book.close()

    fill(path, 20)
    check_damage(path.read_bytes(), reader(damaged, lambda where: fill(where, 4)), damaged, examples=60)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE cells SET state = 7",
        "UPDATE cells SET state = 'x'",
        "UPDATE cells SET cell = cell + 1000",
        "UPDATE cells SET value = NULL",
        "UPDATE cells SET tries = 0",
        "UPDATE rounds SET planned = '[]'",
        'UPDATE rounds SET planned = \'{"record": ["Path", {}]}\'',
        'UPDATE rounds SET planned = \'{"array": ["|O", [1], "AAAA"]}\'',
        'UPDATE rounds SET note = \'{"record": ["Path", {}]}\'',
        "UPDATE rounds SET note = NULL",
        "UPDATE about SET changes = 1e9",
        "DELETE FROM rounds",
        "DELETE FROM about",
        "UPDATE meta SET value = '{}'",
        "DROP TABLE calls",
    ],
)
def test_a_book_that_something_else_wrote_into_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "book.db"
    book = Book(sampler(), Budget(60), Address(path=path))
    book.trade([Reading(request, 0.5) for request in book.trade((), 8)], 3)
    book.close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TRIGGER meta_no_update; " + change)
        db.commit()

    def go_on() -> None:
        again = Book(sampler(), Budget(60), Address(path=path))
        try:
            again.trade((), 5)
        finally:
            again.close()

    if "changes = 1e9" in change:
        go_on()  # nothing is read twice for it
    else:
        assert "book.db" in refusal(go_on, path)


@pytest.mark.claim
def test_a_bill_after_any_damage(tmp_path: Path) -> None:
    path, damaged = tmp_path / "whole.bill", tmp_path / "a.bill"
    cap, tariff = Budget(100.0, Unit.TOKENS), Tariff(Unit.TOKENS, {})
    bill = bill_on_file(path, cap, tariff)
    for hold in bill.reserve_all("m", [(30, 0, "s"), (20, 0, "t"), (10, 0, "")], role="judge")[:2]:
        bill.settle(hold, Usage(input=12))
    bill.close()

    def go_on(path: Path) -> None:
        with closing(bill_on_file(path, cap, tariff)) as again:
            assert again.spent >= 0.0
            assert again.reserve("m", 101, 0) is None
        spent_on(path)

    check_damage(path.read_bytes(), reader(damaged, go_on), damaged)


def race(path: Path) -> None:
    """In a store that processes share, with a bill."""
    config = RaceConfig(budget="$1", seed=2, store=str(path), all_arms=2)
    prices = Tariff(Unit.USD, {"a": Price(1, 1), "b": Price(1, 1)})
    bill = SharedBill(Budget(1.0, Unit.USD), prices)
    worker = RacePurchase(config, ["a", "b"], list("ijklmn"), about={"task": "t"}, cost_of=bill.of_sample)
    try:
        worker.join([Entry("a"), Entry("b")], prices=prices.told_of("ab"), bill=bill)
        for number, asked in enumerate(worker.wanted()[:2]):
            hold = bill.reserve("a", 100, 10, sample=str(number))
            if hold is not None and number:
                bill.settle(hold, Usage(input=10))
            worker.completed(asked.arm, asked.key, 0.5, sample=str(number))
        worker.pay(0, 1.0)
        worker.look()
        assert worker.evaluations >= 0.0
        assert bill.spent >= 0.0
    finally:
        worker.close()


@pytest.mark.claim
def test_a_store_that_processes_share_after_any_damage(tmp_path: Path) -> None:
    path, damaged = tmp_path / "whole.sqlite", tmp_path / "a.sqlite"
    race(path)
    check_damage(path.read_bytes(), reader(damaged, race), damaged, examples=30)


@pytest.mark.claim
@pytest.mark.parametrize(
    "tables",
    [
        ("meta", "arms", "so_far", "paid_calls"),
        ("about", "workers", "rounds", "passes", "cells", "calls"),
    ],
)
def test_a_store_that_processes_share_and_that_something_else_wrote_into(
    tmp_path: Path, tables: tuple[str, ...]
) -> None:
    path, whole = tmp_path / "a.sqlite", tmp_path / "whole.sqlite"
    race(whole)
    with closing(sqlite3.connect(whole)) as db:
        columns = [(t, c[1]) for t in tables for c in db.execute(f"PRAGMA table_info({t})")]
        triggers = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        found = {row for table in tables for (row,) in db.execute(f"SELECT rowid FROM {table}")}
    rows, values = sorted(found)[:8], (*WRITTEN, "[]", '{"arm": "a"}')

    @always_the_same(replications(15, FULL))
    @given(st.sampled_from(columns), st.sampled_from(rows), st.sampled_from(values))
    def each(column: tuple[str, str], row: int, value: object) -> None:
        for left in tmp_path.glob("a.sqlite*"):
            left.unlink()
        path.write_bytes(whole.read_bytes())
        with closing(sqlite3.connect(path, isolation_level=None)) as db, suppress(sqlite3.Error):
            db.execute("PRAGMA ignore_check_constraints = ON")
            for name in triggers:
                db.execute(f"DROP TRIGGER {name}")
            db.execute('UPDATE {} SET "{}" = ? WHERE rowid = ?'.format(*column), (value, row))
        refusal(lambda: race(path), path)

    each()


@pytest.fixture(scope="module")
def store_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path, told = tmp_path_factory.mktemp("store") / "a.sqlite", Told(n_items=30)
    with told.create(path) as store:
        told.draw(store)
        for task in store.draws.tasks()[:3]:
            store.labels.add(task.draw, told.score(store, task.draw), "ann")
    return path.read_bytes()


def use(path: Path) -> None:
    """Whatever a command reads of a store."""
    for left in path.parent.glob(f"{path.name}-*"):
        left.unlink()
    with AuditStore.open(path) as store:
        export(store, "csv", judge=True)
        store.labels.history()
        store.attempts.all()
        go_on(store).as_json()


@pytest.mark.claim
def test_an_audit_store_after_any_damage(store_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    check_damage(store_bytes, reader(path, use), path, examples=30)


def test_an_audit_store_whose_schema_is_not_utf_8(store_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(store_bytes.replace(b"tablelabelslabels", b"table\xa7abels\xa7abels"))
    assert "is no audit store, or damaged: malformed" in refusal(lambda: use(path), path)


@pytest.mark.parametrize("value", WRITTEN, ids=lambda value: repr(value)[:12])
def test_an_audit_store_that_something_else_wrote_into(
    store_bytes: bytes, tmp_path: Path, value: object
) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(store_bytes)
    with closing(sqlite3.connect(path)) as db, db:
        tables = ("contexts", "draws", "labels")
        columns = [(t, c[1], "rowid = 1") for t in tables for c in db.execute(f"PRAGMA table_info({t})")]
        columns += [("meta", "value", f"key = '{key}'") for (key,) in db.execute("SELECT key FROM meta")]
        triggers = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    db.close()
    for table, column, row in columns:
        path.write_bytes(store_bytes)
        db = sqlite3.connect(path, isolation_level=None)
        for name in ("synchronous = OFF", "journal_mode = MEMORY", "ignore_check_constraints = ON"):
            db.execute(f"PRAGMA {name}")
        for name in triggers:
            db.execute(f"DROP TRIGGER {name}")
        try:
            db.execute(f'UPDATE {table} SET "{column}" = ? WHERE {row}', (value,))
        except sqlite3.Error:
            continue  # not even SQLite lets it in
        finally:
            db.close()
        refusal(lambda: use(path), path)


@pytest.mark.claim
@pytest.mark.parametrize("kind", ["csv", "jsonl", "label-studio"])
def test_labels_after_any_damage(store_bytes: bytes, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(store_bytes)
    with AuditStore.open(path) as store:
        text = export(store, kind)
        if kind == "label-studio":
            text = json.dumps(json.loads(text)[:4])

        def read(data: bytes) -> None:
            try:
                import_labels(store, data.decode(errors="replace"), kind, "bob")
            except InvalidInputError as ex:  # the command adds the file's name: tests/cli
                raise InvalidInputError(f"{path}: {ex}") from ex

        check_damage(text[:3000].encode(), read, path)


@pytest.mark.parametrize("name", ["scores.npz", "scores.csv", "factors.npz", "a.bill", "a.sqlite"])
def test_a_folder_in_place_of_a_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.mkdir()
    readers: dict[str, Callable[[Path], object]] = {
        "scores.npz": RecordedScores.load,
        "factors.npz": load_factors,
        "a.bill": lambda path: bill_on_file(path, Budget(9.0, Unit.TOKENS), Tariff(Unit.TOKENS, {})),
        "a.sqlite": AuditStore.open,
    }
    read = readers.get(name)
    if read is None:
        assert open_scores(path) is None
        return
    with pytest.raises(EvalbudgetError, match=name):
        read(path)
