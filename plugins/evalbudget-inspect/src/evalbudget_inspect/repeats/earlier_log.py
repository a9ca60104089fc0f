"""What earlier attempts of this run already paid for, read from the log the host carries over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.log import EvalSample, EvalSampleSummary

from evalbudget.run import Tally
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.earlier_attempts import handed_back, is_begun
from evalbudget_inspect.host.readings import PHASE
from evalbudget_inspect.host.score_values import kind_of
from evalbudget_inspect.host.scoring import METADATA, SHARE
from evalbudget_inspect.repeats.resume import PriorCell

NOT_RUN_AGAIN = "failed before and the budget is used up: not run again"
NOT_RUN = "the budget is used up by what a killed run had begun: not run"


def refuse(metadata: dict[str, Any], why: str = NOT_RUN_AGAIN) -> None:
    """Mark a cell, in its sample's metadata, as not run: neither solved nor scored, and free of charge."""
    metadata[METADATA] = why


def is_refused(metadata: Mapping[str, Any]) -> bool:
    """Whether a cell is marked so."""
    return metadata.get(METADATA) in (NOT_RUN_AGAIN, NOT_RUN)


def paid_attempts(sample: EvalSample) -> int:
    """How often the cell was run, in this and earlier attempts."""
    return len(sample.error_retries or []) + (not is_refused(sample.metadata))


def count_retries(tally: Tally, sample: EvalSample) -> None:
    """Count attempts that failed and were made again, which are paid with the last one that was made."""
    for failed in (sample.error_retries or [])[: max(0, paid_attempts(sample) - 1)]:
        tally.lose(0.0, kind_of(failed.message), calls=1.0)


async def prior_cells(run: Run) -> list[PriorCell]:
    """The cells of earlier attempts that the host hands back.

    Args:
        run: that goes on, before it has done anything.
    """
    return [_prior(summary) for summary in await handed_back(run)]


def _prior(summary: EvalSampleSummary) -> PriorCell:
    # what was cut off on its way is paid for among the samples begun, and here only if it runs again
    unpaid = is_refused(summary.metadata) or is_begun(summary)
    key = (str(summary.id), summary.epoch)
    entries = [(score.metadata or {}).get(METADATA) for score in (summary.scores or {}).values()]
    judge = next((str(e["judge"]) for e in entries if isinstance(e, Mapping) and "judge" in e), None)
    share = summary.metadata.get(SHARE)
    phase = share.get(PHASE) if isinstance(share, Mapping) else None
    return PriorCell(key, (summary.retries or 0) + (not unpaid), summary.error is not None, judge, phase)
