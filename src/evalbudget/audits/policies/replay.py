"""Gives an audit's verdict again from what a store keeps: settings, draws and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from evalbudget.audits.draw import AuditDraw
from evalbudget.audits.policies.config import AuditConfig
from evalbudget.audits.policies.session import AuditSession
from evalbudget.audits.policies.verdict import Verdict
from evalbudget.errors import InvalidInputError, ReplayError


def rebuild(config: AuditConfig, draws: Iterable[AuditDraw], labels: Mapping[int, float]) -> AuditSession:
    """The session that made these draws and got these labels, ready to go on.

    Args:
        config: settings, the seed among them.
        draws: all of them, in any order; of the last batch perhaps only some contexts.
        labels: by index of the draw, in [0, 1]; nan for one that will never come.

    Raises:
        ReplayError: config, seed and labels lead to other draws than these.
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
    session = AuditSession(config)
    checked = 0
    while not session.over:
        batch = session.policy.batch
        for position, context in enumerate(session.contexts):
            found = by_context.get(context.number)
            if found is None or session.policy.batch is not batch or session.over:
                continue
            if tuple(d.model for d in found) != context.models or found[0].item != context.item:
                raise _other(found[0])
            if context.judged:
                session.judge(position, np.array([d.judge for d in found]))
        for draw in session.draws[checked:]:
            _compare(kept.get(draw.index), draw)
        checked = len(session.draws)
        for index in session.wanted if session.policy.batch is batch else ():
            if index in labels and session.policy.batch is batch:
                session.label(index, labels[index])
        if session.policy.batch is batch:
            break  # the rest has not been judged or labelled yet
    if session.over:
        session.paid_besides(kept.values(), labels)
    return session


def replay(config: AuditConfig, draws: Iterable[AuditDraw], labels: Mapping[int, float]) -> Verdict:
    """The verdict of :func:`rebuild`; arguments and errors as there."""
    return rebuild(config, draws, labels).verdict()


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
