"""The seam: inspect's dynamic dataset, fed by a sampler."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from inspect_ai import SampleSource, Task, enqueue_sample
from inspect_ai.dataset import Dataset, Sample
from inspect_ai.log import EvalSample, EvalSpec
from inspect_ai.model import ChatMessage
from inspect_ai.scorer import Score
from inspect_ai.solver import TaskState
from numpy.typing import NDArray

from evalbudget.budget import USED_UP
from evalbudget.design import LARGEST
from evalbudget.errors import EvalbudgetError, InvalidInputError, StoreError
from evalbudget.repeats import Repeat, Summary
from evalbudget.run import UNANSWERED
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.bill import Account, gave_up, host_price, open_account
from evalbudget_inspect.host.bill_file import open_bill
from evalbudget_inspect.host.book_file import open_book
from evalbudget_inspect.host.call_bounds import check_roles
from evalbudget_inspect.host.chosen_samples import chosen_samples, clusters_of_samples, strata_of_items
from evalbudget_inspect.host.current_run import Run, at_the_end, current_run, is_cancelled
from evalbudget_inspect.host.earlier_attempts import end_of_earlier, samples_of_error, told_of_earlier
from evalbudget_inspect.host.how_bought import CHANGES
from evalbudget_inspect.host.interrupts import interrupts
from evalbudget_inspect.host.media import with_media
from evalbudget_inspect.host.models_asked import models_asked
from evalbudget_inspect.host.not_run import (
    NOT_BEGUN,
    NOT_PAID,
    NOT_RUN,
    NOT_RUN_AGAIN,
    begin,
    is_refused,
    refuse,
)
from evalbudget_inspect.host.private import is_cancellation_message
from evalbudget_inspect.host.questions import digests_to_be
from evalbudget_inspect.host.reducers import other_than_mean, said_before
from evalbudget_inspect.host.rewrite import NAME
from evalbudget_inspect.host.run_host import note
from evalbudget_inspect.host.score_values import Seen, in_range, kind_of, why_unscored
from evalbudget_inspect.host.scoring import METADATA, SHARE
from evalbudget_inspect.host.sent_again import UNPAID, pay_by, was_unpaid
from evalbudget_inspect.host.viewer import label
from evalbudget_inspect.host.what_is_asked import digest_of
from evalbudget_inspect.judges.dealing import Rotation, Seat, Turn
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.diagnostics import Diagnosis, outcome
from evalbudget_inspect.repeats.earlier_log import (
    Earlier,
    asked_in_vain,
    is_from_cache,
    paid_attempts,
    refuse_other_task,
    what_is_left,
)
from evalbudget_inspect.repeats.identical_repeats import identical_repeats, repeats_were_identical
from evalbudget_inspect.repeats.kept_generation import KeptGenerations
from evalbudget_inspect.repeats.metrics import share_rows
from evalbudget_inspect.repeats.progress import Expected, expect, follow, show_spending
from evalbudget_inspect.repeats.purchase import RepeatPurchase
from evalbudget_inspect.repeats.resume import Key

logger = shown_logger(__name__)

_LOOK = 0.25
"""Seconds between looks at what other processes did."""

_TRIAL = 30.0
"""Seconds that other samples wait for the first score of a scorer that nobody knows."""

_ROUNDS = 8
"""Of all judges, dealt beforehand where it is not known how many readings a budget buys."""


@dataclass
class _Serving:
    """What a source keeps for one run of its task."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    book: RepeatPurchase | None = None
    rotation: Rotation | None = None
    account: Account | None = None
    alone: Key | None = None
    tried: bool = False
    passed_on: anyio.Event = field(default_factory=anyio.Event)
    refusal: EvalbudgetError | None = None
    handed_back: set[str] = field(default_factory=set)
    kept: KeptGenerations = field(default_factory=KeptGenerations)
    inputs: dict[str, str | list[ChatMessage]] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    clusters: NDArray[np.int64] | None = None
    expected: Expected = field(default_factory=Expected)
    warned: bool = False
    scoring: bool = False
    is_over: bool = False
    changes: list[str] = field(default_factory=list)


