"""``single``: one judge scores everything, the baseline that rotation is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Unpack

import numpy as np

from evalbudget.judges.schedules._panel import judge_index
from evalbudget.judges.schedules._schedule import JudgeSchedule, ScheduleOptions
from evalbudget.statistics._bounds import IntArray


class Single(JudgeSchedule):
    """One judge scores everything: its bias is part of every score, and no interval shows it.

    Args:
        items: as in :class:`JudgeSchedule`.
        judges: the panel; one judge is enough.
        judge: which of them scores, by name or position; None draws one.
        options: as in :class:`JudgeSchedule`; the seed draws the judge.

    Raises:
        UnknownNameError: the judge is not in the panel.
    """

    name: ClassVar[str] = "single"
    weighs_judges: ClassVar[bool] = False
    fewest_judges: ClassVar[int] = 1

    def __init__(
        self,
        items: Sequence[str],
        judges: Sequence[str],
        *,
        judge: str | int | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        super().__init__(items, judges, **options)
        drawn = int(np.random.default_rng([self.seed, 1]).integers(self.n_judges))
        self.judge = drawn if judge is None else judge_index(judge, self.judges)

    @property
    def notes(self) -> tuple[str, ...]:
        """That nothing here averages the judge's bias out."""
        judge = self.judges[self.judges_for(0)[0]]
        return (*super().notes, f"judge {judge!r} alone: the interval knows nothing of its bias")

    def _row(self, epoch: int) -> IntArray:
        return np.full((self.n_items, 1), self.judge, dtype=np.int64)

    def _moved(self, row: IntArray, gone: int, epoch: int, calls: IntArray) -> IntArray:
        drawn = np.random.default_rng([self.seed, 2, len(self.dropped)]).integers(len(self.active))
        return np.where(row == gone, self.active[int(drawn)], row)
