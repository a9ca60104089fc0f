"""One row per reading, and the same scores again."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import fields
from pathlib import Path
from time import thread_time

import numpy as np
import pytest
from tests.frames.libraries import LIBRARIES, rows
from tests.frames.worlds import WORLDS, bought, plain, ragged

import evalbudget
from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.frames import COLUMNS, Scores

nw = pytest.importorskip("narwhals.stable.v2", reason="narwhals is not installed")

TYPES = {"text": nw.String, "number": nw.Float64, "whole": nw.Int64, "flag": nw.Boolean}
FORMATS = ["csv", "jsonl", "parquet"]


def check_same(found: RecordedScores, wanted: RecordedScores) -> None:
    """Every attribute, but for the type of numbers and for what says nothing."""
    for field in fields(wanted):
        ours, theirs = getattr(found, field.name), getattr(wanted, field.name)
        if isinstance(theirs, np.ndarray):
            there = ~np.isnan(wanted.scores) if field.name == "epochs" else slice(None)
            np.testing.assert_array_equal(ours[there], theirs[there], err_msg=field.name)
        else:
            assert ours == theirs, field.name


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("world", WORLDS)
def test_a_frame_is_the_same_scores_again(world: str, library: str) -> None:
    recorded = WORLDS[world]()
    check_same(evalbudget.from_frame(Scores(recorded).readings(frame=library)).recorded, recorded)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("method", COLUMNS)
@pytest.mark.parametrize("world", WORLDS)
def test_types_are_the_same_whatever_is_known(world: str, method: str, library: str) -> None:
    frame = getattr(Scores(WORLDS[world]()), method)(frame=library)
    assert dict(nw.from_native(frame).schema) == {c.name: TYPES[c.kind] for c in COLUMNS[method]}


@pytest.mark.parametrize("library", LIBRARIES)
def test_part_of_a_frame_has_the_settings_too(library: str, tmp_path: Path) -> None:
    told = {"a": {"version": "1", "temperature": "0"}, "b": {"version": "2"}}
    answers = [
        {"item": f"q{i}", "model": model, "score": i % 2, "settings": json.dumps(told.get(model, {}))}
        for model in "abc"
        for i in range(3)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(answers))
    whole = nw.from_native(evalbudget.read(path).readings(frame=library))
    part = whole.filter(nw.col("item") != "q0").to_native()
    known = evalbudget.from_frame(part).recorded.declared
    assert known is not None
    assert [dict(own) for own in known.settings] == [told["a"], told["b"], {}]


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_scores_stay_missing(library: str) -> None:
    found = rows(Scores(bought()).readings(frame=library))
    failed = [row for row in found if row["score"] is None]
    assert [(row["model"], row["item"], row["cost"]) for row in failed] == [("f", "q0", 0.25)]
    assert {row["category"] for row in found} == {None}
    assert {row["usd"] for row in rows(Scores(bought()).models(frame=library))} == {1.5, None}


def test_what_has_no_reading_keeps_its_place() -> None:
    recorded = ragged()
    found = rows(Scores(recorded).readings())
    empty = {(row["model"], row["item"], row["rater"]) for row in found if row["score"] is None}
    nothing = np.isnan(recorded.scores).all(axis=3)
    first = ("model 0", "item 0", "rater 0")
    for model, item, rater in empty:
        place = tuple(
            names.index(name)
            for names, name in zip(
                (recorded.models, recorded.items, recorded.raters), (model, item, rater), strict=True
            )
        )
        assert nothing[place]
        assert sum(name == one for name, one in zip((model, item, rater), first, strict=True)) >= 2
    assert len(found) == recorded.counts.sum() + len(empty)


@pytest.mark.parametrize("world", ["repeated", "bought", "panel"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_files_hold_the_same_scores_as_the_frame(world: str, suffix: str, tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas", reason="pandas is not installed")
    recorded = WORLDS[world]()
    table = Scores(recorded).readings(frame="pandas")
    assert isinstance(table, frame.DataFrame)
    path = tmp_path / f"scores.{suffix}"
    if suffix == "csv":
        table.to_csv(path, index=False)
    elif suffix == "jsonl":
        table.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        table.to_parquet(path)
    found = evalbudget.read(path).recorded
    np.testing.assert_allclose(found.scores, recorded.scores, rtol=1e-14)
    assert (found.models, found.items, found.raters) == (recorded.models, recorded.items, recorded.raters)
    assert (found.purchases, found.task) == (recorded.purchases, recorded.task)
    assert (found.one_generation, found.one_measure) == (recorded.one_generation, recorded.one_measure)


def test_the_default_is_what_is_installed_and_others_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = Scores(plain())
    with pytest.raises(UnknownNameError, match=r"unknown frame 'panda'\. Did you mean 'pandas'"):
        scores.readings(frame="panda")
    installed = {"polars"}
    monkeypatch.setattr("evalbudget.frames._write.find_spec", lambda name: name in installed or None)
    if importlib.util.find_spec("polars") is not None:
        assert type(scores.models()).__module__.startswith("polars")
    with pytest.raises(InvalidInputError, match=r"frames need pandas.*pip install 'evalbudget\[frames\]'"):
        scores.readings(frame="pandas")
    installed.clear()
    with pytest.raises(InvalidInputError, match="frames need pandas or polars or pyarrow, which is not inst"):
        scores.judges()
    with pytest.raises(InvalidInputError, match=r"pip install 'evalbudget\[polars\]'"):
        scores.items(frame="polars")


def test_without_narwhals_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "narwhals.stable.v2", None)
    for asked in (Scores(plain()).readings, lambda: evalbudget.from_frame([1])):
        with pytest.raises(InvalidInputError, match=r"need narwhals 2.*pip install 'evalbudget\[frames\]'"):
            asked()
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(InvalidInputError, match=r"need narwhals 2.*evalbudget\[frames\]"):
        evalbudget.read(path)
    monkeypatch.setattr("evalbudget.recorded._frame_table.find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match=r"scores\.parquet is read by pyarrow, which is not "):
        evalbudget.read(path)


def test_a_leaderboard_of_thousands_of_readings_takes_no_time() -> None:
    scores = Scores(plain(51, 800, 1, 1))
    began = thread_time()  # others may be busy
    again = evalbudget.from_frame(scores.readings())
    again.items()
    again.models()
    assert thread_time() - began < 5.0


def test_hundreds_of_models_have_frames() -> None:
    scores = Scores(plain(300, 4, 1, 1))
    assert len(rows(scores.models())) == 300
    assert len(rows(scores.items())) == 1_200
