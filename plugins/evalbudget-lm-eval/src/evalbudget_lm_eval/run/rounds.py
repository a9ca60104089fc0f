"""The rounds in which a model is asked; of one that breaks off nothing that was paid for is lost."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import takewhile
from typing import Any, Protocol

from lm_eval.api.instance import Instance

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.outage import DOWN_AFTER, is_down
from evalbudget.repeats import COPIED, Copies
from evalbudget.secrets import said_by
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import Answered, Asked, key_of
from evalbudget_lm_eval.host.billing import at_a_kill
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import is_api, short_name
from evalbudget_lm_eval.host.paid_calls import PaidCalls, judging
from evalbudget_lm_eval.host.seeds import seed_round, seeds_of_host
from evalbudget_lm_eval.host.used_up import UsedUpError
from evalbudget_lm_eval.host.wire import Wire, signals_raise, wired
from evalbudget_lm_eval.judges.at_most import judgings_at_most
from evalbudget_lm_eval.judges.filter import judged_at_random, panel_of
from evalbudget_lm_eval.run.kept import Bought, Kept, Said

log = shown_logger(__name__)

More = Callable[[], Sequence[Asked]]
MANY = 32
"""Answers, or as many as are under way at once, that are scored together as long as others wait."""
ENOUGH = 3
"""Times as many as are scored together are to be under way, or to wait for that."""


class Buyer(Protocol):
    """Who pays for the rounds: a run, or a race for one of its arms."""

    def answered(self, answers: Sequence[Answered]) -> None:
        """Cells were scored, and are recorded."""

    def failed(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        """A cell has no score.

        Args:
            asked: the cell.
            error: why.
            paid: it may be billed: its call was cut off, or the task failed on its answer. Otherwise the host
                raised when it was asked by itself: it cannot be answered, or nothing can.
        """

    def pays(self, calls: int) -> bool:
        """Pay for calls that brought no answer; False, and nothing paid, if they exceed what is left."""

    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        """Pay for them all the same, out of what was put aside for cells; those are returned that remain."""

    def unaffordable(self, cells: Sequence[Asked]) -> None:
        """They were not asked, or not in full: what that can cost does not fit into what is left."""

    def down(self, rest: Sequence[Asked], error: Exception) -> None:
        """So many failed one after the other that the rest is not asked."""


class Rounds:
    """Asks one model, round by round.

    Args:
        primed: its tasks.
        kept: its record.
        buyer: told what came back.
        heard: told of every call that is answered, for whoever shows how far it is.
        arm: its name in a race.
        seed: of the run; with the host's own and the cells of a round it decides what a local model samples.
        paid: keeps the bill of a budget in money or tokens; None where calls are counted.

    Attributes:
        count: rounds of the host so far.
        hears: whether the model's class has reported an answer as it came.
    """

    def __init__(
        self,
        primed: PrimedTasks,
        kept: Kept,
        buyer: Buyer,
        *,
        heard: Callable[[Asked, int], object] = lambda asked, number: None,
        arm: str = "",
        seed: str = "",
        paid: PaidCalls | None = None,
    ) -> None:
        self._paid = paid
        if paid is not None:
            primed.owners = paid.owners
        self._primed = primed
        self._at_random = {name for name in primed.names if judged_at_random(primed.task(name))}
        """Tasks of which judges may say something else of the same answer."""
        self._is_api, self._at_a_kill = is_api(primed.lm), at_a_kill(primed.lm)
        self._kept = kept
        self._buyer = buyer
        self._heard = heard
        self._arm = arm
        self._seed = f"{seed} {seeds_of_host()}"
        self._copies = Copies()
        self._remember([one.answer for one in kept.bought if one.answer is not None])
        self._warned = False
        self.hears = False
        self.count = 0
        self._billed = 0  # calls that may be billed, of the cell that was asked alone and failed
        self._unscored: dict[Asked, Exception] = {}
        self._wire: Wire | None = None  # of a round; it holds the model, which a race drops between two
        self._owed = 0  # calls that brought no answer, and exceed what was left of the budget
        self._unpaid: list[Any] = []  # what they asked
        self._failed = failed_alone(kept.bought)  # one after the other, by themselves
        self._doubtful: set[tuple[str, int]] = {b.asked.document for b in kept.bought if b.samples is None}
        """Documents that may break a round off again: they are asked by themselves."""

    def ask(self, cells: Sequence[Asked], more: More | None = None) -> None:
        """Have cells answered and scored, those first of which a round that broke off left the answer.

        Args:
            cells: which.
            more: others to ask meanwhile, of a model that :func:`can_be_fed`; none for now, or ever.

        Raises:
            EvalbudgetError: what the buyer, the record or the task's judges refuse.
            Exception: what the buyer raises if the model is down, or the task of a run if it scores nothing.
        """
        left = self.finish(cells)
        # by themselves first: what others say after them tells whether the server is gone
        left.sort(key=lambda asked: asked[:2] not in self._doubtful)
        broke_off = False
        while left:
            together = len(left) > 1 and not broke_off and not self._failed
            if together and left[0].document not in self._doubtful:
                left, broke_off = self._ask_together(left, more)
                cells = tuple(left)
                continue
            error = self._ask_alone(left.pop(0))
            if error is not None and self._is_down(cells):
                self._settled(left)
                self._buyer.down(left, error)
                return

    def _is_down(self, cells: Sequence[Asked]) -> bool:
        """Many failed, and not only repeats of the same few documents."""
        if len({asked.document for asked in cells}) == len(cells):
            return is_down(len(self._failed))
        documents = sum(len(self._primed.documents(name)) for name in self._primed.names)
        return is_down(len(self._failed)) and len(set(self._failed)) >= min(DOWN_AFTER, documents)

    @property
    def doubtful(self) -> frozenset[tuple[str, int]]:
        """Documents that could not be answered when they were asked last."""
        return frozenset(self._doubtful)

    def finish(self, cells: Sequence[Asked], *, gives_up: bool = False) -> list[Asked]:
        """Score what the model said to these in a round that broke off, in this run or an earlier one.

        Args:
            cells: which.
            gives_up: what cannot be scored has failed, also where nothing was scored yet.

        Returns:
            The others, which it has yet to be asked.
        """
        said = self._said_to(cells)
        if said:
            self._score(said)
        self._fail_unscored(gives_up=gives_up)
        return [asked for asked in cells if asked not in said or asked in self._kept.said]

    def _said_to(self, cells: Sequence[Asked]) -> dict[Asked, Said]:
        return {asked: self._kept.said[asked] for asked in cells if asked in self._kept.said}

    def _score(self, said: dict[Asked, Said]) -> None:
        calls_go_on = self._wire is not None
        try:
            with nullcontext() if calls_go_on else signals_raise():
                answers = self._primed.replay(said, received=self._rescored, bill=self)
        except UsedUpError:  # by a judge; what others were told may be complete
            if len(said) > 1:
                for asked, own in said.items():
                    self._score({asked: own})
        except EvalbudgetError:
            raise
        except Exception as ex:  # the model answered, and the task fails on it
            if len(said) == 1:
                self._unscored |= dict.fromkeys(said, ex)
                return
            for asked, own in said.items():
                self._score({asked: own})
        else:
            if calls_go_on:
                self._refuse_copies(answers)
            self._take_in(answers)

    def _fail_unscored(self, *, gives_up: bool) -> None:
        unscored, self._unscored = self._unscored, {}
        if unscored and not (self._arm or gives_up) and all(one.samples is None for one in self._kept.bought):
            raise next(iter(unscored.values()))  # it is the task; once it is mended, they are scored
        for asked, error in unscored.items():
            self._fail(asked, error, paid=True)

    def _ask_together(self, cells: list[Asked], more: More | None) -> tuple[list[Asked], bool]:
        """One round of several: those that have yet to be asked, and whether it failed."""
        had = len(self._kept.bought)
        try:
            answers = self._run(cells, more)
        except UsedUpError:
            left = self.finish(cells)
            # judges that were paid, now or meanwhile, took less than was kept for them
            if len(left) < len(cells) or len(self._kept.bought) > had:
                return left, False
            self._unaffordable(left)
            return [], False
        except EvalbudgetError:
            raise
        except Exception as ex:
            left = self.finish(cells)
            log.log(
                logging.INFO if self._arm else logging.WARNING,  # a race has its table for that
                "evalbudget: a round%s failed (%s); %d of its %d answers were had, the others are asked one "
                "by one",
                f" of arm {self._arm}" if self._arm else "",
                said_by(ex),
                len(cells) - len(left),
                len(cells),
            )
            owed, self._owed = self._owed, 0
            left.sort(key=self._is_unpaid)
            return (list(self._buyer.gives_up(left, owed)) if owed else left), True
        self._refuse_copies(answers)
        self._take_in(answers)
        return ([], False) if more is None else (cells, True)

    def _unaffordable(self, cells: Sequence[Asked]) -> None:
        self._settled(cells)
        self._buyer.unaffordable(cells)

    def _settled(self, cells: Iterable[Asked]) -> None:
        if self._paid is not None:
            for asked in cells:
                self._paid.settled(asked)

    def _ask_alone(self, asked: Asked) -> Exception | None:
        """Find out whether the model is down, or this document cannot be answered; what the host raised."""
        try:
            answers = self._run([asked])
        except UsedUpError:
            self._unaffordable(self.finish([asked]))
            return None
        except EvalbudgetError:
            raise
        except Exception as ex:
            if not self.finish([asked]):
                return None
            self._failed.append(asked.document)
            self._doubtful.add(asked.document)
            self._fail(asked, ex, paid=self._billed > 0)
            return ex
        self._doubtful.discard(asked[:2])
        self._refuse_copies(answers)
        self._take_in(answers)
        return None

    def _run(self, cells: list[Asked], more: More | None = None) -> list[Answered]:
        """Have them answered; with more, they are scored meanwhile, and what was not stays in the list."""
        self._begin(cells, cells)
        if not self._is_api:
            seed_round(self._seed, cells)
        try:
            return self._send(cells, more)
        except Exception:
            raise
        except BaseException:
            # score what was had, unless that takes further calls: a run that is continued makes them, and
            # scores what cannot be now, while everything is being taken down
            if not any(panel_of(self._primed.task(name)) for name in {asked.task for asked in cells}):
                self._score(self._said_to(cells))
                self._unscored.clear()
            if self._billed:
                self._kept.pay(self._billed)
            self._kept.stop()
            raise

    def _begin(self, cells: Sequence[Asked], new: Sequence[Asked]) -> None:
        """On record: these are under way, of which some have begun."""
        self.count += 1
        self._kept.ask({asked: self._calls(asked) for asked in cells}, self._at_a_kill)
        if self._paid is not None:
            self._paid.expect(judgings_at_most(self._paid, self._primed, new))

    def _send(self, cells: list[Asked], more: More | None) -> list[Answered]:
        self._billed = 0
        with wired(self._primed.lm, self, alone=len(cells) == 1) as wire:
            self._wire = wire
            if self._paid is not None:
                self._paid.stopped = lambda: wire.stopped
            try:
                if more is not None:
                    self._feed(cells, more, wire)
                    return []
                said = self._said_to(cells)
                return self._primed.run(cells, said=said, received=self._received, bill=self)
            except BaseException:
                wire.settle()
                self._billed, self._unpaid = wire.billed, wire.unpaid
                raise
            finally:
                self._wire = None
                if self._paid is not None:
                    self._paid.stopped = lambda: False

    def _feed(self, cells: list[Asked], more: More, wire: Wire) -> None:
        """Score answers as they come, and see to it that others are under way, unless one fails."""
        at_once = self._primed.lm._concurrent
        wire.limit, few = asyncio.Semaphore(at_once), ENOUGH * max(MANY, at_once)
        ready = partial(self._worth_scoring, cells, wire)
        with self._primed.fed(self._received, wire.end) as feed:
            feed.send(cells, self._said_to(cells))
            while done := feed.wait(ready):
                unscored, scored = self.finish(done), set(done)
                cells[:] = [asked for asked in cells if asked not in scored or asked in unscored]
                if unscored:
                    raise UsedUpError("judges")
                if len(cells) < few and not wire.fails and (new := more()):
                    cells += new
                    self._begin(cells, new)
                    feed.send(new, self._said_to(new))

    def _worth_scoring(self, cells: Sequence[Asked], wire: Wire) -> Sequence[Asked]:
        """Those that were answered, if they are many, or nothing else waits to be sent."""
        done, at_once = [one for one in cells if not self._kept.unheard(one)], self._primed.lm._concurrent
        enough = len(done) >= max(MANY, at_once) or len(cells) - len(done) <= at_once
        return done if enough and not wire.stopped else []

    def _is_unpaid(self, asked: Asked) -> bool:
        requests = self._primed.instances(asked.task, asked.doc_id)
        return any(request.args[0] in self._unpaid for request in requests)

    def begins(self, asked: Asked, judge: str) -> None:
        """On record: killed before the judge's reply is there, the call counts as spent."""
        self._kept.begin(asked, judge)

    def will_ask(self, calls: Iterable[tuple[Asked, Any, Instance]]) -> None:
        """So that none of an answer's judges is asked unless all can be paid."""
        if self._paid is not None:
            judgings: dict[str, list[tuple[str, float]]] = {}
            for asked, lm, request in calls:
                most = short_name(lm), self._paid.most_of(lm, request)
                judgings.setdefault(key_of(asked), []).append(most)
            self._paid.expect(judgings)

    def asks(self, asked: Sequence[Asked]) -> None:
        """So that the bill says for which cells its judges are paid."""
        judging.set([key_of(one) for one in asked])

    def pays(self, calls: int) -> bool:
        """As the buyer does, and on record."""
        if not self._buyer.pays(calls):
            return False
        self._kept.pay(calls)
        return True

    def owes(self, calls: int) -> None:
        """On record; the buyer hears of it when the round is over."""
        self._kept.pay(calls)
        self._owed += calls

    def _refuse_copies(self, answers: Sequence[Answered]) -> None:
        """End a run whose model only says again what it said before; its copies count as failed.

        Raises:
            InvalidInputError: all of a round are copies, though the model varied before.
        """
        asked = [answer for answer in answers if answer.task not in self._at_random]
        places, chance = self._copies.among([(one.asked[:2], _text(one)) for one in asked])
        copies = [asked[place] for place in places]
        self._remember(asked)
        if not copies:
            return
        if chance > COPIED:
            if not self._warned and not self._copies.has_varied:
                self._warned = True
                log.warning(
                    "evalbudget: all %d second answers of a round are letter for letter what the model said "
                    "before to the same documents; repeats of such answers teach nothing. Is its seed "
                    "fixed, or its temperature 0?",
                    len(copies),
                )
            return
        self._take_in([answer for answer in answers if answer not in copies])
        for answer in copies:
            self._fail(answer.asked, InvalidInputError("a copy of an earlier answer"), paid=True)
        raise InvalidInputError(
            f"all {len(copies)} answers of a round are letter for letter what the model said before to the "
            "same documents, and it varied until then: it draws the same random numbers again, and its "
            "answers are no repeats. They count as failed; have the model sample with another seed, for "
            "example by --model_args seed=2"
        )

    def _remember(self, answers: Sequence[Answered]) -> None:
        for answer in answers:
            # what has no score is asked again because of that, and may rightly be the same once more
            if any(map(math.isfinite, answer.metrics.values())):
                self._copies.remember(answer.asked[:2], _text(answer))

    def _received(self, asked: Asked, number: int, response: Any) -> None:
        self._kept.hear(asked, number, response)
        self._heard(asked, number)
        if self._wire is not None and number >= 0:
            self.hears = True
            self._wire.heard()

    def _rescored(self, asked: Asked, number: int, response: Any) -> None:
        self._kept.hear(asked, number, response)
        self._heard(asked, number)

    def _take_in(self, answers: Sequence[Answered]) -> None:
        if not answers:
            return
        self._failed.clear()
        for answer in answers:  # all of them, before a score that is no good ends the run
            self._kept.answer(answer)
        self._settled(answer.asked for answer in answers)
        self._buyer.answered(answers)

    def _fail(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        self._settled([asked])
        self._buyer.failed(asked, error, paid=paid)
        self._kept.settle(asked)

    def _calls(self, asked: Asked) -> int:
        return sum([one.repeats or 1 for one in self._primed.instances(asked.task, asked.doc_id)])


def _text(answer: Answered) -> str:
    """What the model said."""
    return repr([record.get("resps") for record in answer.records[:1]])


def failed_alone(bought: Sequence[Bought]) -> list[tuple[str, int]]:
    """Documents that failed by themselves since the last answer, when an earlier race ended."""
    since = takewhile(lambda one: one.samples is None, reversed(bought))
    return [one.asked.document for one in since if one.alone]
