"""The seam: an empty dynamic dataset per arm, which the race fills."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from inspect_ai import SampleSource
from inspect_ai.dataset import Dataset, Sample
from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score
from inspect_ai.solver import TaskState

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.bill import gave_up
from evalbudget_inspect.host.chosen_samples import chosen_samples
from evalbudget_inspect.host.current_run import Run, current_run
from evalbudget_inspect.host.interrupts import interrupts
from evalbudget_inspect.host.media import with_media
from evalbudget_inspect.host.models_asked import models_asked
from evalbudget_inspect.host.not_run import is_refused, refuse
from evalbudget_inspect.host.refusals import refused
from evalbudget_inspect.host.score_values import Seen, in_range, kind_of, why_unscored
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.host.sent_again import UNPAID, pay_by, was_unpaid
from evalbudget_inspect.races.arm import Arm, Group
from evalbudget_inspect.races.coordinator import Coordinator, coordinator_of
from evalbudget_inspect.races.resume import known_cells
from evalbudget_inspect.repeats.earlier_log import (
    paid_attempts,
    refuse_other_task,
    what_is_left,
)

logger = shown_logger(__name__)


@dataclass
class _Seat:
    """What a source keeps for one run of its task."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    arm: Arm | None = None
    coordinator: Coordinator | None = None
    scored: bool = False


