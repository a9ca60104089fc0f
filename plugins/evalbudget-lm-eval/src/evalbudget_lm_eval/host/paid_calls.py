"""The gate before a model's calls: what each can cost is put aside first, and settled after it."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import Any

from evalbudget.prices import Price, Usage
from evalbudget.run import Bill, Hold, kept_name
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import Asked, key_of
from evalbudget_lm_eval.host.billing import may_be_billed
from evalbudget_lm_eval.host.identity import is_api, short_name
from evalbudget_lm_eval.host.local_usage import check_local, size_of_local, usage_of_local
from evalbudget_lm_eval.host.owners import NOBODY, Owners, prompt_sent
from evalbudget_lm_eval.host.responses import answering
from evalbudget_lm_eval.host.sessions import HearingSession
from evalbudget_lm_eval.host.usage import Size, shared, sizes_of, usage_of
from evalbudget_lm_eval.host.used_up import UsedUpError

log = shown_logger(__name__)

JUDGE = "judge"
_PAUSE = 0.02  # seconds between two looks at whether something came back
_MOMENT = 1.0  # seconds in which a judge that has room kept for its call is asked
_OTHERS = 60.0  # the same, of other arms, which may score answers first, or send again what was refused
_KINDS = ("generate_until", "loglikelihood", "loglikelihood_rolling")

judging: ContextVar[Sequence[str] | None] = ContextVar("judging", default=None)
"""In a thread that asks a judge: the cells it is asked for; None where the model itself is asked."""


class PaidCalls:
    """Keeps the bill of calls of one command: its model's, and those of its judges.

    Args:
        bill: that keeps the cap.
        arm: whose cells they are, in a race.

    Attributes:
        owners: of the model's requests.
        stopped: whether nothing more is to be sent; asked while a call waits for others.
    """

    def __init__(self, bill: Bill, arm: str = "") -> None:
        self.bill = bill
        self._prefix = kept_name(f"{arm} ") if arm else ""
        self.owners = Owners()
        self.stopped: Callable[[], bool] = lambda: False
        self._dearest_second: dict[str, float] = {}
        self._judgings: dict[str, Sequence[tuple[str, float]]] = {}
        self._being_judged: set[str] = set()
        self._quiet_since: float | None = None  # nothing was under way, of a call that does not fit
        self._lock = Lock()

    @contextmanager
    def before(self, lms: Sequence[Any]) -> Iterator[None]:
        """Stand before the senders of these models, within the block."""
        changed: list[tuple[Any, dict[str, Any], tuple[str, ...]]] = []
        try:
            for lm in {id(own): own for own in (getattr(lm, "lm", lm) for lm in lms)}.values():
                gate: _Api | _Local = _Api(self, lm) if is_api(lm) else _Local(self, lm)
                instead = gate.instead
                changed.append((lm, {n: vars(lm)[n] for n in instead if n in vars(lm)}, tuple(instead)))
                vars(lm).update(instead)
            yield
        finally:
            for lm, before, names in reversed(changed):
                for name in names:
                    vars(lm).pop(name, None)
                vars(lm).update(before)

    def cost(self, asked: Asked) -> float:
        """What a cell cost: its requests, its judges, and what was sent again or lost."""
        return self.bill.of_sample(self.sample_of(asked))

    def sample_of(self, asked: Asked) -> str:
        """By which the bill knows a cell."""
        return self._prefix + key_of(asked)

    def most_of(self, lm: Any, instance: Any) -> float:
        """What one of the host's requests costs at most, in units of the budget.

        Raises:
            BudgetError: nobody knows the price, or nothing limits the reply.
        """
        lm = getattr(lm, "lm", lm)
        name = short_name(lm)
        within = self._within(name, size_of(lm, instance))
        return self.bill.tariff.most(name, *within, self.seconds_of(name))

    def longest_of(self, lm: Any, instance: Any) -> int:
        """Tokens that the reply to one of the host's requests has at most; 0 where nothing limits it."""
        lm = getattr(lm, "lm", lm)
        return self._within(short_name(lm), size_of(lm, instance))[1] or 0

    def fits(self, models: Sequence[Any], answer: float, judgings: int, n: int) -> int:
        """How many of n answers what is left certainly pays; where time is paid too, one is measured first.

        Args:
            models: the model, then its judges; what is on one's own machine is given whole rounds.
            answer: what one costs at most, its judging included, beside the time it takes.
            judgings: calls of judges that one takes.
            n: answers.
        """
        times = [self.time_of(lm) for lm in models]
        if None in times:
            return min(n, int(self.bill.free > 0))
        own, *of_judges = (time or 0.0 for time in times)
        most = answer + own + judgings * max(of_judges, default=0.0)
        return min(n, int(self.bill.free / most + 1e-9)) if most > 0 else n

    # answers that are judged

    def expect(self, judgings: Mapping[str, Sequence[tuple[str, float]]]) -> None:
        """Begin these cells only if the calls of their judges can be paid too.

        Args:
            judgings: by cell, as :func:`~evalbudget_lm_eval.host.answers.key_of` names it: the judges that it
                has yet to be shown to, and what each of these calls costs at most.
        """
        with self._lock:
            self._judgings |= judgings

    def settled(self, asked: Asked) -> None:
        """A cell has its score, has failed, or is not asked in full: no judge of it is paid any more."""
        with self._lock:
            self._judgings.pop(key_of(asked), None)
            self._being_judged.discard(key_of(asked))
        self.bill.clear_room(self.sample_of(asked))

    # one request

    def hold(self, model: str, sizes: Sequence[Size], owners: Sequence[str], seconds: float) -> list[Hold]:
        """Put aside what a request costs at most, prompt by prompt; empty if that does not fit.

        Raises:
            BudgetError: nobody knows the price, or nothing limits the reply.
            JournalError: it cannot be recorded.
        """
        calls = [
            (*self._within(model, size), self._prefix + owner if owner else NOBODY)
            for size, owner in zip(sizes, owners, strict=True)
        ]
        role = "" if judging.get() is None else JUDGE
        with self._lock:
            left = {owner: self._judgings[owner] for owner in owners if owner in self._judgings}
            if role:
                for (given, reply, _), owner in zip(calls, owners, strict=True):
                    if owner in left:
                        most = self.bill.tariff.most(model, given, reply, seconds)
                        left[owner] = _without(left[owner], model, most)
            follows = {self._prefix + owner: own for owner, own in left.items()}
            holds = self.bill.reserve_all(model, calls, role=role, seconds=seconds, follows=follows)
            if holds:
                self._quiet_since = None
            if holds and role:
                self._judgings |= left
                self._being_judged |= {owner for owner, own in left.items() if own}
                self._being_judged -= {owner for owner, own in left.items() if not own}
        return holds

    def release(self, holds: Sequence[Hold], owners: Sequence[str]) -> None:
        """They were refused, or never sent, and may be sent again: what was kept for them is kept on."""
        with self._lock:
            for hold, owner in zip(holds, owners, strict=True):
                self.bill.release(hold)
                if hold.role == JUDGE and owner in self._judgings:
                    self._judgings[owner] = [(hold.model, hold.bound), *self._judgings[owner]]
                    self._being_judged.add(owner)

    def check_waiting(self, model: str, sizes: Sequence[Size], under_way: int) -> None:
        """Refuse to wait for what is under way where that does not help.

        Args:
            model: that is asked.
            sizes: of the prompts of a request that did not fit.
            under_way: calls that were so before it was tried.

        Raises:
            UsedUpError: it will not fit, or nothing more is to be sent.
        """
        self.bill.look()
        within = [self._within(model, size) for size in sizes]
        outputs = [output for _, output in within if output is not None]
        whole = sum(tokens for tokens, _ in within), sum(outputs) if outputs else None
        under_way += self.about_to_be(under_way)
        if self.stopped() or not self.bill.may_fit(model, *whole, under_way=under_way):
            raise UsedUpError(self.bill.cap)

    def about_to_be(self, under_way: int) -> bool:
        """Whether calls that have room of their own are sent next, though none is under way."""
        with self._lock:
            if under_way or self.bill.under_way:
                self._quiet_since = None
                return False
            # answers of one's own are judged first, which frees their room: arms do not wait for one another
            theirs = self.bill.room + self.bill.room_of_others
            if not self._being_judged and (self._has_room() or not theirs):
                return False
            self._quiet_since = self._quiet_since or monotonic()
            return monotonic() < self._quiet_since + (_MOMENT if self._being_judged else _OTHERS)

    def _has_room(self) -> bool:
        return self.bill.room_of(self._prefix + owner for owner in self._judgings) > 0

    def seconds_of(self, model: str) -> float:
        """What a request took at most so far, where time is what is paid for; 0 before the first."""
        return self._dearest_second.get(model, 0.0)

    def time_of(self, lm: Any) -> float | None:
        """What the seconds of a request cost at most so far; None before the first, where they are paid."""
        price = self.price_of(short_name(lm))
        if is_api(lm) or price is None or not price.second:
            return 0.0
        return self.seconds_of(short_name(lm)) * price.second or None

    def took(self, model: str, seconds: float) -> None:
        """A request took so long."""
        self._dearest_second[model] = max(seconds, self.seconds_of(model))

    def price_of(self, model: str) -> Price | None:
        """Of a model."""
        return self.bill.tariff.price(model)

    def _within(self, model: str, size: Size) -> tuple[int, int | None]:
        price = self.price_of(model) if size.output is None else None
        return size.within(None if price is None else price.max_output)


