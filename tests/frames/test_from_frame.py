"""Frames that people have: what is read, and what is refused with the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import typed
from tests.frames.worlds import plain

import evalbudget
from evalbudget.errors import InvalidInputError
from evalbudget.frames import Scores

pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.mark.parametrize(
    "scores",
    [
        [1, 0, 1],
        [True, False, True],
        np.array([1, 0, 1], dtype=np.float32),
        pd.array([1, 0, 1], dtype="Int64"),
        pd.array([True, False, True], dtype="boolean"),
        np.array([1, 0, np.float64(1)], dtype=object),
    ],
    ids=["int", "bool", "float32", "Int64", "boolean", "object"],
)
def test_numbers_and_booleans_are_scores(scores: Any) -> None:
    found = evalbudget.from_frame(pd.DataFrame({"item": ["a", "b", "c"], "score": scores}))
    np.testing.assert_array_equal(found.recorded.scores.ravel(), [1.0, 0.0, 1.0])


def test_missing_scores_of_any_kind_are_missing() -> None:
    for missing in (pd.array([1, None], dtype="Int64"), [1.0, np.nan], np.array([1, None], dtype=object)):
        found = evalbudget.from_frame(pd.DataFrame({"item": ["a", "b"], "score": missing}))
        np.testing.assert_array_equal(found.recorded.scores.ravel(), [1.0, np.nan])
    polars = pytest.importorskip("polars", reason="polars is not installed")
    found = evalbudget.from_frame(polars.LazyFrame({"item": [1, 2], "score": [1, None]}))
    np.testing.assert_array_equal(found.recorded.scores.ravel(), [1.0, np.nan])
    assert found.recorded.items == ("1", "2")


def test_categories_of_names_and_columns_in_any_case() -> None:
    frame = pd.DataFrame({"Item": pd.Categorical(["a", "b"]), " score": [1, 2], "Topic": ["x", "y"]})
    found = evalbudget.from_frame(frame, category="topic").recorded
    assert (found.items, found.categories) == (("a", "b"), ("x", "y"))


def frame(**columns: Any) -> Any:
    return pd.DataFrame({"item": ["a", "b"], "score": [1, 0], **columns})


BROKEN: list[tuple[Any, str]] = [
    (
        frame(score=["1", "good"]),
        r"the frame, row 0 \(from 0\): score is '1' \(text\), not a number; convert",
    ),
    (frame(score=np.array([1, "good"], dtype=object)), "row 1 .*: score is 'good'"),
    (frame(score=[1, np.inf]), "row 1 .*: score 'inf' is infinite or beyond 1e.30; leave it missing"),
    (frame(score=pd.to_datetime(["2026-01-01"] * 2)), "row 0 .*Timestamp.*not a number"),
    (frame(item=["a", None]), "row 1 .*: the item is empty"),
    (frame(model=["x", ""]), "row 1 .*: the model of item 'b' is empty"),
    (frame(cost=[1, -0.5]), "row 1 .*: cost '-0.5' is below 0"),
    (frame(item=["a", "a"], repeat=[3, 3]), "row 1 .*: the same item, model, rater and repeat as row 0"),
    (frame(item=["a", "a"], category=["x", "y"]), "item 'a' is in 'x' and in 'y'"),
    (
        frame(allocation=["fixed", "adaptve"]),
        "unknown allocation in row 1.* of the frame: 'adaptve'. Did you",
    ),
    (frame(allocation=["adaptive"] * 2), "no column epoch, which tells what may count"),
    (frame(allocation=["adaptive"] * 2, epoch=[0, 0.5]), "row 1 .*: epoch 0.5 is not a whole number"),
    (
        frame(allocation=["fixed"] * 2, fixed_repeats=[1, 2]),
        "row 0 .*: fixed_repeats of model 'model' differs",
    ),
    (
        frame(allocation=["phased"] * 2, epoch=[0, 0], phase=[1, -2]),
        "row 1 .*: phase -2.* is not a whole number",
    ),
    (frame(allocation=["fixed"] * 2, one_measure=[True, False]), "one_measure is true in some rows"),
    (frame()[["item"]], r"the frame has no column score \(found: item\); a table of scores is"),
    (
        frame().rename(columns={"score": "scores"}),
        r"no column score .*\(Did you mean 'scores'\? Rename it\.\)",
    ),
    (pd.DataFrame([["a", 1, 1]], columns=["item", "score", "score"]), "two columns of one name"),
    (frame().iloc[:0], "the frame has no rows"),
    (frame(score=[None, None]), "the frame holds no score: all 2 answers of model are missing"),
    ([1, 2], "the frame is a list, which is no frame; give one of pandas, polars or pyarrow"),
    (Scores(plain()), "these are scores already"),
]


@pytest.mark.parametrize(("given", "message"), BROKEN)
def test_what_cannot_be_used_is_named_with_its_remedy(given: Any, message: str) -> None:
    with pytest.raises(ValueError if "unknown" not in message else LookupError, match="(?s)" + message):
        evalbudget.from_frame(given)


JSON_LINES: list[tuple[str, str]] = [
    ('{"item": "a", "score": 1}\n{"item": "b", "sco', "line 2: not JSON"),
    ('{"item": "a", "score": 1}\n[1]\n', "line 2: a list and not an object"),
    ('{"item": "a", "score": "1"}\n', r"line 1: score is '1' \(text\), not a number"),
    ('{"item": "a", "score": 1}\n\n{"score": 1}\n', "line 3: the item is empty"),
    ('{"item": "a", "score": [1]}\n', r"line 1: score is '\[1\]' \(list\), not a number"),
    ('{"item": "a", "score": 1e999}\n', "line 1: score 'inf' is infinite or beyond 1e.30; give null"),
    ('{"item": "a", "Sores": 1}\n', "no column score .*Did you mean 'sores'"),
    ("", "no column item and no column score .found: none."),
]


@pytest.mark.parametrize(("text", "message"), JSON_LINES)
def test_broken_json_lines_name_file_and_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"(?s)scores\.jsonl.*" + message):
        evalbudget.read(path)


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "scores.parquet"
    Scores(plain()).readings(frame="pandas").to_parquet(path)
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], b"hello", b"", whole[:200] + bytes(300) + whole[500:]):
        path.write_bytes(part)
        with pytest.raises(InvalidInputError, match=r"scores\.parquet"):
            evalbudget.read(path)


def test_folders_without_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"is an empty folder.*\.jsonl and \.parquet"):
        evalbudget.read(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InvalidInputError, match="is not recorded scores that any installed plugin can read"):
        evalbudget.read(tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_commands_read_every_format(suffix: str, tmp_path: Path) -> None:
    recorded = plain(2, 40)
    recorded.save(tmp_path / "scores.npz")
    path = tmp_path / f"scores.{suffix}"
    table = Scores(recorded).readings(frame="pandas")
    {
        "csv": lambda: table.to_csv(path, index=False),
        "jsonl": lambda: table.to_json(path, orient="records", lines=True),
        "parquet": lambda: table.to_parquet(path),
    }[suffix]()
    for command in (["report"], ["compare", "--margin", "0.2"]):
        told = [
            json.loads(typed(*command)(one, "--json", "-").stdout) for one in (path, tmp_path / "scores.npz")
        ]
        assert told[0] == told[1]
    gate = typed("gate")("--baseline", path, "--model", "model 0", "--save-baseline", tmp_path / "base.csv")
    assert (tmp_path / "base.csv").is_file() or gate.exit_code == 2
