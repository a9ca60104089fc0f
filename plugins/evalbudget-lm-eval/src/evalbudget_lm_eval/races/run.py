"""A race: the sampler's steps, arm by arm, in as few loads as they can be done."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Protocol

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.races.race import Asked as Wanted
from evalbudget.races.race import KnownCell, Race
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.races.host import Stable
from evalbudget_lm_eval.races.record import Bought, Said

log = logging.getLogger(__name__)

_LONG = 150  # characters of an error that are shown
_GIVE_UP = 8  # failures in a row: the model is down, not the documents


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
        known = {}
        for arm, entrant in enumerate(stable.entrants):
            before = stable.record.known.get(entrant.arm.name)
            if before is not None:
                for one in before.cut_off():
                    stable.record.bought(entrant.arm.name, one)
                    before.bought.append(one)
                before.asked.clear()
                known[arm] = [self._known(bought) for bought in before.bought]
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
            self.stable.ready(entrant)
        except EvalbudgetError:
            raise
        except Exception as ex:  # the host's: whatever it is, the race goes on
            log.info("arm %s could not be loaded", entrant.arm.name, exc_info=True)
            self.race.leave(arm, f"it could not be loaded ({_brief(ex)})")
            return
        todo = [one for one in wanted if not self._finish(arm, one, entrant.under_way.pop(_doc(one), {}))]
        # what failed before is asked by itself, so that it is known whether it fails again
        alone = [one for one in todo if entrant.is_suspect or one.key[1] > 1]
        fresh = [one for one in todo if not entrant.is_suspect and one.key[1] == 1]
        left = self._together(arm, fresh) if len(fresh) > 1 else fresh
        self._one_by_one(arm, [*left, *alone])

    def _together(self, arm: int, wanted: Sequence[Wanted]) -> list[Wanted]:
        """One round of several documents; returns those that were not asked because it failed."""
        said: dict[int, Said] = {}
        try:
            answers = self._round(arm, wanted, said)
        except EvalbudgetError:
            raise
        except Exception as ex:
            entrant = self.stable.entrants[arm]
            log.info("a round of arm %s failed: %s", entrant.arm.name, _brief(ex))
            left = [one for one in wanted if not self._finish(arm, one, said.get(_doc(one), {}))]
            # as many as may have been under way count as paid; they are asked again
            for one in left[: entrant.at_once]:
                self._failed(arm, one, _brief(ex))
            return left[entrant.at_once :]
        self._take_in(arm, wanted, answers)
        return []

    def _one_by_one(self, arm: int, wanted: Sequence[Wanted]) -> None:
        """Ask each document by itself, so that what fails is known."""
        entrant = self.stable.entrants[arm]
        failures = 0
        for position, one in enumerate(wanted):
            if self._is_silent(arm):
                self.stable.record.asked(entrant.arm.name, [], 0)  # nothing is under way
                return
            try:
                (answer,) = self._round(arm, [one], {})
            except EvalbudgetError:
                raise
            except Exception as ex:
                failures += 1
                self._failed(arm, one, _brief(ex))
                if failures >= _GIVE_UP:
                    for rest in wanted[position + 1 :]:
                        self._failed(arm, rest, "not asked: the model kept failing", attempts=0)
                    break
            else:
                failures = 0
                self._take_in(arm, [one], [answer])
        entrant.is_suspect = failures > 0

    def _is_silent(self, arm: int) -> bool:
        """Whether a model that never answered has failed so often that it leaves."""
        lane = self.race.lanes[arm]
        if lane.tally.readings == 0 and lane.tally.failed >= _GIVE_UP:
            self.race.leave(arm, "it answered nothing")
        return lane.left is not None

    def _round(self, arm: int, wanted: Sequence[Wanted], said: dict[int, Said]) -> list[Answered]:
        """One round of the host; fills ``said`` as the model speaks."""
        entrant = self.stable.entrants[arm]
        assert entrant.primed is not None

        def received(asked: Asked, request: int, response: object) -> None:
            said.setdefault(asked.doc_id, {}).setdefault(request, []).append(response)
            self.stable.record.said(entrant.arm.name, asked.doc_id, asked.epoch, request, response)

        documents, epochs = [_doc(one) for one in wanted], [one.key[1] - 1 for one in wanted]
        if entrant.at_once > 1:
            pairs = list(zip(documents, epochs, strict=True))
            self.stable.record.asked(entrant.arm.name, pairs, entrant.at_once)
        return entrant.primed.run(
            [(self.stable.task, doc) for doc in documents], epochs=epochs, received=received
        )

    def _finish(self, arm: int, wanted: Wanted, said: Said) -> bool:
        """Score what the model said when its round broke off; False if that is not all it was asked."""
        entrant = self.stable.entrants[arm]
        assert entrant.primed is not None
        if not said:
            return False
        try:
            answers = entrant.primed.replay({Asked(self.stable.task, _doc(wanted), wanted.key[1] - 1): said})
        except EvalbudgetError:
            raise
        except Exception as ex:  # the model answered, and the task fails on it
            self._failed(arm, wanted, _brief(ex))
            return True
        self._take_in(arm, [wanted] * len(answers), answers)
        return bool(answers)

    # what came back

    def _take_in(self, arm: int, wanted: Sequence[Wanted], answers: Sequence[Answered]) -> None:
        entrant = self.stable.entrants[arm]
        entrant.is_suspect = False
        for answer in answers:  # all of them, before a score that is no good ends the race
            self.stable.record.bought(entrant.arm.name, Bought(answer.doc_id, answer.epoch, 1.0, answer))
        for one, answer in zip(wanted, answers, strict=True):
            self._count(answer)
            value, error = self._value(answer)
            self.race.completed(arm, one.key, value, error=error)

    def _failed(self, arm: int, wanted: Wanted, why: str, *, attempts: int = 1) -> None:
        name = self.stable.entrants[arm].arm.name
        self.stable.record.bought(name, Bought(_doc(wanted), wanted.key[1] - 1, float(attempts), None, why))
        self.race.completed(arm, wanted.key, None, attempts=attempts, error=why)

    def _count(self, answer: Answered) -> None:
        self.answers += 1
        self.calls += answer.requests

    def _known(self, bought: Bought) -> KnownCell:
        value, error = None, bought.error
        if bought.answer is not None:
            self._count(bought.answer)
            value, error = self._value(bought.answer)
        return KnownCell((str(bought.doc_id), bought.epoch + 1), value, int(bought.cost), error=error)

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


def _doc(wanted: Wanted) -> int:
    return int(wanted.key[0])


def _brief(ex: BaseException) -> str:
    """The kind of an error and the begin of its message."""
    text = " ".join(str(ex).split())
    text = text if len(text) <= _LONG else f"{text[:_LONG]}..."
    return f"{type(ex).__name__}: {text}" if text else type(ex).__name__
