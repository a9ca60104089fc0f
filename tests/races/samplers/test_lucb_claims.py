"""By simulation: what LUCB decides is wrong, by more than margin, with a probability of at most delta."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget import Design
from evalbudget.races.samplers import LUCB, Table
from evalbudget.statistics._bounds import FloatArray
from references.outcomes import OutcomeKind, outcome_of

pytestmark = pytest.mark.claim

N, DELTA = 200, 0.1
# items passed of 200: the best by one item, by none, and by three in a crowd
WORLDS = {
    "near-ties": (120, 119, 119, 110),
    "ties": (120, 120, 119, 60),
    "crowd": (103, 100, 100, 100, 99),
}


class Hasty(LUCB):
    """An eighth of the radius."""

    def _bounds(self, table: Table) -> tuple[FloatArray, FloatArray]:
        low, high = super()._bounds(table)
        middle, radius = (low + high) / 2, (high - low) / 16
        return middle - radius, middle + radius


def errors(cls: type[LUCB], passed: tuple[int, ...], margin: float, R: int) -> int:
    """Races, each in an order of its own, in which anything that was said is wrong."""
    design = Design(tuple(f"i{j}" for j in range(N)), tuple(f"m{i}" for i in range(len(passed))))
    wrong = 0
    for seed in range(R):
        rng = np.random.default_rng([seed, len(passed)])
        scores = np.stack([rng.permutation(np.arange(N) < k) for k in passed]).astype(float)
        sampler = cls(design, delta=DELTA, margin=margin, batch=10, seed=seed)
        while (cells := sampler.next_cells()) is not None:
            sampler.learn(cells, scores[cells.model, cells.item])
        outcome, truth = outcome_of(sampler), scores.mean(axis=1)
        best = set(np.flatnonzero(truth == truth.max()).tolist())
        said = set(outcome.models)
        assert outcome.kind is not OutcomeKind.UNDECIDED
        if outcome.kind is OutcomeKind.BEST:  # another may be better, by margin
            ok = truth[outcome.models[0]] >= truth.max() - margin
        else:
            ok = best <= said if outcome.kind is OutcomeKind.TIE else bool(best & said)
        wrong += not ok or best <= set(sampler.eliminated)
    return wrong


@pytest.mark.parametrize(
    ("world", "margin"),
    [("near-ties", 0.0), variant("near-ties", 0.02), ("ties", 0.0), variant("crowd", 0.01)],
)
def test_wrong_with_probability_delta_at_most(world: str, margin: float) -> None:
    # 60 races find an error rate of .34 nineteen times in twenty
    R = replications(9, 3000)
    wrong = errors(LUCB, WORLDS[world], margin, R)
    binomial_claim(wrong, R, at_most=DELTA)
    pinned(wrong, 0)


def test_too_small_a_radius_is_found_out() -> None:
    """What the test above would see."""
    R = replications(18, 1000)
    with pytest.raises(AssertionError, match="claimed to fail"):
        binomial_claim(errors(Hasty, WORLDS["near-ties"], 0.0, R), R, at_most=DELTA)
