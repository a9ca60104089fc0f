"""What an audit says: who is the best, why, how sure, and what deciding the rest would cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evalbudget.audits.policies._eprocess_state import EProcess
from evalbudget.audits.policies._second_pass import SecondPass
from evalbudget.audits.policies._verdict import DECIDED, AuditOutcome, ModelEstimate


def outcome(
    process: EProcess, found: tuple[ModelEstimate, ...], awaited: int
) -> tuple[AuditOutcome, int | None, str]:
    """What is decided, the system it names, and why.

    Args:
        process: what was drawn and labelled.
        found: the estimates.
        awaited: labels that were asked for and are missing.
    """
    c, second = process.config, process.second
    active = np.flatnonzero(process.active).tolist()
    sure = f"with probability {1.0 - c.delta:g}"
    where = "on items like these" if second is None else f"on these {c.n_items:,} items"
    if c.n_models > 1 and len(active) == 1:
        if second is None:
            return AuditOutcome.BEST, active[0], f"better than every other system {where}, {sure}"
        return AuditOutcome.BEST, active[0], _won(second, where, sure)
    if process.narrow:
        if second is not None and second.complete(0):
            reason = "every item is labelled: the mean is exact, for these items"
        else:
            about = "items like these" if second is None else f"these {c.n_items:,} items"
            reason = f"the interval of the mean over {about} is as narrow as wanted, {sure}"
        return AuditOutcome.ESTIMATED, active[0], reason
    if process.near is not None:
        reason = f"no system is better than this one by {c.margin:g} or more {where}, {sure}"
        return AuditOutcome.EQUIVALENT, process.near, reason
    if second is not None:
        return _used_up(process, second, found, active)
    if process.batch is not None:
        reason = (
            f"{awaited} label{'s' * (awaited > 1)} wanted" if awaited else "the judge's scores are awaited"
        )
        return AuditOutcome.UNDECIDED, None, reason
    return AuditOutcome.UNDECIDED, None, _out_of_labels(process)


def _won(second: SecondPass, where: str, sure: str) -> str:
    """Why a system is the best of this pool."""
    out = int((~second.contenders).sum())
    if not second.certain.all():
        reason = f"better than every other system {where}, {sure}"
    elif all(second.complete(k) for k in np.flatnonzero(second.contenders).tolist()):
        whose = "the systems left" if out else "every system"
        reason = f"exact: every answer of {whose} is labelled, and its mean label {where} is the best"
    else:
        reason = f"exact: whatever the labels not given would be, its mean label {where} is the best"
    if out:
        many = f"{out} systems were" if out > 1 else "1 system was"
        reason += f"; {many} ruled out before, as worse on items like these, {sure}"
    return reason


def _used_up(
    process: EProcess, second: SecondPass, found: tuple[ModelEstimate, ...], active: list[int]
) -> tuple[AuditOutcome, int | None, str]:
    """Every item is drawn, and nothing is proved yet."""
    c, more = process.config, second.wanted
    drawn = f"all {c.n_items:,} items are drawn"
    if more == 0 and all(second.complete(k) for k in active) and c.n_models > 1:
        reason = f"{len(active)} systems have exactly equal means on these {c.n_items:,} items"
        if not (second.contenders.all() and second.certain.all()):
            reason += f"; the others were ruled out with probability {1.0 - c.delta:g}"
        return AuditOutcome.TIE, None, reason
    if c.n_models == 1:
        wide = (found[0].high - found[0].low) / 2.0
        open_ = f"the half-width is {wide:.3g}, not yet {c.half_width:g}"
    else:
        open_ = f"{len(active)} systems may still be the best"
    if more == 0:
        return (
            AuditOutcome.UNDECIDED,
            None,
            f"{drawn}, labels that were asked for never came, and {open_}",
        )
    price = (
        f"at most {more:,} more label{'s' * (more > 1)}, {c.label_price * more:,.6g} at "
        f"{c.label_price:g} each"
    )
    if process.batch is not None:
        whose = "its" if c.n_models == 1 else "their"
        what = f"a second pass labels {whose} other answers until it is decided"
    elif process.out_of_labels:
        drawn, what = f"{_out_of_labels(process)}; {drawn}", "a second pass would decide it"
    else:
        what = "a second pass would decide it (second_pass=true)"
    return AuditOutcome.UNDECIDED, None, f"{drawn} and {open_}; {what}: {price}"


def _out_of_labels(process: EProcess) -> str:
    used, most = process.labels, process.config.max_labels
    allowed = f"{most} labels allowed are used up"
    if used == most:
        return f"all {allowed}"
    return f"{used} of the {allowed}, and the next item needs more than are left"


def intervals_in_words(process: EProcess, found: tuple[ModelEstimate, ...]) -> str:
    """What the intervals are, in a sentence."""
    c = process.config
    level = f"{100 * (1 - c.delta):.6g}% intervals, anytime"
    level += "" if c.n_models == 1 else ", for all systems at once"
    if process.second is None:
        return f"{level}, of the mean over items like these; complete batches only"
    mixed = not all(each.of_pool for each in found)
    return (
        f"{level}, of the mean over these {c.n_items:,} items"
        + ", or over items like these for systems that were out before the second pass" * mixed
        + "; without width where every answer is labelled"
    )


def of_pool(process: EProcess, found: AuditOutcome) -> dict[str, Any]:
    """What the verdict says of this pool, and of a second pass through it."""
    second, c = process.second, process.config
    if second is None:
        return {}
    more = second.wanted if found is AuditOutcome.UNDECIDED else 0
    # labels settle it among the systems left after the first pass, without any probability
    settled = second.complete(0) if c.n_models == 1 else process.near is None and bool(second.certain.all())
    return {
        "pool_used_up": True,
        "exact": found in DECIDED and settled,
        "second_pass_labels": more,
        "second_pass_cost": c.label_price * more,
    }


def estimates(process: EProcess, judge_means: Sequence[float]) -> tuple[ModelEstimate, ...]:
    """What is known of each system's mean label.

    Args:
        process: what was drawn and labelled.
        judge_means: of each system, over what it was judged on.
    """
    K = process.config.n_models
    total, seen, labels = np.zeros(K), np.zeros(K), np.zeros(K)
    for drawn, label in process.past:
        n, arms, z = len(label), drawn.batch.arms, drawn.z(label)
        total[arms] += ((z.low + z.high) / 2.0).sum(axis=0)
        seen[arms] += n
        labels[arms] += (drawn.wanted[:n] & ~np.isnan(label)).sum(axis=0)
    second = process.second
    means = second.estimates() if second is not None else None
    found = []
    for k in range(K):
        low, high = process.interval(k)
        value = total[k] / seen[k] if seen[k] else math.nan
        if second is not None and means is not None and second.contenders[k]:
            value = means[k]
            labels[k] += second.labels[k]
        if seen[k]:  # corrected by few labels it may leave the scale
            value = min(max(value, low), high)
        found.append(
            ModelEstimate(
                model=k,
                value=float(value),
                low=low,
                high=high,
                judged=int(seen[k]),
                labels=int(labels[k]),
                judge_mean=judge_means[k],
                active=bool(process.active[k]),
                of_pool=second is not None and bool(second.contenders[k]),
            )
        )
    return tuple(found)
