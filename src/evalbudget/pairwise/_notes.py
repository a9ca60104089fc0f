"""What to know before reading win rates: where position is part of them, what is missing or was not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from evalbudget._fields import names
from evalbudget.pairwise._rows import ModelRow, PairRow, Read
from evalbudget.pairwise._win_rates import Taken

_SHOWN = 3
_NOT_IDENTIFIED = "the effect of position is not identified where each judge saw one order only"
_NO_ORDER = (
    "Which answer was shown first is not known, so no effect of position can be seen: it is part of the win "
    "rates, and nothing is proved. Give columns first and second in the order shown."
)


def notes(reading: Read) -> tuple[str, ...]:
    """In sentences."""
    models, pairs, repeated, not_read = reading.models, reading.pairs, reading.repeated, reading.not_read
    met = [row for row in pairs if row.judgements]
    found = [*(_position(met) if reading.ordered else (_NO_ORDER,)), *_missing(models, pairs)]
    if reading.items == 1:
        found.append("One item shows no spread: there are no intervals. Compare on more items.")
    some = [row.model for row in models if 0 < row.opponents < len(models) - 1]
    if some:
        found.append(
            f"{', '.join(some)}: not compared with every other model, so that win rates are against "
            "different opponents; strengths are comparable."
        )
    if repeated:
        counts = "the first one counts for what is proved" if reading.in_order else "their mean counts"
        verb = "judgement repeats" if repeated == 1 else "judgements repeat"
        found.append(f"{repeated:,} {verb} an item, order and judge: {counts}.")
    if not_read:
        found.append(f"Not read: {names(not_read, 10)}.")
    return tuple(found)


def _position(pairs: Sequence[PairRow]) -> Iterator[str]:
    if told := _those(pairs, lambda row: row.position == Taken.NOTHING.value):
        yield (
            f"{told} were only ever shown in one order: {_NOT_IDENTIFIED}. It is part of the win rate, and "
            "nothing is proved. Show them the other way round, too."
        )
    if told := _those(pairs, lambda row: row.position == Taken.COMMON.value and not row.both_ways):
        yield (
            f"{told} were shown in one order by each judge, and {_NOT_IDENTIFIED}. One effect of all judges "
            f"is taken away, which is right if chance decided who saw which order{_allowed(pairs)}. Nothing "
            "is proved. Have each judge see both orders."
        )
    if told := _those(pairs, lambda row: _shares(row) and not row.unidentified and row.both_ways):
        yield (
            f"Some judges saw {told} in one order only. They share one effect of position, which is right if "
            "chance decided who saw which order."
        )
    some = [row for row in pairs if row.both_ways and row.one_order and row.unidentified]
    if some:
        judges = names(dict.fromkeys(name for row in some for name in row.one_order), _SHOWN)
        those = _those(some, lambda _: True)
        whom = those if len(some) == 1 else f"one pair or more of these ({those})"
        yield (
            f"{judges} saw {whom} in one order only, which says nothing of who wins. The effect of position "
            f"of the others is taken away{_allowed(some)}. Show them the other way round, too."
        )


def _shares(row: PairRow) -> bool:
    return row.position in (Taken.COMMON.value, Taken.BOTH.value)


def _allowed(pairs: Iterable[PairRow]) -> str:
    most = max((row.unidentified for row in pairs), default=0.0)
    return f"; intervals allow for any effect on {100.0 * most:.0f}% of the votes" if most else ""


def _those(pairs: Iterable[PairRow], kind: Callable[[PairRow], bool]) -> str:
    found = [f"{row.first} and {row.second}" for row in pairs if kind(row)]
    return "; ".join(found[:_SHOWN]) + (f"; and {len(found) - _SHOWN} more pairs" if found[_SHOWN:] else "")


def _missing(models: Sequence[ModelRow], pairs: Sequence[PairRow]) -> Iterator[str]:
    missing = sum(row.missing for row in pairs)
    if not missing:
        return
    whom = ", ".join(f"{row.missing:,} of {row.model}" for row in models if row.missing)
    verb = "verdict is" if missing == 1 else "verdicts are"
    yield (
        f"{missing:,} {verb} missing ({whom}). Rates and strengths are of the others; what is proved, and "
        "ranks, hold whatever the missing ones had been."
    )
    if told := _those(pairs, lambda row: row.undecided):
        yield f"Undecided because of them: {told}. Without them one would be proved to beat the other."
