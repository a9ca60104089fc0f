"""What a sampler of models has decided by its own criterion, for what is claimed of that to be measured.

A race's leaderboard says what the scores read prove, whatever the sampler's criterion.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from evalbudget.races.samplers import LUCB, ProvingSampler, RacingSampler
from evalbudget.races.samplers._fixed_budget import FixedBudgetSampler
from evalbudget.races.samplers._lucb import _TOLERANCE


class OutcomeKind(StrEnum):
    """What a race has decided."""

    BEST = "best"
    """One model is the best."""
    EQUIVALENT = "equivalent"
    """The models named are within the margin of the best one."""
    TIE = "tie"
    """The models named were read on all items and have exactly the same score."""
    UNDECIDED = "undecided"
    """Not yet, or not with this budget."""


class Outcome(NamedTuple):
    """What a race has decided, about which models."""

    kind: OutcomeKind
    models: tuple[int, ...]


def outcome_of(sampler: RacingSampler) -> Outcome:
    """What is decided so far."""
    sampler._wrap_up()
    if isinstance(sampler, ProvingSampler):
        return _of_proof(sampler)
    if isinstance(sampler, FixedBudgetSampler):
        return _of_rounds(sampler)
    if isinstance(sampler, LUCB) and sampler._decided:
        return _of_bounds(sampler)
    if sampler.design.n_models == 1:
        return Outcome(OutcomeKind.BEST, (0,))
    return Outcome(OutcomeKind.UNDECIDED, tuple(sampler._remaining().tolist()))


def _of_proof(sampler: ProvingSampler) -> Outcome:
    """The best model once it is proved; a tie of those that are proved to be exactly equal."""
    proof = sampler.proof
    left = (sampler._remaining() if proof is None else proof.contenders).tolist()
    kind = OutcomeKind.UNDECIDED
    if len(left) == 1:
        kind = OutcomeKind.BEST
    elif proof is not None and proof.tied and len(left) > 1:
        kind = OutcomeKind.TIE
    return Outcome(kind, tuple(left))


def _of_rounds(sampler: FixedBudgetSampler) -> Outcome:
    """The best model once all others have left; a tie if those left have equal means on all items."""
    remaining = tuple(sampler._remaining().tolist())
    if len(remaining) == 1:
        return Outcome(OutcomeKind.BEST, remaining)
    if remaining and sampler._step is None and not sampler._drawable().size:
        means = sampler._estimates()[list(remaining)]
        best = tuple(np.array(remaining)[means >= means.max() - 1e-12].tolist())
        if len(best) == 1:
            return Outcome(OutcomeKind.BEST, best)
        # where cells failed, equal means are of other items
        if (sampler._n_read[list(best)] == sampler._n_items).all():
            return Outcome(OutcomeKind.TIE, best)
    return Outcome(OutcomeKind.UNDECIDED, remaining)


def _of_bounds(sampler: LUCB) -> Outcome:
    """The leader, and those that the bounds at the decision leave beside it."""
    kind = OutcomeKind(sampler._decided)
    remaining = sampler._remaining().tolist()
    if len(remaining) == 1:
        return Outcome(kind, tuple(remaining))
    leader, _ = sampler._duel()
    below, upper = sampler._bounds()
    strictly = [m for m in remaining if m == leader or upper[m] > below[leader] + _TOLERANCE]
    if len(strictly) > 1:
        return Outcome(kind, tuple(strictly))
    return Outcome(kind, tuple(m for m in remaining if m == leader or upper[m] >= below[leader] - _TOLERANCE))
