"""Asks judges through the host's own models, side by side; what one fails to say costs no other's reply."""

from __future__ import annotations

import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from lm_eval.api.instance import Instance
from tqdm import tqdm  # type: ignore[import-untyped]

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.judges.schedules import Dealer
from evalbudget.secrets import said_by
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.judge_calls import counted
from evalbudget_lm_eval.host.patched import bars_of_a_round, said_once
from evalbudget_lm_eval.host.seeds import seed_of, seed_sent
from evalbudget_lm_eval.host.used_up import UsedUpError
from evalbudget_lm_eval.host.wire import Final, halt_of_all, signals
from evalbudget_lm_eval.judges.judge_models import JudgeSpec
from evalbudget_lm_eval.judges.panel import JudgePanel
from evalbudget_lm_eval.judges.readings import Reading

log = shown_logger(__name__)

_LOOK = 0.1  # seconds between two looks at whether a signal came


@dataclass(frozen=True, slots=True)
class Answer:
    """One response to be judged.

    Attributes:
        item: position of its document in the schedule.
        epoch: ordinal among the document's, from 0.
        prompt: what its judges are told.
    """

    item: int
    epoch: int
    prompt: str


@dataclass(frozen=True, slots=True)
class _Job:
    """Answers one judge is asked about in one go, by position."""

    judge: int
    answers: tuple[int, ...]


Reply = str | Exception
_Running = dict[Future[list[Reading]], _Job]


