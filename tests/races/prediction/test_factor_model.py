from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.claims import variant

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, match_items
from evalbudget.races.prediction._score_table import table_of
from evalbudget.races.prediction._selection import choose
from evalbudget.statistics._bounds import FloatArray


def history(m: int = 40, n: int = 150, rank: int = 0, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Scores and their expectations."""
    rng = np.random.default_rng(seed)
    eta = rng.normal(0.3, 1, (m, 1)) + rng.normal(0, 1.3, n)
    eta = eta + rng.normal(size=(m, rank)) @ rng.normal(0, 1.3, size=(rank, n))
    p = 1 / (1 + np.exp(-eta))
    return (rng.random((m, n)) < p).astype(float), p


def error_after(model: FactorModel, scores: FloatArray, p: FloatArray, answered: int) -> tuple[float, float]:
    """Root mean squared errors of the mean: predicted, and of the answers alone."""
    rng = np.random.default_rng(1)
    errors = []
    for s, truth in zip(scores, p.mean(axis=1), strict=True):
        item = rng.permutation(s.size)[:answered]
        predicted = model.predict(model.fit(item, s[item])).mean()
        errors.append((predicted - truth, s[item].mean() - truth))
    root = np.sqrt((np.array(errors) ** 2).mean(axis=0))
    return float(root[0]), float(root[1])


def test_predicts_unseen_models_better_than_their_answers_do() -> None:
    scores, p = history(80)
    model = FactorModel.train(scores[:40], seed=1)
    predicted, plain = error_after(model, scores[40:], p[40:], 16)
    assert predicted < 0.75 * plain
    # what a model's own answers say wins in the end
    assert error_after(model, scores[40:], p[40:], 150)[0] < 0.035


def test_cross_validation_finds_the_factors_that_are_there() -> None:
    flat, _ = history(30, 100, rank=0)
    deep, _ = history(30, 100, rank=2)
    assert choose(table_of(flat), seed=0).rank == 0
    chosen = choose(table_of(deep), seed=0)
    assert chosen.rank in (2, 4)
    assert chosen.error[chosen.rank, chosen.ridge] == min(chosen.error.values())


def test_the_user_may_fix_rank_and_ridge() -> None:
    scores, _ = history(20, 60)
    assert FactorModel.train(scores, rank=3, ridge=2.0).rank == 5
    assert choose(table_of(scores), seed=0, ridge=5.0).ridge == 5.0
    assert choose(table_of(scores), seed=0, rank=1).rank == 1


def test_fit_starts_at_the_prior_and_warm_starts_change_nothing() -> None:
    scores, _ = history()
    model = FactorModel.train(scores, rank=1, ridge=1.0)
    none = np.zeros(0, dtype=np.int64)
    np.testing.assert_array_equal(model.fit(none, np.zeros(0)), model.prior_mean)
    item = np.arange(0, 150, 3)
    cold = model.fit(item, scores[0, item])
    warm = model.fit(item, scores[0, item], start=model.U[7] * 3)
    np.testing.assert_allclose(model.predict(cold), model.predict(warm), atol=0.01)
    rows = model.fit_rows(item, scores[:3, item])
    np.testing.assert_allclose(model.predict(rows[0]), model.predict(cold), atol=0.01)
    assert model.predict(rows, item).shape == (3, item.size)


def test_same_seed_same_model() -> None:
    scores, _ = history(12, 30, rank=2)
    chosen = [choose(table_of(scores), seed=3, rank=2) for _ in range(2)]
    assert chosen[0] == chosen[1]
    one, two = (FactorModel.train(scores, seed=3, rank=2) for _ in range(2))
    np.testing.assert_array_equal(one.V, two.V)
    np.testing.assert_array_equal(one.prior_precision, two.prior_precision)


def awkward() -> dict[str, FloatArray]:
    rng = np.random.default_rng(0)
    mixed = (rng.random((6, 30)) < 0.5).astype(float)
    holes = np.where(rng.random((6, 30)) < 0.7, np.nan, mixed)
    holes[:, 4] = np.nan
    holes[2] = np.nan
    return {
        "one model": mixed[:1],
        "two models": mixed[:2],
        "all passed": np.ones((5, 30)),
        "all failed": np.zeros((1, 30)),
        "constant": np.full((4, 30), 0.5),
        "separable": np.r_[np.zeros((4, 30)), np.ones((4, 30))],
        "one item": mixed[:, :1],
        "holes": holes,
        "fractions": rng.random((6, 30)),
    }


@pytest.mark.parametrize("case", awkward())
@pytest.mark.parametrize("rank", [None, variant(50)])
def test_awkward_histories(case: str, rank: int | None) -> None:
    scores = awkward()[case]
    model = FactorModel.train(scores, rank=rank)
    rows = int((~np.isnan(scores).all(axis=1)).sum())
    assert model.rank <= 2 + max(rows - 1, 0)
    for array in (model.V, model.U, model.prior_mean, model.prior_precision):
        assert np.isfinite(array).all()
    average = model.predict(model.prior_mean)
    assert average.mean() == pytest.approx(np.nanmean(scores), abs=0.15)
    item = np.arange(scores.shape[1])
    worst, best = (model.predict(model.fit(item, np.full(item.size, x))).mean() for x in (0.0, 1.0))
    assert worst < best
    assert worst < np.nanmean(scores) + 0.01
    assert best > np.nanmean(scores) - 0.01


@pytest.mark.parametrize(
    ("scores", "what"),
    [
        (np.full((3, 4), np.nan), "at least one score"),
        (np.zeros(3), "models x items"),
        (np.full((3, 4), 7.0), "score of 7"),
    ],
)
def test_bad_history(scores: FloatArray, what: str) -> None:
    with pytest.raises(InvalidInputError, match=what):
        FactorModel.train(scores)


def test_bad_ids_and_factors() -> None:
    with pytest.raises(InvalidInputError, match="2 different item ids for 3 items"):
        FactorModel.train(np.zeros((2, 3)), ["a", "b", "b"])
    with pytest.raises(InvalidInputError, match="ranks must be equal"):
        FactorModel.of_factors(np.zeros((3, 2)), U=np.zeros((4, 3)))
    with pytest.raises(InvalidInputError, match="finite"):
        FactorModel.of_factors(np.full((3, 2), np.nan))


def test_factors_without_models_have_a_moderate_prior() -> None:
    V = np.random.default_rng(0).normal(0, 3, (500, 4))
    model = FactorModel.of_factors(V)
    spread = np.einsum("ij,jk,ik->i", V, model.prior_covariance, V)
    assert spread.mean() == pytest.approx(4.0)


def test_prior_of_saved_factors_is_that_of_their_models() -> None:
    rng = np.random.default_rng(0)
    U = rng.normal([1.0, -2.0], [0.5, 2.0], (2000, 2))
    model = FactorModel.of_factors(rng.normal(size=(50, 2)), U=U)
    np.testing.assert_allclose(model.prior_mean, U.mean(axis=0))
    np.testing.assert_allclose(model.prior_covariance, np.cov(U.T), atol=0.03)


def test_matching_by_id() -> None:
    scores, _ = history(20, 30)
    model = FactorModel.train(scores, [f"q{j}" for j in range(30)])
    ids = [f"q{j}" for j in (5, 3)] + ["new"]
    match = match_items(model, ids)
    assert match.model is not None
    assert match.reason == "history has 2 of the 3 items"
    np.testing.assert_array_equal(match.model.V[:2], model.V[[5, 3]])
    np.testing.assert_allclose(match.model.V[2], model.V.mean(axis=0))
    for fold in match.model.folds:
        assert fold.scores.shape[1] == 3
        assert np.isnan(fold.scores[:, 2]).all()
    none = match_items(model, ["a", "b", "q1"])
    assert none.model is None
    assert none.reason == "history ignored: it has 1 of the 3 items, fewer than 50%"


def test_saved_leaderboard_factors(data_dir: Path) -> None:
    path = data_dir / "leaderboard_factors.npz"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    with np.load(path) as archive:
        U, V = archive["U"].astype(float) / 4, archive["V"].astype(float)
    model = FactorModel.of_factors(V, U=U[:1000])
    p = model.predict(U[1000:1040])
    scores = (np.random.default_rng(0).random(p.shape) < p).astype(float)
    predicted, plain = error_after(model, scores, p, 64)
    assert predicted < 0.7 * plain


def test_real_history(recorded_data: Callable[[str], RecordedScores]) -> None:
    scores = recorded_data("cruxeval_models").scores[:, :, 0, 0].astype(float)
    model = FactorModel.train(scores[::2])
    predicted, plain = error_after(model, scores[1::2], scores[1::2], 32)
    assert predicted < 0.8 * plain
