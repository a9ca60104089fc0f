"""One line of an audit's journal: what was drawn, what the judge said, and whether a human was asked.

A *context* is one item judged for every system still in the race, in the same step. Whether a human labels
a system's answer is decided by a coin whose chance of heads, the propensity, was fixed before the item was
drawn, together with everything else a draw records: the predictions, the cap on the bets, the leader.
Policies write these rows and estimators and stores read them; config, seed, draws and labels give every
decision again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Coin(StrEnum):
    """How the coins of the systems judged on one context hang together."""

    DISJOINT = "disjoint"
    """Heads for the leader if U < pi, for the others if U >= 1 - pi: never both when the two pi fit in 1."""
    INDEPENDENT = "independent"
    """A coin of its own for every system."""
    NONE = "none"
    """No coin: the second pass labels every answer that has no label yet."""


@dataclass(frozen=True, slots=True)
class AuditDraw:
    """One system's answer to one item: judged, and labelled by a human if the coin says so.

    Attributes:
        index: position in the draw order over all contexts and systems, from 0; labels are learned from in
            this order, whenever they arrive.
        context: number of the context; systems judged on the same item in the same step share it. The second
            pass draws answers again that have no label, in contexts of their own.
        model: the system, an index into ``Design.models``.
        item: an index into ``Design.items``.
        segment: an index into the policy's segments (0 when there is one).
        judge: the judge's score F, on the human scale rescaled to [0, 1].
        prediction: the label m expected at this judge score, in [0, 1], from PAST labels only.
        propensity: the chance pi of a label, in (0, 1]; 1 in the second pass.
        uniform: the number U in [0, 1) thrown for the coin.
        coin: how the coins of this context hang together.
        leader: the system that led when the policy was frozen; None when nobody did.
        cap: the largest bet gamma / W that the pair bound in force allows; inf if there is none.
        policy: version of the frozen policy (number of the batch of labels), from 0.
        wanted: whether the coin asks for a human label.
    """

    index: int
    context: int
    model: int
    item: int
    segment: int
    judge: float
    prediction: float
    propensity: float
    uniform: float
    coin: Coin
    leader: int | None
    cap: float
    policy: int
    wanted: bool
