"""What earlier attempts of a race paid for, read from the logs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from inspect_ai.log import (
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log_async,
    read_eval_log_sample_summaries_async,
)

from evalbudget.races import KnownCell
from evalbudget_inspect.host.attempt_notes import Note
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.earlier_attempts import handed_back, is_begun, paid_for_nothing_of
from evalbudget_inspect.host.score_values import in_range, kind_of, score_to_float, why_unscored
from evalbudget_inspect.repeats.earlier_log import is_refused

Score = tuple[str, str | None]


async def known_cells(run: Run, score: Score, bounds: tuple[float, float]) -> list[KnownCell]:
    """The cells of an arm's earlier attempts that the host hands back."""
    return [_known(summary, score, bounds) for summary in await handed_back(run)]


@dataclass(frozen=True, slots=True)
class Finished:
    """An arm whose task has ended and is not run again.

    Attributes:
        known: what it answered.
        unread: what earlier attempts paid for that is in no log.
    """

    known: list[KnownCell]
    unread: Note


async def finished_elsewhere(
    run: Run,
    labels: Mapping[str, str],
    score: Score,
    bounds: tuple[float, float],
    *,
    present: set[tuple[str, str]],
) -> dict[tuple[str, str], Finished]:
    """Arms of this race that the eval-set does not run again, since their tasks had ended well."""
    folder = str(PurePosixPath(run.log_location).parent)
    found: dict[tuple[str, str], Finished] = {}
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
            known = [_known(summary, score, bounds) for summary in summaries]
            found[identity] = Finished(known, await paid_for_nothing_of(folder, spec.task_id))
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
