from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalbudget import Allocation
from evalbudget.backtest import HowBought, RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError

SCORES = np.arange(24, dtype=np.float32).reshape(1, 3, 2, 4)
NAMES = {"models": ["m"], "items": ["a", "b", "c"], "raters": ["r", "s"]}


def write(path: Path, **arrays: Any) -> Path:
    np.savez(path, **{"scores": SCORES, **NAMES, **arrays})
    return path


def test_true_scores_and_variances_against_numpy(small: RecordedScores) -> None:
    for m, i, r in np.ndindex(2, 12, 2):
        repeats = small.scores[m, i, r].astype(float)
        repeats = repeats[~np.isnan(repeats)]
        assert small.counts[m, i, r] == len(repeats)
        if len(repeats):
            assert small.true_scores[m, i, r] == pytest.approx(repeats.mean())
            assert small.true_variances[m, i, r] == pytest.approx(repeats.var())
        else:
            assert np.isnan(small.true_scores[m, i, r])
            assert np.isnan(small.true_variances[m, i, r])


def test_costs_of_readings(small: RecordedScores, tmp_path: Path) -> None:
    costs = np.arange(small.scores.size, dtype=float).reshape(small.scores.shape)
    costs[0, 0, 0, 0] = np.nan
    replace(small, costs=costs).save(tmp_path / "costs.npz")
    kept = RecordedScores.load(tmp_path / "costs.npz")
    np.testing.assert_array_equal(kept.costs, costs)  # type: ignore[arg-type]
    np.testing.assert_array_equal(kept.select(small.models[1]).costs, costs[1:])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"costs has shape .*give one per score"):
        replace(small, costs=costs[0])
    with pytest.raises(InvalidInputError, match="a reading costs -1; give dollars"):
        replace(small, costs=np.full(costs.shape, -1.0))