class BudgetedSource(SampleSource):
    """Runs the task's dataset once (its first epochs), then whatever the sampler asks for.

    One source can serve several models at once: each run has its own sampler, found by the run's context.

    Args:
        config: what the user asked for.
        dataset: the task's samples, as the host will number them; all with ids where they are held back.
        score: which score drives the sampler: scorer name, and key if its scores are dicts.
        refused: called with every refusal, so that a command can tell it from the host's own errors.
        accuracy: the score's own metrics include the host's ``accuracy``.
        told: where judges take turns, a scorer is known to ask them.
        reckons: the score that drives is known to be a number, or a grade.
        holds_back: the host starts no sample by itself, since the budget may not pay for all of them.
        cluster: field of the samples by which the score that drives has its clusters; None for none.
        clusters_needed: fields by which any score has clusters, and who says so (empty: the user).
        rows: names of the host's own rows of the score that drives.
    """

    def __init__(
        self,
        config: Config,
        dataset: Dataset,
        *,
        score: tuple[str, str | None],
        refused: Callable[[EvalbudgetError], None],
        accuracy: bool = False,
        told: bool = True,
        reckons: bool = True,
        holds_back: bool = False,
        cluster: str | None = None,
        clusters_needed: Mapping[str, str] = MappingProxyType({}),
        rows: Sequence[str] = (),
    ) -> None:
        self.config = config
        self._dataset = dataset
        self._holds_back = holds_back
        self._told = told
        self._reckons = reckons
        self._cluster = cluster
        self._clusters_needed = clusters_needed
        self._rows = rows
        self._seed = list(dataset)
        self._score, self._key = score
        self._refused = refused
        self._accuracy = accuracy
        self._task: Task | None = None
        self._servings: dict[str, _Serving] = {}
        self._by_id: dict[str, Sample] | None = None

    def serve(self, task: Task) -> None:
        """Whose dataset to repeat, once the host has given its samples their ids."""
        self._task = task

    @property
    def scores_as(self) -> str:
        """What drives the sampler, as the user would write it."""
        return self._score if self._key is None else f"{self._score}.{self._key}"

    def told(self) -> dict[str, Any]:
        """Of the run in whose context this is called: what was bought, and once all is read what it shows."""
        run, serving = current_run.get(), self._current()
        if run is None or serving is None or serving.book is None:
            return {}
        serving.book.cut_off = interrupts.given_up(run.spec.eval_id)
        told = outcome(serving.book)
        if serving.changes:
            told[CHANGES] = [f"{change}." for change in serving.changes]
        if not serving.book.finished:
            if self._cluster is not None:  # of items that were not asked no sample says it
                metadata = {item: self._sample(item).metadata or {} for item in serving.book.items}
                told["clusters"] = {
                    self._cluster: {item: str(each[self._cluster]) for item, each in metadata.items()}
                }
            return told
        found = self._diagnosis(serving, serving.book)
        told["per_item"] = found.per_item
        if (judges := found.judges) is not None:
            told["panel"] = judges
        if (summary := self._summary(run.spec)) is not None:
            told["summary"] = {"text": str(summary), **summary.as_json()}
        return told

    def _bounds(self, serving: _Serving) -> tuple[float, float] | None:
        """The range of the score that drives, declared or known: its values were C, I, P, N or the like."""
        return self.config.score_range or serving.seen.range(accuracy=self._accuracy)

    def _summary(self, spec: EvalSpec) -> Summary | None:
        serving = self._servings.get(spec.eval_id)
        if serving is None or serving.book is None or serving.refusal is not None:
            return None
        serving.book.cut_off = interrupts.given_up(spec.eval_id)
        found = self._diagnosis(serving, serving.book)
        return found.summary(
            spec, self.scores_as, cluster=self._cluster, rows=self._rows, changes=serving.changes
        )

    def _summary_at_the_end(self, run: Run) -> Summary | None:
        self._is_over(run)
        return self._summary(run.spec)

    def _is_over(self, run: Run) -> None:
        """Nothing more comes; whatever is asked of the book from now on, it knows."""
        serving = self._servings.get(run.spec.eval_id)
        if serving is None or serving.book is None or serving.refusal is not None or serving.is_over:
            return
        serving.is_over = True
        self._take_in_the_rest(run, serving, serving.book)
        serving.book.account.look()

    def _take_in_the_rest(self, run: Run, serving: _Serving, book: RepeatPurchase) -> None:
        """What is in the log alone: where an error ended the run, the host told of no sample any more."""
        if not book.outstanding or book.is_shared:
            return  # those who share a store count what this process had when it leaves
        samples = samples_of_error(run.log_location)
        if samples is None:
            return
        book.broken_off = 0
        for sample in samples:
            if not book.has_under_way((str(sample.id), sample.epoch)):
                continue
            cut_off = sample.error is not None and is_cancellation_message(sample.error.message)
            cut_off = cut_off and not is_refused(sample.metadata)
            try:
                value, error = (None, UNANSWERED) if cut_off else self._read(serving, sample)
            except InvalidInputError as ex:  # the run has ended: nothing is refused any more
                value, error, serving.refusal = None, str(ex), None
            if serving.rotation is not None:
                serving.rotation.observe(sample)
            self._take_in(serving, book, sample, value, error)
            book.broken_off += cut_off

    def _take_in(
        self,
        serving: _Serving,
        book: RepeatPurchase,
        sample: EvalSample,
        value: float | None,
        error: str | None,
    ) -> None:
        """Count one finished cell; what its calls did not pay for has no score."""
        account, name = serving.account, sample.uuid or ""
        if account is not None:
            account.scored |= value is not None
            if name in account.gave_up:
                value, error = None, account.too_dear.get(name, account.reason)
                if name not in account.too_dear:
                    book.stop(USED_UP)
        attempts, again = paid_attempts(sample)
        book.cached += value is not None and is_from_cache(sample)
        book.completed((str(sample.id), sample.epoch), value, attempts=attempts, error=error, sample=name)
        for reason in again:
            book.retried(reason)

    def _diagnosis(self, serving: _Serving, book: RepeatPurchase) -> Diagnosis:
        return Diagnosis(book, serving.rotation, self._bounds(serving), serving.clusters)

    def check_clusters(self, samples: Sequence[Sample]) -> NDArray[np.int64] | None:
        """Clusters of the score that drives; None for none.

        Raises:
            InvalidInputError: a sample lacks a field by which a score has clusters.
        """
        found = {
            field: clusters_of_samples(samples, field, said) for field, said in self._clusters_needed.items()
        }
        return None if self._cluster is None else found[self._cluster]

    def run_starts(self, run: Run) -> None:
        """Say what this run is, where the host would show as many samples as there are readings."""
        try:
            n_items = len(self._items(run.spec))
        except EvalbudgetError:
            return  # as below
        if self.config.budget is None or not n_items:
            return
        try:
            budget = self.config.resolve_budget(n_items)
        except EvalbudgetError:
            return  # it is refused when the first sample starts
        if not self.config.in_scores:
            label(run.spec, n_items, str(budget))
            paying = self._servings.setdefault(run.spec.eval_id, _Serving())
            follow(lambda: None if paying.account is None else paying.account.bill)
            return
        cells = int(budget.amount)
        label(run.spec, n_items, f"{cells:,} samples")
        serving = self._servings.setdefault(run.spec.eval_id, _Serving())
        expect(cells, serving.expected)

    # inspect's SampleSource

    def initial_samples(self) -> list[Sample]:
        """The dataset itself; none where every cell is the sampler's to choose."""
        return [] if self._holds_back else self._seed

    async def sample_complete(self, sample: EvalSample) -> list[Sample] | None:
        """Learn from one finished cell and ask for what should follow."""
        serving = await self._serving()
        book = _allocation(serving)
        if self.config.repeat is Repeat.JUDGE:
            serving.kept.adopt(sample)
        unused = serving.rotation.observe(sample) if serving.rotation is not None else None
        if unused is not None and not self._told:
            serving.refusal = InvalidInputError(unused)
            self._refused(serving.refusal)
            self._pass_on(serving)
            raise serving.refusal
        if unused is not None:
            logger.warning(unused)
        key = (str(sample.id), sample.epoch)
        try:
            value, error = self._read(serving, sample)
            serving.tried |= serving.seen.count > 0 or not serving.seen.words
        finally:
            self._pass_on(serving, key)
        if serving.rotation is not None and key[0] in book.items:
            dropped = serving.rotation.note(*key, scored=value is not None)
            if dropped is not None:
                logger.warning(dropped)
        try:
            self._take_in(serving, book, sample, value, error)
        except StoreError as ex:
            raise self._end(serving, ex) from None
        self._warn_if_identical(serving, book)
        self._ask(serving)
        return None

    async def sample_abandoned(self, sample: Sample, epoch: int) -> list[Sample] | None:
        """A cell the operator cancelled before it ran: ask for another one, unless all are cancelled."""
        serving = await self._serving()
        _allocation(serving).abandoned((str(sample.id), epoch))
        self._pass_on(serving, (str(sample.id), epoch))
        self._ask(serving)
        return None

    async def next_samples(self) -> list[Sample] | None:
        """Nothing is in flight: ask for more, or end the task."""
        serving = await self._serving()
        if interrupts.came:  # the host is about to end the run as cancelled, not as done
            await anyio.sleep_forever()
        while not self._ask(serving):
            run = current_run.get()
            if not _allocation(serving).waits or run is None or is_cancelled(run):
                try:
                    _allocation(serving).ends()
                except StoreError as ex:
                    raise self._end(serving, ex) from None
                return None
            await anyio.sleep(_LOOK)
            if interrupts.came:
                await anyio.sleep_forever()
        return []

    def _end(self, serving: _Serving, error: StoreError) -> StoreError:
        """The store can be used no more."""
        serving.refusal = error
        self._refused(error)
        return error

    # called by the task's setup, scorers and cleanup

    async def before_solving(self, state: TaskState) -> None:
        """Refuse what cannot be done before the first call is made; count the cell as running."""
        refuse(state.metadata, NOT_BEGUN)  # what is cut off until it is its turn
        serving = await self._serving()
        key = (str(state.sample_id), state.epoch)
        book = _allocation(serving)
        if not book.may_run(key):
            refuse(state.metadata, _why_not_run(book, key))
            state.completed = True
            return
        await self._in_turn(serving, key)
        await anyio.sleep(0)  # where the run is over, it is not asked
        begin(state.metadata)
        try:
            share = book.started(key)
        except StoreError as ex:
            raise self._end(serving, ex) from None
        if self._has_media(key[0]):
            await with_media(state)
            serving.inputs.setdefault(key[0], deepcopy(state.input))
        if self.config.repeat is Repeat.JUDGE:
            await serving.kept.enter(state)
        if share:  # the log has it even if there will be no score
            state.metadata[SHARE] = share

    async def _in_turn(self, serving: _Serving, key: Key) -> None:
        """One cell at a time where only a score can tell that judges are asked, or that there will be any.

        A sample's time would run while it waits, if it is limited. Where samples take long the others do not
        wait for a first score: what cannot be scored costs as many as run at once then.
        """
        run = current_run.get()
        limits = None if run is None else run.spec.config
        if limits is None or limits.time_limit is not None or limits.working_limit is not None:
            return
        with anyio.move_on_after(math.inf if self._seeks_judges(serving) else _TRIAL) as waited:
            while self._is_on_trial(serving) and serving.alone not in (None, key):
                await serving.passed_on.wait()
                await self._serving()  # it may be refused by now
        serving.tried |= waited.cancelled_caught
        serving.alone = key

    def attempt_failed(self, id_: str, epoch: int) -> None:
        """Let others go on: a sample that failed and is tried again queues behind those that wait for it."""
        serving = self._current()
        if serving is not None:
            self._pass_on(serving, (id_, epoch))
        if serving is not None and serving.rotation is not None:
            serving.rotation.attempt_failed(id_, epoch)
        if serving is not None and serving.book is not None:
            serving.book.attempt_failed((id_, epoch))

    def _seeks_judges(self, serving: _Serving) -> bool:
        return serving.rotation is not None and not self._told and not serving.rotation.asked

    def _is_on_trial(self, serving: _Serving) -> bool:
        return self._seeks_judges(serving) or not (self._reckons or serving.tried)

    def _pass_on(self, serving: _Serving, key: Key | None = None) -> None:
        if key is None or key == serving.alone:
            serving.alone = None
            serving.passed_on.set()
            serving.passed_on = anyio.Event()

    async def before_scoring(self, state: TaskState) -> Mapping[str, int] | None:
        """How the reading to be scored was bought; None if it is not to be scored.

        Where judges are repeated the generation is kept.
        """
        serving = await self._serving()
        serving.scoring = True
        if is_refused(state.metadata) or gave_up() or state.uuid in interrupts.held:
            return None
        if self.config.repeat is Repeat.JUDGE and not serving.kept.keep(state):
            return None
        return _allocation(serving).share((str(state.sample_id), state.epoch))

    async def seat(self, state: TaskState) -> Seat | Turn | None:
        """The judge whose turn it is."""
        rotation = (await self._serving()).rotation
        return None if rotation is None else rotation.seat(str(state.sample_id), state.epoch)

    async def after_scoring(self, state: TaskState) -> None:
        """Where judges are repeated: nobody waits for this cell any longer, whatever became of it."""
        (await self._serving()).kept.leave(state)

    # bookkeeping

    def _current(self) -> _Serving | None:
        run = current_run.get()
        return self._servings.get(run.spec.eval_id) if run is not None else None

    async def _serving(self) -> _Serving:
        run = current_run.get()
        if run is None:
            raise InvalidInputError(
                "evalbudget does not know which run this is: inspect's task-start hook did not reach it. "
                "Is the inspect-ai version supported? (evalbudget plugins)"
            )
        if run.spec.eval_id not in self._servings:
            self._servings[run.spec.eval_id] = _Serving()
        serving = self._servings[run.spec.eval_id]
        if serving.book is not None and serving.refusal is None:
            return serving
        async with serving.lock:  # whose first comer begins
            if serving.refusal is not None:
                raise serving.refusal.with_traceback(None)  # it would grow with every sample refused
            if serving.book is None:
                try:
                    await self._begin(run, serving)
                except EvalbudgetError as ex:
                    serving.refusal = ex
                    self._refused(ex)
                    raise
        return serving

    async def _begin(self, run: Run, serving: _Serving) -> None:
        spec = run.spec
        if self.config.store is not None and run.earlier is not None:
            raise InvalidInputError(
                "a run that shares its budget with other processes does not go on from its log: what that "
                "has is in the store. Start the same command anew; it takes its part of what is left"
            )
        if self.config.repeat is Repeat.JUDGE and spec.config.score_on_error:
            raise InvalidInputError(
                "--repeat judge scores one generation again and again, and --score-on-error would have it "
                "score a broken one; drop one of them"
            )
        if self.config.repeat is Repeat.JUDGE and (spec.sandbox or any(one.sandbox for one in self._seed)):
            raise InvalidInputError(
                "--repeat judge scores one generation again and again, and the sandbox in which it was made "
                "is gone by then; drop --repeat judge, or the task's sandbox if no scorer looks into it"
            )
        items = self._items(spec)
        if items:
            serving.clusters = self.check_clusters([self._sample(item) for item in items])
        epochs = spec.config.epochs or 1
        if reducers := other_than_mean(spec.config.epochs_reducer):
            logger.warning(said_before(reducers))
        config = self.config.for_items(len(items)) if self._holds_back else self.config
        config.check_epochs(epochs)
        if config.strata is not None and not config.draws:
            logger.warning(
                f"--strata {config.strata} changes nothing: the budget pays for the first readings of all "
                f"{len(items):,} items, so that no sample of them is drawn"
            )
        questions = digests_to_be(map(self._sample, items)) if config.variances is not None else None
        for strange in config.strange_variances([spec.task.rpartition("/")[2]], questions or {}):
            logger.warning(strange)
        earlier = await what_is_left(run, set(items))
        prior = earlier.cells
        serving.handed_back = {sample.uuid for sample in earlier.samples if sample.uuid}
        serving.changes = refuse_other_task(earlier.samples, self._sample, self._score)
        for warning in serving.changes:
            logger.warning(warning)
        if earlier.warning:
            logger.warning(earlier.warning)
        serving.account = self._account(run, serving, len(items))
        file = None
        if self.config.in_scores and self.config.store is None:
            file = await anyio.to_thread.run_sync(open_book, [run])
        if file is not None:
            file.ends = partial(self._is_over, run)
        serving.rotation = self._rotation(items, epochs, spec.model)
        if serving.rotation is not None:
            for cell in prior:
                if cell.judge is not None:
                    serving.rotation.assume(*cell.key, cell.judge)
        attempts = 1 + (spec.config.retry_on_error or 0)
        book = RepeatPurchase(
            config,
            items,
            seeded=not self._holds_back,
            strata=self._strata(items, config),
            epochs=epochs,
            attempts=attempts,
            width=spec.config.max_samples,
            judge_of=None if serving.rotation is None else serving.rotation.judge,
            bill=None if serving.account is None else serving.account.bill,
            about=self._about(run) if config.store is not None else None,
            worker=spec.task_id,
            questions=questions,
            where=None if file is None else file.db,
        )
        once = config.draws and config.in_scores and book.budget.amount <= len(items)
        if serving.rotation is None and not once:  # judges that take turns differ at any temperature
            for warning in identical_repeats(spec, run.config, self.config.repeat):
                logger.warning(warning)
        if self.config.repeat is Repeat.JUDGE:
            for cell in prior:
                if not cell.errored:
                    serving.kept.expect(*cell.key)
        lacks = file is not None and file.lacks
        unread = earlier.cut_off + (await asked_in_vain(run) if lacks else 0)
        has_asked, at_most = await end_of_earlier(run)
        told, is_all = await told_of_earlier(run, beside=lacks)
        lacks = lacks and not is_all and (has_asked or bool(prior) or earlier.lost + unread > 0)
        keys = book.begin(prior, lost=earlier.lost, unread=unread, told=told, lacks=lacks)
        serving.book = book
        if file is not None:
            self._warn_of_earlier(serving, book, earlier, file.lacking(book.lacks, at_most))
        serving.seen.count += book.n_read  # of other processes too
        serving.tried = bool(prior) or serving.seen.count > 0
        if self.config.store is not None:
            self._share(run, serving)
        if serving.account is None:

            async def pays(samples: float) -> bool:
                return book.pays(samples)

            pay_by(spec.eval_id, pays)
        else:
            show_spending(serving.account, f"{spec.task}, {spec.model}")
        note(spec.task_id, lambda: self._summary_at_the_end(run))
        self._enqueue(serving, keys)

    def _warn_of_earlier(
        self, serving: _Serving, book: RepeatPurchase, earlier: Earlier, lacking: str
    ) -> None:
        """What earlier attempts paid in vain, and what may not count of it, is said each time one goes on."""
        if lacking:
            logger.warning(lacking)
            serving.changes.append(lacking)
        if book.lost and not earlier.warning:
            logger.warning(
                f"earlier attempts paid {book.lost:g} of the budget for answers that this run cannot use: "
                "the log it goes on from lacks them. They count as spent, and not for the estimate"
            )

    def _about(self, run: Run) -> dict[str, str]:
        """What is the same in all processes that share a budget."""
        spec = run.spec
        arguments = sorted((name, str(value)) for name, value in spec.task_args.items() if name != NAME)
        told: dict[str, Any] = {
            "task": spec.task,
            "task arguments": arguments,
            "model": spec.model,
            "score": self.scores_as,
            "score_range": self.config.score_range,
        }
        samples = map(self._sample, self._items(spec))
        solver = None if self._task is None else self._task.solver
        told["items, solvers, scorers, models or limits"] = digest_of(spec, run.config, solver, samples)
        return {name: str(value) for name, value in told.items()}

    def _share(self, run: Run, serving: _Serving) -> None:
        """Have the rows be those of all processes, and leave them when the run is over."""
        book = _allocation(serving)
        share_rows(run.spec.eval_id, lambda: self._diagnosis(serving, book).mean.rows)
        at_the_end(book.ends)

    def _items(self, spec: EvalSpec) -> list[str]:
        """Ids of the run's items, in order."""
        if self._holds_back:
            chosen = chosen_samples(self._dataset, spec.config, "other items when the run goes on")
            items = [str(sample.id) for sample in chosen]
        else:
            items = [str(i) for i in spec.dataset.sample_ids or []]
        if not items and (wanted := spec.config.sample_id) is not None:
            named = ", ".join(map(str, wanted if isinstance(wanted, list) else [wanted]))
            raise InvalidInputError(f"--sample-id {named}: no sample of the task has such an id")
        return items

    def _strata(self, items: list[str], config: Config) -> tuple[str, ...] | None:
        if not config.draws:
            return None
        return strata_of_items([self._sample(item) for item in items], config.strata)

    def _account(self, run: Run, serving: _Serving, n_items: int) -> Account | None:
        """Who pays for the calls; None where the budget counts scores."""
        if self.config.in_scores or not n_items:
            return None
        tariff = self.config.tariff(host_price)
        judges = [] if self.config.panel is None else self.config.panel.model_names.values()
        tariff.check([*models_asked(run.spec, self._task.scorer or [] if self._task else []), *judges])
        check_roles(tariff.price)
        cap = self.config.resolve_budget(n_items)
        bill = open_bill(run, cap, tariff, risk=self.config.risk)

        def refuse(error: EvalbudgetError) -> None:
            serving.refusal = error
            self._refused(error)

        account = Account(bill, refuse)
        open_account(run.spec.eval_id, account)
        return account

    def _rotation(self, items: list[str], epochs: int, model: str) -> Rotation | None:
        panel = self.config.panel
        if panel is None or not items:
            return None
        if self.config.in_scores:
            budget = int(self.config.resolve_budget(len(items), without=epochs * len(items)).amount)
        else:  # nobody knows how many readings it buys; later rounds are dealt as they come
            budget = _ROUNDS * len(panel.judges) * len(items)
        rotation = Rotation(
            panel,
            items,
            categories=[str((self._sample(item).metadata or {}).get("category", "")) for item in items],
            epochs=budget // len(items),
            kept=self.config.repeat is Repeat.JUDGE,
            seed=self.config.seed,
            model=model,
            told=self._told,
        )
        for warning in (*rotation.schedule.notes, *rotation.notes):
            logger.warning(warning)
        return rotation

    def _ask(self, serving: _Serving) -> bool:
        """Give the host what the sampler wants next; False if that is nothing."""
        book, run = _allocation(serving), current_run.get()
        if interrupts.came:
            return False
        if run is not None and is_cancelled(run):
            if book.is_shared:  # others go on
                return False
            book.stop("cancelled by the operator")
        try:
            keys = book.wanted()
        except StoreError as ex:
            raise self._end(serving, ex) from None
        serving.expected.over = not keys and book.finished
        self._enqueue(serving, keys)
        return bool(keys)

    def _enqueue(self, serving: _Serving, keys: list[Key]) -> None:
        book = _allocation(serving)
        for item, epoch in keys:
            sample = self._sample(item).model_copy(deep=True)
            if share := book.share((item, epoch)):  # all that the host knows of it if the run is killed
                sample.metadata = {**(sample.metadata or {}), SHARE: share}
            # where there are file references, as the host resolved them when it ran the first epoch
            sample.input = serving.inputs.get(item, sample.input)
            enqueue_sample(sample, epoch=epoch)

    def _sample(self, item: str) -> Sample:
        if self._by_id is None:
            assert self._task is not None
            samples = self._seed if self._holds_back else self._task.dataset
            self._by_id = {str(sample.id): sample for sample in samples}
        return self._by_id[item]

    def _has_media(self, item: str) -> bool:
        """Whether the dataset's own input holds images or the like, perhaps by file name."""
        messages = self._sample(item).input
        return not isinstance(messages, str) and any(
            not isinstance(message.content, str) and any(part.type != "text" for part in message.content)
            for message in messages
        )

    def _read(self, serving: _Serving, sample: EvalSample) -> tuple[float | None, str | None]:
        if is_refused(sample.metadata):
            return None, str(sample.metadata[METADATA])
        score: Score | None = (sample.scores or {}).get(self._score)
        if score is None and was_unpaid(sample):
            return None, UNPAID
        if score is None and sample.error is None and sample.uuid in serving.handed_back:
            return None, f"no score from {self._score!r} in an earlier attempt"
        if score is None and sample.error is None and not serving.scoring:
            refusal = InvalidInputError(
                "scoring is switched off (--no-score), so there are no scores to budget; drop --no-score"
            )
            serving.refusal = refusal
            self._refused(refusal)
            raise refusal
        if score is None:
            missing = f"no score from {self._score!r}"
            return None, missing if sample.error is None else kind_of(sample.error.message)
        try:
            value = serving.seen.read(score, self._score, self._key)
        except InvalidInputError as ex:
            serving.refusal = ex
            self._refused(ex)
            raise
        if sample.error is not None and math.isnan(value):
            return None, kind_of(sample.error.message)
        # a sample that ended in an error and was scored nevertheless counts, as it does for the host
        if not in_range(value, self.config.score_range):
            declared = self.config.score_range is not None
            wrong = "score outside the declared range" if declared else f"score beyond {LARGEST:g}"
            return None, why_unscored(score, self._key) if math.isnan(value) else wrong
        return value, None

    def _warn_if_identical(self, serving: _Serving, book: RepeatPurchase) -> None:
        if serving.warned or book.outstanding or book.n_read < 2 * book.n_items:
            return
        serving.warned = True
        warning = repeats_were_identical(book.account.readings, self.config.repeat)
        if warning is not None:
            logger.warning(warning)


def _why_not_run(book: RepeatPurchase, key: Key) -> str:
    if book.failed_before(key):
        return NOT_RUN_AGAIN
    return NOT_PAID if book.lost else NOT_RUN


def _allocation(serving: _Serving) -> RepeatPurchase:
    assert serving.book is not None
    return serving.book
