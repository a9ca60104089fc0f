"""Names of the judges of a panel and numbers for them, checked once and with the same messages everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.statistics._bounds import FloatArray


def check_panel(judges: Sequence[str], *, fewest: int = 2, needed_by: str = "a panel") -> tuple[str, ...]:
    """Return the names if they make a panel.

    Args:
        judges: one name each.
        fewest: how many there must be.
        needed_by: who needs them, for the message.

    Raises:
        InvalidInputError: too few judges, one listed twice, or one without a name.
    """
    if isinstance(judges, str):
        raise InvalidInputError(f"judges is the text {judges!r}; give a list of names, one per judge")
    names = tuple(judges)
    if any(not name for name in names):
        raise InvalidInputError(f"judge number {names.index('')} has no name; give every judge one")
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InvalidInputError(
            f"judge {', '.join(repr(name) for name in twice)} is listed more than once; list each judge once "
            "(asking a judge again is a repeat, not another judge)"
        )
    if len(names) < fewest:
        given = "no judge" if not names else f"only the judge {names[0]!r}"
        raise InvalidInputError(
            f"{needed_by} needs at least {fewest} judges and was given {given}; add judges"
            + (", or use the rotation 'single'" if len(names) == 1 else "")
        )
    return names


def judge_index(judge: str | int, judges: Sequence[str]) -> int:
    """Position of a judge given by name or position.

    Raises:
        UnknownNameError: no such judge; suggests the nearest.
    """
    if isinstance(judge, str):
        if judge not in judges:
            raise UnknownNameError("judge", judge, judges)
        return tuple(judges).index(judge)
    if not 0 <= judge < len(judges):
        raise UnknownNameError("judge", str(judge), judges)
    return int(judge)


def per_judge(
    what: str, values: Mapping[str, float] | Sequence[float] | None, judges: Sequence[str]
) -> FloatArray:
    """One positive number per judge, in the order of the panel; ones where nothing is given.

    Args:
        what: the name of the numbers, for messages, for example ``prices``.
        values: by name, or in the order of the panel.
        judges: the panel.

    Raises:
        UnknownNameError: a number for a judge that is not in the panel.
        InvalidInputError: a judge without a number, or a number that is not positive and finite.
    """
    if values is None:
        return np.ones(len(judges))
    if isinstance(values, Mapping):
        for name in values:
            if name not in judges:
                raise UnknownNameError(f"judge in {what}", str(name), judges)
        missing = [name for name in judges if name not in values]
        if missing:
            raise InvalidInputError(f"{what} has no entry for judge {missing[0]!r}; give every judge one")
        values = [values[name] for name in judges]
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(f"{what} are {str(values)[:80]}; give every judge a number") from None
    if numbers.shape != (len(judges),):
        raise InvalidInputError(f"{what} has {numbers.size} entries for {len(judges)} judges; give one each")
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if wrong.size:
        raise InvalidInputError(
            f"{what} of judge {judges[int(wrong[0])]!r} is {numbers[wrong[0]]:g}; it must be above zero"
        )
    return numbers


def parse_prices(entries: Iterable[str], *, wrong: str, twice: str) -> dict[str, float]:
    """Prices by judge.

    Args:
        entries: ``judge=price`` each.
        wrong: how to refuse an entry that is something else, with ``{entry!r}``.
        twice: how to refuse a second price of a judge, with ``{entry!r}`` or ``{judge!r}``.

    Raises:
        InvalidInputError: an entry that is not ``judge=price``, or a judge twice.
    """
    found: dict[str, float] = {}
    for entry in entries:
        judge, _, number = entry.strip().rpartition("=")
        try:
            price = float(number)
        except ValueError:
            judge, price = "", 0.0
        if not judge:
            raise InvalidInputError(wrong.format(entry=entry))
        if judge in found:
            raise InvalidInputError(twice.format(entry=entry, judge=judge))
        found[judge] = price
    return found
