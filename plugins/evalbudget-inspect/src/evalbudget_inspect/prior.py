"""What an earlier attempt of this run already paid for, read from the log the host carries over."""

from __future__ import annotations

from inspect_ai.log import read_eval_log_sample_summaries_async

from evalbudget_inspect.allocation import PriorCell


async def prior_cells(log_location: str) -> list[PriorCell]:
    """Cells standing in the log before this run has done anything.

    The host copies the earlier attempt's samples into the new log before it starts, so this is empty on a
    first run and complete on a retry.
    """
    if not log_location:
        return []
    try:
        summaries = await read_eval_log_sample_summaries_async(log_location)
    except FileNotFoundError:
        return []
    return [PriorCell((str(s.id), s.epoch), 1 + (s.retries or 0), s.error is not None) for s in summaries]
