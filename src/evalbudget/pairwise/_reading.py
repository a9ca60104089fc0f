"""What preferences say of models: rates, strengths, position bias, and what is proved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evalbudget.pairwise._bradley_terry import BradleyTerry, bradley_terry
from evalbudget.pairwise._notes import notes
from evalbudget.pairwise._position import positions
from evalbudget.pairwise._position_effects import identified
from evalbudget.pairwise._preferences import Preferences
from evalbudget.pairwise._proof import PairEvidence, beats, winner
from evalbudget.pairwise._ranks import ranks
from evalbudget.pairwise._rows import ModelRow, PairRow, PositionRow, Read
from evalbudget.pairwise._tables import tables
from evalbudget.pairwise._win_rates import Taken, WinRate, average_of, win_rate
from evalbudget.replay._rows import AsJson
from evalbudget.statistics._bounds import FloatArray, IntArray, check_level
from evalbudget.tables import Tables

_NAMED = 4


class PairwiseReading(Read, AsJson):
    """What preferences say."""

    @property
    def sentence(self) -> str:
        """What is proved."""
        sure = f"with {100.0 * self.level:.10g}% confidence"
        if self.winner is not None:
            others = [row.model for row in self.models if row.model != self.winner]
            whom = others[0] if len(others) == 1 else f"every one of the other {len(others)}"
            return f"{self.winner} beats {whom}, {sure}."
        first = max(self.models, key=lambda row: row.win_rate)
        level = [row.model for row in self.models if math.isclose(row.win_rate, first.win_rate, abs_tol=1e-9)]
        leads = f"{first.model} leads with a win rate of {first.win_rate:.3f}"
        if len(level) > 1:
            every = (
                f"{', '.join(level[:-1])} and {level[-1]}" if len(level) <= _NAMED else f"{len(level)} models"
            )
            leads = f"{every} are level with a win rate of {first.win_rate:.3f}"
        some = [
            f"{row.first} beats {row.second}" if row.proved else f"{row.second} beats {row.first}"
            for row in self.pairs
            if row.proved or row.disproved
        ]
        if not some:
            return f"No winner yet: {leads}, and nothing is proved."
        return f"No winner yet: {leads}. Proved, {sure} in all: {', '.join(some)}."

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before reading the tables."""
        return notes(self)

    def table(self) -> Tables:
        """Models, pairs if there are several, and judges."""
        return tables(self)

    def _told(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "notes": self.notes,
            "winner": self.winner,
            "level": self.level,
            "in_order": self.in_order,
            "ordered": self.ordered,
            "items": self.items,
            "judgements": self.judgements,
            "ties": self.ties,
            "missing": self.missing,
            "repeated": self.repeated,
            "not_read": self.not_read,
            "models": [asdict(row) for row in self.models],
            "pairs": [asdict(row) for row in self.pairs],
            "positions": [asdict(row) for row in self.positions],
        }

    def __repr__(self) -> str:
        return f"<PairwiseReading: {self.sentence}>"


