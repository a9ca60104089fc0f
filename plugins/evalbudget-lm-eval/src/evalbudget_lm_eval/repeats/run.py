"""The run itself: rounds of the host's evaluate, until the budget is used up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbudget import Request
from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.repeats.summary import Summary
from evalbudget_lm_eval.host.answers import SCORED, Answered, Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks, tasks_of
from evalbudget_lm_eval.host.identity import model_name
from evalbudget_lm_eval.host.refusals import check_budget, check_repeats, is_api
from evalbudget_lm_eval.host.scores import driving_score
from evalbudget_lm_eval.judges.filter import check_judges, panel_of
from evalbudget_lm_eval.repeats.bookkeeping import Book, fingerprint_of
from evalbudget_lm_eval.repeats.config import DEFAULT_ROUND, NO_JOURNAL, Config
from evalbudget_lm_eval.repeats.journals import journal_path
from evalbudget_lm_eval.repeats.outcome import results_of
from evalbudget_lm_eval.repeats.progress import Progress

log = logging.getLogger(__name__)
_WARMUP_ROUNDS = 8  # rounds given at once while nothing is decided yet


def run_budgeted(
    config: Config,
    lm: Any,
    tasks: Mapping[Any, Any],
    *,
    folder: Path = Path(),
    about: Mapping[str, Any] | None = None,
    told: Callable[[Summary], object] = lambda _summary: None,
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
        host: further arguments of the host's ``evaluate``.

    Returns:
        What the host's ``evaluate`` returns, with our rows and the block ``evalbudget``.

    Raises:
        EvalbudgetError: what was asked for cannot be done.
    """
    _, found = tasks_of(tasks)
    scores = {name: driving_score(name, task, config.score) for name, task in found.items()}
    for task in found.values():
        check_judges(task)
    with PrimedTasks(lm, tasks, vary_seed=config.vary_seed, **host) as primed:
        repeats = config.fixed_repeats > 1  # a larger budget would not help where these are refused
        if repeats:
            check_repeats(primed)
        if check_budget(config, primed) and not repeats:
            check_repeats(primed)
        run: dict[str, Any] = {"model": model_name(lm), "prompts": fingerprint_of(primed), "score": scores}
        run |= {"vary_seed": config.vary_seed, **(about or {})}
        judges = {name: panel.identity for name, task in found.items() if (panel := panel_of(task))}
        if judges:
            run["judges"] = judges
        path = None if config.journal == NO_JOURNAL else journal_path(config, primed.names, run, folder)
        book = Book(config, primed, scores=scores, path=path, run=run)
        return _Run(book, told).until_done()