class Asking:
    """One round of judging.

    Args:
        panel: the judges.
        dealer: of the run; told what came of every call.
        answers: to be judged.
    """

    def __init__(self, panel: JudgePanel, dealer: Dealer, answers: Sequence[Answer]) -> None:
        self._panel = panel
        self._dealer = dealer
        self._answers = answers
        self._models: dict[int, Any] = {}
        self._pools: dict[object, ThreadPoolExecutor] = {}
        self._readings: list[dict[int, Reading]] = [{} for _ in answers]
        self.told: Callable[[int, Reading], object] = lambda position, reading: None
        """Called with every reading as it comes, and the position of its answer, in the thread that asked."""
        self.begins: Callable[[int, str], object] = lambda position, judge: None
        """Called before a judge behind a server is asked, with the position of the answer and its name."""
        self.will_ask: Callable[[Iterator[tuple[int, Any, Instance]]], object] = lambda calls: None
        """Called before judges are asked, with all that is to come: positions, models and requests."""
        self.asks: Callable[[Sequence[int]], object] = lambda positions: None
        """Called before any judge is asked, in the thread that asks, with the positions of the answers."""
        self.pays: Callable[[int], bool] = lambda calls: True
        """Pays for calls that may be billed and brought no reply; False if nothing is left for them."""
        self.ill: set[int] | None = None
        """Judges whose failures were told in earlier rounds of the run; None if this is the only one."""
        self.seeds_of = ""
        """Whose seeds are sent: those of another run are others."""
        self._failed: Counter[int] = Counter()
        self._asked: Counter[int] = Counter()
        self._interrupt: BaseException | None = None
        self._over = False
        self._told_of_end = False
        self._lock = Lock()  # one writes at a time, whether on the record or on the bill

    def know(self, position: int | None, reading: Reading) -> None:
        """A judge's reading from an attempt that broke off; the judge is not asked for it again."""
        names = self._panel.judges
        if position is not None and reading.judge in names:
            judge = names.index(reading.judge)
            self._readings[position][judge] = reading
            if self._dealer.schedule.calls_per_generation == 1:
                self._dealer.assume(self._answers[position].item, reading.epoch, judge)

    def run(self) -> list[list[Reading]]:
        """Ask everybody.

        Returns:
            For every answer the readings of its judges, in the order of the panel.

        Raises:
            InvalidInputError: no judge can be loaded.
            KeyboardInterrupt: Ctrl-C or SIGTERM came; calls under way have been waited for, and told.
        """
        if (halt := halt_of_all.get()) is not None:
            halt.check()
        self._load()
        running: _Running = {}
        apis = {id(lm): lm for lm in self._models.values() if is_api(lm)}
        with ExitStack() as stack:
            stack.enter_context(counted(apis.values(), self._again))
            stack.callback(self._close)
            bar = stack.enter_context(_progress())
            with quiet(), signals(self._stop):
                self._start(range(len(self._answers)), running, bar)
                while running:
                    if self._interrupt is not None:
                        self._wind_up(running)
                    for future in wait(running, _LOOK, FIRST_COMPLETED).done:
                        job = running[future]
                        dropped = self._heard(job, future.result())
                        del running[future]
                        bar.update(len(job.answers))
                        if dropped and self._interrupt is None:
                            self._start(self._withdrawn(running, bar), running, bar)
            if self._interrupt is not None:
                raise self._interrupt
        self._tell()
        return [[readings[judge] for judge in sorted(readings)] for readings in self._readings]

    # who is asked

    def _load(self) -> None:
        """The models of all judges; those that cannot be loaded are asked no more."""
        for judge in self._dealer.schedule.active:
            spec = self._panel.specs[judge]
            try:
                self._models[judge] = spec.load()
            except InvalidInputError as ex:
                if len(self._dealer.schedule.active) == 1:
                    raise
                log.error("%s; the other judges score without it", ex)
                self._dealer.schedule = self._dealer.schedule.without(judge)

    def _start(self, answers: Sequence[int], running: _Running, bar: Any) -> None:
        calls: dict[int, list[int]] = defaultdict(list)
        for position in answers:
            answer = self._answers[position]
            for judge in self._dealer.judges(answer.item, answer.epoch):
                if judge not in self._readings[position]:
                    calls[judge].append(position)
        self.will_ask(self._requests(calls))
        for judge, positions in calls.items():
            lm = self._models[judge]
            for job in _jobs(lm, judge, positions, self._answers):
                bar.total += len(job.answers)
                running[self._pool(judge, lm).submit(self._ask, job)] = job
        bar.refresh()

    def _requests(self, calls: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, Any, Instance]]:
        for judge, positions in calls.items():
            spec, lm = self._panel.specs[judge], self._models[judge]
            for position in positions:
                yield position, lm, request_for(spec, lm, self._answers[position].prompt)

    def _withdrawn(self, running: _Running, bar: Any) -> list[int]:
        """Answers that a judge who was dropped has not been asked about yet."""
        found = []
        for future, job in list(running.items()):
            if job.judge in self._dealer.schedule.dropped and future.cancel():
                del running[future]
                bar.total -= len(job.answers)
                for position in job.answers:
                    self._dealer.deal_again(self._answers[position].item, self._answers[position].epoch)
                    found.append(position)
        return found

    # asking

    def _ask(self, job: _Job) -> list[Reading]:
        """Ask, and have on record what was said before this thread asks anything else.

        The thread that hears of it may be late, above all on a busy machine, and replies that wait for it
        would be lost if the process were killed or the record could not be written.
        """
        spec, lm = self._panel.specs[job.judge], self._models[job.judge]
        answers = [self._answers[position] for position in job.answers]
        try:
            with self._lock:
                if self._over:
                    return []
                self.asks(job.answers)
                if is_api(lm):
                    for position in job.answers:
                        self.begins(position, spec.name)
            first = answers[0]
            about = self.seeds_of + spec.name, first.prompt, first.item, first.epoch
            options = options_of_call(spec, lm, *about)
            contexts = [context_for(spec, lm, answer.prompt) for answer in answers]
            with quiet():
                replies = replies_to(lm, contexts, options)
            return self._keep(job, replies)
        except BaseException:
            self._over = True  # the round breaks off, and nothing more is sent until that is heard of
            raise

    def _keep(self, job: _Job, replies: Sequence[Reply]) -> list[Reading]:
        name, readings = self._panel.specs[job.judge].name, []
        for position, reply in zip(job.answers, replies, strict=True):
            epoch = self._answers[position].epoch
            if isinstance(reply, Exception):
                reading = Reading(name, epoch, None, error=said_by(reply))
            else:
                reading = Reading(name, epoch, self._panel.grading.read(reply), reply)
            with self._lock:
                self.told(position, reading)
            readings.append(reading)
        return readings

    def _again(self, calls: int) -> bool:
        """Whether a request that failed is sent again; ``calls`` of it may be billed."""
        with self._lock:
            return not self._over and (not calls or self.pays(calls))

    def _heard(self, job: _Job, readings: Sequence[Reading]) -> bool:
        """Take note of what was said; whether a judge was dropped for it."""
        spec, dropped = self._panel.specs[job.judge], False
        for position, reading in zip(job.answers, readings, strict=bool(readings)):  # none: it was not asked
            if reading.error is not None:
                if not self._failed[job.judge] and job.judge not in (self.ill or ()):
                    log.warning("judge %r failed: %s", spec.name, reading.error)
                if self.ill is not None:
                    self.ill.add(job.judge)
                self._failed[job.judge] += 1
            self._asked[job.judge] += 1
            self._readings[position][job.judge] = reading
            warning = self._dealer.note(job.judge, scored=reading.score is not None)
            if warning is not None:
                log.warning(warning)
                dropped = True
        return dropped

    def _stop(self) -> None:
        """A signal came: calls under way are paid for and waited for."""
        again, self._interrupt = self._interrupt, KeyboardInterrupt()
        self._over = True
        if again is not None:
            raise self._interrupt

    def _wind_up(self, running: _Running) -> None:
        """Nothing more is asked."""
        for future in list(running):
            if future.cancel():
                del running[future]
        if running and not self._told_of_end:
            self._told_of_end = True
            log.warning(
                "evalbudget: judges have %d calls on their way, which are waited for since they are paid",
                len(running),
            )

    def _tell(self) -> None:
        missing: Counter[str] = Counter()
        for readings in self._readings:
            missing.update(reading.judge for reading in readings.values() if reading.score is None)
        for judge, spec in enumerate(self._panel.specs):
            if missing[spec.name]:
                log.log(
                    logging.WARNING if self.ill is None else logging.INFO,
                    "judge %r gave no score in %d of %d calls (%d failed, %d replies without a number from "
                    "%g to %g); they are missing from the estimate, not zero",
                    spec.name,
                    missing[spec.name],
                    self._asked[judge],
                    self._failed[judge],
                    missing[spec.name] - self._failed[judge],
                    self._panel.grading.low,
                    self._panel.grading.high,
                )

    # threads

    def _pool(self, judge: int, lm: Any) -> ThreadPoolExecutor:
        """As many calls at once as the host would make of this model; local models one after the other."""
        key, workers = (judge, lm._concurrent) if is_api(lm) else ("local", 1)
        if key not in self._pools:
            self._pools[key] = ThreadPoolExecutor(max(int(workers), 1), thread_name_prefix="judge")
        return self._pools[key]

    def _close(self) -> None:
        """Nothing more is asked; calls under way are paid for, so what they bring is waited for and kept."""
        self._over = True
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)


