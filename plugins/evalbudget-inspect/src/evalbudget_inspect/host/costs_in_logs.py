"""What samples cost, as far as their logs and the bills beside them tell."""

from __future__ import annotations

import math
from pathlib import Path

from inspect_ai.log import EvalSampleSummary

from evalbudget.budget import Unit
from evalbudget.errors import EvalbudgetError
from evalbudget.run import spent_on
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.bill import counted, host_price

logger = shown_logger(__name__)


class PaidSamples:
    """Costs of samples in dollars.

    A sample of a run in money costs what the bill beside its log says, calls that were lost included. Any
    other costs what its providers said, or its usage by the prices that the host knows.
    """

    def __init__(self) -> None:
        self._billed: dict[Path, dict[str, float]] = {}

    def cost(self, summary: EvalSampleSummary, file: Path) -> float:
        """Of one sample, its answer, judges and tools together; nan where nobody knows.

        Args:
            summary: of the sample.
            file: the log it is in.
        """
        billed = self._bills_in(file.parent).get(summary.uuid or "")
        if billed is not None:
            return billed
        total = 0.0 if summary.model_usage else math.nan
        for model, usage in summary.model_usage.items():
            price = host_price(model)
            if usage.total_cost is not None:
                total += usage.total_cost
            else:
                total += math.nan if price is None else price.cost(counted(usage, 0.0))
        return total

    def _bills_in(self, folder: Path) -> dict[str, float]:
        if folder not in self._billed:
            found: dict[str, float] = {}
            for path in sorted(folder.glob(".evalbudget-*.bill")):
                try:
                    unit, costs = spent_on(path)
                except (EvalbudgetError, OSError) as ex:
                    logger.warning("evalbudget: %s tells nothing of what was paid: %s", path, ex)
                    continue
                found |= costs if unit is Unit.USD else {}
            self._billed[folder] = found
        return self._billed[folder]