def _without(calls: Sequence[tuple[str, float]], model: str, most: float) -> Sequence[tuple[str, float]]:
    """The others of these calls, when one of this model is made that costs so much at most."""
    own = [place for place, (name, _) in enumerate(calls) if name == model]
    if not own:
        return calls
    made = min(own, key=lambda place: abs(calls[place][1] - most))
    return [*calls[:made], *calls[made + 1 :]]


class _Api:
    """Before the two methods by which the host's API classes send requests."""

    def __init__(self, paid: PaidCalls, lm: Any) -> None:
        self._paid = paid
        self._lm = lm
        self._model = short_name(lm)
        self._send, self._asend = lm.model_call, lm.amodel_call

    @property
    def instead(self) -> dict[str, Any]:
        return {"model_call": self.call, "amodel_call": self.acall}

    def call(self, messages: Any, *, generate: bool = True, gen_kwargs: Any = None, **more: Any) -> Any:
        """Send one request, and nothing beside it in this thread."""
        sizes, owners = self._sizes(messages, generate, gen_kwargs, more), self._owners(messages)
        under_way = self._paid.bill.under_way
        while not (holds := self._paid.hold(self._model, sizes, owners, 0.0)):
            self._paid.check_waiting(self._model, sizes, under_way)
            time.sleep(_PAUSE)
            under_way = self._paid.bill.under_way
        try:
            reply = self._send(messages, generate=generate, gen_kwargs=gen_kwargs, **more)
        except BaseException as ex:
            self._failed(holds, owners, ex, sent=False)
            raise
        self._answered(holds, messages, reply)
        return reply

    async def acall(
        self,
        session: Any,
        sem: Any,
        messages: Any,
        *,
        generate: bool = True,
        gen_kwargs: Any = None,
        **more: Any,
    ) -> Any:
        """Send one request of several."""
        sizes, owners = self._sizes(messages, generate, gen_kwargs, {}), self._owners(messages)
        under_way = self._paid.bill.under_way
        while not (holds := self._paid.hold(self._model, sizes, owners, 0.0)):
            self._paid.check_waiting(self._model, sizes, under_way)
            await asyncio.sleep(_PAUSE)
            under_way = self._paid.bill.under_way
        heard = HearingSession(session)
        try:
            answers = await self._asend(
                heard, sem, messages, generate=generate, gen_kwargs=gen_kwargs, **more
            )
        except BaseException as ex:
            if heard.reply is not None:  # it was read, and the host can make nothing of it
                self._settle(holds, heard.reply)
            else:
                self._failed(holds, owners, ex, sent=heard.sent)
            raise
        self._answered(holds, messages, heard.reply)
        return answers

    def _sizes(self, messages: Any, generate: bool, gen_kwargs: Any, more: Any) -> list[Size]:
        sizes = sizes_of(payload_of(self._lm, messages, generate, gen_kwargs))
        if len(sizes) == len(messages):
            return sizes
        return [sizes[0]._replace(input=sum(size.input for size in sizes))] * len(messages)

    def _owners(self, messages: Any) -> list[str]:
        cells = judging.get()
        if cells is None:
            owners = self._paid.owners.of(messages)
            answering.set(list(owners))
            return owners
        return list(cells) if len(cells) == len(messages) else [NOBODY] * len(messages)

    def _answered(self, holds: Sequence[Hold], messages: Any, reply: Any) -> None:
        self._settle(holds, reply)
        if judging.get() is None:
            self._paid.owners.answered(messages)

    def _settle(self, holds: Sequence[Hold], reply: Any) -> None:
        for hold, usage in zip(holds, shared(usage_of(reply), len(holds)), strict=True):
            self._paid.bill.settle(hold, usage)

    def _failed(
        self, holds: Sequence[Hold], owners: Sequence[str], error: BaseException, *, sent: bool
    ) -> None:
        billed = may_be_billed(error, sent=sent) and (sent or not isinstance(error, asyncio.CancelledError))
        if not billed:
            self._paid.release(holds, owners)
            return
        for hold in holds:
            self._paid.bill.lose(hold)


