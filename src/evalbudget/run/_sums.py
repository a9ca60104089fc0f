"""What the calls of a bill come to, and what is known of them by model and role."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

ANSWERED = "answered"
REFUSED = "refused by the server, or never sent"
UNKNOWN = "no usage in the reply: counted at the most that it can cost"
LOST = "no reply: counted at the most that it can cost"
CUT_OFF = "under way when the process ended: counted at the most that it can cost"


@dataclass(slots=True)
class Hold:
    """A call that is under way.

    Attributes:
        number: of the hold, from 0.
        model: that is asked.
        most: reserved for it, in units of the budget.
        bound: the most that it can cost; above ``most`` only where a risk is accepted.
        sample: for which it is made; empty if for none.
        role: what the model does, such as ``model`` or ``grader``.
        reached: what its sample had spent and reserved, with it.
        worker: number of the process that makes it, where several share a bill.
        ended: its cost is known.
    """

    number: int
    model: str
    most: float
    bound: float
    sample: str = ""
    role: str = ""
    reached: float = 0.0
    worker: int = 0
    ended: bool = False


@dataclass(slots=True)
class BillRow:
    """What calls of one model in one role cost.

    Attributes:
        model: that was asked.
        role: what it did.
        calls: that are billed.
        cost: of them, in units of the budget.
        tokens: as far as replies said.
        unknown: calls among them that count at the most that they can cost, since no usage is known.
        unknown_cost: of these.
    """

    model: str
    role: str
    calls: int = 0
    cost: float = 0.0
    tokens: int = 0
    unknown: int = 0
    unknown_cost: float = 0.0


class Sums:
    """Of calls that have ended and of those under way.

    Args:
        risk: the accepted chance that what is under way costs more than was reserved for it.

    Attributes:
        risk: as given.
        spent: by calls that have ended, by earlier runs too.
        held: reserved for calls under way.
        over: what calls cost above what was reserved for them.
        cut_off: calls that were under way when an earlier process ended, by role.
        most_of_sample: the largest amount that one sample had spent and reserved at a time, so far: with so
            much free for each sample that begins, none is cut off on its way.
    """

    def __init__(self, risk: float) -> None:
        self.risk = risk
        self.spent = 0.0
        self.held = 0.0
        self._subtracted = 0  # calls, since all that is held was summed
        self.over = 0.0
        self.cut_off: Counter[str] = Counter()
        self.most_of_sample = 0.0
        self._open: dict[int, Hold] = {}
        self._count = 0
        self._of_sample: dict[str, float] = {}
        self._held_of: dict[str, float] = {}
        self._rows: dict[tuple[str, str], BillRow] = {}
        self._shares: dict[str, list[float]] = {}

    @property
    def is_blank(self) -> bool:
        """Whether no call was ever put on it."""
        return self._count == 0

    @property
    def under_way(self) -> int:
        """Calls that have not ended."""
        return len(self._open)

    @property
    def rows(self) -> Sequence[BillRow]:
        """By model and role, the dearest first."""
        return sorted(self._rows.values(), key=lambda row: (-row.cost, row.model, row.role))

    @property
    def of_samples(self) -> dict[str, float]:
        """What calls of each cost, those under way at the most; those of no sample have an empty name."""
        costs = dict(self._of_sample)
        for hold in self._open.values():
            costs[hold.sample] = costs.get(hold.sample, 0.0) + hold.bound
        return costs

    def take(self, hold: Hold, end: tuple[float, str, int] | None) -> None:
        """A call as it is known now: begun, or ended with its cost, why, and tokens."""
        if hold.number not in self._open:
            self._hold(hold)
        if end is not None:
            self._count_in(self._open[hold.number], *end)

    def _reserved(self, model: str, bound: float, *, beside: int = 0) -> float:
        """What is put aside for a call that costs so much at most, beside so many that begin with it."""
        shares = self._shares.get(model, ())
        if not self.risk or not shares:
            return bound
        at = math.ceil((len(shares) + 1) * (1.0 - self.risk / (len(self._open) + beside + 1)) - 1e-9)
        return bound if at > len(shares) else bound * min(1.0, shares[at - 1])

    def _hold(self, hold: Hold) -> None:
        self._count = max(self._count, hold.number + 1)
        self._open[hold.number] = hold
        self.held += hold.most
        if hold.sample:
            self._held_of[hold.sample] = held = self._held_of.get(hold.sample, 0.0) + hold.most
            hold.reached = hold.reached or self._of_sample.get(hold.sample, 0.0) + held
            self.most_of_sample = max(self.most_of_sample, hold.reached)

    def _count_in(self, hold: Hold, cost: float, why: str, tokens: int) -> None:
        """It has ended."""
        del self._open[hold.number]
        if self.risk and why == ANSWERED and hold.bound > 0:
            insort(self._shares.setdefault(hold.model, []), cost / hold.bound)
        self.held -= hold.most
        self._subtracted += 1
        if self._subtracted >= len(self._open):  # anew, before errors of rounding add up
            self.held, self._subtracted = math.fsum(each.most for each in self._open.values()), 0
        self.spent += cost
        self.over += max(0.0, cost - hold.most)
        self._of_sample[hold.sample] = self._of_sample.get(hold.sample, 0.0) + cost
        if hold.sample:
            self._held_of[hold.sample] -= hold.most
        if why != REFUSED:
            self._bill(hold, cost, why, tokens)

    def _bill(self, hold: Hold, cost: float, why: str, tokens: int) -> None:
        row = self._rows.setdefault((hold.model, hold.role), BillRow(hold.model, hold.role))
        row.calls += 1
        row.cost += cost
        row.tokens += tokens
        self.cut_off[hold.role] += why == CUT_OFF
        if why in (LOST, UNKNOWN, CUT_OFF):
            row.unknown += 1
            row.unknown_cost += cost


def kept_name(name: str) -> str:
    """As a database can hold it: what models and commands say has halves of characters, and zeros."""
    if name.isascii() and "\0" not in name:
        return name
    return name.encode(errors="backslashreplace").decode().replace("\0", "\\0")