def test_round_trip_through_a_file(small: RecordedScores, tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    small.save(path)
    again = RecordedScores.load(path)
    np.testing.assert_array_equal(again.scores, small.scores)
    assert (again.models, again.items, again.raters) == (small.models, small.items, small.raters)
    assert again.categories == small.categories
    assert again.reference is None


def test_real_recordings_load(recorded_data: Callable[[str], RecordedScores]) -> None:
    repeats = recorded_data("judge_repeats")
    assert repeats.scores.shape == (1, 3524, 5, 8)
    assert repeats.categories is not None
    hanna = recorded_data("hanna_multijudge")
    assert hanna.reference is not None
    assert hanna.reference.shape == (11, 576, 3)


def test_real_file_without_scores_says_what_it_holds(data_dir: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"leaderboard_factors.npz has no array 'scores'.*U, V"):
        RecordedScores.load(data_dir / "leaderboard_factors.npz")


def test_names_are_optional_in_a_file_and_byte_strings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "bare.npz"
    np.savez(path, scores=SCORES, items=np.array([b"a", b"b", b"c"]))
    bare = RecordedScores.load(path)
    assert (bare.models, bare.items, bare.raters) == (("0",), ("a", "b", "c"), ("0", "1"))


def test_texts_are_cut_and_go_with_their_items(small: RecordedScores) -> None:
    texts = ("x" * 501, *map(str, range(1, len(small.items))))
    told = replace(small, texts=texts)
    assert told.texts is not None
    assert (len(told.texts[0]), told.texts[0][-1]) == (500, "…")
    assert told.part(items=np.array([2, 1])).texts == ("2", "1")
    with pytest.raises(InvalidInputError, match="texts has 1 names"):
        replace(small, texts=("one",))


def test_select(small: RecordedScores) -> None:
    everything = small.select()
    np.testing.assert_array_equal(everything.scores, small.scores)
    one = small.select("a", "r").part(items=np.arange(10))
    assert (one.models, one.raters, one.items) == (("a",), ("r",), small.items[:10])
    assert one.categories == tuple("xxxxxxyyyy")
    np.testing.assert_array_equal(one.scores[0, :, 0], small.scores[0, :10, 0])
    with pytest.raises(UnknownNameError, match=r"unknown rater 'R'.*Did you mean 'r'"):
        small.select(rater="R")
    with pytest.raises(UnknownNameError, match="unknown model"):
        small.select(model="c")


def test_from_readings() -> None:
    table = RecordedScores.from_readings(
        ["x", "y", "x", "x"], [1.0, 2.0, float("nan"), 4.0], raters=["r", "r", "r", "s"], repeats=[7, 7, 8, 7]
    )
    assert (table.models, table.items, table.raters) == (("model",), ("x", "y"), ("r", "s"))
    assert table.scores.shape == (1, 2, 2, 2)
    assert table.counts[0].tolist() == [[1, 1], [1, 0]]
    with pytest.raises(
        InvalidInputError, match=r"reading 1: the same .* reading 0 \('x', 'model', 'rater', 7\)"
    ):
        RecordedScores.from_readings(["x", "x"], [1.0, 2.0], repeats=[7, 7])
    with pytest.raises(InvalidInputError, match="scores has 1 entries for 2 items"):
        RecordedScores.from_readings(["x", "x"], [1.0])
    with pytest.raises(InvalidInputError, match="no readings"):
        RecordedScores.from_readings([], [])


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "three axes": ({"scores": SCORES[0]}, r"scores has shape \(3, 2, 4\); it must have the four axes"),
    "empty axis": ({"scores": SCORES[:, :0]}, "every axis needs at least one"),
    "infinite": (
        {"scores": np.where(SCORES == 5, np.inf, SCORES)},
        r"infinite or beyond 1e\+30 at \(0, 0, 1, 1\)",
    ),
    "text": ({"scores": SCORES.astype(str)}, "scores holds <U.* values"),
    "objects": ({"scores": SCORES.astype(object)}, "scores is an array of Python objects"),
    "object names": ({"items": np.array(["a", "b", None])}, "items is an array of Python objects"),
    "few items": ({"items": ["a", "b"]}, r"items has 2 names, but scores of shape \(1, 3, 2, 4\) has 3"),
    "twice": ({"items": ["a", "b", "a"]}, "items twice: 'a'"),
    "raters twice": ({"raters": ["r", "r"]}, "raters twice: 'r'"),
    "nameless": ({"items": ["a", "", "c"]}, "without a name"),
    "nested names": ({"items": [["a", "b", "c"]]}, "items has shape"),
    "categories": ({"categories": ["x"]}, "categories has 1 names"),
    "reference": ({"reference": np.zeros((1, 2, 3))}, r"reference has shape \(1, 2, 3\)"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_arrays_are_named_with_file_and_remedy(case: str, tmp_path: Path) -> None:
    arrays, message = BROKEN[case]
    path = write(tmp_path / "broken.npz", **arrays)
    with pytest.raises(InvalidInputError, match=r"broken.npz.*" + message):
        RecordedScores.load(path)


def test_scores_that_are_all_missing_are_read_and_not_made(tmp_path: Path) -> None:
    nothing = np.full_like(SCORES, np.nan)
    found = RecordedScores.load(write(tmp_path / "empty.npz", scores=nothing))
    assert not found.counts.any()
    with pytest.raises(InvalidInputError, match="all 24 scores are NaN"):
        RecordedScores(nothing, found.models, found.items, found.raters)


def test_broken_files_are_named(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.npz").read_bytes()
    truncated = tmp_path / "truncated.npz"
    truncated.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInputError, match=r"truncated.npz is damaged or truncated"):
        RecordedScores.load(truncated)
    flipped = tmp_path / "flipped.npz"
    flipped.write_bytes(whole[:150] + bytes(255 - b for b in whole[150:200]) + whole[200:])
    with pytest.raises(InvalidInputError, match=r"flipped.npz is damaged"):
        RecordedScores.load(flipped)
    for name, content in {"text.npz": b"item,score\n", "empty.npz": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInputError, match=f"{name} is not an .npz archive"):
            RecordedScores.load(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("scores", "hello")
    with pytest.raises(InvalidInputError, match=r"zip.npz: scores is not an array"):
        RecordedScores.load(tmp_path / "zip.npz")
    with pytest.raises(InvalidInputError, match=r"missing.npz cannot be read: No such file"):
        RecordedScores.load(tmp_path / "missing.npz")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        RecordedScores.load(tmp_path)
    with pytest.raises(InvalidInputError, match="cannot be written"):
        RecordedScores(SCORES, ("m",), ("a", "b", "c"), ("r", "s")).save(tmp_path)


def test_whole_numbers_become_floats() -> None:
    counts = RecordedScores(np.ones((1, 3, 2, 4), dtype=np.int8), ("m",), ("a", "b", "c"), ("r", "s"))
    assert counts.scores.dtype == np.float32


def test_purchases_and_epochs_survive_the_file_and_follow_the_selection(
    small: RecordedScores, tmp_path: Path
) -> None:
    epochs = np.arange(small.scores.size).reshape(small.scores.shape)
    bought = replace(
        small,
        purchases=(
            HowBought(Allocation.ADAPTIVE, 2, cost=99.0),
            HowBought(usd=1.25, phase_sizes=(2.0, 1.75)),
        ),
        epochs=epochs,
    )
    bought.save(tmp_path / "bought.npz")
    again = RecordedScores.load(tmp_path / "bought.npz")
    assert again.purchases == bought.purchases
    assert again.epochs is not None
    assert (again.epochs == epochs).all()
    part = again.select(model="b", rater="s").part(items=np.array([1, 4, 6]))
    assert part.purchases == (HowBought(usd=1.25, phase_sizes=(2.0, 1.75)),)
    assert part.epochs is not None
    kept = [int(name.split()[1]) for name in part.items]
    assert (part.epochs == epochs[1:, kept, 1:]).all()


def test_purchases_and_epochs_that_do_not_fit_are_refused(small: RecordedScores, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="purchases has 1 entries for 2 models"):
        replace(small, purchases=(HowBought(),))
    with pytest.raises(InvalidInputError, match=r"epochs holds int64 values of shape \(2,\)"):
        replace(small, epochs=np.zeros(2, dtype=np.int64))
    with pytest.raises(InvalidInputError, match="fixed_repeats of a purchase is -1"):
        HowBought(fixed_repeats=-1)
    with pytest.raises(InvalidInputError, match=r"phase_sizes of a purchase are \(2.0, inf\)"):
        HowBought(phase_sizes=(2.0, float("inf")))
    np.savez(tmp_path / "x.npz", scores=np.ones((1, 2, 1, 1)), allocation=np.array(["adaptve"]))
    with pytest.raises(UnknownNameError, match=r"allocation in .*x.npz: 'adaptve'. Did you mean 'adaptive'"):
        RecordedScores.load(tmp_path / "x.npz")
    np.savez(
        tmp_path / "y.npz",
        scores=np.ones((1, 2, 1, 1)),
        allocation=np.array(["fixed"]),
        cost=np.array([1.0, 2.0]),
    )
    with pytest.raises(InvalidInputError, match=r"cost has shape \(2,\); it must have one entry per model"):
        RecordedScores.load(tmp_path / "y.npz")
