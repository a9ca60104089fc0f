"""``audit-eprocess``: scores and labels come in any order, and are learned from in draw order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.policies._config import AuditConfig, HumanConfig, PolicyConfig
from evalbudget.audits.policies._contest import Weighed
from evalbudget.audits.policies._eprocess_batches import Batch, Drawn
from evalbudget.audits.policies._eprocess_state import EProcess
from evalbudget.audits.policies._eprocess_verdict import estimates, intervals_in_words, of_pool, outcome
from evalbudget.audits.policies._policy import AuditPolicy, Context
from evalbudget.audits.policies._verdict import Verdict
from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray


class AuditEProcess(AuditPolicy):
    r"""Every system left is judged on the same items; labels go where they tell most for their price.

    Predictions of labels are learned from past labels only; with a propensity pi for every label, :math:`Z =
    m + (A/\pi)(Y - m)` is unbiased whatever judge and predictions are worth, and e-processes on :math:`Z_i -
    Z_j` drop a system j once the evidence against it reaches 2/delta (see
    :mod:`evalbudget.audits._always_valid_evidence`).
    Claims are about items like these: the pool is drawn in random order, each item once. When all are drawn
    without a winner a second pass labels the other answers of the systems left until it is decided about
    these items, at the latest when all are labelled (:mod:`evalbudget.audits.policies._second_pass`). A pool
    that is too small for the first pass is drawn at once.

    Labels count once those of all earlier contexts are there; when the labels of a batch are complete the
    next one is frozen.

    Args:
        config: settings.

    Raises:
        InvalidInputError: the settings are those of a policy that asks no judge, or the other way round.
    """

    name = "audit-eprocess"
    config_type: ClassVar[type[PolicyConfig]] = AuditConfig
    learns_prices = True
    config: AuditConfig

    def __init__(self, config: AuditConfig) -> None:
        super().__init__(config)
        if config.use_judge != self.asks_judge:
            raise InvalidInputError(
                f"use_judge is {config.use_judge} and the policy {self.name}; audit-eprocess asks the judge, "
                "human-only asks none"
            )
        self.process = EProcess(config)
        self._first_index = 0
        self._before: dict[int, bool] = {}
        """Draws of earlier batches that were to be labelled, and whether they are: a late label is paid."""
        self._decided: int | None = None
        self._open()

    # prices

    @property
    def judge_price(self) -> float:
        """Of one score of the judge, by which the next batch is chosen."""
        return self.process.judge_price

    def take_prices(self, prices: Mapping[int, float]) -> None:
        """What scores of the judge cost, by the batch until which; as in AuditPolicy."""
        self.process.prices = dict(prices)

    # the batch under way

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Contexts of the batch under way; empty when the audit is over."""
        return () if self._decided is not None or self.process.batch is None else self._contexts

    def judge(self, context: Context, scores: FloatArray) -> tuple[AuditDraw, ...]:
        """Take the judge's scores of one context; arguments and errors as in AuditPolicy."""
        position = context.number - self._contexts[0].number if not self.over else -1
        if not 0 <= position < len(self._contexts) or self._thrown[position]:
            return ()
        self._check_scores(context, scores)
        return self._throw(position, scores)

    def _throw(self, position: int, scores: FloatArray) -> tuple[AuditDraw, ...]:
        f = self.process.batch
        assert f is not None
        row = self.process.throw(scores[None, :], start=position)
        self._judge[position], self._wanted[position] = scores, row.wanted[0]
        self._prediction[position], self._propensity[position] = row.prediction[0], row.propensity[0]
        self._thrown[position] = True
        self._missing[position] = int(row.wanted.sum())
        self.scores_received += int(np.isfinite(scores).sum())
        draws = []
        for column, model in enumerate(f.arms.tolist()):
            if f.coin is Coin.NONE and not row.wanted[0, column]:
                continue  # labelled in the first pass
            index = self._first_index + position * f.arms.size + column
            draws.append(
                AuditDraw(
                    index=index,
                    context=f.first + position,
                    model=model,
                    item=int(f.items[position]),
                    segment=self.config.segment_of(int(f.items[position])),
                    judge=float(row.judge[0, column]),
                    prediction=float(row.prediction[0, column]),
                    propensity=float(row.propensity[0, column]),
                    uniform=float(f.uniform[position]),
                    coin=f.coin,
                    leader=f.leader,
                    cap=f.cap,
                    policy=f.number,
                    wanted=bool(row.wanted[0, column]),
                )
            )
        self.draws += draws
        self._advance()
        return tuple(draws)

    def label(self, index: int, value: float) -> None:
        """Take the human label of a draw; arguments and errors as in AuditPolicy."""
        if index in self._before:  # its batch was learned from: nothing changes any more
            if not (self._before[index] or math.isnan(value)):
                self.labels_received += 1
                self._before[index] = True
            return
        inside = 0 <= index - self._first_index < self._wanted.size
        at = divmod(index - self._first_index, self._wanted.shape[1]) if inside else (0, 0)
        wanted = inside and bool(self._wanted[at])
        before = float(self._label[at]) if inside and self._labelled[at] else None
        if self._is_new(index, value, wanted=wanted, before=before):
            self._label[at], self._labelled[at] = value, True
            self._missing[at[0]] -= 1
            self.labels_received += not math.isnan(value)
            self._advance()

    @property
    def wanted(self) -> tuple[int, ...]:
        """Indices of draws whose label is missing, in draw order."""
        f = self.process.batch
        if f is None or self._decided is not None:
            return ()
        rows = np.argwhere((self._wanted & ~self._labelled)[: self._limit])
        return tuple(self._first_index + int(p) * f.arms.size + int(c) for p, c in rows)

    @property
    def _limit(self) -> int | None:
        """Contexts of the batch whose labels may be asked for; None for all of them.

        With a limit on labels these are the first ones, as far as their coins have fallen without a gap.
        """
        if self.config.max_labels is None:
            return None
        thrown = _leading(self._thrown)
        return self.process.affordable(self._drawn(thrown)) if thrown else 0

    def _drawn(self, n: int) -> Drawn:
        f = self.process.batch
        assert f is not None
        return Drawn(f, self._judge[:n], self._prediction[:n], self._propensity[:n], self._wanted[:n])

    def _open(self) -> None:
        f = self.process.batch
        self._contexts = _contexts(f)
        shape = (0, 0) if f is None else (f.items.size, f.arms.size)
        self._judge: FloatArray = np.full(shape, np.nan)
        self._prediction: FloatArray = np.zeros(shape)
        self._propensity: FloatArray = np.ones(shape)
        self._wanted: NDArray[np.bool_] = np.zeros(shape, dtype=bool)
        self._label: FloatArray = np.full(shape, np.nan)
        self._labelled: NDArray[np.bool_] = np.zeros(shape, dtype=bool)
        self._thrown: NDArray[np.bool_] = np.zeros(shape[0], dtype=bool)
        self._missing: NDArray[np.int64] = np.zeros(shape[0], dtype=np.int64)
        self._complete = 0
        if f is not None and not f.judged:
            for position in range(shape[0]):
                if self.process.batch is f:  # it ends at once where no labels are allowed any more
                    self._throw(position, np.full(shape[1], np.nan))

    def _advance(self) -> None:
        """Weigh the contexts that are complete without a gap; learn when all are."""
        f = self.process.batch
        if f is None or self._decided is not None:
            return
        n, thrown = _leading(self._thrown & (self._missing == 0)), _leading(self._thrown)
        if n == self._complete == thrown:
            return
        affordable = self.process.affordable(self._drawn(thrown))
        n = min(n, affordable)
        cut = affordable < thrown
        if n > self._complete and f.arms.size > 1:
            self._complete = n
            found = self.process.weigh(self._drawn(n), self._label[:n])
            self._decided = self._end(found, n)
            if self._decided is not None:
                return
        self._complete = n
        if n == f.items.size or (cut and n == affordable):
            for position, column in np.argwhere(self._wanted).tolist():
                index = self._first_index + position * f.arms.size + column
                self._before[index] = bool(self._labelled[position, column])
            self._first_index += f.items.size * f.arms.size
            drawn = self._drawn(thrown)
            self.process.learn(drawn, self._label[:n])
            self._open()

    def _end(self, found: Weighed, n: int) -> int | None:
        """Contexts until it was decided, if that is within the first n."""
        last_two = np.sort(found.first[self.process.active])[-2]
        end = int(min(last_two, found.equivalent))
        return end + 1 if end < n else None

    # what is known

    def verdict(self) -> Verdict:
        """What has been proved so far; never changes what is asked."""
        if self._decided is not None:
            # the rest of the batch is not needed: close it where the decision fell
            self.process.learn(self._drawn(self._decided), self._label[: self._decided])
            self._decided = None
        found = estimates(self.process, self._judge_means())
        decided, winner, reason = outcome(self.process, found, len(self.wanted))
        return self._verdict(
            decided,
            reason,
            found,
            intervals_in_words(self.process, found),
            winner=winner,
            no_go=self.process.no_go if self.config.use_judge else None,
            **of_pool(self.process, decided),
        )


class HumanOnly(AuditEProcess):
    """The same without a judge: every item drawn is labelled for every system left."""

    name = "human-only"
    config_type: ClassVar[type[PolicyConfig]] = HumanConfig
    asks_judge = False


def _contexts(f: Batch | None) -> tuple[Context, ...]:
    if f is None:
        return ()
    return tuple(
        Context(f.first + p, int(item), tuple(f.models(p).tolist()), f.judged, f.coin is Coin.NONE)
        for p, item in enumerate(f.items)
    )


def _leading(flags: NDArray[np.bool_]) -> int:
    """How many hold before the first that does not."""
    return flags.size if flags.all() else int(flags.argmin())
