"""From what a store keeps to what it proves."""

from __future__ import annotations

from evalbudget.audits.policies import AuditOutcome, AuditPolicy, ModelEstimate, Verdict, rebuild
from evalbudget.audits.store._scale import Scale
from evalbudget.audits.store._status import ModelStanding, Stage, Standing
from evalbudget.audits.store._store import AuditStore
from evalbudget.errors import (
    AuditStoreError,
    EvalbudgetError,
    InvalidInputError,
    ReplayError,
    UnknownNameError,
)
from evalbudget.hooks._plugins import plugins


def policy_of(store: AuditStore) -> AuditPolicy:
    """The policy that a store was begun with, before its first draw.

    Raises:
        AuditStoreError: no installed plugin has it, another version wrote its settings, or they do not fit
            the names.
    """
    design = store.design
    try:
        known = plugins().audit_policy(design.policy)
    except UnknownNameError as ex:
        raise AuditStoreError(
            f"{store.address} was drawn by {design.policy!r}, which cannot be replayed: no installed plugin "
            "has it (see: evalbudget plugins); install the one that does"
        ) from ex
    try:
        policy = known.of(design.config)
    except EvalbudgetError as ex:
        raise AuditStoreError(f"{store.address} has settings this version cannot read: {ex}") from ex
    policy.take_prices(store.judge_prices.all())
    config = policy.config
    sizes = (config.n_models, config.n_items)
    if sizes != (len(design.models), len(design.items)) or config.n_segments > len(design.segments):
        raise AuditStoreError(
            f"{store.address} names {len(design.models)} systems, {len(design.items)} items and "
            f"{len(design.segments)} segments, but its settings are for {config.n_models}, {config.n_items} "
            f"and {config.n_segments}"
        )
    return policy


def labels_of(store: AuditStore) -> dict[int, float]:
    """The labels that count, rescaled to [0, 1], by draw."""
    to_unit = store.design.scale.to_unit
    return {draw: to_unit(label.score) for draw, label in store.labels.counting().items()}


def still_wanted(store: AuditStore) -> tuple[int, ...]:
    """Draws whose label the verdict still waits for; all without a label where no verdict can be given.

    Once enough is known, the rest of a batch is not needed any more, though its coins asked for it.
    """
    try:
        return weigh(store).wanted
    except EvalbudgetError:
        return tuple(task.draw for task in store.draws.tasks(labelled=False))


def weigh(store: AuditStore) -> Standing:
    """Replay an audit: its verdict, on the scale of its labels, and what happens next.

    Raises:
        AuditStoreError: the store's settings, or a draw of it, cannot be read.
        ReplayError: its draws are not those that settings and labels lead to.
    """
    scale = store.design.scale
    with store.snapshot():
        draws, labels, progress = store.draws.all(), labels_of(store), store.progress()
    policy = policy_of(store)  # with the prices by which these were drawn, at least
    try:
        found = rebuild(policy, draws, labels).verdict()
    except ReplayError as ex:
        raise ReplayError(f"{store.address}: {ex}") from ex
    except InvalidInputError as ex:
        raise AuditStoreError(f"{store.address}: {ex}") from ex
    names = store.design.models
    there = {draw.index for draw in draws}
    wanted = tuple(index for index in found.labels_wanted if index in there)
    return Standing(
        stage=_stage(found, wanted),
        outcome=found.outcome.value,
        winner=None if found.winner is None else names[found.winner],
        leader=None if found.leader is None else names[found.leader],
        reason=found.reason,
        models=tuple(_model(names[e.model], e, scale) for e in found.estimates),
        interval=found.intervals,
        judge_says=None if found.judge_verdict is None else names[found.judge_verdict],
        cost=found.cost,
        wanted=wanted,
        progress=progress,
        command=store.command,
        pool_used_up=found.pool_used_up,
        exact=found.exact,
        second_pass_labels=found.second_pass_labels,
        second_pass_cost=found.second_pass_cost,
    )


def _model(name: str, found: ModelEstimate, scale: Scale) -> ModelStanding:
    if not found.judged:  # of complete batches
        return ModelStanding(name, None, None, None, found.active, 0)
    ends = (found.high, found.low) if scale.lower_is_better else (found.low, found.high)
    value, low, high = (scale.from_unit(x) for x in (found.value, *ends))
    return ModelStanding(name, value, low, high, found.active, found.labels)


def _stage(found: Verdict, wanted: tuple[int, ...]) -> Stage:
    if found.finished:
        return Stage.OVER if found.outcome is AuditOutcome.UNDECIDED else Stage.VERDICT
    return Stage.LABELS if wanted else Stage.DRAW
