"""A scorer of the task labels: an expensive judge, a panel, whatever is trusted more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from inspect_ai import score
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, read_eval_log, transcript
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import TaskState

from evalbudget.audits.store import AuditStore, Reply, weigh
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.secrets import said_by
from evalbudget_inspect.audits.answers import Found, keep_in_log, marked
from evalbudget_inspect.audits.which_judge import pick
from evalbudget_inspect.host.bill import Account, paid_beside
from evalbudget_inspect.host.interrupts import interrupts
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import in_place_of
from evalbudget_inspect.host.sent_again import paying
from evalbudget_inspect.host.tasks import load_alone

_AT_ONCE = 16
"""Answers scored side by side; the store has every label at once."""
_LONGEST_FAILURE = 500


def without_scorer(scorers: list[Scorer], wanted: str) -> list[Scorer]:
    """The task's scorers less the one that labels, which is asked for what the coins pick and nothing else.

    Raises:
        InvalidInputError: there is no such scorer, or no entry of its dict score is named.
    """
    _, _, labeller = _find(scorers, wanted)
    return [scorer for scorer in scorers if scorer is not labeller]


def _find(scorers: Sequence[Scorer], wanted: str) -> tuple[str, str | None, Scorer]:
    try:
        return pick(wanted, scorers, "--labels-from")
    except UnknownNameError as ex:
        raise InvalidInputError(
            f"--labels-from names no scorer of the task: {ex} To have humans label, leave it out"
        ) from None


def label_by_scorer(
    store: AuditStore,
    found: Mapping[tuple[str, str], Found],
    spec: str,
    args: dict[str, Any],
    wanted: str,
    account: Account | None = None,
) -> str:
    """Have the scorer label what is wanted now, as far as ``max_labels`` and the budget go.

    Args:
        store: the audit.
        found: what the logs answer.
        spec: the task.
        args: the task's own arguments.
        wanted: the scorer, ``name`` or ``name.key``.
        account: that pays, where calls have a budget in money or tokens.

    Returns:
        Why it is asked nothing more, if ``max_labels`` or the budget is used up; else nothing.

    Raises:
        InvalidInputError: it gave no score, or one that is not on the scale; other labels are kept.
    """
    indices, left = weigh(store).wanted, store.attempts.left
    if not indices:
        return ""
    if left == 0:
        return _used_up(store)
    draws = {draw.index: draw for draw in store.draws.all()}
    places: dict[str, list[tuple[int, str]]] = {}
    for index in indices[:left]:
        draw = draws[index]
        item = store.design.items[draw.item]
        each = found.get((store.design.models[draw.model], item))
        if each is None:
            raise InvalidInputError(
                f"no log has the answer to {item!r} that it is to label; give the --log-dir of the "
                "earlier runs, or label by evalbudget audit serve"
            )
        places.setdefault(each.log, []).append((index, item))
    name, key, scorer = _find(load_alone(spec, args, store.design.models[0]).scorer or [], wanted)
    labeller = _Labeller(store, scorer, name, key, account)
    for path, asked in places.items():
        whole = read_eval_log(path)
        try:
            for part in labeller.parts(asked):
                labeller.label(whole, part)
                labeller.refuse_failures()
                if account is not None and account.refusal is not None:
                    raise account.refusal
                if account is not None and account.gave_up:
                    return f"{account.reason[:1].upper()}{account.reason[1:]}. People can label what is left"
        finally:  # also at Ctrl-C; a long log takes seconds to write, so not after every part
            keep_in_log(store, found, path, whole)
    return ""


def _used_up(store: AuditStore) -> str:
    attempts = store.attempts.all()
    failed = sum(each.reply is None or bool(each.reply.failure) for each in attempts)
    return (
        f"--max-labels {store.design.config['max_labels']} is used up: {failed} of {len(attempts)} times a "
        "scorer was asked in vain, which counts too. People can label what is left"
    )


class _Labeller:
    """One scorer, asked answer by answer; whatever it says is in the store before the next thing happens."""

    def __init__(
        self, store: AuditStore, scorer: Scorer, name: str, key: str | None, account: Account | None
    ) -> None:
        self._store, self._scorer, self._name, self._key = store, scorer, name, key
        self._account = account
        self.by = f"scorer {name}"
        self._draw_of: dict[str, int] = {}
        self._model = ""
        self._unusable = ""
        self._silent: list[str] = []

    def parts(self, asked: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
        """What is asked together: the first answer alone shows whether its scores are on the scale."""
        begin = 0
        while begin < len(asked):
            end = begin + (_AT_ONCE if self._has_labelled() else 1)
            yield asked[begin:end]
            begin = end

    def _has_labelled(self) -> bool:
        attempts = self._store.attempts.all()
        return any(a.by == self.by and a.reply is not None and not a.reply.failure for a in attempts)

    def label(self, whole: EvalLog, asked: list[tuple[int, str]]) -> None:
        """Ask for these draws and items; the log's samples have then what was said."""
        self._draw_of = {item: draw for draw, item in asked}
        self._model = whole.eval.model
        samples = whole.samples or []
        places = [n for n, sample in enumerate(samples) if str(sample.id) in self._draw_of]
        part = whole.model_copy(update={"samples": [samples[n] for n in places]})

        async def asked_and_kept(state: TaskState, target: Target) -> Score | None:
            return await self._ask(state, target)

        try:
            scored = score(part, [in_place_of(self._scorer, asked_and_kept)], action="append", display="none")
        finally:
            interrupts.release()
        if interrupts.ended_a_run:
            raise KeyboardInterrupt
        for n, sample in zip(places, scored.samples or [], strict=True):
            samples[n] = sample

    def refuse_failures(self) -> None:
        """Say what gave no label.

        Raises:
            InvalidInputError: something did.
        """
        if self._unusable:
            raise InvalidInputError(self._unusable)
        if self._silent:  # the others' labels are saved by now
            raise InvalidInputError(
                f"the scorer {self._name!r} of --labels-from gave no score to {'; '.join(self._silent[:3])}; "
                "the verdict waits for it. Run the same command again, or label by evalbudget audit serve"
            )

    async def _ask(self, state: TaskState, target: Target) -> Score | None:
        interrupts.watch()
        name = f"{self._model} {state.sample_id}"
        await interrupts.begins(name)
        try:
            return await self._ask_now(state, target)
        finally:
            interrupts.ends(name)

    async def _ask_now(self, state: TaskState, target: Target) -> Score | None:
        account = self._account
        if self._unusable or (account is not None and account.gave_up):
            return None
        attempts, item = self._store.attempts, str(state.sample_id)
        try:
            attempt = attempts.begin(self._draw_of[item], self.by)
        except InvalidInputError:  # people label meanwhile, and have used up what was left
            return None
        before = len(transcript().events)
        given: Score | None = None
        failure = ""

        async def pays(calls: float) -> bool:
            if calls > 0.0:  # an attempt that was begun stays one
                try:
                    lost = attempts.begin(self._draw_of[item], self.by)
                except InvalidInputError:
                    return False
                attempts.finish(lost, Reply(failure="no reply"))
            return True

        own = f"label {attempt}"
        try:
            async with paying(pays):
                with nullcontext() if account is None else paid_beside(account, own):
                    given = await self._scorer(state, target)
        except Exception as ex:  # whatever a scorer may raise
            failure = said_by(ex)[:_LONGEST_FAILURE]
        if account is not None and own in account.gave_up:
            given, failure = None, account.too_dear.get(own, account.reason)
        events = [e for e in transcript().events[before:] if isinstance(e, ModelEvent)]
        reply = attempts.finish(attempt, self._reply(given, failure, item, _usage(events)))
        if reply.failure and reply.score is not None:
            self._stop(
                f"the scorer {self._name!r} of --labels-from gave {self._model}'s answer to {item!r} "
                f"{reply.score:g}, and the audit's scale is {self._store.design.scale}; nothing more was "
                "asked. Begin an audit with its scale, for example --score-range 1..10 (any number) or "
                "'1..10 by 1' (whole numbers), or leave --labels-from out and have people label"
            )
        elif reply.failure and not (account is not None and own in account.gave_up):
            self._silent.append(f"{item!r} ({reply.failure})")
        return None if given is None else marked(given, attempt)

    def _stop(self, why: str) -> None:
        """Ask nothing more; the first reason is told."""
        self._unusable = self._unusable or why

    def _reply(
        self, given: Score | None, failure: str, item: str, usage: Mapping[str, Mapping[str, float]]
    ) -> Reply:
        if given is None:
            return Reply(usage=usage, failure=failure)
        value = math.nan
        try:
            value = score_to_float(given, self._name, self._key, "--labels-from", strict=True)
        except InvalidInputError as ex:
            failure = str(ex)
            self._stop(f"{self._model}'s answer to {item!r}: {ex}")
        return Reply(value, given.answer or "", given.explanation or "", usage, failure)


def _usage(events: Sequence[ModelEvent]) -> dict[str, dict[str, float]]:
    """What was paid for, by model; replies from the host's cache cost nothing."""
    used: dict[str, dict[str, float]] = {}
    for event in events:
        model = used.setdefault(event.model, {})
        if event.cache == "read" or event.output.usage is None:
            continue
        for name, value in event.output.usage.model_dump(exclude_none=True).items():
            model[name] = model.get(name, 0) + value
    return used
