"""Goes on with a store's audit: what to judge next, and recording what was judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from evalbudget.audits._draw import AuditDraw
from evalbudget.audits.policies import Context, Verdict, rebuild
from evalbudget.audits.store._record_types import Answer
from evalbudget.audits.store._store import AuditStore, alone
from evalbudget.audits.store._store_verdict import Stage, Standing, labels_of, policy_of, weigh
from evalbudget.errors import AuditStoreError, EvalbudgetError, InvalidInputError
from evalbudget.store import Address


class AuditRun:
    """The run that draws items and asks the judge, rebuilt from a store.

    ::

        run = AuditRun(AuditStore.open("audit.sqlite"))
        for context in run.contexts:
            run.record(context, answers, scores)
        run.verdict().labels_wanted  # humans are asked for these now

    Started again at any time, after a crash or when labels came in, it goes on where the store is. Contexts
    of the second pass are recorded at once where the store has the answers.

    Args:
        store: the audit.

    Raises:
        AuditStoreError: the store's settings cannot be read.
        ReplayError: its draws are not those that settings and labels lead to.
    """

    def __init__(self, store: AuditStore) -> None:
        self.store = store
        with store.snapshot():
            draws, labels, self._corrections = store.draws.all(), labels_of(store), store.labels.corrections()
        self._policy = rebuild(policy_of(store), draws, labels)
        self._recorded = {draw.context for draw in draws}
        self._record_again()

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Contexts of the batch under way that still have to be answered and judged; () when none are."""
        return tuple(c for c in self._policy.contexts if c.number not in self._recorded)

    @property
    def over(self) -> bool:
        """Whether nothing more is asked of anybody."""
        return self._policy.over

    def record(
        self, context: Context, answers: Sequence[Answer], scores: Sequence[float] | None = None
    ) -> tuple[AuditDraw, ...]:
        """Keep one context; on disk when this returns, and labellers may be asked for it.

        Args:
            context: one of ``contexts``; any order will do.
            answers: what a human reads, one per system of the context.
            scores: the judge's, on the scale of the audit, one per system, nan where the judge failed for
                good; None if the context is not judged.

        Returns:
            The draws, with what the coins said; none, and nothing is kept, if the batch ended meanwhile:
            labels of later contexts were there before this one, and with it they tell enough.

        Raises:
            InvalidInputError: a score outside the scale, not one answer and score per system, or prompts that
                differ.
            AuditStoreError: another run recorded it, or a label was corrected meanwhile.
        """
        n = len(context.models)
        if (
            len(answers) != n
            or (scores is None) == context.judged
            or (scores is not None and len(scores) != n)
        ):
            raise InvalidInputError(
                f"context {context.number} needs {n} answers and {n if context.judged else 'no'} judge scores"
            )
        if len({answer.prompt for answer in answers}) > 1:
            raise InvalidInputError(
                f"the systems were asked different things under the name "
                f"{self.store.design.items[context.item]!r}; give items ids of their own, or the dataset's "
                "shuffling a seed, and begin a new audit"
            )
        if scores is None:
            if context not in self._policy.contexts:
                return ()
            draws = tuple(draw for draw in self._policy.draws if draw.context == context.number)
        else:
            # the coins fall here; nobody sees them before the store has them
            draws = self._policy.judge(context, np.array([self._unit(context, s) for s in scores]))
        if draws:
            self.store.draws.append(zip(draws, answers, strict=True), self._corrections)
            self._recorded.add(context.number)
        return draws

    def _record_again(self) -> None:
        """Keep what the second pass has labelled next."""
        for context in self.contexts:
            if not context.again:
                continue
            draws = [draw for draw in self._policy.draws if draw.context == context.number]
            known = [self.store.draws.answer(draw.item, draw.model) for draw in draws]
            answers = [answer for answer in known if answer is not None]
            if len(answers) == len(known):
                self.store.draws.append(zip(draws, answers, strict=True), self._corrections)
                self._recorded.add(context.number)

    def verdict(self) -> Verdict:
        """What is proved by the labels that were there when this run was begun."""
        return self._policy.verdict()

    def _unit(self, context: Context, score: float) -> float:
        scale = self.store.design.scale
        if math.isnan(score):
            return score
        if not scale.low <= score <= scale.high:
            raise InvalidInputError(
                f"the judge gave {self.store.design.items[context.item]!r} {score:g}, outside the scale of "
                f"the labels: {scale}. Judge and labels must share one scale; rescale the judge's scores"
            )
        return scale.to_unit(score)


def go_on(store: AuditStore) -> Standing:
    """As :func:`weigh`, once what the second pass has labelled next is in the store.

    It needs no model and no judge, so whoever looks at a store draws it: a page, a command, the run itself.

    Raises:
        AuditStoreError: see weigh.
        ReplayError: see weigh.
    """
    found = weigh(store)
    if not (found.stage is Stage.DRAW and found.pool_used_up):
        return found
    with suppress(AuditStoreError):  # somebody else has drawn it meanwhile, or the file may only be read
        AuditRun(store)
    return weigh(store)


def still_wanted(store: AuditStore) -> tuple[int, ...]:
    """Draws whose label the verdict still waits for; all without a label where no verdict can be given.

    Once enough is known, the rest of a batch is not needed any more, though its coins asked for it.
    """
    try:
        return go_on(store).wanted
    except EvalbudgetError:
        return tuple(task.draw for task in store.draws.tasks(labelled=False))


@contextmanager
def only_run(store: str | Path | Address) -> Iterator[None]:
    """Keep other runs away from a store while this one goes on with it; labellers are not kept away.

    Args:
        store: path or address; it need not exist yet. In a database, others are kept away until its server is
            started anew.

    Raises:
        AuditStoreError: another run is at it, or there is no such folder.
        StoreDownError: its database cannot be reached.
    """
    address = Address.parse(store)
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(address, "run"))
        except BlockingIOError:
            raise AuditStoreError(
                f"another run goes on with {address}; both would pay for the same answers. Let it end, then "
                "run the command again"
            ) from None
        yield