def read_preferences(
    preferences: Preferences, *, level: float = 0.95, in_order: bool = False
) -> PairwiseReading:
    """Win rates, strengths and position bias, and which model is proved to beat which.

    Args:
        preferences: of models that a chain of comparisons connects.
        level: of every interval, and of all that is proved together.
        in_order: items were drawn at random, and judgements stand in the order in which they were asked;
            what is proved may then be read after each of them. Otherwise it may be read once.

    Raises:
        InvalidInputError: the level is no probability.
    """
    check_level(level)
    k = len(preferences.models)
    voted = preferences.voted
    fit = bradley_terry(identified(voted) or voted)
    order = sorted(range(k), key=lambda m: (-fit.strength[m], m))
    rates = {(a, b): win_rate(voted, a, b) for a, b in voted.pairs}
    rates |= {(b, a): -rate for (a, b), rate in rates.items()}
    evidence = {
        (a, b): _Evidence.of(preferences, a, b, in_order=in_order)
        for a, b in combinations(order, 2)
        if (a, b) in rates
    }
    log, left_out = np.zeros((2, k, k))
    for (a, b), found in evidence.items():
        log[a, b], log[b, a] = found.worst_for_a.both[0], found.worst_for_b.both[1]
        left_out[a, b], left_out[b, a] = found.left_out.both
    proved = beats(log, 1.0 - level)
    undecided = beats(left_out, 1.0 - level) - proved
    best = winner(proved)
    of_ranks = ranks(preferences, level)
    return PairwiseReading(
        tuple(_model_row(preferences, m, rates, fit, of_ranks[m], level) for m in order),
        tuple(
            _pair_row(
                *(preferences, (a, b), rates.get((a, b)), evidence.get((a, b)), level),
                in_order=in_order,
                strength=fit.against(a, b, level)[0],
                proved=bool(proved[a, b]),
                disproved=bool(proved[b, a]),
                undecided=bool(undecided[a, b] or undecided[b, a]),
            )
            for a, b in combinations(order, 2)
        ),
        tuple(_positions(voted, level)),
        None if best is None else preferences.models[best],
        level,
        in_order,
        preferences.ordered,
        int(np.unique(voted.item).size),
        int(voted.value.size),
        int((voted.value == 0.5).sum()),
        preferences.missing,
        voted.repeated,
        preferences.not_read,
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Of one pair.

    Attributes:
        worst_for_a: if every missing verdict were against A.
        worst_for_b: if every missing verdict were against B.
        left_out: from the verdicts that are there.
    """

    worst_for_a: PairEvidence
    worst_for_b: PairEvidence
    left_out: PairEvidence

    @classmethod
    def of(cls, preferences: Preferences, a: int, b: int, *, in_order: bool) -> _Evidence:
        """Of nothing where the order is not known: position cannot cancel."""
        rows = preferences.of_pair(a, b) if preferences.ordered else np.zeros(0, dtype=np.int64)
        value = preferences.value_for(a, rows)
        gone = np.isnan(value)

        def read(rows: IntArray, value: FloatArray) -> PairEvidence:
            return PairEvidence.of(
                preferences.item[rows].tolist(),
                (preferences.first[rows] == a).tolist(),
                value.tolist(),
                preferences.judge[rows].tolist(),
                unordered=not in_order,
            )

        left_out = read(rows[~gone], value[~gone])
        if not gone.any():
            return cls(left_out, left_out, left_out)
        worst = [read(rows, np.where(gone, favoured, value)) for favoured in (0.0, 1.0)]
        return cls(worst[0], worst[1], left_out)

    def interval(self, level: float) -> tuple[float, float]:
        """Of A's win rate, valid at every moment, whatever the missing verdicts had been."""
        return self.worst_for_a.interval(level)[0], self.worst_for_b.interval(level)[1]


def _model_row(
    preferences: Preferences,
    model: int,
    rates: Mapping[tuple[int, int], WinRate],
    fit: BradleyTerry,
    rank: tuple[int, int],
    level: float,
) -> ModelRow:
    met = [rate for (a, _), rate in rates.items() if a == model]
    mean = average_of(met)
    rows = (preferences.first == model) | (preferences.second == model)
    gone = np.isnan(preferences.value)
    return ModelRow(
        preferences.models[model],
        *(mean.value, *mean.interval(level)),
        *fit.against_average(model, level),
        *rank,
        len(met),
        mean.items,
        int((rows & ~gone).sum()),
        int((rows & gone).sum()),
    )


def _pair_row(
    preferences: Preferences,
    pair: tuple[int, int],
    rate: WinRate | None,
    evidence: _Evidence | None,
    level: float,
    *,
    in_order: bool,
    **of_all: Any,
) -> PairRow:
    """Strengths and what is proved come from all pairs."""
    a, b = pair
    met = preferences.of_pair(a, b)
    rows = met[~np.isnan(preferences.value[met])]
    one_order = _in_one_order(preferences, a, rows)
    span = (math.nan, math.nan) if rate is None else rate.interval(level)
    anytime = evidence.interval(level) if in_order and evidence is not None else (math.nan, math.nan)
    return PairRow(
        preferences.models[a],
        preferences.models[b],
        win_rate=math.nan if rate is None else rate.value,
        low=span[0],
        high=span[1],
        anytime_low=anytime[0],
        anytime_high=anytime[1],
        items=0 if rate is None else rate.items,
        judgements=int(rows.size),
        missing=int(met.size - rows.size),
        position=(Taken.NOTHING if rate is None else rate.position).value,
        unidentified=0.0 if rate is None else rate.untold,
        both_ways=preferences.ordered and len(one_order) < np.unique(preferences.judge[rows]).size,
        one_order=one_order,
        **of_all,
    )


def _in_one_order(preferences: Preferences, a: int, rows: IntArray) -> tuple[str, ...]:
    if not preferences.ordered:
        return ()
    seen, who = np.unique(preferences.judge[rows], return_inverse=True)
    first = np.bincount(who, weights=preferences.sign_for(a, rows) > 0.0, minlength=seen.size)
    count = np.bincount(who, minlength=seen.size)
    return tuple(preferences.judges[each] for each in seen[(first == 0) | (first == count)].tolist())


def _positions(preferences: Preferences, level: float) -> Sequence[PositionRow]:
    return [
        PositionRow(
            each.judge or "all",
            each.bias,
            *each.interval(level),
            each.both_orders,
            each.flipped,
            each.correlation,
        )
        for each in positions(preferences)
    ]
