"""What a sampler of models has decided by its own criterion, for what is claimed of that to be measured.

A race's leaderboard says what the scores read prove, whatever the sampler's criterion.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from evalbudget.races.samplers import LUCB, ProvingSampler, RacingSampler, Table
from evalbudget.races.samplers._fixed_budget import FixedBudgetSampler, Stage
from evalbudget.races.samplers._lucb import _TOLERANCE, Duel
from evalbudget.races.samplers._proof_base import Proving


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
    table, note = sampler._now()
    if isinstance(sampler, ProvingSampler):
        return _of_proof(sampler, note)
    if isinstance(sampler, FixedBudgetSampler):
        return _of_rounds(sampler, table, note)
    if isinstance(sampler, LUCB) and note.decided:
        return _of_bounds(sampler, table, note)
    if sampler.design.n_models == 1:
        return Outcome(OutcomeKind.BEST, (0,))
    return Outcome(OutcomeKind.UNDECIDED, tuple(note.remaining.tolist()))


def _of_proof(sampler: ProvingSampler, note: Proving) -> Outcome:
    """The best model once it is proved; a tie of those that are proved to be exactly equal."""
    proof = sampler.proof
    left = (note.remaining if proof is None else proof.contenders).tolist()
    kind = OutcomeKind.UNDECIDED
    if len(left) == 1:
        kind = OutcomeKind.BEST
    elif proof is not None and proof.tied and len(left) > 1:
        kind = OutcomeKind.TIE
    return Outcome(kind, tuple(left))


def _of_rounds(sampler: FixedBudgetSampler, table: Table, note: Stage) -> Outcome:
    """The best model once all others have left; a tie if those left have equal means on all items."""
    remaining = tuple(note.remaining.tolist())
    if len(remaining) == 1:
        return Outcome(OutcomeKind.BEST, remaining)
    if remaining and table.is_finished and not sampler.drawable(table, note).size:
        means = sampler.estimates(table, note)[list(remaining)]
        best = tuple(np.array(remaining)[means >= means.max() - 1e-12].tolist())
        if len(best) == 1:
            return Outcome(OutcomeKind.BEST, best)
        # where cells failed, equal means are of other items
        if (table.n_read[list(best)] == table.row.shape[1]).all():
            return Outcome(OutcomeKind.TIE, best)
    return Outcome(OutcomeKind.UNDECIDED, remaining)


def _of_bounds(sampler: LUCB, table: Table, note: Duel) -> Outcome:
    """The leader, and those that the bounds at the decision leave beside it."""
    kind = OutcomeKind(note.decided)
    remaining = note.remaining.tolist()
    if len(remaining) == 1:
        return Outcome(kind, tuple(remaining))
    leader, _ = sampler._duel(table, note)
    below, upper = sampler._bounds(table)
    strictly = [m for m in remaining if m == leader or upper[m] > below[leader] + _TOLERANCE]
    if len(strictly) > 1:
        return Outcome(kind, tuple(strictly))
    return Outcome(kind, tuple(m for m in remaining if m == leader or upper[m] >= below[leader] - _TOLERANCE))
