"""Who may be the best: by intervals, by paired differences, among those that are left."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications
from tests.estimators.models.drawn import draw

from evalbudget.confidence.bounds import FloatArray
from evalbudget.draws import ModelDraws
from evalbudget.errors import InvalidInputError
from evalbudget.estimators.models import possible_winners

NOTHING = np.full(400, 0.5)


def drawn(scores: FloatArray, n: int, order: FloatArray) -> ModelDraws:
    return draw(scores, NOTHING, n, batch=8, order=order.astype(np.int64))


def table(*chances: float, seed: int = 0) -> FloatArray:
    return (np.random.default_rng(seed).random((len(chances), 400)) < np.array(chances)[:, None]).astype(
        float
    )


def test_a_clear_leader_is_alone() -> None:
    order = np.random.default_rng(1).permutation(400)
    scores = table(0.9, 0.3, 0.5)
    found = possible_winners([drawn(row, 200, order) for row in scores])
    assert found.models == {0}
    assert found.reference == 0


def test_pairs_tell_apart_what_intervals_do_not() -> None:
    """B scores what A does, but for one item in ten: their intervals overlap, their differences do not."""
    order = np.random.default_rng(1).permutation(400)
    a = table(0.6)[0]
    b = a * (np.arange(400) % 10 != 0)
    found = possible_winners([drawn(a, 350, order), drawn(b, 350, order)])
    assert found.models == {0}
    apart = np.random.default_rng(2)
    alone = possible_winners([drawn(row, 350, apart.permutation(400)) for row in (a, b)])
    assert alone.models == {0, 1}
    assert alone.differences == ()


def test_models_left_out_rule_nobody_out() -> None:
    order = np.random.default_rng(1).permutation(400)
    same = table(0.5)[0]
    draws = [drawn(table(0.95)[0], 200, order), drawn(same, 200, order), drawn(same, 200, order)]
    assert possible_winners(draws).models == {0}
    left = possible_winners(draws, among={1, 2})
    assert left.models == {1, 2}
    assert left.reference in (1, 2)


def test_failures_on_hard_items_make_nobody_the_best() -> None:
    """A has no score on the hard half and looks better; on the items both answered B is."""
    order = np.random.default_rng(1).permutation(400)
    hard = np.arange(400) % 2 == 0
    rng = np.random.default_rng(3)
    a = np.where(hard, np.nan, (rng.random(400) < 0.85).astype(float))
    b = np.where(hard, (rng.random(400) < 0.2), (rng.random(400) < 0.98)).astype(float)
    found = possible_winners([drawn(a, 392, order), drawn(b, 392, order)])
    assert found.models == {1}
    apart = np.random.default_rng(2)
    alone = possible_winners([drawn(row, 392, apart.permutation(400)) for row in (a, b)])
    assert alone.models == {0, 1}


def test_without_scores_anybody_may_be_the_best() -> None:
    order = np.random.default_rng(1).permutation(400)
    found = possible_winners([drawn(table(0.5)[0], 0, order), drawn(table(0.6)[0], 0, order)])
    assert (found.models, found.reference) == ({0, 1}, -1)


def test_the_level_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="level"):
        possible_winners([drawn(table(0.5)[0], 8, np.arange(400))], level=1.0)


@pytest.mark.claim
@pytest.mark.parametrize(("leaves", "expected"), [(False, 2), (True, 0)])
def test_tied_models_are_not_told_apart(leaves: bool, expected: int) -> None:
    """Looking after every 40 items of two tied models, also when a better one leaves on the way."""
    R, wrong = replications(60, 1000), 0
    for seed in range(R):
        rng = np.random.default_rng(seed)
        b = (rng.random(400) < 0.6).astype(float)
        scores = [(rng.random(400) < 0.9).astype(float), b, rng.permutation(b)]
        order = rng.permutation(400)
        for n in range(40, 400, 40):
            lengths = (min(n, 60), n, n) if leaves else (n, n, n)
            draws = [drawn(row, k, order) for row, k in zip(scores, lengths, strict=True)]
            among = {1, 2}
            draws = draws if leaves else draws[1:]
            found = possible_winners(draws, among=among if leaves else None, level=0.8)
            if len(found.models) < 2:
                wrong += 1
                break
    binomial_claim(wrong, R, at_most=0.2)
    pinned(wrong, expected)
