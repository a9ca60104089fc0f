"""What samplers share that prove who is the best: paired e-values, contenders read together."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

import numpy as np

from evalbudget._fields import percent
from evalbudget.design import Design
from evalbudget.missing import Missing
from evalbudget.races.samplers._base import RacingOptions, RacingSampler
from evalbudget.races.samplers._rounds import Note, Round, Stop, Table
from evalbudget.sampler import Option
from evalbudget.statistics._best_proof import BestProof, check_delta

LEAST = 4  # items that contenders read at a time
_SHARE = 32  # of the items read before, one in so many at a time


class ProofOptions(RacingOptions, total=False):
    """What every proving sampler takes besides its own arguments; see :class:`ProvingSampler`."""

    delta: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Proving(Note):
    """The proof, as far as all contenders have come; None before the anchors are read."""

    proof: BestProof | None = None


class ProvingSampler(RacingSampler):
    """Knows what :class:`~evalbudget.statistics._best_proof.BestProof` makes of the scores, item by item.

    The proof goes along the shared order and takes an item in once every contender has read it, or failed on
    it for good, whoever asked for it and why. So it may be looked at at any moment, and steering as one likes
    costs it nothing but cells. A cell that was given up counts as ``missing`` says: by default the worst for
    what is to be proved, so that failures prove nothing. Models that the proof drops leave the race when the
    round is finished. When a model is lost, for reasons that its scores have nothing to do with, the proof
    begins anew with those left, on the scores there are: whom only the lost one had ruled out is in the race
    again. ``delta`` then is of naming a wrong one of those left.

    Args:
        delta: probability that a model is named as the only best which is not.
        common: see RacingSampler.

    Raises:
        InvalidInputError: delta is no probability; see also RacingSampler.
    """

    note_kinds: ClassVar[tuple[type, ...]] = (Proving, BestProof, Missing)

    def __init__(
        self,
        design: Design,
        *,
        delta: float = 0.05,
        batch: int = LEAST,
        options: Mapping[str, Option] = MappingProxyType({}),
        **common: Unpack[RacingOptions],
    ) -> None:
        self.delta = check_delta(delta)
        super().__init__(design, batch=batch, options={**options, "delta": delta}, **common)
        self._seen: tuple[Any, BestProof | None] = (None, None)  # as last looked at, and whom it is about

    # what hosts may look at

    @property
    def proof(self) -> BestProof | None:
        """The proof, as far as all contenders have come; None before the anchors are read."""
        table, note = self._now()
        about, (seen_about, seen) = (note.n_anchors, note.lost.tolist()), self._seen
        if seen_about != about or seen is None or (note.proof is not None and seen.read < note.proof.read):
            seen = note.proof
        self._seen = about, self.advanced(table, note.but(proof=seen))
        return self._seen[1]

    @property
    def proved_worse(self) -> frozenset[int]:
        """Models that the proof has dropped."""
        proof = self.proof
        dropped = [] if proof is None else np.flatnonzero(proof.dropped_at >= 0).tolist()
        return frozenset(dropped) - self.lost

    @property
    def proved_error(self) -> float:
        """Half of delta; the other half is for ties: see :mod:`evalbudget.statistics._best_proof`."""
        return self.delta / 2.0

    def leader(self) -> int:
        """The model that is proved the best, or else the one that the policy would name."""
        proof = self.proof
        winner = None if proof is None else proof.winner
        return super().leader() if winner is None else winner

    # what an author may use

    def resumed(self, table: Table, last: Any) -> Any:
        """As of every racing sampler; whom only a lost model had ruled out is back in the race."""
        before = self.start() if last is None else last
        note = super().resumed(table, before)
        if note is before:
            return note
        is_lost = note.lost | table.is_withdrawn
        return self.begun_anew(
            table, note.leaving(np.flatnonzero(is_lost).tolist(), table.asked).but(lost=is_lost)
        )

    def begun_anew(self, table: Table, note: Any) -> Any:
        """Prove who is best of those that are left, from the scores there are.

        Whom the proof had dropped is back in the race, unless the new one drops it as well.
        """
        proof = self.advanced(table, note.but(proof=None))
        back = ~note.is_in & ~note.lost
        if proof is not None:
            back &= proof.dropped_at < 0
        return note.but(proof=proof, left_at=np.where(back, -1, note.left_at))

    def without_dropped(self, table: Table, note: Any) -> Any:
        """The same once those have left whom the proof has dropped."""
        proof: BestProof | None = note.proof
        if proof is None:
            return note
        return note.leaving(np.flatnonzero(proof.dropped_at >= 0).tolist(), table.asked)

    def proving(self, table: Table, note: Any, batch: int) -> Round | Stop:
        """The next items of all contenders."""
        left, proof = note.remaining, note.proof
        if not left.size:
            return Stop("every model was given up after repeated failures", note)
        if left.size == 1:
            proved = int(note.lost.sum()) < self._n_models - 1
            reason = (
                f"proved, with {percent(1.0 - self.delta)} confidence" if proved else "only one model is left"
            )
            return Stop(reason, note)
        if proof.tied:
            return Stop("proved: the models left have exactly the same score on all items", note)
        if proof.exhausted:
            return Stop("every cell of the models in the race was read or closed", note)
        models = proof.contenders
        end = note.n_anchors + proof.read + self.ahead(proof, batch)
        counts = np.maximum(end - table.drawn[models], 0)
        return self.next_items(table, note, models[counts > 0], counts[counts > 0])

    def ahead(self, proof: BestProof, batch: int) -> int:
        """How many items contenders read next."""
        return max(batch, proof.read // _SHARE)

    def advanced(self, table: Table, note: Any) -> BestProof | None:
        """The proof of the note, with the items that all contenders have settled since."""
        k, order = note.n_anchors, self.order(0, note)
        proof: BestProof | None = note.proof
        if proof is None:
            if not table.settled(note.remaining[:, None], order[:k]).all():
                return None
            proof = BestProof(
                self._n_models,
                self._n_items - k,
                delta=self.delta,
                known=table.scores(np.arange(self._n_models)[:, None], order[:k]),
                among=np.flatnonzero(~note.lost).tolist(),
                missing=self.missing,
            )
        everyone = np.arange(self._n_models)
        while not proof.decided:
            item = int(order[k + proof.read])
            if not table.settled(proof.contenders, item).all():
                break
            if proof is note.proof:
                proof = copy(proof)
            proof.update(table.scores(everyone, item))
        return proof
