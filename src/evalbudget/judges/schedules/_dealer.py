"""Deals judges to cells: by the schedule, until one of them turns out to be dead."""

from __future__ import annotations

from evalbudget.judges.schedules._schedule import JudgeSchedule
from evalbudget.outage import is_down

Place = tuple[int, int]
"""Item and epoch, both from 0."""


class Dealer:
    """Who scores which cell. What was dealt stays so, unless it is dealt again.

    A judge whose first eight calls all failed, while others succeed, is dropped: its further calls go to the
    others. Where every judge scores every generation there is nobody else to ask, so nobody is dropped.

    Args:
        schedule: of the whole panel.
    """

    def __init__(self, schedule: JudgeSchedule) -> None:
        self.schedule = schedule
        self._drops = schedule.calls_per_generation == 1
        self._dealt: dict[Place, tuple[int, ...]] = {}
        self._scored = [0] * schedule.n_judges
        self._failed = [0] * schedule.n_judges

    def due(self, item: int, epoch: int) -> tuple[int, ...]:
        """Who scores a cell as things stand; until it is dealt that may change."""
        return self._dealt.get((item, epoch)) or self.schedule.judges_for(item, epoch)

    def judges(self, item: int, epoch: int) -> tuple[int, ...]:
        """Who scores a cell."""
        return self._dealt.setdefault((item, epoch), self.due(item, epoch))

    def assume(self, item: int, epoch: int, judge: int) -> None:
        """A cell was scored by this judge earlier, whatever the schedule says now."""
        self._dealt[item, epoch] = (judge,)

    def deal_again(self, item: int, epoch: int) -> None:
        """Give a cell that was not scored yet to somebody else if its judge was dropped meanwhile."""
        if set(self._dealt.get((item, epoch), ())) & set(self.schedule.dropped):
            del self._dealt[item, epoch]

    def note(self, judge: int, *, scored: bool) -> str | None:
        """What came of a call; a warning if that was one failure too many."""
        (self._scored if scored else self._failed)[judge] += 1
        if not self._drops or (scored and not any(self._failed)):
            return None
        for dead, failed in enumerate(self._failed):
            if not is_down(failed, successes=self._scored[dead]) or dead in self.schedule.dropped:
                continue
            if len(self.schedule.active) > 1 and any(self._scored):
                self.schedule = self.schedule.without(dead)
                return (
                    f"judge {self.schedule.judges[dead]!r} failed in all of its first {failed} calls and is "
                    "asked no more; its further calls go to the other judges"
                )
        return None
