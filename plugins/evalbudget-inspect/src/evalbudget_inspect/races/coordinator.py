"""What the tasks of one race share: they arrive, are given cells, wait without a sample slot, end together.

Inspect runs one task per arm, each with a feeder that asks its source for samples whenever it has none. A
feeder that waits here holds no slot. All bookkeeping is synchronous, so that no arm sees it half done; what
other processes do to a race is taken in by a thread, since they may have to be waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from evalbudget.backtest import TaskName
from evalbudget.comparisons import Gate, GateConfig, gate_of
from evalbudget.errors import EvalbudgetError, InvalidInputError, StoreError
from evalbudget.hosts import baseline_of
from evalbudget.races import (
    KnownCell,
    Leaderboard,
    RacePurchase,
    leaderboard_of,
)
from evalbudget.races.prediction import FactorModel
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.bill import host_price
from evalbudget_inspect.host.book_file import BookFile, open_book
from evalbudget_inspect.host.current_run import Run, is_cancelled
from evalbudget_inspect.host.earlier_attempts import end_of_earlier
from evalbudget_inspect.host.interrupts import interrupts
from evalbudget_inspect.host.private import effective_max_tasks, task_dispatcher_stats
from evalbudget_inspect.host.refusals import refused
from evalbudget_inspect.host.spread import is_worker
from evalbudget_inspect.races.all_races import all_races
from evalbudget_inspect.races.arm import Arm, Group
from evalbudget_inspect.races.arm_names import alone, check_gate, check_items, name_of, names_of_arms
from evalbudget_inspect.races.history import earlier_scores
from evalbudget_inspect.races.money import RaceMoney, bill_of, check_money, copy_of_bill, open_money
from evalbudget_inspect.races.resume import finished_elsewhere
from evalbudget_inspect.races.shared import shared_race
from evalbudget_inspect.repeats.earlier_log import asked_in_vain
from evalbudget_inspect.repeats.resume import Key

T = TypeVar("T")

logger = shown_logger(__name__)

BASELINE = "baseline"
"""Label of a gate's among the arms."""
_LOOK = 0.25  # seconds between looks for arms whose task has ended without a word