class _Local:
    """Before the three methods by which the host asks a model on one's own machines."""

    def __init__(self, paid: PaidCalls, lm: Any) -> None:
        check_local(lm)
        self._paid = paid
        self._lm = lm
        self._model = short_name(lm)
        self._ask = {kind: getattr(lm, kind) for kind in _KINDS}

    @property
    def instead(self) -> dict[str, Any]:
        return {
            "generate_until": self.generate,
            "loglikelihood": self.score,
            "loglikelihood_rolling": self.roll,
        }

    def generate(self, requests: Sequence[Any], **more: Any) -> Any:
        """Texts."""
        return self._pay("generate_until", requests, more)

    def score(self, requests: Sequence[Any], **more: Any) -> Any:
        """Log-likelihoods of continuations."""
        return self._pay("loglikelihood", requests, more)

    def roll(self, requests: Sequence[Any], **more: Any) -> Any:
        """Log-likelihoods of whole texts."""
        return self._pay("loglikelihood_rolling", requests, more)

    def _pay(self, kind: str, requests: Sequence[Any], more: dict[str, Any]) -> Any:
        paid = self._paid
        sizes = [size_of_local(self._lm, request) for request in requests]
        cells = judging.get()
        owners = paid.owners.of_instances(requests) if cells is None else list(cells)
        if len(owners) != len(requests):
            owners = [NOBODY] * len(requests)
        seconds = paid.seconds_of(self._model)
        under_way = paid.bill.under_way
        while not (holds := paid.hold(self._model, sizes, owners, seconds)):
            paid.check_waiting(self._model, sizes, under_way)
            time.sleep(_PAUSE)
            under_way = paid.bill.under_way
        began = time.perf_counter()
        try:
            replies = self._ask[kind](requests, **more)
        except BaseException:
            for hold in holds:
                paid.bill.lose(hold)
            raise
        elapsed = time.perf_counter() - began
        used = [usage_of_local(self._lm, *each) for each in zip(requests, replies, sizes, strict=True)]
        each = elapsed / max(len(holds), 1)  # of the time, an equal share
        paid.took(self._model, each)
        price = paid.price_of(self._model)
        for hold, usage, size in zip(holds, used, sizes, strict=True):
            if usage is None and price is not None and price.second:
                usage = Usage(max(1, size.input), size.output or 0)
            paid.bill.settle(hold, None if usage is None else replace(usage, seconds=each))
        return replies


def payload_of(lm: Any, messages: Any, generate: bool, gen_kwargs: Any) -> Any:
    """What one of the host's API classes is about to send."""
    return lm._create_payload(
        lm.create_message(messages),
        generate=generate,
        gen_kwargs=copy.deepcopy(gen_kwargs) if generate else None,
        seed=lm._seed,
        eos=None,
    )


def size_of(lm: Any, instance: Any) -> Size:
    """What one of the host's requests uses at most."""
    if not is_api(lm):
        check_local(lm)
        return size_of_local(lm, instance)
    generate = instance.request_type == "generate_until"
    options = dict(instance.args[1]) if generate and len(instance.args) > 1 else {}
    try:
        sizes = sizes_of(payload_of(lm, [prompt_sent(lm, instance)], generate, options))
    except Exception:  # it will fail when it is sent, in the host's words
        log.debug("a request cannot be measured", exc_info=True)
        return Size(len(str(instance.args[0]).encode("utf-8", "surrogatepass")), lm._max_gen_toks)
    return sizes[0]._replace(input=sum(size.input for size in sizes))
