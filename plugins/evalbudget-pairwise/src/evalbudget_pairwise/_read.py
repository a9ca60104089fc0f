"""Reads preferences: rates, strengths, position bias, and what is proved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from evalbudget.statistics import FloatArray, IntArray, check_level
from evalbudget_pairwise._bradley_terry import BradleyTerry, bradley_terry, ranks
from evalbudget_pairwise._position import positions
from evalbudget_pairwise._position_effects import identified
from evalbudget_pairwise._preferences import Preferences
from evalbudget_pairwise._proof import PairEvidence, beats, winner
from evalbudget_pairwise._reading import PairwiseReading
from evalbudget_pairwise._rows import ModelRow, PairRow
from evalbudget_pairwise._win_rates import Taken, WinRate, average_of, win_rate

_Pair = tuple[int, int]
_NONE = math.nan, math.nan


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
    found = _Read(preferences, check_level(level), in_order)
    voted, best = found.voted, winner(found.proved)
    of_ranks = ranks(preferences, level)
    return PairwiseReading(
        winner=None if best is None else preferences.models[best],
        level=level,
        in_order=in_order,
        ordered=preferences.ordered,
        items=int(np.unique(voted.item).size),
        judgements=int(voted.value.size),
        ties=int((voted.value == 0.5).sum()),
        missing=preferences.missing,
        repeated=voted.repeated,
        not_read=preferences.not_read,
        models=tuple(found.model_row(m, of_ranks[m]) for m in found.order),
        pairs=tuple(found.pair_row(a, b) for a, b in combinations(found.order, 2)),
        positions=tuple(positions(voted, level)),
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

    def interval(self, level: float) -> tuple[float, float]:
        """Of A's win rate, valid at every moment, whatever the missing verdicts had been."""
        return self.worst_for_a.interval(level)[0], self.worst_for_b.interval(level)[1]


@dataclass(frozen=True, eq=False)
class _Read:
    """What is computed of preferences, once; see :func:`read_preferences`."""

    preferences: Preferences
    level: float
    in_order: bool

    @cached_property
    def voted(self) -> Preferences:
        return self.preferences.voted

    @cached_property
    def fit(self) -> BradleyTerry:
        return bradley_terry(identified(self.voted) or self.voted)

    @cached_property
    def order(self) -> list[int]:
        """Models, the strongest first."""
        return sorted(range(len(self.preferences.models)), key=lambda m: (-self.fit.strength[m], m))

    @cached_property
    def rates(self) -> dict[_Pair, WinRate]:
        """Of the first against the second, where they met."""
        rates = {(a, b): win_rate(self.voted, a, b) for a, b in self.voted.pairs}
        return rates | {(b, a): -rate for (a, b), rate in rates.items()}

    @cached_property
    def evidence(self) -> dict[_Pair, _Evidence]:
        """The stronger one is A."""
        return {(a, b): self._evidence(a, b) for a, b in combinations(self.order, 2) if (a, b) in self.rates}

    def _evidence(self, a: int, b: int) -> _Evidence:
        """Of nothing where the order is not known: position cannot cancel."""
        all_of_it = self.preferences
        rows = all_of_it.of_pair(a, b) if all_of_it.ordered else np.zeros(0, dtype=np.int64)
        value = all_of_it.value_for(a, rows)
        gone = np.isnan(value)

        def read(rows: IntArray, value: FloatArray) -> PairEvidence:
            return PairEvidence.of(
                all_of_it.item[rows].tolist(),
                (all_of_it.first[rows] == a).tolist(),
                value.tolist(),
                all_of_it.judge[rows].tolist(),
                unordered=not self.in_order,
            )

        left_out = read(rows[~gone], value[~gone])
        if not gone.any():
            return _Evidence(left_out, left_out, left_out)
        worst = [read(rows, np.where(gone, favoured, value)) for favoured in (0.0, 1.0)]
        return _Evidence(worst[0], worst[1], left_out)

    @cached_property
    def proved(self) -> FloatArray:
        """1 where the row's model is proved to beat the column's, whatever the missing verdicts had been."""
        pairs = self.evidence.items()
        return self._beats({pair: (e.worst_for_a.both[0], e.worst_for_b.both[1]) for pair, e in pairs})

    @cached_property
    def without_missing(self) -> FloatArray:
        """The same from the verdicts that are there."""
        return self._beats({pair: found.left_out.both for pair, found in self.evidence.items()})

    def _beats(self, evidence: dict[_Pair, tuple[float, float]]) -> FloatArray:
        k = len(self.preferences.models)
        log = np.zeros((k, k))
        for (a, b), both in evidence.items():
            log[a, b], log[b, a] = both
        return beats(log, 1.0 - self.level)

    def model_row(self, model: int, rank: tuple[int, int]) -> ModelRow:
        """One model."""
        met = [rate for (a, _), rate in self.rates.items() if a == model]
        mean = average_of(met)
        rows = (self.preferences.first == model) | (self.preferences.second == model)
        gone = np.isnan(self.preferences.value)
        return ModelRow(
            self.preferences.models[model],
            *(mean.value, *mean.interval(self.level)),
            *self.fit.against_average(model, self.level),
            *rank,
            len(met),
            mean.items,
            int((rows & ~gone).sum()),
            int((rows & gone).sum()),
        )

    def pair_row(self, a: int, b: int) -> PairRow:
        """The stronger one and another."""
        met = self.preferences.of_pair(a, b)
        rows = met[~np.isnan(self.preferences.value[met])]
        one_order = self._in_one_order(a, rows)
        rate, evidence = self.rates.get((a, b)), self.evidence.get((a, b))
        low, high = _NONE if rate is None else rate.interval(self.level)
        anytime = evidence.interval(self.level) if self.in_order and evidence is not None else _NONE
        open_ = self.without_missing - self.proved
        return PairRow(
            self.preferences.models[a],
            self.preferences.models[b],
            win_rate=math.nan if rate is None else rate.value,
            low=low,
            high=high,
            strength=self.fit.against(a, b, self.level)[0],
            anytime_low=anytime[0],
            anytime_high=anytime[1],
            items=0 if rate is None else rate.items,
            judgements=int(rows.size),
            missing=int(met.size - rows.size),
            position=(Taken.NOTHING if rate is None else rate.position).value,
            unidentified=0.0 if rate is None else rate.untold,
            both_ways=self.preferences.ordered
            and len(one_order) < np.unique(self.preferences.judge[rows]).size,
            one_order=one_order,
            proved=bool(self.proved[a, b]),
            disproved=bool(self.proved[b, a]),
            undecided=bool(open_[a, b] or open_[b, a]),
        )

    def _in_one_order(self, a: int, rows: IntArray) -> tuple[str, ...]:
        """Judges who saw a pair that way."""
        all_of_it = self.preferences
        if not all_of_it.ordered:
            return ()
        seen, who = np.unique(all_of_it.judge[rows], return_inverse=True)
        first = np.bincount(who, weights=all_of_it.sign_for(a, rows) > 0.0, minlength=seen.size)
        count = np.bincount(who, minlength=seen.size)
        return tuple(all_of_it.judges[each] for each in seen[(first == 0) | (first == count)].tolist())
