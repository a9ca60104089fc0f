"""Going on with a run: what was paid for counts, and what failed runs again if the budget pays for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers import RepeatSampler, checked_phase

Key = tuple[str, int]  # (sample id, epoch as the host counts, from 1)


@dataclass(frozen=True, slots=True)
class PriorCell:
    """One cell of an earlier attempt's log.

    Attributes:
        key: sample id and epoch.
        attempts: how often it was run; all of them cost.
        errored: it will run again.
        judge: who scored it, where judges take turns and one did.
        phase: in which it was asked; None where there are none, or that is not known.
    """

    key: Key
    attempts: int
    errored: bool
    judge: str | None = None
    phase: int | None = None


def promises(
    cells: Sequence[tuple[Key, PriorCell | None]], *, attempts: int, free: float
) -> tuple[dict[Key, float], set[Key]]:
    """What each cell that the host starts or hands back may cost in all, earlier attempts included.

    What errored has paid for its attempts already. It may run again only if that can be paid on top, once
    everything else is paid for. What no attempt has run may not run either where the budget is used up by
    samples that an earlier attempt had begun: then the last ones stay out.

    Args:
        cells: in order; None where no earlier attempt knows the cell.
        attempts: how often the host runs one cell at most.
        free: of the budget, before any of them.

    Returns:
        The promise of each cell, and those that may not run.
    """
    again = [cell for _, cell in cells if cell is not None and cell.errored]
    promised = {key: float(cell.attempts) for key, cell in cells if cell is not None and not cell.errored}
    free -= sum(promised.values()) + sum(cell.attempts for cell in again)
    refused: set[Key] = set()
    for key, cell in cells:
        if cell is None:
            affordable = attempts <= free + 1e-9
            promised[key] = float(attempts) if affordable else 0.0
            free -= promised[key]
            if not affordable:
                refused.add(key)
    for cell in again:
        promised[cell.key] = float(cell.attempts)
        if attempts <= free + 1e-9:
            promised[cell.key] += attempts
            free -= attempts
        else:
            refused.add(cell.key)
    return promised, refused


def phases_of(
    keys: Sequence[Key], earlier: Mapping[Key, PriorCell], sampler: RepeatSampler
) -> Mapping[int, Sequence[Key]]:
    """Cells that the host starts or hands back, by the phase in which they were asked.

    A later epoch that nothing is said of was cut off in the last phase that is known.

    Args:
        keys: of them, in order.
        earlier: what is known of some.
        sampler: of the run.

    Raises:
        InvalidInputError: what the log calls a phase is none.
    """
    known: dict[Key, int] = {}
    if sampler.allocation is Allocation.PHASED:
        known = {key: _phase(cell) for key, cell in earlier.items() if cell.phase is not None}
    latest = max(known.values(), default=0)
    found: dict[int, list[Key]] = defaultdict(list)
    for key in keys:
        found[known.get(key, 0 if key[1] <= sampler.warmup else latest)].append(key)
    return found


def _phase(cell: PriorCell) -> int:
    try:
        return checked_phase(cell.phase)
    except InvalidInputError as ex:
        raise InvalidInputError(
            f"sample {cell.key[0]!r}, epoch {cell.key[1]} of the log to go on with: {ex}; restore the log, "
            "or begin another run"
        ) from ex
