"""paired-eprocess: contenders read the same items until all but one are proved not to be the best."""

from __future__ import annotations

from evalbudget.design import Design
from evalbudget.races.samplers._base import Step
from evalbudget.races.samplers._proof_base import LEAST, ProvingSampler


class PairedEProcess(ProvingSampler):
    """Fixed confidence, as LUCB, with a fifth to a third of its readings.

    Everybody in the race reads the next items of one random order. Against each model runs an e-process, bet
    on the difference from whoever leads it most clearly; a model leaves when its own reaches 2 / delta, or
    when the items left cannot make up for what it lacks. One left: it is proved the best. Items used up:
    means are exact, and those left are exactly tied. See :mod:`evalbudget.statistics._best_proof` for the
    guarantee, which holds at any moment, so that a budget may end the race anywhere.

    Args:
        design: the models and items.
        delta: probability that a model is named as the only best which is not.
        batch: items that everybody in the race reads at a time, or one in 32 of those read so far if that is
            more.
        score_range: smallest and largest possible score.
        seed: of the order of items, and of ties.
        max_failures: see Sampler.

    Raises:
        InvalidInputError: delta is no probability; see also RacingSampler.
    """

    name = "paired-eprocess"

    def __init__(
        self,
        design: Design,
        *,
        delta: float = 0.05,
        batch: int = LEAST,
        score_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
        max_failures: int = 3,
    ) -> None:
        super().__init__(
            design,
            delta=delta,
            batch=batch,
            score_range=score_range,
            seed=seed,
            max_failures=max_failures,
        )

    def _plan(self) -> Step | None:
        return self._prove(self.batch)