class Coordinator:
    """One race in one run of inspect.

    Args:
        group: who belongs to it.
        expected: how many tasks of the group this run has.
    """

    def __init__(self, group: Group, expected: int) -> None:
        self.group = group
        self.expected = expected
        self.race: RacePurchase | None = None
        self.money: RaceMoney | None = None
        self.arms: dict[tuple[str, str], Arm] = {}
        self.closed = anyio.Event()
        self.refusal: EvalbudgetError | None = None
        self.notes: list[str] = []
        self._file: BookFile | None = None
        self._lock = anyio.Lock()
        self._in_order: list[tuple[str, str]] = []
        self._of_baseline: list[KnownCell] = []
        self._said_of_baseline: tuple[str, ...] = ()
        self._left_out: set[tuple[int, Key]] = set()  # cut off, and not paid for again
        self._board: _Board | None = None
        self._cancelled = False
        self._overdue = 0
        self._shared: RacePurchase | None = None  # with other processes; begins when their arms are there
        self._turns = anyio.CapacityLimiter(1)  # held by whoever waits for them

    # arrival

    async def join(self, arm: Arm) -> None:
        """An arm's task has started; the last one begins the race."""
        async with self._lock:
            self._check()
            before = self.arms.get(arm.identity)
            if before is not None and not before.is_over:
                raise self.refuse(
                    InvalidInputError(
                        f"{name_of(arm.identity)} is in this race twice; list every model once, or give "
                        "settings that differ names of their own: --arm, or race({name: task, ...})"
                    )
                )
            self.arms[arm.identity] = arm
            if self.race is not None:
                await self._rejoin(arm)
                return
            self._check_tasks_at_once(arm.run.spec.config.max_tasks)
            if len(self.arms) == self.expected:
                await self._begin()

    def _check_tasks_at_once(self, at_once: int | None) -> None:
        if (at_once or 1) < self.expected:
            raise self.refuse(
                InvalidInputError(
                    f"all {self.expected} tasks of a race run at the same time, and inspect was told to run "
                    f"{at_once or 1} at once; add --max-tasks {self.expected}"
                )
            )

    async def _rejoin(self, arm: Arm) -> None:
        assert self.race is not None
        if arm.identity not in self._in_order:
            raise self.refuse(
                InvalidInputError(f"{name_of(arm.identity)} joined a race that had begun without it")
            )
        # what its first task bought stays in the log of its second; nothing more can be asked of it
        arm.index = self._in_order.index(arm.identity)
        if self._shared is not None:
            arm.index = self._shared.design.models.index(name_of(arm.identity))
        self.race.leave(arm.index, "its task ended early")
        if self.money is not None:
            self.money.pays_for(arm.run)
        self._hand_back(arm)
        await self.pump()

    async def _begin(self) -> None:
        """Take in earlier attempts and start asking."""
        if self.group.config.store is not None:
            await self._join_others()
            return
        try:
            race, absent = await self._make()
        except EvalbudgetError as ex:
            raise self.refuse(ex) from None
        known: dict[int, Sequence[KnownCell]] = {}
        for index, identity in enumerate(self._in_order):
            if identity in self.arms:
                self.arms[identity].index = index
                known[index] = self.arms[identity].known
            else:
                race.lanes[index].absent = True
                known[index] = absent[identity]
            if index == 0:
                asked = {cell.key for cell in known[index]}
                known[index] = [*known[index], *(c for c in self._of_baseline if c.key not in asked)]
        try:
            await self._replay(race, known)
        except EvalbudgetError as ex:
            raise self.refuse(ex) from None
        await self._started(race)

    async def _replay(self, race: RacePurchase, known: Mapping[int, Sequence[KnownCell]]) -> None:
        """Take in what earlier attempts paid."""
        arms, file = list(self.arms.values()), self._file
        if file is None:
            self._left_out = race.replay(known)
            return
        ends = [await end_of_earlier(arm.run) for arm in arms]
        unread = {arm.index: float(arm.earlier.cut_off) for arm in arms}
        for arm in arms if file.lacks else ():
            unread[arm.index] += await asked_in_vain(arm.run)
        has_asked = any(has for has, _ in ends) or any(unread.values()) or any(known.values())
        self._left_out = race.replay(known, unread, lacks=file.lacks and has_asked)
        if said := file.lacking(race.lacks, sum(at_most for _, at_most in ends)):
            self.notes.append(said)
            logger.warning(said)

    async def _started(self, race: RacePurchase) -> None:
        self.race = race
        if all_races.progress is not None:
            all_races.progress.begins(race)
        for arm in self.arms.values():
            self._hand_back(arm)
        await self.pump()

    async def _join_others(self) -> None:
        """Have the arms of this process take part in a race with those of others."""
        self._in_order = sorted(self.arms)
        first = self.arms[self._in_order[0]]
        try:
            for arm in self.arms.values():
                check_items(first, arm)
            config, arms = self.group.config, [self.arms[each] for each in self._in_order]
            tariff, copy = None, None
            if not config.in_scores:
                tariff = config.tariff(host_price)
                check_money(arms, tariff)
                cap = config.resolve_budget(len(first.pool), config.all_arms or len(arms))
                # before others hear of this process: another one that runs the same may be alive
                copy = copy_of_bill(arms[0].run, cap, tariff, (self._identity, self._in_order))
            try:
                self._shared, bill = await self._in_thread(partial(shared_race, self.group, arms, tariff))
            except BaseException:
                if copy is not None:
                    copy.close()
                raise
        except EvalbudgetError as ex:
            raise self.refuse(ex) from None
        if bill is not None:
            if copy is not None:
                bill.copy_to(copy)
            name = self.group.task
            self.money = open_money(arms, bill, name=name, refuse=self.refuse, turns=self._turns)
        await self._begin_with_others()

    async def _begin_with_others(self) -> None:
        assert self._shared is not None
        with self.refusing():
            await self._in_thread(self._shared.turn)
        if not self._shared.begun or self.race is not None:
            return
        for arm in self.arms.values():
            arm.index = self._shared.design.models.index(name_of(arm.identity))
        self._left_out = self._shared.left_out
        await self._started(self._shared)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        """The event loop goes on while other processes, or a server that is away, are waited for."""

        def checked() -> T:
            self._check()
            return act()

        return await anyio.to_thread.run_sync(checked, limiter=self._turns)

    async def _make(self) -> tuple[RacePurchase, dict[tuple[str, str], list[KnownCell]]]:
        first = next(iter(self.arms.values()))
        items = list(first.pool)
        for arm in self.arms.values():
            check_items(first, arm)
        config = self.group.config
        spec = first.run.spec
        absent: dict[tuple[str, str], list[KnownCell]] = {}
        if spec.eval_set_id is not None and self._workers_gate is None:
            absent = await finished_elsewhere(
                *(first.run, self.group.labels, self.group.score, config.bounds),
                present={identity: arm.pool for identity, arm in self.arms.items()},
            )
        goes_on = bool(absent)
        categories, repeats = None, 1
        if isinstance(config, GateConfig):
            config = config.in_order_of(self._workers_gate or spec.eval_set_id or spec.task_id)
            task = TaskName(spec.task.rpartition("/")[2], str(spec.task_version))
            told = partial(baseline_of, config, [self.group.series], task, items)
            baseline = await anyio.to_thread.run_sync(told)
            config.check_model(baseline.model)
            items, categories, repeats = baseline.items, baseline.categories, baseline.repeats
            if repeats > 1 and spec.config.limit is not None:
                raise InvalidInputError(
                    f"inspect ends a task under --limit after so many samples, and each item has {repeats} "
                    "answers here; choose items with --sample-id, or give --repeats 1"
                )
            if config.baseline_model is None:
                absent[BASELINE, baseline.model] = list(baseline.known)
            self._of_baseline, self._said_of_baseline = baseline.known, baseline.notes
        self._in_order = sorted([*self.arms, *absent], key=lambda each: (not self._is_baseline(each), each))
        names = names_of_arms(self._in_order)
        if isinstance(config, GateConfig):
            check_gate(config, names, asked=self._is_baseline(self._in_order[0]), resumed=bool(first.known))
        if len(names) < 2 and not config.takes_one:
            raise InvalidInputError(alone(names[0], resumed=bool(first.known)))
        predictor: FactorModel | None = None
        if config.history is not None:
            tasks = {self.group.task, *self.group.names}
            read = partial(earlier_scores, config, items, tasks, self.group.series, spec)
            predictor, note = await anyio.to_thread.run_sync(read)
            self.notes.append(note)
            logger.warning(note) if predictor is None else logger.info(note)
        self.money = self._open_money(len(items) * repeats, len(names), goes_on=goes_on)
        if config.in_scores:
            runs = [self.arms[identity].run for identity in self._in_order if identity in self.arms]
            self._file = await anyio.to_thread.run_sync(open_book, runs)
        race = RacePurchase(
            config,
            names,
            items,
            attempts=1 + (spec.config.retry_on_error or 0),
            widths=[self._width(identity) for identity in self._in_order],
            predictor=predictor,
            cost_of=None if self.money is None else self.money.bill.of_sample,
            bill=None if self.money is None else self.money.bill,
            categories=categories,
            repeats=repeats,
            where=None if self._file is None else self._file.db,
        )
        if self._file is not None:
            self._file.ends = race.let_go
        return race, absent

    def _is_baseline(self, identity: tuple[str, str]) -> bool:
        config = self.group.config
        asked = isinstance(config, GateConfig) and identity[1] == config.baseline_model
        return asked or identity[0] == BASELINE

    def _open_money(self, n_items: int, n_arms: int, *, goes_on: bool) -> RaceMoney | None:
        """Who pays for the calls of all arms; None where the budget counts evaluations."""
        config = self.group.config
        if config.in_scores:
            return None
        arms, tariff = [self.arms[identity] for identity in sorted(self.arms)], config.tariff(host_price)
        check_money(arms, tariff)
        cap = config.resolve_budget(n_items, n_arms)
        goes_on = goes_on or any(arm.known for arm in arms)
        bill = bill_of(arms[0].run, cap, tariff, identity=self._identity, risk=config.risk, goes_on=goes_on)
        return open_money(arms, bill, name=self.group.task, refuse=self.refuse)

    def _width(self, identity: tuple[str, str]) -> int | None:
        arm = self.arms.get(identity)
        if arm is None:
            return None
        return arm.run.spec.config.max_samples or arm.run.config.max_connections

    def _hand_back(self, arm: Arm) -> None:
        """Have the host carry over what the log of the earlier attempt holds."""
        for cell in sorted(arm.known, key=lambda c: (c.key[1], c.key[0])):
            if cell.key[0] in arm.pool and (arm.index, cell.key) not in self._left_out:
                if not cell.again:
                    arm.replayed.add(cell.key)
                arm.give(cell.key)
        arm.wake.set()

    # while it runs

    async def turn(self, arm: Arm) -> bool:
        """Wait until the arm's feeder has something to do.

        Returns:
            True if there are samples for it; False when its task may end.
        """
        arm.waiting = True
        try:
            while True:
                self._check()
                if arm.given:
                    arm.given = False
                    return True
                if is_cancelled(arm.run):
                    await self.leave(arm, "cancelled by the operator")
                    return False
                if self.closed.is_set():
                    return False
                arm.wake = anyio.Event()
                with anyio.move_on_after(_LOOK):
                    await arm.wake.wait()
                    continue
                await self._look_around()
        except anyio.get_cancelled_exc_class():
            self._cancelled = True
            raise
        finally:
            arm.waiting = False

    async def until_closed(self) -> None:
        """Wait for the end of the race."""
        while not self.closed.is_set():
            with anyio.move_on_after(_LOOK):
                await self.closed.wait()
            await self._look_around()

    async def pump(self) -> None:
        """Give every arm what the sampler wants of it next; close the race when that is nothing.

        Raises:
            StoreError: the store of a race with other processes cannot be used any more.
        """
        if self._is_idle():
            return
        if self._shared is not None:
            with self.refusing():
                await self._in_thread(self._shared.turn)
            if self._is_idle():
                return
        assert self.race is not None
        by_index = {arm.index: arm for arm in self.arms.values()}
        with self.race.steady():
            for asked in self.race.wanted():
                by_index[asked.arm].give(asked.key)
            if all_races.progress is not None:
                all_races.progress(self.race)
            finished = self.race.finished
        if finished:
            self._close()

    def _is_idle(self) -> bool:
        return self.race is None or self.closed.is_set() or interrupts.came

    async def leave(self, arm: Arm, reason: str) -> None:
        """Go on without an arm."""
        if self.race is not None and arm.index >= 0 and self.arms.get(arm.identity) is arm:
            self.race.leave(arm.index, reason)
            await self.pump()

    async def pays(self, arm: Arm, evaluations: float) -> bool:
        """Pay for what brought nothing; False, and nothing paid, if it exceeds what is left."""
        if self.race is None:
            return False
        if self._shared is None:
            return self.race.pays(arm.index, evaluations)
        with self.refusing():
            return await self._in_thread(partial(self._shared.pays, arm.index, evaluations))

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """End all tasks here if the store that processes share cannot be used any more; logs are kept."""
        try:
            yield
        except StoreError as ex:
            raise self.refuse(ex) from None

    def refuse(self, error: EvalbudgetError) -> EvalbudgetError:
        """End all tasks of the race with this error."""
        if self.refusal is None:
            self.refusal = error
            if self._shared is not None and self.money is not None:
                self.money.account.refusal = error
            refused(error)
            self._close()
        return self.refusal.with_traceback(None)

    def _check(self) -> None:
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)

    def end(self) -> None:
        """The run is over: other processes are not to wait for what it shares with them."""
        if self._shared is not None:
            self._shared.close()

    def _close(self) -> None:
        self.closed.set()
        self.end()
        for arm in self.arms.values():
            arm.wake.set()

    async def _look_around(self) -> None:
        """Notice arms whose task has ended, and tasks that never arrive."""
        for arm in list(self.arms.values()):
            if arm.is_over and not self.closed.is_set():
                await self.leave(arm, "its task ended early")
        if self.closed.is_set():
            return
        if self._shared is not None:
            await (self._begin_with_others() if self.race is None else self.pump())
            return
        if self.race is not None:
            return
        async with self._lock:
            if self._is_settled():
                return
            self._overdue = self._overdue + 1 if _nobody_else_comes() else 0
            if self._overdue < 2:
                return
            stats = task_dispatcher_stats()
            if stats is not None and stats.pending:
                self._check_tasks_at_once(len(self.arms))
            missing = self.expected - len(self.arms)
            self.notes.append(
                f"{missing} of the {self.expected} tasks did not start; the race is without them"
            )
            logger.warning(self.notes[-1])
            await self._begin()

    def _is_settled(self) -> bool:
        return self.race is not None or self.refusal is not None or self._shared is not None

    # what is known

    @property
    def readings(self) -> int:
        """Scores that are known, those of earlier attempts among them."""
        if self.race is None:
            return 0
        with self.race.steady():
            return sum(lane.tally.readings for lane in self.race.lanes)

    @property
    def names(self) -> list[str]:
        """Of the arms, in the order of the sampler's models."""
        if self._shared is None:
            return names_of_arms(self._in_order)
        return list(self._shared.design.models) if self._shared.begun else []

    @property
    def _identity(self) -> object:
        """What tells this race from others whose logs are in the same folder."""
        spec = next(iter(self.arms.values())).run.spec
        run = self._workers_gate or spec.eval_set_id or spec.run_id
        return run, sorted(self.group.labels.items()), self.group.arguments

    @property
    def race_id(self) -> str:
        """The same for all arms of the race, and for no other."""
        spec = next(iter(self.arms.values())).run.spec
        return f"{self._workers_gate or spec.eval_set_id or spec.run_id} {self.group.task}"

    @property
    def _workers_gate(self) -> str | None:
        """Which gate of a spread eval set this is, each of one candidate; None for what is none."""
        spec = next(iter(self.arms.values())).run.spec
        if spec.eval_set_id is None or not is_worker() or not isinstance(self.group.config, GateConfig):
            return None
        return spec.task_id  # models of one name may differ in their arguments

    def gate(self) -> Gate | None:
        """The verdict; None in other races, and before it began."""
        config = self.group.config
        if self.race is None or not isinstance(config, GateConfig):
            return None
        bill = None if self.money is None else self.money.bill
        return gate_of(self.race, config, self.group.series, bill, self._said_of_baseline)

    def board(self) -> Leaderboard | None:
        """The leaderboard; a bit old while the race runs, exact once it is closed. None before it began."""
        if self.race is None:
            return None
        with self.race.steady():
            told = sum(lane.tally.readings + lane.tally.failed for lane in self.race.lanes)
            final = self.closed.is_set() or self._cancelled
            if self._board is None or self._board.is_stale(told, final=final):
                bill = None if self.money is None else self.money.bill
                self._board = _Board(told, final, leaderboard_of(self.race, notes=self.notes, bill=bill))
            return self._board.board


