"""What samplers share that prove who is the best: paired e-values, contenders read together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.races.samplers._base import RacingOptions, RacingSampler, Step
from evalbudget.sampler import Option
from evalbudget.statistics._best_proof import BestProof, check_delta

LEAST = 4  # items that contenders read at a time
_SHARE = 32  # of the items read before, one in so many at a time


class ProofOptions(RacingOptions, total=False):
    """What every proving sampler takes besides its own arguments; see :class:`ProvingSampler`."""

    delta: float


class ProvingSampler(RacingSampler):
    """Knows what :class:`~evalbudget.statistics._best_proof.BestProof` makes of the scores, item by item.

    The proof goes along the shared order and takes an item in once every contender has read it, or failed on
    it for good, whoever asked for it and why. So it may be looked at at any moment, and steering as one likes
    costs it nothing but cells. A cell that was given up counts as ``missing`` says: by default the worst for
    what is to be proved, so that failures prove nothing. Models that the proof drops leave the race when the
    step is finished. When a model is lost, for reasons that its scores have nothing to do with, the proof
    begins anew with those left, on the scores there are: whom only the lost one had ruled out is in the race
    again. ``delta`` then is of naming a wrong one of those left.

    Args:
        delta: probability that a model is named as the only best which is not.
        common: see RacingSampler.

    Raises:
        InvalidInputError: delta is no probability; see also RacingSampler.
    """

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
        self._proof: BestProof | None = None
        self._gone: set[int] = set()  # withdrawn, also when the proof had dropped them before

    @property
    def proof(self) -> BestProof | None:
        """The proof, as far as all contenders have come; None before the anchors are read."""
        self._wrap_up()
        return self._advance()

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
        self._wrap_up()
        proof = self._advance()
        winner = None if proof is None else proof.winner
        return super().leader() if winner is None else winner

    def withdraw(self, model: int) -> None:
        """See RacingSampler; whom only this model had ruled out is back in the race."""
        self._gone.add(model)
        super().withdraw(model)

    def _lose(self, model: int) -> None:
        if not self._in[model]:
            return
        super()._lose(model)
        self._lost |= self._gone
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Prove who is best of those that are left, from the scores there are.

        Whom the proof had dropped is back in the race, unless the new one drops it as well.
        """
        self._proof = None
        proof = self._advance()
        for other in set(self._eliminated) - self._lost:
            if proof is None or proof.dropped_at[other] < 0:
                self._in[other] = True
                del self._eliminated[other]

    def _finished(self, step: Step) -> None:
        self._drop()

    def _drop(self) -> None:
        """Let those leave whom the proof has dropped."""
        proof = self._advance()
        if proof is not None:
            for model in np.flatnonzero(proof.dropped_at >= 0).tolist():
                self._leave(model)

    def _prove(self, batch: int) -> Step | None:
        """The next items of all contenders; None after setting ``stop_reason``."""
        left = self._remaining()
        proof = self._advance() if left.size else None
        if not left.size:
            self.stop_reason = "every model was given up after repeated failures"
        elif left.size == 1:
            proved = len(self._lost) < self._n_models - 1
            self.stop_reason = (
                f"proved, with {1.0 - self.delta:.0%} confidence" if proved else "only one model is left"
            )
        elif proof is not None and proof.tied:
            self.stop_reason = "proved: the models left have exactly the same score on all items"
        elif proof is not None and proof.exhausted:
            self.stop_reason = "every cell of the models in the race was read or closed"
        if self.stop_reason is not None or proof is None:
            return None
        models = proof.contenders
        ahead = max(batch, proof.read // _SHARE)
        counts = np.maximum(self._n_anchors + proof.read + ahead - self._drawn[models], 0)
        return self._draw(models[counts > 0], counts[counts > 0])

    def _advance(self) -> BestProof | None:
        k = self._n_anchors
        order = self._order(0)
        if self._proof is None:
            if (~self._settled(self._remaining(), order[:k])).any():
                return None
            known = np.stack([self._scores_at(model, order[:k]) for model in range(self._n_models)])
            among = set(range(self._n_models)) - self._lost
            pool = self._n_items - k
            self._proof = BestProof(
                self._n_models, pool, delta=self.delta, known=known, among=among, missing=self.missing
            )
        proof = self._proof
        while not proof.decided:
            item = order[k + proof.read : k + proof.read + 1]
            if not self._settled(proof.contenders, item).all():
                break
            proof.update(self._scores_on(int(item[0])))
        return proof
