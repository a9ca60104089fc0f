"""A race: the sampler's rounds, arm by arm, in as few loads as they can be done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.outage import is_down
from evalbudget.races import Asked as Wanted
from evalbudget.races import Entry, Key, KnownCell, RacePurchase
from evalbudget.secrets import without_secrets
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.arms.arm import asks_server
from evalbudget_lm_eval.arms.compared import Compared
from evalbudget_lm_eval.arms.loaded_models import Entrant, Stable
from evalbudget_lm_eval.arms.side_by_side import SideBySide
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.seeds import name_of_run
from evalbudget_lm_eval.host.trial import scores_targets
from evalbudget_lm_eval.judges.filter import judged_at_random, panel_of
from evalbudget_lm_eval.races.money import RaceMoney
from evalbudget_lm_eval.repeats.refusals import ASK_ONCE, same_again
from evalbudget_lm_eval.run.record import RACE
from evalbudget_lm_eval.run.resume import CUT_OFF, count_cut_off
from evalbudget_lm_eval.run.rounds import Rounds

log = shown_logger(__name__)

_LONG = 150  # characters of an error that are shown
_LOOK = 0.25  # seconds between looks at what other processes did


class Progress(Protocol):
    """Told how a race goes."""

    def begins(self, race: RacePurchase) -> None:
        """Before anything is asked."""

    def __call__(self, race: RacePurchase) -> None:
        """After each round."""


class RaceRun:
    """Drives a race's arms through the host.

    Args:
        race: the bookkeeping; takes in what the record knows.
        stable: the arms.
        compared: tasks and documents.
        own: the task of arms that have one of their own, and its ``metric,filter``, by arm.
        progress: told how it goes; None for nobody.
        money: the bill, where the budget is money or tokens.
        baseline: scores of the first arm of the race that are there.
        absent: that arm is not asked.
        free: of its answers in the record, the first that an earlier gate paid for.
        at_once: arms that are asked side by side; the round is joined before the sampler is asked for the
            next one, so that it decides the same.
        join: has arms take part in the race, where others run other arms of it.

    Raises:
        InvalidInputError: a recorded score is outside the range.
    """

    def __init__(
        self,
        race: RacePurchase,
        stable: Stable,
        compared: Compared,
        own: Mapping[str, tuple[str, str]],
        progress: Progress | None,
        money: RaceMoney | None = None,
        baseline: Sequence[KnownCell] = (),
        *,
        absent: bool = False,
        free: int = 0,
        at_once: int = 1,
        join: Callable[[Iterable[Entry]], None] | None = None,
    ) -> None:
        self.race = race
        self._at_once = at_once
        self._turn = RLock()
        self._money = money
        self.stable = stable
        self._progress = progress
        self._arms = [
            _Arm(race, number, entrant, compared, own.get(entrant.arm.name), money, self._turn)
            for number, entrant in enumerate(stable.entrants, start=int(absent))
        ]
        if join is not None:
            self._join_others(join)
            return
        self._of_lane = {arm.number: arm for arm in self._arms}
        known: dict[int, Sequence[KnownCell]] = {
            arm.number: arm.known(free if arm.number == 0 else 0) for arm in self._arms
        }
        for arm in self._arms:
            if arm.unread:
                race.pay(arm.number, arm.unread)
        asked = {cell.key for cell in known.get(0, ())}
        known[0] = [*known.get(0, ()), *(cell for cell in baseline if cell.key not in asked)]
        race.lanes[0].absent = absent
        race.replay(known)

    def _join_others(self, join: Callable[[Iterable[Entry]], None]) -> None:
        """Take part in a race whose other arms run elsewhere, and wait until they are there."""
        race = self.race
        join(Entry(arm.entrant.arm.name, arm.known(0), arm.unread) for arm in self._arms)
        race.look()
        if not race.begun:
            log.warning("waiting for %d more arms to join at %s", race.missing, race.book.where)
        while not race.begun:
            time.sleep(_LOOK)
            race.look()
        for arm in self._arms:
            arm.number = race.design.models.index(arm.entrant.arm.name)
        self._of_lane = {arm.number: arm for arm in self._arms}

    def _wanted(self) -> Sequence[Wanted]:
        """Cells to ask next; waits for those of other processes."""
        while not (wanted := self.race.wanted()):
            if self.race.config.store is None or self.race.finished:
                break
            time.sleep(_LOOK)
        return wanted

    def until_done(self) -> None:
        """Ask until the sampler has decided or the budget is used up.

        Raises:
            EvalbudgetError: a score is outside the range, or an arm does not fit the race.
        """
        if self._progress is not None:
            self._progress.begins(self.race)
        with SideBySide[_Arm](self._at_once) as arms:
            while wanted := self._wanted():
                cells: dict[int, list[Asked]] = {}
                for one in wanted:
                    cells.setdefault(one.arm, []).append(self._of_lane[one.arm].asked(one.key))
                self._check_calls(arms, cells)
                while cells or arms.running:
                    arm = None if arms.is_full else self._next(cells)
                    if arm is None:
                        self.stable.release(arms.wait().entrant)
                        self._show()
                    else:
                        self._begin(arms, arm, cells.pop(arm.number))

    def _next(self, cells: Mapping[int, object]) -> _Arm | None:
        """An arm that can be asked now; none if all have to wait for others.

        Those whose model is loaded come first: a round then loads every other model once. Of the others those
        come last that sample here: the host seeds random numbers anew whenever it opens an arm.
        """
        ready = [arm for arm in map(self._of_lane.__getitem__, cells) if self.stable.may_begin(arm.entrant)]

        def rank(arm: _Arm) -> tuple[bool, bool]:
            return not self.stable.is_loaded(arm.entrant), not asks_server(arm.entrant.arm)

        return min(ready, key=rank, default=None)

    def _show(self) -> None:
        if self._progress is not None:
            with self._turn, self.race.steady():
                self._progress(self.race)

    @property
    def answers(self) -> int:
        """Documents answered, in earlier runs too."""
        return sum(arm.answers for arm in self._arms)

    @property
    def calls(self) -> int:
        """Of the models, for these."""
        return sum(arm.calls for arm in self._arms)

    def _check_calls(self, arms: SideBySide[_Arm], cells: Mapping[int, object]) -> None:
        """Refuse a budget in money that does not pay for one call of an arm, before any is asked.

        A model that is loaded here takes long to load, and is looked at when its turn comes.
        """
        if self._money is None:
            return
        for arm in map(self._of_lane.__getitem__, cells):
            if asks_server(arm.entrant.arm) and (primed := self._loaded(arms, arm)) is not None:
                self._money.check(arm.entrant.arm.name, primed)

    def _loaded(self, arms: SideBySide[_Arm], arm: _Arm) -> PrimedTasks | None:
        """An arm's tasks with its model; None if that cannot be loaded, and has left the race."""
        with self.race.steady():
            if self.race.lanes[arm.number].left is not None:
                return None
        try:
            with arms.breakable():
                return self.stable.ready(arm.entrant)
        except EvalbudgetError:
            raise
        except Exception as ex:  # the host's: whatever it is, the race goes on
            log.info("arm %s could not be loaded", arm.entrant.arm.name, exc_info=True)
            with self._turn:
                self.race.leave(arm.number, f"it could not be loaded ({_brief(ex)})")
            self._show()
            return None

    def _begin(self, arms: SideBySide[_Arm], arm: _Arm, cells: Sequence[Asked]) -> None:
        """Load an arm's model, if it is not, and have it asked."""
        primed = self._loaded(arms, arm)
        if primed is None:
            return
        if arm.rounds is None:
            name = arm.entrant.arm.name
            if self.race.repeats > 1 and (why := same_again(primed)) is not None:
                raise InvalidInputError(f"{name}: {why}{ASK_ONCE}")
            seed = f"{self.race.config.seed} {name}"
            primed.seeds_of = f"{name_of_run(self.stable.record.path)} {seed}"
            paid = None if self._money is None else self._money.paid[name]
            arm.find_doubts(primed)
            arm.rounds = Rounds(primed, arm.entrant.kept, arm, arm=name, seed=seed, paid=paid)
        primed.hides_bars = self._at_once > 1
        self.stable.hold(arm.entrant)
        arms.start(arm, partial(self._ask, arm, primed, arm.rounds, cells))

    def _ask(self, arm: _Arm, primed: PrimedTasks, rounds: Rounds, cells: Sequence[Asked]) -> None:
        alone = 1 if arm.doubted else len(cells)
        for part in filter(None, (cells[:alone], cells[alone:])):
            self._ask_all(arm, primed, rounds, part)

    def _ask_all(self, arm: _Arm, primed: PrimedTasks, rounds: Rounds, cells: Sequence[Asked]) -> None:
        if self._money is None:
            rounds.ask(cells)
        else:
            name = arm.entrant.arm.name

            def going() -> bool:
                with self.race.steady():
                    return self.race.lanes[arm.number].left is None

            arm.unaffordable(self._money.ask(name, primed, rounds, cells, going))


