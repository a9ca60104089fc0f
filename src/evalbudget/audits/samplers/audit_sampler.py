"""Samplers of audits: rater 0 is a cheap judge, rater 1 a human, and a coin decides who is labelled."""

from __future__ import annotations

import heapq
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Protocol

import numpy as np

from evalbudget.audits.draw import AuditDraw, Coin
from evalbudget.audits.policies import Context, Verdict
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError
from evalbudget.sampler import Allocation, Eligible, Kind, Option, Sampler
from evalbudget.statistics.bounds import FloatArray, Scale

Entry = tuple[int, int, int, int]
"""A cell to ask: context, rater, model, item; they are asked in this order."""
JUDGE, HUMAN = 0, 1
"""Raters of the design."""


class Session(Protocol):
    """What decides: contexts to judge, coins, labels in any order, a verdict."""

    draws: list[AuditDraw]

    @property
    def contexts(self) -> tuple[Context, ...]:
        """To judge, in draw order; empty when it is over."""

    @property
    def over(self) -> bool:
        """Nothing more is asked."""

    @property
    def limit(self) -> int | None:
        """Contexts of the batch whose labels may be asked for; None for all."""

    def judge(self, position: int, scores: FloatArray) -> tuple[AuditDraw, ...]:
        """Take the scores of a context."""

    def label(self, index: int, value: float) -> None:
        """Take a label."""

    def verdict(self) -> Verdict:
        """What has been proved."""