class _Run:
    """The state of one run."""

    def __init__(self, book: Book, told: Callable[[Summary], object]) -> None:
        self.book = book
        self._told = told
        self.rounds = 0
        self._size = book.config.round_size or max(DEFAULT_ROUND, at_once(book.primed.lm))
        self._suspects: list[tuple[Request, str]] = []
        self._doubtful: set[int] = set()  # documents that may break a round off again: asked by themselves
        self._error: Exception | None = None
        self._scored_before = 0
        self._judged = {name for name in book.primed.names if panel_of(book.primed.task(name)) is not None}
        self._progress = Progress(book.purchase.ledger.budget.amount)

    def until_done(self) -> dict[str, Any]:
        reason = None
        book = self.book
        try:
            book.catch_up()
            book.count_cut_off(in_flight(book.primed.lm))
            self._scored_before = sum(r.value is not None for r in book.purchase.journal.readings)
            if self._scored_before:
                log.warning(
                    "evalbudget continues %s: %s calls are spent",
                    book.path,
                    f"{book.purchase.ledger.spent:,.0f}",
                )
            book.primed.hides_bars = tells_calls(book.primed.lm)
            self._progress.start(book.purchase.ledger.spent)
            try:
                self._loop()
            finally:
                self._progress.close()
            results, summary = results_of(book, round_size=self._size, rounds=self.rounds)
            reason = book.stop_reason  # only now: what fails before is tried again by the same command
        except BaseException as ex:
            if isinstance(ex, Exception):
                book.stop(type(ex).__name__)
            if book.path is not None and book.sampler.asked:
                log.warning(
                    "evalbudget: %s of %s calls are spent and kept in %s; run the same command with "
                    "--journal %s to continue",
                    f"{book.purchase.ledger.spent:,.0f}",
                    f"{book.purchase.ledger.budget.amount:,.0f}",
                    book.path,
                    book.path,
                )
            raise
        finally:
            book.close(reason)
        self._told(summary)
        return results

    def _loop(self) -> None:
        book = self.book
        requests = book.outstanding
        while True:
            if not requests:
                requests = book.ask(self._next_size())
            if not requests:
                if not self._suspects:
                    return
                if self._error is not None and not any(
                    r.value is not None for r in book.purchase.journal.readings
                ):
                    raise self._error  # nothing ever worked
                self._give_up_suspects()
                continue
            self._round(requests)
            self._progress.spent(book.purchase.ledger.spent)
            requests = []

    def _next_size(self) -> int:
        """More at once while the sampler reads everything the same number of times anyway."""
        if not self.rounds:  # that no score is a number should not cost more than it has to
            return self._size
        sampler = self.book.sampler
        warmup = len(self.book.documents) * max(sampler.fixed_repeats, 1) - sampler.asked
        if self.book.config.round_size is None and warmup > self._size:
            return min(warmup, self._size * _WARMUP_ROUNDS)
        return self._size

    def _round(self, requests: Sequence[Request]) -> None:
        alone = [request for request in requests if request.cell.item in self._doubtful]
        together = [request for request in requests if request.cell.item not in self._doubtful]
        self._one_by_one(alone)  # first: what others say after them tells whether the server is gone
        if together:
            self._ask_host(together)

    def _ask_host(self, requests: Sequence[Request]) -> None:
        """One round of several requests; of a round that fails, what was answered is kept."""
        book = self.book
        try:
            answered = self._run(requests)
        except EvalbudgetError:
            raise
        except Exception as ex:
            had = self._salvage()
            if had:
                self._give_up_suspects()
            got = {(a.task, a.doc_id, a.epoch) for a in had}
            rest = [r for r in requests if book.asked(r) not in got]
            error = f"{type(ex).__name__}: {ex}"
            if len(requests) == 1:
                self._suspect(rest, ex)
                return
            # the host cuts off what is on its way: that may be billed, so it counts, and is asked again later
            cut = rest[: in_flight(book.primed.lm, ex)]
            log.warning(
                "evalbudget: a round failed (%s); %d of its %d answers were had, %d that may have been on "
                "their way count as paid, the others are asked one by one",
                error,
                len(had),
                len(requests),
                len(cut),
            )
            for request in cut:
                self._doubtful.add(request.cell.item)
                book.fail([request], f"its round failed: {error}")
            self._one_by_one(rest[len(cut) :])
        except BaseException:
            self._interrupted()
            raise
        else:
            self._succeeded(answered)

    def _one_by_one(self, requests: Sequence[Request]) -> None:
        """Find out whether the server is gone, or single documents cannot be answered.

        The latter are held to have failed once something else was answered after them.
        """
        for request in requests:
            try:
                answered = self._run([request])
            except EvalbudgetError:
                raise
            except Exception as ex:
                self._salvage()
                self._suspect([request], ex)
            except BaseException:
                self._interrupted()
                raise
            else:
                self._doubtful.discard(request.cell.item)
                self._succeeded(answered)

    def _suspect(self, requests: Sequence[Request], error: Exception) -> None:
        self._suspects += [(request, f"{type(error).__name__}: {error}") for request in requests]
        self._doubtful.update(request.cell.item for request in requests)
        self._error = error
        if len(self._suspects) > _OUTAGE:
            raise error

    def _run(self, requests: Sequence[Request]) -> list[Answered]:
        asked = [self.book.asked(request) for request in requests]
        self.rounds += 1
        return self.book.primed.run(
            [(one.task, one.doc_id) for one in asked],
            epochs=[one.epoch for one in asked],
            received=self._received,
        )

    def _received(self, asked: Asked, number: int, response: Any) -> None:
        self.book.received(asked, number, response)
        if (number == SCORED) == (asked.task in self._judged):  # the calls that the budget counts
            self._progress.heard()

    def _salvage(self) -> list[Answered]:
        had = self.book.primed.salvage()
        self.book.tell(had)
        return had

    def _interrupted(self) -> None:
        """Score what was had, unless that takes further calls: a run that is continued makes them."""
        if not self._judged:
            self._salvage()

    def _succeeded(self, answered: Sequence[Answered]) -> None:
        first = not self._scored_before and self.rounds == 1
        if first:
            self._check_scores(answered)
        self.book.tell(answered)
        self._give_up_suspects()

    def _give_up_suspects(self) -> None:
        suspects, self._suspects = self._suspects, []
        for request, error in suspects:
            self.book.fail([request], error)

    def _check_scores(self, answered: Sequence[Answered]) -> None:
        for task in {a.task for a in answered}:
            wanted = self.book.scores[task]
            own = [a.metrics for a in answered if a.task == task]
            if not any(wanted in metrics for metrics in own):
                numbers = sorted({key for metrics in own for key in metrics})
                self.book.tell(answered)  # paid for
                raise InvalidInputError(
                    f"task {task!r} gave no number as {wanted!r} for any of {len(own)} documents; "
                    + (f"use --score {' or '.join(numbers)}" if numbers else "no metric of it is a number")
                    + " (what was spent is in the journal)"
                )


_OUTAGE = 8  # more documents that fail one after the other are no accident


def in_flight(lm: Any, error: Exception | None = None) -> int:
    """How many requests the host may have cut off when one of a round failed so, or the run was killed."""
    concurrent, batch = getattr(lm, "_concurrent", 1), getattr(lm, "_batch_size", 1)
    nobody = any(kind.__name__ == "ClientConnectorError" for kind in type(error).__mro__)  # nobody was there
    if nobody or not is_api(lm) or not isinstance(concurrent, int) or concurrent < 2:
        return 0
    return concurrent * (batch if isinstance(batch, int) else 1)


def at_once(lm: Any) -> int:
    """How many requests the model takes at once, as far as it says."""
    sizes = [getattr(lm, "_concurrent", 1) if is_api(lm) else 1, getattr(lm, "batch_size", 1)]
    return max((size for size in sizes if isinstance(size, int)), default=1)


def tells_calls(lm: Any) -> bool:
    """Whether the model's class reports every call as it is answered, so that the host's bars add nothing."""
    return is_api(lm) or any(base.__name__ == "HFLM" for base in type(getattr(lm, "lm", lm)).__mro__)
