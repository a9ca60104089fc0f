"""The run itself: rounds of the host's evaluate, until the budget is used up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any

from evalbudget import Allocation
from evalbudget.cells import CAME
from evalbudget.errors import EvalbudgetError, InvalidInputError, StoreError
from evalbudget.repeats import Repeat, Summary
from evalbudget.secrets import said_by
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import SCORED, Answered, Asked
from evalbudget_lm_eval.host.driving_metric import applies_to_some, driving_score
from evalbudget_lm_eval.host.feed import can_be_fed
from evalbudget_lm_eval.host.fingerprint import fingerprint_of
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks, tasks_of
from evalbudget_lm_eval.host.identity import is_api, model_name
from evalbudget_lm_eval.host.trial import names_its_own, score_in_trial, scores_targets
from evalbudget_lm_eval.judges.filter import check_judges, judged_at_random, judges_of, panel_of
from evalbudget_lm_eval.repeats.config import NO_JOURNAL, Config
from evalbudget_lm_eval.repeats.earlier_runs import left_alone, record_path
from evalbudget_lm_eval.repeats.forecast import Earlier, Foreseen, foreseen, records_in
from evalbudget_lm_eval.repeats.kept_answers import Answers, KeptAnswers
from evalbudget_lm_eval.repeats.money import Money
from evalbudget_lm_eval.repeats.output import results_of
from evalbudget_lm_eval.repeats.progress import MoneyProgress, Progress
from evalbudget_lm_eval.repeats.purchase import RepeatPurchase, counted_by, questions_of
from evalbudget_lm_eval.repeats.refusals import (
    check_budget,
    check_repeats,
    check_shared,
    clusters_of,
    drawn,
)
from evalbudget_lm_eval.run.record import Record
from evalbudget_lm_eval.run.resume import take_over_answers
from evalbudget_lm_eval.run.rounds import Rounds

log = shown_logger(__name__)
_LOOK = 0.25  # seconds between looks at what other processes did
ROUND = 32
"""Documents given to the host at a time, where the model takes no more at once."""
LARGER = 8
"""Times as many are given at once while nothing is decided."""


def run_budgeted(
    config: Config,
    lm: Any,
    tasks: Mapping[Any, Any],
    *,
    folder: Path = Path(),
    about: Mapping[str, Any] | None = None,
    told: Callable[[Summary], object] = lambda _summary: None,
    answers: Answers | None = None,
    **host: Any,
) -> dict[str, Any]:
    """The host's ``evaluate`` under a budget.

    Args:
        config: what the user asked for.
        lm: the host's model object.
        tasks: as for the host's ``evaluate``.
        folder: where journals go that were given no path.
        about: what else must be the same for a journal to be continued; JSON values.
        told: called with what the run found, in words, when it is over.
        answers: of a finished run, to be scored in place of asking the model.
        host: further arguments of the host's ``evaluate``.

    Returns:
        What the host's ``evaluate`` returns, with our rows and the block ``evalbudget``.

    Raises:
        EvalbudgetError: what was asked for cannot be done.
        Foreseen: it was only to be foreseen.
    """
    _, found = tasks_of(tasks)
    scores = {
        name: driving_score(name, task, config.score)
        for name, task in found.items()
        if not names_its_own(task, config.score) or panel_of(task) is not None  # whose judges would be asked
    }
    for task in found.values():
        if check_judges(task) is not None and config.estimators:
            raise InvalidInputError(
                "--estimators are of scores by one judge, and with judges that take turns scores "
                "differ by judge too; drop it"
            )
    with PrimedTasks(lm, tasks, **host) as primed:
        if config.dry_run:  # which runs no code of a task's
            _check_untried({name: task for name, task in found.items() if name not in scores}, config.score)
        else:
            scores = {name: scores.get(name) or score_in_trial(primed, name, config.score) for name in found}
        for name, key in scores.items():
            if applies_to_some(found[name], metric := key.partition(",")[0]):
                log.warning(
                    "evalbudget: the budget goes by %s of task %s, which is averaged by nanmean and need "
                    "not apply to every document: where it is nan, a document is asked until it is given "
                    "up. If a metric applies to all of them, name it with --score; the others have rows "
                    "beside it",
                    metric,
                    name,
                )
        config = drawn(config, primed)
        for strange in config.strange_variances(
            found, {} if config.variances is None else questions_of(primed)
        ):
            log.warning("evalbudget: %s", strange)
        clusters_of(config, primed)  # what it refuses
        # a larger budget would not help where these are refused
        repeats = config.fixed_repeats > 1 or config.repeat is Repeat.JUDGE
        if repeats:
            check_repeats(config, primed)
        if check_budget(config, primed) and not repeats:
            check_repeats(config, primed)
        run: dict[str, Any] = {"model": model_name(lm), "prompts": fingerprint_of(primed), "score": scores}
        if config.store is not None:
            check_shared(primed)
            run["store"] = config.store
        run |= about or {}
        judges = {name: panel.identity for name, task in found.items() if (panel := panel_of(task))}
        if judges:
            run["judges"] = judges
        if config.scorer is not None:
            run["scorer"] = config.scorer
        if config.repeat is Repeat.JUDGE:
            run["repeat"] = config.repeat.value
        if answers is not None:
            answers.check(primed)
            run["answers"] = answers.digest
        if config.dry_run:
            earlier = Earlier.of(records_in(folder, config), run, config.unit)
            money = None if config.in_scores else Money.checked(config, primed, asks_model=answers is None)
            raise Foreseen(foreseen(config, primed, money, earlier))
        path = None if config.journal == NO_JOURNAL else record_path(config, primed, run, folder)
        if path is not None and config.journal is None and config.store is None and not path.exists():
            for said in left_alone(path, run, counted_by(config)):
                log.warning("evalbudget: %s", said)
        book = RepeatPurchase(
            *(config, primed), scores=scores, path=path, run=run, asks_model=answers is None
        )
        try:
            started = _Run(book, told, answers)
        except BaseException:
            book.leave(None, took_over=False)
            book.record.close()
            raise
        return started.until_done()


def _check_untried(tasks: Mapping[str, Any], wanted: str | None) -> None:
    """Of tasks whose own code names their scores: what can be refused without running it.

    Raises:
        UnknownNameError: a task has no such filter.
        InvalidInputError: none of its metrics, or not this one, is averaged.
    """
    for name, task in tasks.items():
        if wanted is None or wanted.partition(",")[0].strip() in task.aggregation():
            driving_score(name, task, wanted)
        else:
            log.warning(
                "evalbudget: whether task %s gives a score %s is for its own code to say, which a dry run "
                "does not run; the run itself finds out before it asks anything",
                name,
                wanted,
            )


def foresee(config: Config, lm: Any, tasks: Mapping[Any, Any], **host: Any) -> None:
    """Of a run without a budget, scored by judges.

    Raises:
        EvalbudgetError: its judges cannot be used.
        Foreseen: always, otherwise.
    """
    for task in tasks_of(tasks)[1].values():
        check_judges(task)
    with PrimedTasks(lm, tasks, **host) as primed:
        raise Foreseen(foreseen(config, primed, None, Earlier()))


class _Run:
    """The state of one run; it buys what its rounds bring."""

    def __init__(
        self, book: RepeatPurchase, told: Callable[[Summary], object], answers: Answers | None
    ) -> None:
        self.book = book
        self._answers = None
        if book.config.repeat is Repeat.JUDGE:
            self._answers = KeptAnswers(book.primed, book.kept, {} if answers is None else answers.said)
        money = book.money
        self.rounds = Rounds(
            book.primed,
            book.kept,
            self,
            heard=self._heard,
            seed=str(book.config.seed),
            paid=None if money is None else money.paid,
        )
        self._told = told
        asked = [book.primed.lm] if self._answers is None else [book.primed.lm, *judges_of(book.primed)]
        self._size = max(ROUND, sum(map(at_once, asked)))
        self._suspects: list[tuple[Asked, Exception]] = []
        """Nothing was answered since these failed: it is the server, or they cannot be answered."""
        self._continues = False
        self._checked = False
        self._doubted: set[str] = set()
        """Tasks without a score for their own target: the first answer tells whether they have any."""
        self._tries = 0
        self._trying = False
        self.scored_again = 0
        self._judged = {name for name in book.primed.names if panel_of(book.primed.task(name)) is not None}
        self._progress = (
            Progress(book.budget.amount) if money is None else MoneyProgress(money.bill, time.monotonic)
        )

    def until_done(self) -> dict[str, Any]:
        book, money = self.book, self.book.money
        with nullcontext() if money is None else money.before_calls():
            return self._until_done(book, book.record)

    def _until_done(self, book: RepeatPurchase, record: Record) -> dict[str, Any]:
        budget, before, began = book.budget, book.n_read, time.monotonic()
        error: BaseException | None = None
        took_over = False
        try:
            self._doubted = self._doubtful_tasks()
            self._take_over()
            took_over = True
            self._continues = book.n_read > 0
            if record.finished and book.book.finished:
                log.warning(
                    "evalbudget: this run is finished, and %s has its %s: no call is made. Another %s buys "
                    "everything again",
                    record.path,
                    book.shown(book.spent),
                    "--store" if book.is_shared else "--journal",
                )
            elif book.is_shared:
                spent, whole = book.shown(book.spent).partition(" ")[0], book.shown(budget.amount)
                log.warning(
                    "evalbudget shares the budget of %s: %s of %s are spent", book.config.store, spent, whole
                )
            elif self._continues:
                anew = "; another --journal buys everything again" if record.finished else ""
                spent = book.shown(book.spent)
                log.warning("evalbudget continues %s: %s are spent%s", record.path, spent, anew)
            book.primed.hides_bars = tells_calls(book.primed.lm)
            self._progress.start(book.spent)
            try:
                self._loop()
            finally:
                self._progress.close()
            asked = time.monotonic()
            results, summary = results_of(book, rounds=self.rounds.count, scored_again=self.scored_again)
            # only now: the same command tries again what failed
            record.finish(
                None if book.money is None else budget.amount,
                seconds=asked - began,
                readings=book.n_read - before,
            )
        except BaseException as ex:
            error = ex
            if isinstance(ex, Exception) and took_over:
                book.kept.stop()
            if not isinstance(ex, StoreError):
                book.catch_up()
            if record.path is not None and book.asked:
                log.warning(
                    "evalbudget: %s of %s are spent and kept in %s; run the same command with "
                    "--journal %s to continue",
                    book.shown(book.spent).partition(" ")[0],
                    book.shown(budget.amount),
                    record.path,
                    record.path,
                )
            raise
        finally:
            book.leave(error, took_over=took_over)
            record.close()
        self._told(summary)
        return results

    def _take_over(self) -> None:
        """What an earlier run paid for."""
        book = self.book
        own, counted = counted_by(book.config), book.record.counted
        if counted not in (None, own):
            raise InvalidInputError(
                f"--journal {book.record.path} counts scores by {counted}, and this run by {own}; use the "
                "settings recorded, or another --journal"
            )
        self.scored_again = self._score_again()
        known, untold = take_over_answers(book.primed, book.kept), set(book.untold)
        answers = [answer for answer in known if answer.asked in untold]
        if not book.n_read:
            self._check_range(answers)
        book.tell(answers)
        book.fit()  # a judge that is asked again is paid again, which the budget may not allow after a kill
        if self._answers is not None:
            self._answers.scorable(book.held)
        said = [asked for asked in book.untold if asked in book.kept.said]
        # by itself one that cannot be scored may be the odd one
        self.rounds.finish(book.untold, gives_up=len(said) == 1 and said[0].task in self._doubted)
        book.count_cut_off()

    def _score_again(self) -> int:
        """By the task as it is now, if it was edited since its answers were bought; how many are scored anew.

        What judges said stands: they are part of what must not change.
        """
        book = self.book
        before, documents = book.record.scoring, set(book.documents)
        if before in (None, book.scoring) or self._judged:
            return 0
        said: dict[Asked, dict[int, list[Any]]] = {
            one.asked: {number: list(texts) for number, texts in enumerate(one.samples[0]["resps"])}
            for one in book.kept.bought
            if one.samples and one.asked.document in documents
        }
        answers = book.primed.replay(said)
        book.primed.keep_only(())  # they are taken over as they are on record
        for answer in answers:
            book.kept.answer(answer)
        changed = book.score_again(answers)
        book.record.score_by(book.scoring)
        log.warning(
            "evalbudget: the task was edited since its answers were bought: all %d were scored again, which "
            "costs nothing, and %d have another score now. Where a task is edited because of its scores, no "
            "interval holds",
            len(answers),
            changed,
        )
        return len(answers)

    def _loop(self) -> None:
        cells = self.book.held
        while cells or (cells := self._next()) or self._suspects:
            if cells:
                self._ask(cells)
            elif self.book.n_read:
                self._give_up_suspects()
            else:
                raise self._suspects[-1][1]  # nothing ever worked
            cells = []

    def _next(self) -> list[Asked]:
        """Cells to ask; none if nothing is left to ask for any process."""
        book, waits = self.book, False
        while not (cells := self._bought()):
            if not book.is_shared or self._suspects or book.book.finished:
                break
            if not waits:
                log.warning("evalbudget: waiting for what other processes have under way")
            waits = True
            time.sleep(_LOOK)
        return cells

    def _bought(self) -> list[Asked]:
        cells = self.book.ask(self._next_size())
        if self.rounds.count:
            self._progress.spent(self.book.spent)
        return cells

    def _doubtful_tasks(self) -> set[str]:
        scores, primed = self.book.scores, self.book.primed
        cells = self.book.book.cells()
        read = {self.book.documents[item][0] for item in cells.item[cells.state == CAME].tolist()}
        unasked = scores.keys() - self._judged - read  # a trial would ask judges
        own = [name for name in unasked if not judged_at_random(primed.task(name))]
        return {name for name in own if not scores_targets(primed, name, scores[name])}

    def _try(self, asked: Asked) -> None:
        """Ask one alone, and refuse its task if that has no score."""
        self._doubted.discard(asked.task)
        self._tries += 1
        self._trying = True
        try:
            self.rounds.ask([asked])
        except EvalbudgetError:
            raise
        except Exception as ex:  # the task's own
            raise InvalidInputError(
                f"task {asked.task!r} can score neither what the model said to document {asked.doc_id} "
                f"({said_by(ex)}) nor its own target; mend it, and run the same command again: what was "
                "said is kept"
            ) from ex
        finally:
            self._trying = False

    def _ask(self, cells: Sequence[Asked]) -> None:
        for name in sorted(self._doubted):
            if (first := next((asked for asked in cells if asked.task == name), None)) is not None:
                self._try(first)
                cells = [asked for asked in cells if asked != first]
        if self._answers is None:
            self.rounds.ask(cells, self._more if self._is_fed else None)
            return
        while cells:
            now = self._answers.scorable(cells)
            self.rounds.ask(now)
            cells = [asked for asked in cells if asked not in now]

    @property
    def _is_fed(self) -> bool:
        """Whether others may be asked while some are under way: nothing of them depends on these."""
        book, begun = self.book, self.rounds.count > self._tries and self.rounds.hears
        decided = begun and book.sampler.allocation is not Allocation.ADAPTIVE
        return decided and not book.is_shared and can_be_fed(book.primed.lm)

    def _more(self) -> Sequence[Asked]:
        """What is asked beside what is under way; none as long as it depends on that."""
        if self._doubted or self._suspects or self._may_give_up:
            return []
        cells = self.book.ask(self._next_size())
        self._progress.reached(self.book.spent)
        return cells

    @property
    def _may_give_up(self) -> bool:
        """Whether a document may be given up, which should not be asked for all of its repeats before."""
        return bool((doubtful := self.rounds.doubtful) and doubtful.difference(self.book.given_up))

    def _next_size(self) -> int:
        """More at once where nothing that is asked depends on what comes back."""
        book, sampler = self.book, self.book.sampler
        # in the first round, that no score is a number should not cost more than it has to
        if book.is_shared or not self.rounds.count:
            return self._size
        if self._may_give_up:
            return self._size
        most = self._size * LARGER
        if sampler.allocation is not Allocation.ADAPTIVE:  # phases hand out what is decided
            return most
        warmup = len(book.documents) * max(sampler.fixed_repeats, 1) - book.asked
        return min(max(warmup, self._size), most)

    # what comes back

    def _heard(self, asked: Asked, number: int) -> None:
        if self.book.money is not None or (number == SCORED) == (
            asked.task in self._judged
        ):  # the calls that the budget counts
            self._progress.heard()

    def answered(self, answers: Sequence[Answered]) -> None:
        first = self.rounds.count <= 1 + self._tries and not self._continues and not self._checked
        if first and not self._trying:
            self._check_range(answers)
        self.book.tell(answers)
        if first or self._trying:
            self._check_scores(answers)
            self._checked |= not self._trying
        self._give_up_suspects()

    def failed(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        if self._trying and asked in self.book.kept.said:
            raise error
        if paid:
            self.book.fail(asked, f"its round failed: {said_by(error)}")
        else:
            self._suspects.append((asked, error))

    def pays(self, calls: int) -> bool:
        return self.book.pays(calls)

    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        return self.book.gives_up(cells, calls)

    def unaffordable(self, cells: Sequence[Asked]) -> None:
        self.book.unaffordable(cells)

    def down(self, rest: Sequence[Asked], error: Exception) -> None:
        raise error

    def _give_up_suspects(self) -> None:
        suspects, self._suspects = self._suspects, []
        for asked, error in suspects:
            self.book.fail(asked, said_by(error))

    def _check_range(self, answered: Sequence[Answered]) -> None:
        """Before the sampler is told: with another range they count as they are."""
        declared = self.book.config.score_range
        if declared is None:
            return
        for task in {a.task for a in answered}:
            wanted = self.book.scores[task]
            own = [v for a in answered if a.task == task and isfinite(v := a.metrics.get(wanted, nan))]
            outside = [value for value in own if not declared[0] <= value <= declared[1]]
            if 2 * len(outside) > len(own):
                remedy = "Run the same command with the right range: no answer is bought twice"
                if self.book.is_shared:
                    remedy = "Begin a new store with the right range"
                raise InvalidInputError(
                    f"--score_range is {declared[0]:g}..{declared[1]:g}, and {len(outside)} of the first "
                    f"{len(own)} scores {wanted!r} of task {task!r} are outside: they go from {min(own):g} "
                    f"to {max(own):g}. {remedy}"
                )

    def _check_scores(self, answered: Sequence[Answered]) -> None:
        for task in {a.task for a in answered}:
            wanted = self.book.scores[task]
            own = [a.metrics for a in answered if a.task == task]
            if self._trying:
                own = [{key: n for key, n in metrics.items() if not isnan(n)} for metrics in own]
            if not any(wanted in metrics for metrics in own):
                numbers = sorted({key for metrics in own for key in metrics})
                raise InvalidInputError(
                    f"task {task!r} gave no number as {wanted!r} for "
                    + (
                        "its first answer nor its own target; "
                        if self._trying
                        else f"any of {len(own)} documents; "
                    )
                    + (f"use --score {' or '.join(numbers)}" if numbers else "no metric of it is a number")
                    + " (what was spent is in the journal)"
                )


def at_once(lm: Any) -> int:
    """How many requests the model takes at once, as far as it says."""
    sizes = [getattr(lm, "_concurrent", 1) if is_api(lm) else 1, getattr(lm, "batch_size", 1)]
    return max((size for size in sizes if isinstance(size, int)), default=1)


def tells_calls(lm: Any) -> bool:
    """Whether the model's class reports every call as it is answered, so that the host's bars add nothing."""
    return is_api(lm) or any(base.__name__ == "HFLM" for base in type(getattr(lm, "lm", lm)).__mro__)