class RaceSource(SampleSource):
    """Runs no sample by itself, then whatever the race asks of this arm.

    One source can serve several models at once: each run is an arm of its own, found by the run's context.

    Args:
        group: the race.
        label: of this task's setting; empty where models alone race.
        dataset: the task's samples, all with ids.
        models: that the task's scorers are given by name.
    """

    def __init__(self, group: Group, label: str, dataset: Dataset, models: Sequence[str] = ()) -> None:
        self.group = group
        self.label = label
        self._dataset = dataset
        self._models = tuple(models)
        self._seats: dict[str, _Seat] = {}
        self._seen: dict[str, Seen] = {}  # of each race, all models of it

    def told(self) -> dict[str, Any]:
        """Of the race and of the arm in whose context this is called; nothing before it has begun."""
        seat = self._current()
        coordinator, arm = (None, None) if seat is None else (seat.coordinator, seat.arm)
        board = None if coordinator is None else coordinator.board()
        if board is None or coordinator is None or arm is None:
            return {}
        name = coordinator.names[arm.index]
        gate = coordinator.gate()
        told = {"arm": name, "race_id": coordinator.race_id, "race": board.as_json}
        if gate is not None:
            return told | {"gate": gate.to_dict()}
        return told | {"outcome": board.outcome, "dropped_at": board.of(name).dropped_at}

    # inspect's SampleSource

    def initial_samples(self) -> list[Sample]:
        """None: every cell is the race's to choose."""
        return []

    async def next_samples(self) -> list[Sample] | None:
        """Nothing of this arm is in flight: wait for what the race wants of it, or for its end."""
        coordinator, arm = await self._seated()
        return [] if await coordinator.turn(arm) else None

    async def sample_complete(self, sample: EvalSample) -> list[Sample] | None:
        """Learn from one finished cell and ask for what should follow, of whichever arm."""
        coordinator, arm = await self._seated()
        race = coordinator.race
        assert race is not None  # no cell runs before the race begins
        key = (str(sample.id), sample.epoch)
        if key in arm.replayed:
            arm.replayed.discard(key)
        else:
            value, error = self._read(coordinator, sample)
            money, name = coordinator.money, sample.uuid or ""
            if money is not None and name in money.account.too_dear:
                value, error = None, money.account.too_dear[name]
            if coordinator.refusal is not None and race.config.store is not None:
                return None  # the store is away, and the log has it
            if money is None or money.ended(race, arm.index, name, scored=value is not None):
                attempts, again = paid_attempts(sample)
                race.completed(arm.index, key, value, attempts=attempts, error=error, sample=name)
                for reason in again:
                    race.lanes[arm.index].tally.lose(0.0, reason, calls=1.0)
            else:
                race.unaffordable(arm.index, key)
            await coordinator.pump()
        if arm.run.spec.config.limit is not None and self._has_all(coordinator, arm):
            # under --limit inspect ends a task that ran so many samples; its results wait for the others'
            await coordinator.until_closed()
        return None

    async def sample_abandoned(self, sample: Sample, epoch: int) -> list[Sample] | None:
        """A cell the operator cancelled before it ran."""
        coordinator, arm = await self._seated()
        assert coordinator.race is not None
        coordinator.race.abandoned(arm.index, (str(sample.id), epoch))
        await coordinator.pump()
        return None

    # called by the task's setup and scorers

    async def before_solving(self, state: TaskState) -> None:
        """Do not run again what failed in an earlier attempt; count the cell as running."""
        coordinator, arm = await self._seated()
        assert coordinator.race is not None
        key = (str(state.sample_id), state.epoch)
        if key in arm.replayed and arm.failed_before(key):
            refuse(state.metadata)
            state.completed = True
            return
        # what succeeded is handed over and does not come here, unless an operator wants it run again
        arm.replayed.discard(key)
        if not coordinator.race.may_run(arm.index, key):
            refuse(state.metadata)
            state.completed = True
            return
        coordinator.race.started(arm.index, key)
        await with_media(state)

    def attempt_failed(self, id_: str, epoch: int) -> None:
        """A sample failed, and is tried again if that is paid for."""
        seat = self._current()
        if seat is not None and seat.arm is not None and seat.coordinator is not None:
            race = seat.coordinator.race
            if race is not None:
                race.attempt_failed(seat.arm.index, (id_, epoch))

    async def before_scoring(self, state: TaskState) -> Mapping[str, int] | None:
        """Nothing is said of how this was bought; None if it is not to be scored."""
        seat = self._current()
        if seat is not None:
            seat.scored = True
        is_left = is_refused(state.metadata) or gave_up() or state.uuid in interrupts.held
        return None if is_left else {}

    # bookkeeping

    def _current(self) -> _Seat | None:
        run = current_run.get()
        return self._seats.get(run.spec.eval_id) if run is not None else None

    async def _seated(self) -> tuple[Coordinator, Arm]:
        run = current_run.get()
        if run is None:
            raise InvalidInputError(
                "evalbudget does not know which run this is: inspect's task-start hook did not reach it. "
                "Is the inspect-ai version supported? (evalbudget plugins)"
            )
        seat = self._seats.setdefault(run.spec.eval_id, _Seat())
        if seat.arm is not None and seat.coordinator is not None:
            return seat.coordinator, seat.arm
        async with seat.lock:  # whose first comer arrives
            if seat.arm is None or seat.coordinator is None:
                try:
                    seat.coordinator, seat.arm = await self._arrive(run)
                except EvalbudgetError as ex:
                    refused(ex)
                    raise
        return seat.coordinator, seat.arm

    async def _arrive(self, run: Run) -> tuple[Coordinator, Arm]:
        coordinator = coordinator_of(run, self.group)
        try:
            pool = self._pool(run)
            earlier = await what_is_left(run, pool.keys())
            for warning in refuse_other_task(earlier.samples, pool.__getitem__, self.group.score[0]):
                logger.warning(warning)
        except EvalbudgetError as ex:
            raise coordinator.refuse(ex) from None
        if earlier.warning:
            logger.warning(earlier.warning)
        known = known_cells(earlier.samples, earlier.lost, self.group.score, self.group.config.bounds)
        models = list(dict.fromkeys([*models_asked(run.spec, ()), *self._models]))
        arm = Arm(run, self.label, pool, known, models)
        await coordinator.join(arm)
        if not self.group.config.in_scores:
            return coordinator, arm  # the gate before calls knows what is sent again

        pay_by(run.spec.eval_id, partial(coordinator.pays, arm))
        return coordinator, arm

    def _pool(self, run: Run) -> dict[str, Sample]:
        config = run.spec.config
        if (config.epochs or 1) > 1:
            raise InvalidInputError(
                f"a race asks each model for each item once, and --epochs is {config.epochs}; add --epochs 1 "
                "(to repeat items, use a sampler of repeats on each model: --sampler auto)"
            )
        chosen = chosen_samples(self._dataset, config, "other items for each model")
        return {str(sample.id): sample for sample in chosen}

    def _has_all(self, coordinator: Coordinator, arm: Arm) -> bool:
        race = coordinator.race
        assert race is not None
        lane = race.lanes[arm.index]
        has_all = lane.tally.readings + lane.tally.failed >= len(arm.pool)
        return not lane.flights and (has_all or race.stopped)

    def _read(self, coordinator: Coordinator, sample: EvalSample) -> tuple[float | None, str | None]:
        if is_refused(sample.metadata):
            return None, str(sample.metadata[METADATA])
        name, key = self.group.score
        score: Score | None = (sample.scores or {}).get(name)
        if score is None and sample.error is not None:
            return None, kind_of(sample.error.message)
        if score is None and was_unpaid(sample):
            return None, UNPAID
        if score is None:
            seat = self._current()
            if seat is not None and not seat.scored:
                raise coordinator.refuse(
                    InvalidInputError(
                        "scoring is switched off (--no-score), so there is nothing to race by; "
                        "drop --no-score"
                    )
                )
            return None, f"no score from {name!r}"
        try:
            if coordinator.race_id not in self._seen:
                self._seen[coordinator.race_id] = Seen(count=coordinator.readings)
            value = self._seen[coordinator.race_id].read(score, name, key)
        except InvalidInputError as ex:
            raise coordinator.refuse(ex) from None
        if math.isnan(value):
            return None, why_unscored(score, key) if sample.error is None else kind_of(sample.error.message)
        bounds = self.group.config.bounds
        if in_range(value, bounds):
            return value, None
        if self.group.config.score_range is not None:
            return None, "score outside the declared range"
        raise coordinator.refuse(
            InvalidInputError(
                f"scorer {name!r} gave {value:g} to item {sample.id!r}, and without a declared range scores "
                "are taken to lie in 0 to 1; declare the smallest and the largest possible score, "
                "for example --score-range 0..10"
            )
        )
