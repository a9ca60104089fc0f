"""How recorded scores were bought: what may count for a mean, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalbudget.errors import InvalidInputError
from evalbudget.sampler import Allocation


@dataclass(frozen=True, slots=True)
class HowBought:
    """How the scores of one model were bought.

    Attributes:
        allocation: how the number of readings of an item depended on its scores.
        fixed_repeats: readings of an item with an epoch below this were bought whatever the scores; not read
            under FIXED.
        cost: cells paid for, the failed ones included; None: one per recorded score.
        usd: dollars paid, models and judges together; None where the host did not know.
        phase_sizes: readings per item in each phase of the whole run, of which these may be a part; empty
            where nothing tells.

    Raises:
        InvalidInputError: a negative number.
    """

    allocation: Allocation = Allocation.FIXED
    fixed_repeats: int = 0
    cost: float | None = None
    usd: float | None = None
    phase_sizes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("fixed_repeats", "cost", "usd"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InvalidInputError(f"{name} of a purchase is {value}; it must be 0 or more")
        if not all(0 <= size < math.inf for size in self.phase_sizes):
            raise InvalidInputError(f"phase_sizes of a purchase are {self.phase_sizes}; give numbers >= 0")