P = ParamSpec("P")
T = TypeVar("T")


def _in_turn(method: Callable[Concatenate[_Arm, P], T]) -> Callable[Concatenate[_Arm, P], T]:
    """Arms that are asked at once change their race one after the other."""

    @wraps(method)
    def locked(self: _Arm, /, *given: P.args, **named: P.kwargs) -> T:
        with self.turn:
            return method(self, *given, **named)

    return locked


@dataclass(slots=True, eq=False)
class _Arm:
    """Buys one arm's answers for the race, and keeps count of them."""

    race: RacePurchase
    number: int
    entrant: Entrant
    compared: Compared
    own: tuple[str, str] | None
    money: RaceMoney | None = None
    turn: RLock = field(default_factory=RLock)
    rounds: Rounds | None = None
    answers: int = 0
    calls: int = 0
    doubted: set[str] = field(default_factory=set)
    """Tasks whose own targets have no such score: an answer that has none, either, is refused."""

    def find_doubts(self, primed: PrimedTasks) -> None:
        """Try the score that decides on what each task says is right; for no call.

        Raises:
            InvalidInputError: neither that nor any answer of an earlier run has it.
        """
        kept = [one.answer for one in self.entrant.kept.bought if one.answer is not None]
        read = {answer.task for answer in kept if self._metric(answer.task) in answer.metrics}
        own = set(self.compared.tasks) if self.own is None else {self.own[0]}
        self.doubted = {
            name
            for name in own - read
            if panel_of(primed.task(name)) is None  # a trial would ask judges
            and not judged_at_random(primed.task(name))
            and not scores_targets(primed, name, self._metric(name))
        }
        self._check_scores(kept)

    def _check_scores(self, answers: Sequence[Answered]) -> None:
        for answer in answers:
            wanted = self._metric(answer.task)
            if wanted in answer.metrics:
                self.doubted.discard(answer.task)
            elif answer.task in self.doubted:
                others = " or ".join(sorted(answer.metrics))
                raise InvalidInputError(
                    f"task {answer.task!r} gave no number as {wanted!r} for its first answer nor its own "
                    f"target; {f'use --score {others}' if others else 'no metric of it is a number'} (what "
                    "was answered is kept)"
                )

    def _metric(self, task: str) -> str:
        return self.compared.metrics[task] if self.own is None else self.own[1]

    def asked(self, key: Key) -> Asked:
        """The cell in the host's terms."""
        task, doc_id = self.compared.items[key[0]]
        return Asked(task if self.own is None else self.own[0], doc_id, key[1] - 1)

    def _key(self, asked: Asked) -> Key:
        return self.compared.item(asked.task, asked.doc_id), asked.epoch + 1

    def known(self, free: int) -> list[KnownCell]:
        """What earlier runs bought; the first so many cost this one nothing."""
        kept = self.entrant.kept
        if self.money is None:
            count_cut_off(kept, partial(kept.fail, cost=1.0, error=CUT_OFF[RACE]))
        elif kept.under_way:  # the bill has what was cut off
            kept.stop()
        found = []
        for place, one in enumerate(kept.bought):
            value, error = (None, one.error) if one.answer is None else self._value(one.answer)
            cost = 0 if place < free else int(one.cost)
            sample = self._sample(one.asked)
            found.append(KnownCell(self._key(one.asked), value, cost, error=error, sample=sample))
        return found

    @property
    def unread(self) -> float:
        """Calls of earlier runs that nobody read; none in money, where the bill has them."""
        return self.entrant.kept.unanswered if self.money is None else 0.0

    @_in_turn
    def answered(self, answers: Sequence[Answered]) -> None:
        self._check_scores(answers)
        for answer in answers:
            value, error = self._value(answer)
            key, sample = self._key(answer.asked), self._sample(answer.asked)
            self.race.completed(self.number, key, value, error=error, sample=sample)

    @_in_turn
    def failed(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        self._fail(asked, _brief(error), alone=not paid)  # cut off or asked by itself: it is an attempt

    @_in_turn
    def pays(self, calls: int) -> bool:
        if self.money is not None:
            return True  # the bill has them
        return self.race.pays(self.number, calls)

    @_in_turn
    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        left = list(cells)
        while left and calls > self.race.free:
            self.race.abandoned(self.number, self._key(left.pop()))
        self.race.pay(self.number, calls)
        return left

    @_in_turn
    def unaffordable(self, cells: Sequence[Asked]) -> None:
        if self.money is not None and self.money.takes_back(self.entrant.arm.name, cells):
            return
        for asked in cells:
            self.race.unaffordable(self.number, self._key(asked))

    @_in_turn
    def down(self, rest: Sequence[Asked], error: Exception) -> None:
        tally = self.race.lanes[self.number].tally
        if is_down(tally.failed, successes=tally.readings):
            self.race.leave(self.number, "it answered nothing")
            return
        for asked in rest:
            self._fail(asked, "not asked: the model kept failing", attempts=0)

    def _fail(self, asked: Asked, error: str, *, attempts: int = 1, alone: bool = False) -> None:
        self.entrant.kept.fail(asked, float(attempts), error, alone=alone)
        key, sample = self._key(asked), self._sample(asked)
        self.race.completed(self.number, key, None, attempts=attempts, error=error, sample=sample)

    def _sample(self, asked: Asked) -> str:
        return "" if self.money is None else self.money.paid[self.entrant.arm.name].sample_of(asked)

    def _value(self, answer: Answered) -> tuple[float | None, str | None]:
        """The score, or why there is none."""
        self.answers += 1
        self.calls += answer.requests
        metric = self._metric(answer.task)
        value = answer.metrics.get(metric)
        if value is None or math.isnan(value):
            return None, f"no {metric}"
        low, high = self.race.config.bounds
        slack = 1e-9 * (high - low)
        if low - slack <= value <= high + slack:
            return value, None
        if self.race.config.score_range is not None:
            return None, "score outside the declared range"
        raise InvalidInputError(
            f"{metric} of document {answer.doc_id} is {value:g}, and without a declared range scores "
            "are taken to lie in 0 to 1; declare the smallest and the largest possible score, for example "
            "--score-range 0..10 (what was answered is kept)"
        )


def _brief(ex: BaseException) -> str:
    """The kind of an error and the begin of its message."""
    text = " ".join(without_secrets(str(ex)).split())
    text = text if len(text) <= _LONG else f"{text[:_LONG]}..."
    return f"{type(ex).__name__}: {text}" if text else type(ex).__name__