class AuditSampler(Sampler):
    """Judges contexts and has a few of them labelled until the systems can be told apart.

    The raters of the design are the judge (0) and the human (1). Cells are handed out in draw order: the
    judge's of a context, then the human's where the coin fell so. A judge's cell that keeps failing is a
    context without a score; a human's is a label that never came, which counts against whatever it would
    have helped.

    Args:
        design: the systems, the items and the two raters.
        prices: of a judge's score and of a label.
        score_range: smallest and largest possible label; also judge score, without ``judge_range``.
        judge_range: smallest and largest possible judge score; it is mapped onto the labels' range.
        seed: of the order of items and of the coins.
        max_failures: see Sampler.
        options: for journals.

    Raises:
        InvalidInputError: the design has not two raters, or the range is empty.
    """

    kind: ClassVar[Kind] = Kind.AUDITS
    allocation = Allocation.ADAPTIVE

    def __init__(
        self,
        design: Design,
        *,
        prices: tuple[float, float] = (1.0, 20.0),
        score_range: tuple[float, float] = (0.0, 1.0),
        judge_range: tuple[float, float] | None = None,
        seed: int = 0,
        max_failures: int = 3,
        options: Mapping[str, Option] = MappingProxyType({}),
    ) -> None:
        super().__init__(
            design,
            seed=seed,
            max_failures=max_failures,
            options={
                "prices": (float(prices[0]), float(prices[1])),
                "score_range": (float(score_range[0]), float(score_range[1])),
                "judge_range": None
                if judge_range is None
                else (float(judge_range[0]), float(judge_range[1])),
                **options,
            },
        )
        if design.n_raters != 2:
            raise InvalidInputError(
                f"sampler {self.name!r} needs two raters, the judge and then the human; the design has "
                f"{design.n_raters}: {', '.join(design.raters)}"
            )
        self.prices = prices
        self._scales = Scale(*(judge_range or score_range)), Scale(*score_range)
        self._scores: dict[tuple[int, int], float] = {}
        self._drawn: dict[tuple[int, int], AuditDraw] = {}
        self._labelled: set[int] = set()
        self._busy: set[tuple[int, int, int]] = set()
        self._tries: dict[tuple[int, int, int], int] = {}
        self._paid = [0, 0]
        self._received = 0
        self._ready: list[Entry] = []
        self._allowed = 0
        self._session = self._start()
        self._batch: tuple[Context, ...] = ()
        self._place: dict[tuple[int, int], int] = {}
        self._refill()

    @abstractmethod
    def _start(self) -> Session:
        """A fresh session for this design and these options."""

    @property
    def draws(self) -> tuple[AuditDraw, ...]:
        """Everything drawn so far, in draw order."""
        return tuple(sorted(self._session.draws, key=lambda draw: draw.index))

    @property
    def verdict(self) -> Verdict:
        """What has been proved so far; scores are on [0, 1], costs are of all readings, failed ones too."""
        judge, label = self.prices
        paid = self._paid
        return replace(
            self._session.verdict(),
            judged=paid[JUDGE],
            labels=self._received,
            cost=judge * paid[JUDGE] + label * paid[HUMAN],
        )

    def tell(self, readings: Iterable[Reading]) -> None:
        """As Sampler; a score outside the declared range is refused and its request stays pending."""
        told = list(readings)
        for reading in told:
            rater = reading.request.cell.rater
            if reading.value is None or rater not in (JUDGE, HUMAN):
                continue
            scale = self._scales[rater]
            if not scale.low <= reading.value <= scale.high:
                raise InvalidInputError(
                    f"{self.design.raters[rater]} gave {reading.value:g}, outside {scale.low:g} to "
                    f"{scale.high:g}; declare score_range, and judge_range if the judge's scale is another"
                )
        super().tell(told)
        for reading in told:
            self._paid[reading.request.cell.rater] += 1
            self._received += reading.request.cell.rater == HUMAN and reading.value is not None

    def adopt(self, cell: Cell) -> Request:
        """As Sampler; labels that no coin asked for are refused, they would bias the verdict."""
        if cell in self.design:
            key = (cell.rater, cell.model, cell.item)
            if key in self._busy or (cell.rater == JUDGE and key[1:] in self._scores):
                raise InvalidInputError(f"{cell} is asked already; every cell is scored once")
            if cell.rater == HUMAN and not self._is_wanted(cell.model, cell.item):
                raise InvalidInputError(
                    f"{cell} was never to be labelled; labels that no coin asked for would bias the verdict"
                )
        return super().adopt(cell)

    def _next(self, eligible: Eligible | None) -> Cell | None:
        if self._session.over:
            self.stop_reason = self._session.verdict().reason
            return None
        if eligible is not None:
            for entry in sorted(self._ready):
                if self._is_open(entry) and eligible(self._cell(entry[1:])):
                    return self._cell(entry[1:])
            return None
        while self._ready and not self._is_open(self._ready[0]):
            heapq.heappop(self._ready)  # asked, answered, or of an earlier batch
        return self._cell(self._ready[0][1:]) if self._ready else None

    def _is_open(self, entry: Entry) -> bool:
        context, rater, model, item = entry
        if (rater, model, item) in self._busy or not self._batch or context < self._batch[0].number:
            return False
        return (model, item) not in self._scores if rater == JUDGE else self._is_wanted(model, item)

    def _cell(self, key: tuple[int, int, int]) -> Cell:
        return Cell(model=key[1], item=key[2], epoch=self._tries.get(key, 0), rater=key[0])

    def _is_wanted(self, model: int, item: int) -> bool:
        draw = self._drawn.get((model, item))
        return draw is not None and draw.wanted and draw.index not in self._labelled

    def _asked(self, cell: Cell) -> None:
        key = (cell.rater, cell.model, cell.item)
        self._busy.add(key)
        self._tries[key] = max(self._tries.get(key, 0), cell.epoch) + 1

    def _propensity(self, cell: Cell) -> float | None:
        if cell.rater == JUDGE:
            return None
        draw = self._drawn[cell.model, cell.item]
        return None if draw.coin is Coin.NONE else draw.propensity

    def _learn(self, cell: Cell, value: float) -> None:
        self._busy.discard((cell.rater, cell.model, cell.item))
        self._take(cell, float(self._scales[cell.rater].to_unit(value)))

    def _failed(self, cell: Cell) -> None:
        key = (cell.rater, cell.model, cell.item)
        self._busy.discard(key)
        position = self._place.get((cell.model, cell.item))
        if position is not None:
            heapq.heappush(self._ready, (self._batch[position].number, *key))

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        if not is_open:
            self._take(cell, math.nan)

    def _take(self, cell: Cell, value: float) -> None:
        if cell.rater == JUDGE:
            if (cell.model, cell.item) in self._scores:
                return
            self._scores[cell.model, cell.item] = value
            position = self._place.get((cell.model, cell.item))
            if position is not None:
                self._judge(position)
        elif self._is_wanted(cell.model, cell.item):
            draw = self._drawn[cell.model, cell.item]
            self._labelled.add(draw.index)
            if not self._session.over:
                self._session.label(draw.index, value)
        self._refill()

    def _judge(self, position: int) -> None:
        context = self._batch[position]
        if self._session.over or not context.judged:
            return
        known = [self._scores.get((model, context.item)) for model in context.models]
        if all(score is not None for score in known):
            for draw in self._session.judge(position, np.array(known, dtype=np.float64)):
                self._drawn[draw.model, draw.item] = draw
            self._want(position)

    def _want(self, position: int) -> None:
        """Hand the labels of a context out, or those of all contexts that the limit on labels now allows."""
        if self._session.over or self._session.contexts[0].number != self._batch[0].number:
            return
        limit = self._session.limit
        allowed = [position] if limit is None else range(self._allowed, limit)
        for at in allowed:
            context = self._batch[at]
            for model in context.models:
                if self._is_wanted(model, context.item):
                    heapq.heappush(self._ready, (context.number, HUMAN, model, context.item))
        self._allowed = limit or 0

    def _refill(self) -> None:
        """Go on to the next batch; contexts that were judged already need no asking."""
        while not self._session.over:
            contexts = self._session.contexts
            if self._batch and contexts[0].number == self._batch[0].number:
                return
            self._batch, self._ready, self._allowed = contexts, [], 0
            self._place = {
                (model, context.item): position
                for position, context in enumerate(contexts)
                for model in context.models
            }
            for draw in self._session.draws[-sum(len(c.models) for c in contexts) :]:
                self._drawn[draw.model, draw.item] = draw  # the second pass draws some again
            for position, context in enumerate(contexts):
                for model in context.models if context.judged else ():
                    if (model, context.item) not in self._scores:
                        heapq.heappush(self._ready, (context.number, JUDGE, model, context.item))
                if not context.judged:
                    self._want(position)
            for position in range(len(contexts)):
                self._judge(position)
                now = self._session.contexts  # judging may have ended the batch
                if not now or now[0].number != contexts[0].number:
                    break
