"""From what a store keeps to what it proves."""

from __future__ import annotations

from evalbudget.audits.policies import AuditConfig, AuditOutcome, ModelEstimate, Verdict, replay
from evalbudget.audits.store.scale import Scale
from evalbudget.audits.store.standing import ModelStanding, Stage, Standing
from evalbudget.audits.store.store import AuditStore
from evalbudget.errors import AuditStoreError, EvalbudgetError

POLICIES = ("audit-eprocess", "human-only")
"""What can be replayed from draws and labels."""


def config_of(store: AuditStore) -> AuditConfig:
    """Settings of a store's policy.

    Raises:
        AuditStoreError: another version or plugin wrote them, or they do not fit the names.
    """
    design = store.design
    if design.policy not in POLICIES:
        raise AuditStoreError(
            f"{store.path} was drawn by {design.policy!r}, which cannot be replayed from its draws; "
            f"verdicts are given for {' and '.join(POLICIES)}"
        )
    try:
        config = AuditConfig.from_json(design.config)
    except (EvalbudgetError, TypeError) as ex:
        raise AuditStoreError(f"{store.path} has settings this version cannot read: {ex}") from ex
    sizes = (config.n_models, config.n_items)
    if sizes != (len(design.models), len(design.items)) or config.n_segments > len(design.segments):
        raise AuditStoreError(
            f"{store.path} names {len(design.models)} systems, {len(design.items)} items and "
            f"{len(design.segments)} segments, but its settings are for {config.n_models}, {config.n_items} "
            f"and {config.n_segments}"
        )
    return config


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
        AuditStoreError: the store's settings cannot be read.
        ReplayError: its draws are not those that settings and labels lead to.
    """
    config = config_of(store)
    scale = store.design.scale
    with store.snapshot():
        draws, labels, progress = store.draws.all(), labels_of(store), store.progress()
    found = replay(config, draws, labels)
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
        interval=_interval(found, config),
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


def _interval(found: Verdict, config: AuditConfig) -> str:
    """What the intervals are, in a sentence."""
    level = f"{100 * (1 - config.delta):.6g}% intervals, anytime"
    level += "" if config.n_models == 1 else ", for all systems at once"
    if not found.pool_used_up:
        return f"{level}, of the mean over items like these; complete batches only"
    mixed = not all(each.of_pool for each in found.estimates)
    return (
        f"{level}, of the mean over these {config.n_items:,} items"
        + ", or over items like these for systems that were out before the second pass" * mixed
        + "; without width where every answer is labelled"
    )


def _model(name: str, found: ModelEstimate, scale: Scale) -> ModelStanding:
    if not found.judged:  # of complete batches
        return ModelStanding(name, None, None, None, found.active, 0)
    value, low, high = (scale.from_unit(x) for x in (found.value, found.low, found.high))
    return ModelStanding(name, value, low, high, found.active, found.labels)


def _stage(found: Verdict, wanted: tuple[int, ...]) -> Stage:
    if found.finished:
        return Stage.OVER if found.outcome is AuditOutcome.UNDECIDED else Stage.VERDICT
    return Stage.LABELS if wanted else Stage.DRAW
