"""Who may be the best: by certainty, by paired e-values, by intervals, among those that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant
from tests.races.estimates.drawn import draw

from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates import PossibleWinners, Rule, possible_winners
from evalbudget.statistics._best_proof import pairwise_evidence
from evalbudget.statistics._bounds import FloatArray

NOTHING = np.full(400, 0.5)


def drawn(scores: FloatArray, n: int, order: FloatArray) -> ModelDraws:
    return draw(scores, NOTHING, n, batch=8, order=order.astype(np.int64))


def table(*chances: float, seed: int = 0) -> FloatArray:
    return (np.random.default_rng(seed).random((len(chances), 400)) < np.array(chances)[:, None]).astype(
        float
    )


def winners(draws: list[ModelDraws], **options: Any) -> PossibleWinners:
    return possible_winners(draws, n_items=400, **options)


def test_a_clear_leader_is_alone() -> None:
    order = np.random.default_rng(1).permutation(400)
    found = winners([drawn(row, 200, order) for row in table(0.9, 0.3, 0.5)])
    assert found.models == {0}
    assert (found.rule, found.is_exact, found.tied) == (Rule.PAIRED, False, False)


def test_pairs_tell_apart_what_intervals_do_not() -> None:
    """B scores what A does, but for one item in ten: their intervals overlap, their differences do not."""
    order = np.random.default_rng(1).permutation(400)
    a = table(0.6)[0]
    b = a * (np.arange(400) % 10 != 0)
    assert winners([drawn(a, 350, order), drawn(b, 350, order)]).models == {0}
    apart = np.random.default_rng(2)
    alone = winners([drawn(row, 350, apart.permutation(400)) for row in (a, b)])
    assert alone.models == {0, 1}
    assert alone.rule is Rule.INTERVALS


def test_models_with_orders_of_their_own_are_told_apart_by_intervals() -> None:
    apart = np.random.default_rng(2)
    found = winners([drawn(row, 200, apart.permutation(400)) for row in table(0.95, 0.2, 0.5)])
    assert found.models == {0}
    assert found.rule is Rule.INTERVALS


def test_the_rule_is_that_of_the_kernel() -> None:
    """Models that stopped at different lengths, in any number: as the kernel says of the whole table."""
    rng = np.random.default_rng(4)
    for m in (3, 5, 80):
        scores = table(*rng.uniform(0.3, 0.9, m), seed=m)
        order = rng.permutation(400)
        lengths = np.minimum(rng.geometric(0.01, m) + 20, 300)
        lengths[:16] = 300  # of many models those that read most are compared with all
        draws = [drawn(row, int(n), order) for row, n in zip(scores, lengths, strict=True)]
        opponents = np.arange(min(m, 16))
        found = pairwise_evidence(
            np.stack([row[order][:300] for row in scores]), lengths, 400, opponents=opponents
        )
        beaten = np.flatnonzero(found >= max(m - 1, 2) / 0.05).tolist()
        assert set(range(m)) - winners(draws).models == set(beaten)
        assert beaten


def test_models_left_out_rule_nobody_out() -> None:
    order = np.random.default_rng(1).permutation(400)
    same = table(0.5)[0]
    draws = [drawn(table(0.95)[0], 200, order), drawn(same, 200, order), drawn(same, 200, order)]
    assert winners(draws).models == {0}
    assert winners(draws, among={1, 2}).models == {1, 2}


def test_failures_on_hard_items_make_nobody_the_best() -> None:
    """A has no score on the hard half and looks better; on the items both answered B is."""
    order = np.random.default_rng(1).permutation(400)
    hard = np.arange(400) % 2 == 0
    rng = np.random.default_rng(3)
    a = np.where(hard, np.nan, (rng.random(400) < 0.85).astype(float))
    b = np.where(hard, (rng.random(400) < 0.2), (rng.random(400) < 0.98)).astype(float)
    shared = [drawn(a, 392, order), drawn(b, 392, order)]
    apart = np.random.default_rng(2)
    alone = [drawn(row, 300, apart.permutation(400)) for row in (a, b)]
    assert winners(shared).models == winners(alone).models == {0, 1}
    assert winners(shared, missing=Missing.DROP).models == {1}
    assert winners(alone, missing=Missing.DROP).models == {0, 1}
    assert winners(shared, missing=Missing.ZERO).models == {1}
    assert winners(alone, missing=Missing.ZERO).models == {1}


@pytest.mark.parametrize("share", [0, 1])
def test_what_is_missing_may_still_leave_no_doubt(share: int) -> None:
    """One item in ten is missing for the second model, which is far behind; by pairs and by intervals."""
    apart = np.random.default_rng(2)
    scores = table(0.9, 0.3)
    scores[1, ::10] = np.nan
    orders = [apart.permutation(400)] * 2 if share else [apart.permutation(400) for _ in range(2)]
    found = winners([drawn(row, 300, order) for row, order in zip(scores, orders, strict=True)])
    assert found.models == {0}
    assert (found.rule is Rule.PAIRED) == bool(share)


def test_what_is_left_to_read_decides_between_certain_and_likely() -> None:
    order = np.arange(400)
    a, b = np.zeros(400), np.zeros(400)
    a[:150] = 1.0
    likely = winners([drawn(a, 240, order), drawn(b, 240, order)])
    assert (likely.models, likely.is_exact) == ({0}, False)
    certain = winners([drawn(a, 251, order), drawn(b, 251, order)])
    assert (certain.models, certain.is_exact) == ({0}, True)


def test_a_tie_is_of_models_read_in_full() -> None:
    order = np.random.default_rng(1).permutation(400)
    a = table(0.5)[0]
    b = np.random.default_rng(2).permutation(a)
    whole = winners([drawn(a, 400, order), drawn(b, 400, order), drawn(0 * a, 40, order)])
    assert (whole.models, whole.tied) == ({0, 1}, True)
    assert not winners([drawn(a, 399, order), drawn(b, 400, order)]).tied


def test_without_scores_anybody_may_be_the_best() -> None:
    order = np.random.default_rng(1).permutation(400)
    assert winners([drawn(table(0.5)[0], 0, order), drawn(table(0.6)[0], 0, order)]).models == {0, 1}
    assert winners([drawn(table(0.5)[0], 8, order)]).models == {0}


def test_the_level_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="level"):
        winners([drawn(table(0.5)[0], 8, np.arange(400))], level=1.0)


@pytest.mark.claim
@pytest.mark.parametrize(("leaves", "expected"), [variant(False, 11), (True, 7)])
def test_tied_models_are_not_told_apart(leaves: bool, expected: int) -> None:
    """Looking after every 40 items of two tied models, also when a better one leaves on the way."""
    R, wrong = replications(36, 1000), 0
    for seed in range(R):
        rng = np.random.default_rng(seed)
        b = (rng.random(400) < 0.6).astype(float)
        scores = [(rng.random(400) < 0.9).astype(float), b, rng.permutation(b)]
        order = rng.permutation(400)
        for n in range(40, 400, 40):
            lengths = (min(n, 60), n, n) if leaves else (n, n, n)
            draws = [drawn(row, k, order) for row, k in zip(scores, lengths, strict=True)]
            draws = draws if leaves else draws[1:]
            if len(winners(draws, among={1, 2} if leaves else None, level=0.8).models) < 2:
                wrong += 1
                break
    binomial_claim(wrong, R, at_most=0.2)
    pinned(wrong, expected)
