"""What earlier attempts of this run already paid for, read from the log the host carries over."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample, EvalSampleSummary

from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.earlier_attempts import (
    handed_back,
    is_begun,
    not_handed_back,
)
from evalbudget_inspect.host.not_run import is_refused
from evalbudget_inspect.host.questions import asks_else, is_judged_else
from evalbudget_inspect.host.readings import PHASE
from evalbudget_inspect.host.score_values import kind_of
from evalbudget_inspect.host.scoring import METADATA, SHARE
from evalbudget_inspect.repeats.resume import PriorCell

_VARY = "EVALBUDGET_QUESTIONS_VARY"
"""Set by who wants answers to whatever a sample asks, since the task makes its questions at random."""
_NAMED = 3
"""Samples that a message names."""


def paid_attempts(sample: EvalSample) -> tuple[int, list[str]]:
    """How often the cell was run, in this and earlier attempts; and why attempts failed that were made again.

    These are paid with the last one that was made.
    """
    failed = sample.error_retries or []
    paid = len(failed) + (not is_refused(sample.metadata))
    return paid, [kind_of(each.message) for each in failed[: max(0, paid - 1)]]


def is_from_cache(sample: EvalSample) -> bool:
    """Whether all that the evaluated model said in a sample came out of the host's cache."""
    calls = [event for event in sample.events if isinstance(event, ModelEvent) and event.role is None]
    return bool(calls) and all(call.cache == "read" for call in calls)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier attempts left.

    Attributes:
        samples: that the host hands back, of items of the task.
        cells: the same, as the purchase knows them.
        scored: how many samples the host hands back that have scores.
        lost: how often samples were asked whose answers cannot be used, since the task has changed.
        warning: that says so; empty for none.
    """

    samples: list[EvalSampleSummary]
    cells: list[PriorCell]
    scored: int
    lost: int
    warning: str


async def what_is_left(run: Run, items: Collection[str]) -> Earlier:
    """What earlier attempts left to one that goes on, before it has done anything.

    Args:
        run: that goes on.
        items: of the task.
    """
    found = await handed_back(run)
    samples = [summary for summary in found if str(summary.id) in items]
    gone = [summary for summary in found if str(summary.id) not in items]
    left_out = await not_handed_back(run)
    scored = sum(bool(summary.scores) for summary in found)
    lost = sum(_paid_for(summary) for summary in (*gone, *left_out))
    cells = [_prior(each) for each in samples]
    return Earlier(samples, cells, scored, lost, _warning(gone, left_out, items))


def refuse_other_task(
    samples: Sequence[EvalSampleSummary], task_sample: Callable[[str], Sample], score: str
) -> list[str]:
    """Refuse to go on where answers of earlier attempts are to other questions, or scored by other scorers.

    Args:
        samples: of these attempts, of items of the task.
        task_sample: the task's own sample of an id.
        score: name of the scorer that decides.

    Returns:
        What to warn of.

    Raises:
        InvalidInputError: the task is another one now.
    """
    warnings: list[str] = []
    answered = [s for s in samples if s.error is None and not is_refused(s.metadata)]
    changed = _ids_of(s for s in answered if asks_else(s, task_sample(str(s.id))))
    if changed:
        told = (
            f"{len(changed):,} of the {len(_ids_of(answered)):,} samples that earlier attempts answered ask "
            f"something else now ({_listed(changed)})"
        )
        if not os.environ.get(_VARY):
            raise InvalidInputError(
                f"{told}, and their answers are none to the new questions. Give the task their input and "
                "choices back, or begin another run in another log folder. Where the task makes them at "
                f"random each time it is loaded, and answers to any of them count, set {_VARY}=1 and run "
                "this again"
            )
        warnings.append(f"{told}; answers to both count, as {_VARY} says")
    scored = [s for s in answered if s.scores]
    if scored and not any(score in (s.scores or {}) for s in scored):
        names = dict.fromkeys(name for s in scored for name in s.scores or {})
        raise InvalidInputError(
            f"none of the {len(scored):,} samples that earlier attempts scored has a score from {score!r}, "
            f"which decides here: they were scored by {' and '.join(map(repr, names))}. Give that scorer its "
            "name, and its place before other scorers, back; or begin another run in another log folder"
        )
    told_already = set(changed)
    same = (s for s in answered if str(s.id) not in told_already)
    judged = _ids_of(s for s in same if is_judged_else(s, task_sample(str(s.id))))
    if judged:
        warnings.append(
            f"{_samples(judged)} that earlier attempts answered {'has' if len(judged) == 1 else 'have'} "
            f"another target now ({_listed(judged)}); inspect does not score answers again, and scores stand "
            "as they are. To judge all by the new targets, begin another run in another log folder"
        )
    return warnings


def _ids_of(samples: Iterable[EvalSampleSummary]) -> list[str]:
    return list(dict.fromkeys(str(summary.id) for summary in samples))


def _samples(ids: Sequence[str]) -> str:
    return "1 sample" if len(ids) == 1 else f"{len(ids):,} samples"


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (", ..." if len(ids) > _NAMED else "")


def _warning(
    gone: Sequence[EvalSampleSummary], left_out: Sequence[EvalSampleSummary], items: Collection[str]
) -> str:
    paid = [summary for summary in (*gone, *left_out) if _paid_for(summary)]
    if not paid:
        return ""
    named = _ids_of(summary for summary in paid if str(summary.id) not in items)
    unknown = sum(str(summary.id) not in items for summary in paid)
    why = []
    if named:
        why.append(f"{unknown:,} of samples that the task no longer has ({_listed(named)})")
    if rest := len(paid) - unknown:
        why.append(
            f"{rest:,} that inspect does not hand back (it hands back those of the log that it goes on from "
            "that nobody marked as invalid, and none where samples without ids were shuffled or the number "
            "of samples has changed, unless samples with ids were added)"
        )
    answers = "1 answer" if len(paid) == 1 else f"{len(paid):,} answers"
    return (
        f"earlier attempts paid for {answers} that this run cannot use: {' and '.join(why)}. "
        "They count as spent, and not for the estimate. If samples were taken away or renamed: to use "
        "their answers, stop this run, give the task its samples back, and go on from the log that has them"
    )


def _paid_for(summary: EvalSampleSummary) -> int:
    return _prior(summary).attempts


def _prior(summary: EvalSampleSummary) -> PriorCell:
    # what was cut off on its way is paid for among the samples begun, and here only if it runs again
    unpaid = is_refused(summary.metadata) or is_begun(summary)
    key = (str(summary.id), summary.epoch)
    entries = [(score.metadata or {}).get(METADATA) for score in (summary.scores or {}).values()]
    judge = next((str(e["judge"]) for e in entries if isinstance(e, Mapping) and "judge" in e), None)
    share = summary.metadata.get(SHARE)
    phase = share.get(PHASE) if isinstance(share, Mapping) else None
    return PriorCell(key, (summary.retries or 0) + (not unpaid), summary.error is not None, judge, phase)
