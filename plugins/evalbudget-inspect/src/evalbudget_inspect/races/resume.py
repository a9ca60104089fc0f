"""What earlier attempts of a race paid for, read from the logs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from inspect_ai.dataset import Sample
from inspect_ai.log import (
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log_async,
    read_eval_log_sample_summaries_async,
)

from evalbudget.races import KnownCell
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.earlier_attempts import is_begun
from evalbudget_inspect.host.not_run import is_refused
from evalbudget_inspect.host.score_values import in_range, kind_of, score_to_float, why_unscored
from evalbudget_inspect.repeats.earlier_log import refuse_other_task

logger = shown_logger(__name__)

Score = tuple[str, str | None]


def known_cells(
    samples: Sequence[EvalSampleSummary], lost: int, score: Score, bounds: tuple[float, float]
) -> list[KnownCell]:
    """The cells of an arm's earlier attempts.

    Args:
        samples: of them.
        lost: how often they asked others, whose answers cannot be used: as one cell of no item.
        score: that decides.
        bounds: of it.
    """
    known = [_known(summary, score, bounds) for summary in samples]
    return [*known, KnownCell(("", 0), None, lost)] if lost else known


async def finished_elsewhere(
    run: Run,
    labels: Mapping[str, str],
    score: Score,
    bounds: tuple[float, float],
    *,
    present: Mapping[tuple[str, str], Mapping[str, Sample]],
) -> dict[tuple[str, str], list[KnownCell]]:
    """What arms of this race answered that the eval-set does not run again, since their tasks had ended well.

    Args:
        run: of one that it runs.
        labels: of each task of the race, by task name.
        score: that decides.
        bounds: of it.
        present: samples that each arm may be asked which it runs, by label and model.

    Raises:
        InvalidInputError: what they answered is not what their task asks now.
    """
    pools = {label: pool for (label, _), pool in present.items()}
    folder = str(PurePosixPath(run.log_location).parent)
    found: dict[tuple[str, str], list[KnownCell]] = {}
    for info in list_eval_logs(folder, descending=True):
        header = await read_eval_log_async(info, header_only=True)
        spec = header.eval
        if header.status != "success" or spec.eval_set_id != run.spec.eval_set_id or spec.task not in labels:
            continue
        if spec.task_args_passed != run.spec.task_args_passed:
            continue
        identity = (labels[spec.task], spec.model)
        if identity not in present and identity not in found:
            summaries = await read_eval_log_sample_summaries_async(info)
            pool = pools.get(identity[0], {})
            of_pool = [summary for summary in summaries if str(summary.id) in pool]
            for warning in refuse_other_task(of_pool, pool.__getitem__, score[0]):
                logger.warning(warning)
            found[identity] = known_cells(summaries, 0, score, bounds)
    return found


def _known(summary: EvalSampleSummary, score: Score, bounds: tuple[float, float]) -> KnownCell:
    key = (str(summary.id), summary.epoch)
    retries, sample = summary.retries or 0, summary.uuid or ""
    if is_begun(summary):
        return KnownCell(key, None, retries, again=True, sample=sample)
    if is_refused(summary.metadata):  # the error it stands for is among its retries
        return KnownCell(key, None, retries, error="failed in an earlier run", sample=sample)
    entry = (summary.scores or {}).get(score[0])
    value = math.nan if entry is None else score_to_float(entry, *score)
    if not in_range(value, bounds):
        error = "unscored" if entry is None or not math.isnan(value) else why_unscored(entry, score[1])
        error = error if summary.error is None else kind_of(summary.error)
        return KnownCell(key, None, retries + 1, error=error, sample=sample)
    return KnownCell(key, value, retries + 1, sample=sample)
