from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, calibrate
from evalbudget.races.prediction._files import (
    cache_folder,
    is_factor_file,
    load_factors,
    save_factors,
    train_cached,
)

SCORES = (np.random.default_rng(0).random((8, 20)) < 0.6).astype(float)
ITEMS = tuple(f"q{j}" for j in range(20))


def same(a: FactorModel, b: FactorModel) -> bool:
    arrays = ("V", "U", "prior_mean", "prior_precision")
    return a.items == b.items and all(np.array_equal(getattr(a, n), getattr(b, n)) for n in arrays)


def test_a_saved_model_comes_back_whole(tmp_path: Path) -> None:
    model = FactorModel.train(SCORES, ITEMS, rank=1, ridge=1.0)
    save_factors(tmp_path / "new" / "f.npz", model)
    back = load_factors(tmp_path / "new" / "f.npz")
    assert same(model, back)
    assert calibrate(back, np.arange(5)) == calibrate(model, np.arange(5))
    assert is_factor_file(tmp_path / "new" / "f.npz")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["f.npz"]


def test_a_bare_file_of_factors(tmp_path: Path) -> None:
    V, U = np.random.default_rng(1).normal(size=(20, 3)), np.random.default_rng(2).normal(size=(9, 3))
    np.savez(tmp_path / "f.npz", U=U.astype(np.float16), V=V.astype(np.float16))
    model = load_factors(tmp_path / "f.npz")
    assert model.items[:2] == ("0", "1")
    assert model.U.shape == (9, 3)
    assert load_factors(tmp_path / "f.npz", ITEMS).items == ITEMS
    np.savez(tmp_path / "g.npz", V=V, items=np.array(ITEMS))
    assert load_factors(tmp_path / "g.npz").items == ITEMS


def test_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train_cached(SCORES, ITEMS, folder=tmp_path)
    trained = []
    real = FactorModel.train

    def counted(*args: object, **kwargs: object) -> FactorModel:
        trained.append(1)
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(FactorModel, "train", counted)
    assert same(train_cached(SCORES.copy(), list(ITEMS), folder=tmp_path), first)
    assert not trained
    changed = SCORES.copy()
    changed[3, 3] = 1 - changed[3, 3]
    train_cached(changed, ITEMS, folder=tmp_path)
    train_cached(SCORES, ITEMS[::-1], folder=tmp_path)
    train_cached(SCORES, ITEMS, folder=tmp_path, seed=1)
    assert len(trained) == 3


def test_a_damaged_or_unwritable_cache_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = train_cached(SCORES, ITEMS, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:300])
    with caplog.at_level(logging.WARNING):
        assert same(train_cached(SCORES, ITEMS, folder=tmp_path), first)
    assert "trained again" in caplog.text
    assert same(load_factors(file), first)
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        assert same(train_cached(SCORES, ITEMS, folder=tmp_path / "file"), first)
    assert "not kept" in caplog.text


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("EVALBUDGET_CACHE")
    assert cache_folder().name == "evalbudget"


def test_bad_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "no_v.npz", scores=np.zeros(3))
    np.savez(tmp_path / "ranks.npz", V=np.zeros((4, 2)), U=np.zeros((4, 3)))
    np.save(tmp_path / "single.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("hello")
    for name, what in (
        ("no_v.npz", "no array V, only scores"),
        ("ranks.npz", "ranks must be equal"),
        ("single.npy", r"not an \.npz archive"),
        ("text.npz", "write it again"),
        ("absent.npz", "cannot be read"),
    ):
        with pytest.raises(InvalidInputError, match=what) as ex:
            load_factors(tmp_path / name)
        assert name in str(ex.value)
    assert not is_factor_file(tmp_path / "text.npz")
    assert not is_factor_file(tmp_path / "no_v.npz")
