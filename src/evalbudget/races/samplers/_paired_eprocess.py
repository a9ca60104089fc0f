"""paired-eprocess: contenders read the same items until all but one are proved not to be the best."""

from __future__ import annotations

from typing import Unpack

from evalbudget.design import Design
from evalbudget.races.samplers._proof_base import LEAST, ProofOptions, Proving, ProvingSampler
from evalbudget.races.samplers._rounds import Round, Stop, Table


class PairedEProcess(ProvingSampler):
    """Fixed confidence, as LUCB, with a fifth to a third of its readings.

    Everybody in the race reads the next items of one random order. Against each model runs an e-process, bet
    on the difference from whoever leads it most clearly; a model leaves when its own reaches 2 / delta, or
    when the items left cannot make up for what it lacks. One left: it is proved the best. Items used up:
    means are exact, and those left are exactly tied. See :mod:`evalbudget.statistics._best_proof` for the
    guarantee, which holds at any moment, so that a budget may end the race anywhere.

    Args:
        batch: items that everybody in the race reads at a time, or one in 32 of those read so far if that is
            more.
        common: see ProvingSampler.

    Raises:
        InvalidInputError: delta is no probability; see also RacingSampler.
    """

    name = "paired-eprocess"
    _common = ProofOptions

    def __init__(self, design: Design, *, batch: int = LEAST, **common: Unpack[ProofOptions]) -> None:
        super().__init__(design, batch=batch, **common)

    def plan(self, table: Table, last: Proving | None) -> Round | Stop:
        """The next items of all contenders."""
        note = self.resumed(table, last)
        note = note.but(proof=self.advanced(table, note))
        return self.proving(table, self.without_dropped(table, note), self.batch)
