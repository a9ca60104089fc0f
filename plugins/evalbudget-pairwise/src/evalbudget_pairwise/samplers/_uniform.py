"""uniform: every pair as often as any other."""

from __future__ import annotations

from evalbudget.cells import Stop
from evalbudget_pairwise.samplers._base import Note, PairSampler, Round, Table


class UniformPairs(PairSampler):
    """All pairs side by side, a batch of each at a time: what one does without a sampler."""

    name = "uniform"

    def plan(self, table: Table, last: Note | None) -> Round | Stop:
        """A batch of every pair that has comparisons left."""
        note = self.looked(table, last) if self.until_proved else Note.start(self.n_models)
        if reason := self.why_over(table, note):
            return Stop(reason)
        return Round(dict.fromkeys(table.open, self.batch), note)
