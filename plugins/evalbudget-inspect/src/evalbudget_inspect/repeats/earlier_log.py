"""What earlier attempts of this run already paid for, read from the log the host carries over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inspect_ai.log import EvalSample, EvalSampleSummary, read_eval_log_sample_summaries_async
from inspect_ai.scorer import Score

from evalbudget_inspect.host.private import is_cancellation_message
from evalbudget_inspect.host.readings import WEIGHT
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.repeats.resume import PriorCell

Counts = Callable[[Mapping[str, Score]], bool]

NOT_RUN_AGAIN = "failed before and the budget is used up: not run again"


def refuse(metadata: dict[str, Any]) -> None:
    """Mark a cell, in its sample's metadata, as not run: neither solved nor scored, and free of charge."""
    metadata[METADATA] = NOT_RUN_AGAIN


def is_refused(metadata: Mapping[str, Any]) -> bool:
    """Whether a cell is marked so."""
    return metadata.get(METADATA) == NOT_RUN_AGAIN


def paid_attempts(sample: EvalSample) -> int:
    """How often the cell was run, in this and earlier attempts."""
    return len(sample.error_retries or []) + (not is_refused(sample.metadata))


async def prior_summaries(log_location: str) -> list[EvalSampleSummary]:
    """What stands in the log before this run has done anything.

    The host copies the earlier attempt's samples into the new log before it starts, so this is empty on a
    first run and complete on a retry.
    """
    if not log_location:
        return []
    try:
        return await read_eval_log_sample_summaries_async(log_location)
    except FileNotFoundError:
        return []


async def prior_cells(log_location: str, *, counts: Counts) -> list[PriorCell]:
    """The cells among :func:`prior_summaries`.

    Args:
        log_location: of the log.
        counts: whether a sample's scores have one that the sampler was told; if not, the weight that its
            reading had was given to others.
    """
    return [_prior(summary, counts) for summary in await prior_summaries(log_location)]


def _prior(summary: EvalSampleSummary, counts: Counts) -> PriorCell:
    # what was cancelled in flight left no answer: like after a kill it runs again, and only that counts
    unpaid = is_refused(summary.metadata) or is_cancellation_message(summary.error)
    key = (str(summary.id), summary.epoch)
    entries = [(score.metadata or {}).get(METADATA) for score in (summary.scores or {}).values()]
    ours = [entry for entry in entries if isinstance(entry, Mapping)]
    judge = next((str(e["judge"]) for e in ours if "judge" in e), None)
    scored = bool(summary.scores) and counts(summary.scores or {})
    share = next(({WEIGHT: e[WEIGHT]} for e in ours if WEIGHT in e), {}) if scored else {}
    return PriorCell(key, (summary.retries or 0) + (not unpaid), summary.error is not None, judge, share)
