"""Ends a batch at the first judge score that its audit cannot use: nothing more is asked then."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSpec
from inspect_ai.scorer import SampleScore, Score, Scorer, Target
from inspect_ai.solver import TaskState
from inspect_ai.util import EarlyStop, EarlyStopping

from evalbudget.audits.store import Scale
from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import in_place_of


@dataclass
class ScaleWatch(EarlyStopping):
    """Looks at every score of the judge as it comes; models that answer side by side share one.

    The host asks it before every sample. Whoever reads the log refuses the score, and says the remedy.

    Attributes:
        found: what is wrong with a score; empty as long as all are good.
    """

    found: str = field(default="")

    def over(self, judge: Scorer, name: str, key: str | None, scale: Scale) -> Scorer:
        """The judge, watched; it is asked nothing more once one of its scores was no good."""

        async def score(state: TaskState, target: Target) -> Score | None:
            if self.found:
                return None
            given = await judge(state, target)
            if given is not None and not self.found:
                self.found = _fault(given, name, key, scale)
            return given

        return in_place_of(judge, score)

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Tell the host a name."""
        return "evalbudget"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002
        """Whether a sample is still to be asked."""
        return EarlyStop(id=id, epoch=epoch, reason=self.found) if self.found else None

    async def complete_sample(
        self,
        id: str | int,  # noqa: A002
        epoch: int,
        scores: dict[str, SampleScore],
    ) -> None:
        """Nothing to do: scores were seen when they came."""

    async def complete_task(self) -> dict[str, str]:  # type: ignore[override]
        """Nothing to tell."""
        return {}


def _fault(given: Score, name: str, key: str | None, scale: Scale) -> str:
    try:
        value = score_to_float(given, name, key, "--judge", strict=True)
    except InvalidInputError as ex:
        return str(ex)
    fits = math.isnan(value) or scale.low <= value <= scale.high
    return "" if fits else f"the judge gave {value:g}, and the audit's scale is {scale}"