@dataclass(frozen=True)
class _Board:
    told: int
    final: bool
    board: Leaderboard

    def is_stale(self, told: int, *, final: bool) -> bool:
        return told > self.told or not self.final if final else told > 1.5 * self.told + 1


def _nobody_else_comes() -> bool:
    stats = task_dispatcher_stats()
    if stats is None:
        return False
    if stats.pending and stats.in_flight < effective_max_tasks(stats.launch):
        return False  # about to be started
    waiting = sum(
        arm.waiting for coordinator in all_races.running.values() for arm in coordinator.arms.values()
    )
    return stats.in_flight <= waiting


def coordinator_of(run: Run, group: Group) -> Coordinator:
    """The race that this run's task takes part in.

    Raises:
        InvalidInputError: another race of this run has a task of the same name.
    """
    names = all_races.task_names.get(run.spec.run_id, Counter({run.spec.task: 1}))
    for (run_id, key), other in all_races.running.items():
        if run_id == run.spec.run_id and key != group.key and set(other.group.names) & set(group.names):
            raise other.refuse(
                InvalidInputError(
                    f"two different races in this run have a task named {run.spec.task!r}; give the tasks "
                    "different names, or run the races one after another"
                )
            )
    place = (run.spec.run_id, group.key)
    running = all_races.running.get(place)
    if not isinstance(running, Coordinator):
        all_races.running[place] = running = Coordinator(group, sum(names[name] for name in group.names))
    return running
