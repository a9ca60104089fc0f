"""Recorded scores in folders: mapped arrays, and Parquet files that are streamed into them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from evalbudget.backtest import RecordedScores, backtest_race
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded import _folder, _parquet_folder
from evalbudget.recorded._blocks import blocks, first_where


def is_mapped(array: np.ndarray) -> bool:
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return isinstance(base, np.memmap)


def same(a: RecordedScores, b: RecordedScores) -> None:
    assert (a.models, a.items, a.raters, a.categories) == (b.models, b.items, b.raters, b.categories)
    np.testing.assert_array_equal(a.scores, b.scores)
    assert (a.costs is None) == (b.costs is None)
    if a.costs is not None:
        np.testing.assert_array_equal(a.costs, b.costs)


@pytest.fixture
def mapping_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_folder, "_MAPPED", 1)
    monkeypatch.setattr(_parquet_folder, "STREAMED", 0)
    monkeypatch.setattr(_parquet_folder, "_BATCH", 7)


@pytest.mark.usefixtures("mapping_all")
def test_a_folder_is_what_was_saved_and_is_mapped(small: RecordedScores, tmp_path: Path) -> None:
    small.save_folder(tmp_path / "scores")
    found = plugins().open_scores(tmp_path / "scores")
    same(found, small)
    assert is_mapped(found.scores)
    assert is_mapped(found.select(model="a").scores)
    small.select(model="b").save_folder(tmp_path / "scores")  # once more, in its place
    assert plugins().open_scores(tmp_path / "scores").models == ("b",)
    with pytest.raises(InvalidInputError, match="exists and is no folder of recorded scores"):
        small.save_folder(tmp_path)


def test_a_folder_that_is_damaged_says_so(small: RecordedScores, tmp_path: Path) -> None:
    folder = tmp_path / "scores"

    def refused(message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            plugins().open_scores(folder)
        small.save_folder(folder)

    small.save_folder(folder)
    (folder / "recorded-scores.json").unlink()
    refused("writing it was interrupted")
    (folder / "scores.npy").write_bytes((folder / "scores.npy").read_bytes()[:-4])
    refused(r"scores\.npy is damaged, truncated or missing")
    (folder / "models.npy").unlink()
    refused(r"models\.npy is damaged, truncated or missing")
    np.save(folder / "scores.npy", small.scores[:, :5])
    refused(r"it holds <f4 of shape \(2, 5, 2, 6\), and recorded-scores.json says")
    (folder / "recorded-scores.json").write_text("{")
    refused(r"recorded-scores\.json is damaged")
    (folder / "recorded-scores.json").write_text('{"version": 9, "arrays": {}}')
    refused("version 9 of the format")
    np.save(folder / "scores.npy", small.scores.astype("<U3"))
    told = json.loads((folder / "recorded-scores.json").read_text())
    told["arrays"]["scores"]["dtype"] = "<U3"
    (folder / "recorded-scores.json").write_text(json.dumps(told))
    refused("scores holds <U3 values")


def table(scores: RecordedScores, *, repeat: bool, score: type = np.float64) -> pa.Table:
    m, i, r, j = np.indices(scores.scores.shape).reshape(4, -1)
    return pa.table(
        {
            "Model": [scores.models[k] for k in m],
            "item": [scores.items[k] for k in i],
            "rater": [scores.raters[k] for k in r],
            **({"repeat": j} if repeat else {}),
            "score": scores.scores.ravel().astype(score),
            "category": ["even" if k % 2 else "odd" for k in i],
            "cost": np.arange(m.size) / 100,
        }
    )


def parts(folder: Path, rows: pa.Table, n: int = 3) -> Path:
    folder.mkdir()
    size = -(-rows.num_rows // n)
    for k in range(n):
        pq.write_table(rows.slice(k * size, size), folder / f"part-{k}.parquet")
    return folder


@pytest.mark.parametrize("repeat", [True, False])
@pytest.mark.parametrize("score", [np.float64, np.float32])
def test_streamed_in_batches_is_what_one_table_says(
    repeat: bool, score: type, small: RecordedScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(small, repeat=repeat, score=score)
    shuffled = rows.take(np.random.default_rng(3).permutation(rows.num_rows))
    folder = parts(tmp_path / "parts", shuffled)
    pq.write_table(shuffled, tmp_path / "one.parquet")
    whole = plugins().open_scores(tmp_path / "one.parquet")
    same(plugins().open_scores(folder), whole)  # few rows: read like one table
    monkeypatch.setattr(_parquet_folder, "STREAMED", 0)
    monkeypatch.setattr(_parquet_folder, "_BATCH", 7)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(_parquet_folder.tempfile, "tempdir", None)
    found = plugins().open_scores(folder)
    same(found, whole)
    assert is_mapped(found.scores)
    assert found.scores.dtype == score
    assert len(list(tmp_path.glob("evalbudget-*"))) == 1
    del found
    assert not list(tmp_path.glob("evalbudget-*"))  # gone with what used it


def test_folders_may_say_the_model(
    small: RecordedScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(small, repeat=True)
    for name in small.models:
        (tmp_path / "parts" / f"model={name}").mkdir(parents=True)
        of_model = rows.filter(pa.compute.equal(rows["Model"], name)).drop_columns("Model")
        pq.write_table(of_model, tmp_path / "parts" / f"model={name}" / "0.parquet", row_group_size=50)
    whole = plugins().open_scores(tmp_path / "parts")
    assert whole.models == small.models
    np.testing.assert_array_equal(whole.scores, small.scores)
    monkeypatch.setattr(_parquet_folder, "STREAMED", 0)
    same(plugins().open_scores(tmp_path / "parts"), whole)


@pytest.mark.usefixtures("mapping_all")
def test_parquet_folders_that_cannot_be_used(small: RecordedScores, tmp_path: Path) -> None:
    rows = table(small, repeat=True)

    def refused(name: str, rows: pa.Table, message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            plugins().open_scores(parts(tmp_path / name, rows))

    def changed(name: str, values: object) -> pa.Table:
        return rows.set_column(rows.column_names.index(name), name, pa.array(values))

    refused("texts", changed("score", ["1"] * rows.num_rows), "column score is string, not numbers")
    refused("endless", changed("score", [1.0] * 100 + [np.inf] * 188), r"row 100 \(from 0\): score inf")
    refused("empty", changed("item", [None] * rows.num_rows), "the item is empty")
    refused("twice", changed("repeat", [0] * rows.num_rows), "same repeat of 'a', 'item 0', 'r'")
    refused("debt", changed("cost", [-1.0] * rows.num_rows), "cost -1 is below 0")
    refused("bought", rows.append_column("allocation", [["fixed"] * 288]), "the column allocation, which is")
    folder = parts(tmp_path / "damaged", rows)
    (folder / "part-1.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InvalidInputError, match=r"part-1\.parquet.*write or download that file again"):
        plugins().open_scores(folder)
    folder = parts(tmp_path / "other", rows)
    pq.write_table(rows.drop_columns("cost").slice(0, 5), folder / "part-2.parquet")
    with pytest.raises(InvalidInputError, match=r"part-2\.parquet has column cost as nothing"):
        plugins().open_scores(folder)


@pytest.mark.usefixtures("mapping_all")
def test_a_race_on_a_folder_is_that_on_the_array(tmp_path: Path) -> None:
    scores = np.random.default_rng(1).random((4, 60, 1, 1)).astype(np.float32)
    names = [tuple(f"{i}" for i in range(n)) for n in scores.shape[:3]]
    recorded = RecordedScores(scores, *names)
    recorded.save_folder(tmp_path / "scores")
    rows = [
        [
            (row.sampler, row.p_best, row.simple_regret)
            for row in backtest_race(each, budgets="50%", seeds=2).rows
        ]
        for each in (recorded, RecordedScores.load(tmp_path / "scores"))
    ]
    assert rows[0] == rows[1]


def test_blocks_are_the_array_and_the_first_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalbudget.recorded._blocks._CELLS", 10)
    array = np.arange(60.0).reshape(12, 5)
    found = list(blocks(array))
    assert [first for first, _ in found] == [0, 2, 4, 6, 8, 10]
    np.testing.assert_array_equal(np.concatenate([block for _, block in found]), array)
    assert first_where(lambda block: block > 36, array) == (7, 2)
    assert first_where(np.isnan, array) is None
