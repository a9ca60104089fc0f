"""A race: the sampler's steps, arm by arm, in as few loads as they can be done."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.outage import is_down
from evalbudget.races.race import Asked as Wanted
from evalbudget.races.race import Key, KnownCell, Race
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.races.host import Stable
from evalbudget_lm_eval.run.record import RACE, Bought
from evalbudget_lm_eval.run.resume import CUT_OFF, count_cut_off
from evalbudget_lm_eval.run.rounds import Rounds

log = logging.getLogger(__name__)

_LONG = 150  # characters of an error that are shown


class Progress(Protocol):
    """Told how a race goes."""

    def begins(self, race: Race) -> None:
        """Before anything is asked."""

    def __call__(self, race: Race) -> None:
        """After each round."""


class RaceRun:
    """Drives a race's arms through the host.

    Args:
        race: the bookkeeping; takes in what the record knows.
        stable: the arms.
        metric: the host's ``metric,filter`` that decides.
        progress: told how it goes; None for nobody.

    Attributes:
        answers: documents answered, in earlier runs too.
        calls: of the models, for these.

    Raises:
        InvalidInputError: a recorded score is outside the range.
    """

    def __init__(self, race: Race, stable: Stable, metric: str, progress: Progress | None) -> None:
        self.race = race
        self.stable = stable
        self.answers = self.calls = 0
        self._metric = metric
        self._progress = progress
        self._rounds: dict[int, Rounds] = {}
        known = {}
        for arm, entrant in enumerate(stable.entrants):
            kept = entrant.kept
            count_cut_off(kept, kept.under_way, partial(kept.fail, cost=1.0, error=CUT_OFF[RACE]))
            known[arm] = [self._known(one) for one in kept.bought]
        race.replay(known)

    def until_done(self) -> None:
        """Ask until the sampler has decided or the budget is used up.

        Raises:
            EvalbudgetError: a score is outside the range, or an arm does not fit the race.
        """
        if self._progress is not None:
            self._progress.begins(self.race)
        while wanted := self.race.wanted():
            by_arm: dict[int, list[Wanted]] = {}
            for one in wanted:
                by_arm.setdefault(one.arm, []).append(one)
            # those that are loaded come first: a step then loads every other arm once
            for arm in sorted(by_arm, key=lambda arm: not self.stable.entrants[arm].is_alive):
                self._ask(arm, by_arm[arm])
                if self._progress is not None:
                    self._progress(self.race)

    def _ask(self, arm: int, wanted: Sequence[Wanted]) -> None:
        entrant = self.stable.entrants[arm]
        try:
            primed = self.stable.ready(entrant)
        except EvalbudgetError:
            raise
        except Exception as ex:  # the host's: whatever it is, the race goes on
            log.info("arm %s could not be loaded", entrant.arm.name, exc_info=True)
            self.race.leave(arm, f"it could not be loaded ({_brief(ex)})")
            return
        if arm not in self._rounds:
            self._rounds[arm] = Rounds(primed, entrant.kept, _Arm(self, arm), arm=entrant.arm.name)
        self._rounds[arm].ask([Asked(self.stable.task, int(one.key[0]), one.key[1] - 1) for one in wanted])

    # what came back

    def answered(self, arm: int, answers: Sequence[Answered]) -> None:
        """An arm's documents were scored."""
        for answer in answers:
            self._count(answer)
            value, error = self._value(answer)
            self.race.completed(arm, _key(answer.asked), value, error=error)

    def failed(self, arm: int, asked: Asked, error: str, *, attempts: int = 1) -> None:
        """An arm's document has no score, after so many paid attempts."""
        self.stable.entrants[arm].kept.fail(asked, float(attempts), error)
        self.race.completed(arm, _key(asked), None, attempts=attempts, error=error)

    def down(self, arm: int, rest: Sequence[Asked]) -> None:
        """An arm kept failing: the rest of its step is not asked; one that never answered leaves."""
        tally = self.race.lanes[arm].tally
        if is_down(tally.failed, successes=tally.readings):
            self.race.leave(arm, "it answered nothing")
            return
        for asked in rest:
            self.failed(arm, asked, "not asked: the model kept failing", attempts=0)

    def _count(self, answer: Answered) -> None:
        self.answers += 1
        self.calls += answer.requests

    def _known(self, bought: Bought) -> KnownCell:
        value, error = None, bought.error
        if bought.answer is not None:
            self._count(bought.answer)
            value, error = self._value(bought.answer)
        return KnownCell(_key(bought.asked), value, int(bought.cost), error=error)

    def _value(self, answer: Answered) -> tuple[float | None, str | None]:
        """The score, or why there is none."""
        value = answer.metrics.get(self._metric)
        if value is None or math.isnan(value):
            return None, f"no {self._metric}"
        low, high = self.race.config.bounds
        slack = 1e-9 * (high - low)
        if low - slack <= value <= high + slack:
            return value, None
        if self.race.config.score_range is not None:
            return None, "score outside the declared range"
        raise InvalidInputError(
            f"{self._metric} of document {answer.doc_id} is {value:g}, and without a declared range scores "
            "are taken to lie in 0 to 1; declare the smallest and the largest possible score, for example "
            "--score-range 0..10 (what was answered is kept)"
        )


@dataclass(frozen=True, slots=True)
class _Arm:
    """Pays for the rounds of one arm."""

    run: RaceRun
    arm: int

    def answered(self, answers: Sequence[Answered]) -> None:
        self.run.answered(self.arm, answers)

    def failed(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        self.run.failed(self.arm, asked, _brief(error))  # asked by itself or cut off: it is an attempt

    def down(self, rest: Sequence[Asked], error: Exception) -> None:
        self.run.down(self.arm, rest)


def _key(asked: Asked) -> Key:
    return str(asked.doc_id), asked.epoch + 1


def _brief(ex: BaseException) -> str:
    """The kind of an error and the begin of its message."""
    text = " ".join(str(ex).split())
    text = text if len(text) <= _LONG else f"{text[:_LONG]}..."
    return f"{type(ex).__name__}: {text}" if text else type(ex).__name__
