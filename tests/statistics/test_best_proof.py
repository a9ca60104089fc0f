"""Against the formulas written out with loops, against every order of small pools, and invariances."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.claims import variant

from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing
from evalbudget.statistics._best_proof import BestProof, pairwise_evidence
from evalbudget.statistics._bounds import FloatArray

SHARES, WEIGHTS = (0.4, 0.2, 0.1, 0.05, None), (1 / 8, 1 / 8, 1 / 8, 1 / 8, 1 / 2)


def half_difference(x_j: float, x_i: float, missing: Missing = Missing.WORST) -> float:
    if missing is Missing.DROP:
        return 0.0 if math.isnan(x_j) or math.isnan(x_i) else (x_j - x_i) / 2
    highest = 1.0 if missing is Missing.WORST else 0.0
    return ((0.0 if math.isnan(x_j) else x_j) - (highest if math.isnan(x_i) else x_i)) / 2


def state(past: list[float], start: float, pool: int) -> tuple[float, float, list[float]]:
    """Variance of earlier differences, conditional mean under the null, stakes."""
    t, total, squares, running = len(past), 0.0, 0.25**2, 0.0
    for s, d in enumerate(past):
        before = running / (s + 1)
        running += d
        squares += (d - before) * (d - running / (s + 2))
    total = sum(past)
    variance = squares / (t + 1)
    m = -(total + start) / (pool - t)
    room = max(0.5 + min(max(m, -0.5), 0.5), 1e-12)
    gaps = [
        max(total / (t + 10) - m, 0.0) if share is None else share * math.sqrt(variance) * pool / (pool - t)
        for share in SHARES
    ]
    return variance, min(max(m, -0.5), 0.5), [min(g / (variance + g * g), 0.9 / room) for g in gaps]


def pair_by_loops(
    x_i: FloatArray, x_j: FloatArray, pool: int, start: float, missing: Missing = Missing.WORST
) -> list[float]:
    """Capital against "i is at least as good as j" after each item."""
    capital, past, found = list(WEIGHTS), [], []
    for a, b in zip(x_i.tolist(), x_j.tolist(), strict=True):
        _, m, stakes = state(past, start, pool)
        d = half_difference(b, a, missing)
        capital = [c * (1 + s * (d - m)) for c, s in zip(capital, stakes, strict=True)]
        past.append(d)
        found.append(math.inf if sum(past) + start > 0.5 * (pool - len(past)) + 1e-9 else sum(capital))
    return found


def best_by_loops(x: FloatArray, known: FloatArray, i: int, missing: Missing) -> list[float]:
    """Capital against "i is the best" after each item, the others being opponents to the end."""
    m, pool = x.shape
    others = [j for j in range(m) if j != i]
    start = {
        j: sum(half_difference(b, a, missing) for a, b in zip(known[i], known[j], strict=True))
        for j in others
    }
    past: dict[int, list[float]] = {j: [] for j in others}
    capital, found = list(WEIGHTS), []
    for t in range(pool):
        now = {j: state(past[j], start[j], pool) for j in others}
        j = max(others, key=lambda j: ((sum(past[j]) + start[j]) / math.sqrt(now[j][0]), -j))
        _, mean, stakes = now[j]
        d = half_difference(x[j, t], x[i, t], missing)
        capital = [c * (1 + s * (d - mean)) for c, s in zip(capital, stakes, strict=True)]
        for k in others:
            past[k].append(half_difference(x[k, t], x[i, t], missing))
        found.append(sum(capital))
    return found


def capital(proof: BestProof, model: int) -> float:
    place = proof.contenders.tolist().index(model)
    return float(np.exp(proof._log_capital[:, place]).sum())


@pytest.mark.parametrize("missing", list(Missing))
def test_capital_against_loops(missing: Missing) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, known = rng.random((4, 30)), rng.random((4, 3))
        x[rng.random(x.shape) < 0.1] = np.nan
        known[1, 2] = np.nan
        expected = [best_by_loops(x, known, i, missing) for i in range(4)]
        proof = BestProof(4, 30, delta=1e-9, known=known, missing=missing)
        for t in range(30):
            if proof.contenders.size < 4:
                break
            proof.update(x[:, t])
            for i in proof.contenders.tolist():
                assert capital(proof, i) == pytest.approx(expected[i][t], rel=1e-9)
        assert t > 15


@pytest.mark.parametrize("missing", list(Missing))
def test_pairs_against_loops(missing: Missing) -> None:
    rng = np.random.default_rng(1)
    x, known = rng.random((4, 20)), rng.random((4, 2))
    x[0, :] *= 0.2
    x[rng.random(x.shape) < 0.1] = np.nan
    lengths = np.array([20, 15, 20, 7])
    found = pairwise_evidence(x, lengths, 24, known=known, missing=missing)
    for i in range(4):
        best = {-1: 1.0}
        for j in range(4):
            t = min(lengths[i], lengths[j])
            if i != j:
                start = sum(half_difference(b, a, missing) for a, b in zip(known[i], known[j], strict=True))
                best[j] = max(pair_by_loops(x[i, :t], x[j, :t], 24, start, missing))
        assert found[i] == pytest.approx(max(best.values()), rel=1e-9)
        only = pairwise_evidence(x, lengths, 24, known=known, opponents=np.array([2]), missing=missing)
        assert only[i] == pytest.approx(max(best[-1], best.get(2, 0.0)), rel=1e-9)


SMALL: list[NDArray[np.float64]] = [
    np.array([[1, 0, 0, 1, 0.5], [0, 1, 1, 0, 0.5]]),
    np.array([[1, 1, 0, 0, 0.0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 1]]),
    np.array([[1, 1, 1, 0, 0.0], [1, 1, 0, 0, 0], [0, 0, 0.5, 1, 1]]),
    np.array([[1, 0, np.nan, 1, 0], [0, 1, 1, 0, 1], [0, 1, 0, 0.5, 0.5]]),
]


@pytest.mark.parametrize(
    ("case", "missing"),
    [
        (case, missing) if np.isnan(pool).any() or not i else variant(case, missing)
        for case, pool in enumerate(SMALL)
        for i, missing in enumerate(Missing)
    ],
)
def test_capital_against_a_best_one_is_worth_one_at_most_over_all_orders(case: int, missing: Missing) -> None:
    """At every moment, with and without known items, for every model that is as good as any other."""
    pool = SMALL[case]
    for known in (np.zeros((len(pool), 0)), np.tile([[1.0], [0.0], [0.0]], (1, 1))[: len(pool)]):
        whole = np.concatenate([known, pool], axis=1)
        best = [
            i
            for i in range(len(pool))
            if all(
                sum(half_difference(b, a, missing) for a, b in zip(whole[i], whole[j], strict=True)) <= 1e-12
                for j in range(len(pool))
                if j != i
            )
        ]
        assert best or known.size
        totals = {i: np.zeros(5) for i in best}
        for order in itertools.permutations(range(5)):
            proof = BestProof(len(pool), 5, delta=1e-12, known=known, missing=missing)
            for t, item in enumerate(order):
                if not proof.decided:
                    proof.update(pool[:, item])
                for i in best:
                    assert i in proof.contenders
                    totals[i][t] += capital(proof, i)
        for total in totals.values():
            assert (total / math.factorial(5) <= 1 + 1e-12).all()


def test_pairs_are_worth_one_at_most_over_all_orders() -> None:
    """The capital after each number of items; the largest so far reaches c in at most 1/c of the orders."""
    for pool in SMALL:
        totals, largest = np.zeros(5), []
        for order in itertools.permutations(range(5)):
            x = pool[:, order]
            i, j = (0, 1) if np.nansum(x[1] - x[0]) <= 0 else (1, 0)
            totals += pair_by_loops(x[i], x[j], 5, 0.0)
            largest.append(pairwise_evidence(x, np.full(len(x), 5), 5, opponents=np.array([j]))[i])
        assert (totals / 120 <= 1 + 1e-12).all()
        assert all(np.mean(np.array(largest) >= c) <= 1 / c + 1e-12 for c in (1.2, 1.5, 2.0, 4.0))


def play(x: FloatArray, delta: float = 0.05, missing: Missing = Missing.WORST) -> BestProof:
    proof = BestProof(len(x), x.shape[1], delta=delta, missing=missing)
    for scores in x.T:
        if proof.decided:
            break
        proof.update(scores)
    return proof


def world(seed: int = 5) -> FloatArray:
    rng = np.random.default_rng(seed)
    chance = np.array([0.8, 0.7, 0.5, 0.75])[:, None] + rng.normal(0, 0.1, 400)
    return np.asarray(rng.random((4, 400)) < chance, dtype=np.float64)


def test_a_clear_race_takes_these_many_items() -> None:
    """Any other constant, sign or comparison changes them."""
    proof = play(world())
    assert (proof.winner, proof.read, proof.dropped_at.tolist()) == (0, 371, [-1, 178, 58, 371])


def test_what_must_not_matter() -> None:
    # continuous scores: opponents that lead by the same are taken in their order
    x = np.clip(world() * 0.8 + np.random.default_rng(1).random((4, 400)) * 0.2, 0.0, 1.0)
    one = play(x)
    assert one.winner == 0
    # the order of the models
    turned = play(x[::-1])
    assert turned.dropped_at.tolist() == one.dropped_at[::-1].tolist()
    # the difficulty of items, as differences stay
    shifted = play(x / 2 + np.random.default_rng(0).random(400) / 2)
    halved = play(x / 2)
    assert shifted.dropped_at.tolist() == halved.dropped_at.tolist()
    # a model that is hopeless
    more = play(np.concatenate([x, np.zeros((1, 400))]))
    assert more.dropped_at[:4].tolist() == one.dropped_at.tolist()
    # scores of a model after it was dropped
    spoiled = x.copy()
    spoiled[2, one.dropped_at[2] :] = np.nan
    assert play(spoiled).dropped_at.tolist() == one.dropped_at.tolist()


def test_pool_used_up() -> None:
    tie = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 1]])
    proof = play(tie)
    assert (proof.winner, proof.tied, proof.exhausted) == (None, True, True)
    assert proof.contenders.tolist() == [0, 1]
    assert proof.dropped_at.tolist() == [-1, -1, 3]
    one_more = play(np.array([[1.0, 0, 1, 0, 1], [0, 1, 0, 1, 0]]))
    assert (one_more.winner, one_more.tied) == (0, False)
    # on the items that both have each is behind another: nobody is best, nobody is tied
    nan = np.nan
    three = np.array([[1.0, nan, 0], [0, 1, nan], [nan, 0, 1]])
    cycle = play(three, missing=Missing.DROP)
    assert (cycle.winner, cycle.tied, cycle.contenders.size) == (None, False, 3)
    assert play(three, missing=Missing.ZERO).tied
    worst = play(three)
    assert (worst.winner, worst.tied, worst.contenders.size) == (None, False, 3)
    # one that is ahead of all by more than is missing is the best all the same
    ahead = play(np.array([[1.0, 1, 1, nan, 1], [0, nan, 1, 0, 0]]))
    assert (ahead.winner, ahead.exhausted) == (0, True)
    assert play(np.array([[1.0, 1, nan, nan, 1], [0, nan, 1, nan, 0]])).winner is None


def test_certain_before_the_end() -> None:
    """Four of six items ahead cannot be made up for by the two left, whatever delta is."""
    proof = BestProof(2, 6, delta=1e-12)
    for _ in range(3):
        proof.update(np.array([1.0, 0.0]))
    assert proof.winner is None
    proof.update(np.array([1.0, 0.0]))
    assert (proof.winner, proof.read) == (0, 4)
    pair = pairwise_evidence(np.tile([[1.0], [0.0]], (1, 4)), np.array([4, 4]), 6)
    assert (pair >= 2e12).tolist() == [False, True]
    pair = pairwise_evidence(np.tile([[1.0], [0.0]], (1, 3)), np.array([3, 3]), 6)
    assert (pair >= 2e12).tolist() == [False, False]


def test_duplicate_and_lone_models_and_no_items() -> None:
    x = np.random.default_rng(0).random(50)
    same = play(np.stack([x, x]))
    assert same.tied
    assert same.read == 50
    assert BestProof(1, 10).winner == 0
    assert BestProof(2, 0).tied
    assert BestProof(2, 0, known=np.array([[1.0], [0.0]])).winner == 0


def test_a_model_that_does_not_take_part() -> None:
    proof = BestProof(3, 10, among=[2, 0])
    assert proof.contenders.tolist() == [0, 2]
    assert proof.dropped_at.tolist() == [-1, 0, -1]
    proof.update(np.array([1.0, np.nan, 0.0]))
    assert proof.contenders.tolist() == [0, 2]


def test_a_circle_drops_nobody_whoever_else_is_known() -> None:
    """Each is behind another one on the items both answered: no order, with or without a fourth."""
    known = np.array([[1.0, 0.0, np.nan], [np.nan, 1.0, 0.0], [0.0, np.nan, 1.0]])
    drop = Missing.DROP
    assert BestProof(3, 0, known=known, missing=drop).contenders.tolist() == [0, 1, 2]
    more = np.vstack([known, np.ones(3)])
    assert BestProof(4, 0, known=more, among=range(3), missing=drop).contenders.tolist() == [0, 1, 2]


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="delta"):
        BestProof(2, 5, delta=1.0)
    with pytest.raises(InvalidInputError, match="model"):
        BestProof(0, 5)
    with pytest.raises(InvalidInputError, match="known scores have shape"):
        BestProof(2, 5, known=np.zeros((3, 1)))
    with pytest.raises(InvalidInputError, match="outside 0 to 1"):
        BestProof(2, 5).update(np.array([0.5, 1.5]))
    with pytest.raises(InvalidInputError, match="one score for each"):
        BestProof(2, 5).update(np.zeros(3))
    with pytest.raises(InvalidInputError, match="no further"):
        BestProof(2, 0).update(np.zeros(2))
    with pytest.raises(InvalidInputError, match="do not belong together"):
        pairwise_evidence(np.zeros((2, 5)), np.array([5, 6]), 10)


def test_rows_of_pairs_a_few_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    scores = (rng.random((7, 200)) < np.linspace(0.2, 0.9, 7)[:, None]).astype(float)
    scores[rng.random(scores.shape) < 0.05] = np.nan

    def played() -> list[object]:
        proof = BestProof(7, 195, known=scores[:, :5])
        told: list[object] = []
        while not proof.decided:
            proof.update(scores[:, 5 + proof.read])
            told += [proof.contenders.tolist(), proof._log_capital.tolist()]
        return told

    whole = played()
    assert len(whole) > 20
    for pairs in (1, 15):
        monkeypatch.setattr("evalbudget.statistics._best_proof._PAIRS", pairs)
        assert played() == whole
