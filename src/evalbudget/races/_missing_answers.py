"""What missing answers leave open: how many there are, of whom, and what they would have to be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from evalbudget.missing import Missing
from evalbudget.races._draws import ModelDraws

_NAMED = 3


def count_of_answers(number: int) -> str:
    """As in "1 answer of B is missing"."""
    return f"{number:,} answer{'s' * (number != 1)}"


def count_of_missing(number: int) -> str:
    """As in "whatever its 2 missing answers are"."""
    return f"{number:,} missing answers are" if number != 1 else "missing answer is"


def what_is_missing(
    draws: Sequence[ModelDraws],
    leader: int,
    possible: Collection[int],
    names: Sequence[str],
    *,
    n_items: int,
    bounds: tuple[float, float],
    turned: Callable[[float], float],
) -> str:
    """Why a race is undecided in which nothing is left to ask but answers are missing, in a sentence.

    Args:
        draws: of every model in the race.
        leader: the model that is named first.
        possible: models that may be the best.
        names: of all models.
        n_items: of the benchmark.
        bounds: the declared range of the scores.
        turned: a score as the task has it.

    Returns:
        The sentence; empty where something is left to ask, or nothing is missing.
    """
    rivals = [m for m in possible if m != leader]
    if not rivals or not all(draws[m].exhausted for m in possible):
        return ""
    missing = {m: draws[m].n_missing(n_items) for m in (leader, *rivals)}
    lacking = [m for m in (leader, *rivals) if missing[m]]
    if not lacking:
        return ""
    told = [f"{count_of_answers(missing[m])} of {names[m]}" for m in lacking[:_NAMED]]
    if len(lacking) > _NAMED:
        told.append(f"some of {len(lacking) - _NAMED} others")
    counts = " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
    verb = "is" if sum(missing.values()) == 1 else "are"
    needs = [_needed(draws, leader, m, missing, names, n_items, bounds, turned) for m in rivals[:_NAMED]]
    return f"Undecided: {counts} {verb} missing. {' '.join(needs)}"


def _needed(
    draws: Sequence[ModelDraws],
    leader: int,
    rival: int,
    missing: dict[int, int],
    names: Sequence[str],
    n_items: int,
    bounds: tuple[float, float],
    turned: Callable[[float], float],
) -> str:
    low, width = bounds[0], bounds[1] - bounds[0]
    total = {m: float(draws[m].known.sum() + np.nansum(draws[m].value)) for m in (leader, rival)}
    if missing[leader] and missing[rival]:
        ranges = []
        for m in (leader, rival):
            ends = (low + width * sum_ / n_items for sum_ in (total[m], total[m] + missing[m]))
            least, most = sorted(map(turned, ends))
            ranges.append(f"{names[m]} has {least:.3f} to {most:.3f}")
        return f"Whatever they are, {' and '.join(ranges)}."
    lacking, other = (leader, rival) if missing[leader] else (rival, leader)
    needed = low + width * (total[other] - total[lacking]) / missing[lacking]
    level = f"{names[lacking]} is level with {names[other]} if they"
    if needed <= low:
        return f"{level} are all {turned(low):g}, and better otherwise."
    return f"{level} average {turned(needed):.3f}."


def counted_as(missing: Missing) -> str:
    """How missing answers counted, as the end of a sentence."""
    if missing is Missing.ZERO:
        return "missing answers counted as the worst score there is"
    if missing is Missing.DROP:
        return "only items counted that two models both answered"
    return "missing answers counted as the worst for what is said"
