"""Brings a policy to where an audit is, from what a store keeps: settings, draws and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from evalbudget.audits._draw import AuditDraw
from evalbudget.audits.policies._policy import AuditPolicy
from evalbudget.errors import InvalidInputError, ReplayError

P = TypeVar("P", bound=AuditPolicy)


def rebuild(policy: P, draws: Iterable[AuditDraw], labels: Mapping[int, float]) -> P:
    """The policy as it was after these draws and labels, ready to go on.

    Args:
        policy: a fresh one, with the settings of the store.
        draws: all of them, in any order; of the last batch perhaps only some contexts.
        labels: by index of the draw, in [0, 1]; nan for one that will never come.

    Returns:
        The policy given.

    Raises:
        ReplayError: settings, seed and labels lead to other draws than these.
        InvalidInputError: a label of a draw that no coin asked for, or outside [0, 1].
    """
    kept = {draw.index: draw for draw in draws}
    for index in labels:
        draw = kept.get(index)
        if draw is None or not draw.wanted:
            raise InvalidInputError(
                f"draw {index} was never to be labelled; labels that no coin asked for would bias the verdict"
            )
    by_context: dict[int, list[AuditDraw]] = {}
    for index in sorted(kept):
        by_context.setdefault(kept[index].context, []).append(kept[index])
    checked = 0
    while not policy.over:
        contexts = policy.contexts
        for context in contexts:
            found = by_context.get(context.number)
            if found is None or policy.over:
                continue
            if tuple(d.model for d in found) != context.models or found[0].item != context.item:
                raise _other(found[0])
            if context.judged:
                policy.judge(context, np.array([d.judge for d in found]))
        for draw in policy.draws[checked:]:
            _compare(kept.get(draw.index), draw)
        checked = len(policy.draws)
        for index in policy.wanted:
            if index in labels:
                policy.label(index, labels[index])
        if policy.contexts[:1] == contexts[:1]:
            break  # the rest has not been judged or labelled yet
    if policy.over:
        policy.paid_besides(kept.values(), labels)
    return policy


def _compare(kept: AuditDraw | None, made: AuditDraw) -> None:
    if kept is None:
        return  # human-only batches draw themselves; a store may not have all of them yet
    same = all(
        getattr(kept, name) == getattr(made, name)
        for name in ("context", "model", "item", "wanted", "policy", "leader")
    )
    close = all(
        math.isclose(getattr(kept, name), getattr(made, name), rel_tol=1e-9, abs_tol=1e-12)
        for name in ("prediction", "propensity", "uniform")
    )
    if not (same and close):
        raise _other(kept)


def _other(draw: AuditDraw) -> ReplayError:
    return ReplayError(
        f"draw {draw.index} (item {draw.item}, system {draw.model}) is not the one that these settings, seed "
        "and labels lead to; the store belongs to another audit, or a label was changed after it was learned "
        "from"
    )