def _jobs(lm: Any, judge: int, positions: Sequence[int], answers: Sequence[Answer]) -> Iterator[_Job]:
    """Single calls of an API; batches for local models, which make the most of them."""
    if is_api(lm):
        yield from (_Job(judge, (position,)) for position in positions)
        return
    by_epoch: dict[int, list[int]] = defaultdict(list)
    for position in positions:
        by_epoch[answers[position].epoch].append(position)
    for batch in by_epoch.values():
        yield _Job(judge, tuple(batch))


def options_of_call(spec: JudgeSpec, lm: Any, *about: object) -> dict[str, Any]:
    """Options of one call; where the host sends a seed, each has its own, or servers repeat themselves.

    Args:
        spec: of the judge.
        lm: its model.
        about: what the call is about, and no other of this judge.
    """
    options = dict(spec.gen_kwargs)
    if spec.temperature > 0 and (sent := seed_sent(lm)) is not None:
        options["seed"] = seed_of(int(options.get("seed", sent)), *about)
    return options


def context_for(spec: JudgeSpec, lm: Any, prompt: str) -> Any:
    """A prompt as the model takes it."""
    return lm.apply_chat_template([{"role": "user", "content": prompt}]) if spec.is_chat else prompt


def request_for(spec: JudgeSpec, lm: Any, prompt: str) -> Instance:
    """A request as long as the one that will be sent."""
    return Instance("generate_until", {}, (context_for(spec, lm, prompt), dict(spec.gen_kwargs)), 0)


def replies_to(lm: Any, contexts: Sequence[Any], options: Mapping[str, Any]) -> list[Reply]:
    """What a model says, or why it says nothing, context by context."""
    kept = _Kept()
    before = lm.cache_hook
    if len(contexts) > 1:
        lm.set_cache_hook(kept)
    requests = [
        Instance("generate_until", {}, (context, dict(options)), i) for i, context in enumerate(contexts)
    ]
    try:
        return list(lm.generate_until(requests))
    except Final as ex:
        if isinstance(ex.error, EvalbudgetError) or not isinstance(ex.error, Exception):
            raise ex.error from None
        return [ex.error]
    except UsedUpError:
        raise
    except Exception as ex:  # whatever the model raises
        if len(contexts) == 1:
            return [ex]
    finally:
        lm.set_cache_hook(before)
    return [kept.take(context) or replies_to(lm, [context], options)[0] for context in contexts]


class _Kept:
    """Replies that the host made known before a batch failed: they are not asked for again."""

    def __init__(self) -> None:
        self._replies: dict[str, list[str]] = defaultdict(list)

    def add_partial(self, method: str, request: Any, reply: Any) -> None:
        """Called by the host for every reply."""
        self._replies[str(request[0])].append(str(reply))

    def take(self, context: Any) -> str | None:
        """One reply to this context, if there is one left."""
        replies = self._replies.get(str(context))
        return replies.pop() if replies else None


@contextmanager
def _progress() -> Iterator[Any]:
    # with a delay it is first drawn when it is known how many calls there are
    with tqdm(total=0, desc="Asking judges", unit="call", delay=1e-9, file=sys.stderr) as bar:
        yield bar


@contextmanager
def quiet() -> Iterator[None]:
    """Of what this thread asks: the host draws a bar, and logs a line, for every single call."""
    with bars_of_a_round(0), said_once:
        yield
