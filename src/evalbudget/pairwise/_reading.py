"""What preferences say of models: rates, strengths, position bias, and what is proved."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evalbudget.pairwise._bradley_terry import BradleyTerry, bradley_terry
from evalbudget.pairwise._position import positions
from evalbudget.pairwise._preferences import Preferences
from evalbudget.pairwise._proof import PairEvidence, beats, winner
from evalbudget.pairwise._rows import ModelRow, PairRow, PositionRow
from evalbudget.pairwise._tables import tables
from evalbudget.pairwise._win_rates import WinRate, average_of, win_rate
from evalbudget.replay._rows import defined
from evalbudget.statistics._bounds import FloatArray, IntArray, check_level
from evalbudget.tables import Tables


@dataclass(frozen=True, repr=False)
class PairwiseReading:
    """What preferences say.

    Attributes:
        models: the strongest first.
        pairs: every two of them.
        positions: of every judge.
        winner: the model that is proved to beat every other one; None if there is none yet.
        level: of the intervals, and 1 - the probability that anything proved is wrong.
        in_order: whether judgements stand in the order in which they were asked, so that what is proved may
            be read at every moment.
        items: that were compared.
        judgements: with a verdict.
        ties: among them.
        failed: without one.
    """

    models: tuple[ModelRow, ...]
    pairs: tuple[PairRow, ...]
    positions: tuple[PositionRow, ...]
    winner: str | None
    level: float
    in_order: bool
    items: int
    judgements: int
    ties: int
    failed: int

    @property
    def sentence(self) -> str:
        """What is proved."""
        sure = f"with {100.0 * self.level:.10g}% confidence"
        if self.winner is not None:
            others = [row.model for row in self.models if row.model != self.winner]
            whom = others[0] if len(others) == 1 else f"every one of the other {len(others)}"
            return f"{self.winner} beats {whom}, {sure}."
        lead = self.models[0]
        leads = f"{lead.model} leads with a win rate of {lead.win_rate:.3f}"
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
        found = [
            f"{row.first} and {row.second} were only ever shown in one order"
            f"{' by each judge' if len(row.one_order) > 1 else ''}: a judge's position bias is "
            "part of their win rate, and nothing is proved. Show them the other way round, too."
            for row in self.pairs
            if row.judgements and not row.both_ways
        ]
        found += [
            f"{', '.join(row.one_order)} saw {row.first} and {row.second} in one order only, which says "
            "nothing of who wins. Show them the other way round, too."
            for row in self.pairs
            if row.both_ways and row.one_order
        ]
        if self.items < 2:
            found.append("One item shows no spread: there are no intervals. Compare on more items.")
        missing = [row.model for row in self.models if 0 < row.opponents < len(self.models) - 1]
        if missing:
            found.append(
                f"{', '.join(missing)}: not compared with every other model, so that win rates are against "
                "different opponents; strengths are comparable."
            )
        if self.failed:
            found.append(f"{self.failed:,} judgements have no verdict and are left out.")
        return tuple(found)

    def table(self) -> Tables:
        """Models, pairs if there are several, and judges."""
        return tables(self.models, self.pairs, self.positions, self.level)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are None."""
        found: dict[str, Any] = defined(
            {
                "sentence": self.sentence,
                "notes": list(self.notes),
                "winner": self.winner,
                "level": self.level,
                "in_order": self.in_order,
                "items": self.items,
                "judgements": self.judgements,
                "ties": self.ties,
                "failed": self.failed,
                "models": [asdict(row) for row in self.models],
                "pairs": [asdict(row) for row in self.pairs],
                "positions": [asdict(row) for row in self.positions],
            }
        )
        return found

    def to_json(self, *, indent: int | None = 2) -> str:
        """:meth:`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

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
    fit = bradley_terry(preferences)
    order = sorted(range(k), key=lambda m: (-fit.strength[m], m))
    rates = {(a, b): win_rate(preferences, a, b) for a, b in preferences.pairs}
    rates |= {(b, a): -rate for (a, b), rate in rates.items()}
    evidence = {
        (a, b): _evidence(preferences, a, b, in_order=in_order)
        for a, b in combinations(order, 2)
        if (a, b) in rates
    }
    log = np.zeros((k, k))
    for (a, b), found in evidence.items():
        log[a, b], log[b, a] = found.both
    proved = beats(log, 1.0 - level)
    ranks = fit.ranks(level)
    best = winner(proved)
    return PairwiseReading(
        tuple(_model_row(preferences, m, rates, fit, ranks[m], level) for m in order),
        tuple(
            _pair_row(
                preferences, pair, rates.get(pair), evidence.get(pair), fit, proved, level, in_order=in_order
            )
            for pair in combinations(order, 2)
        ),
        tuple(_positions(preferences, level)),
        None if best is None else preferences.models[best],
        level,
        in_order,
        int(np.unique(preferences.item).size),
        int(preferences.value.size),
        int((preferences.value == 0.5).sum()),
        preferences.failed,
    )


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
    return ModelRow(
        preferences.models[model],
        *(mean.value, *mean.interval(level)),
        *fit.against_average(model, level),
        *rank,
        len(met),
        int(np.unique(preferences.item[rows]).size),
        int(rows.sum()),
    )


def _pair_row(
    preferences: Preferences,
    pair: tuple[int, int],
    rate: WinRate | None,
    evidence: PairEvidence | None,
    fit: BradleyTerry,
    proved: FloatArray,
    level: float,
    *,
    in_order: bool,
) -> PairRow:
    a, b = pair
    judgements, both_ways = 0, False
    one_order: tuple[str, ...] = ()
    span = anytime = (math.nan, math.nan)
    if rate is not None and evidence is not None:
        rows = preferences.of_pair(a, b)
        span = rate.interval(level)
        anytime = evidence.interval(level) if in_order else anytime
        judgements, one_order = int(rows.size), _in_one_order(preferences, a, rows)
        both_ways = len(one_order) < np.unique(preferences.judge[rows]).size
    return PairRow(
        preferences.models[a],
        preferences.models[b],
        win_rate=math.nan if rate is None else rate.value,
        low=span[0],
        high=span[1],
        strength=fit.against(a, b, level)[0],
        anytime_low=anytime[0],
        anytime_high=anytime[1],
        items=0 if rate is None else rate.items,
        judgements=judgements,
        both_ways=both_ways,
        one_order=one_order,
        proved=bool(proved[a, b]),
        disproved=bool(proved[b, a]),
    )


def _in_one_order(preferences: Preferences, a: int, rows: IntArray) -> tuple[str, ...]:
    judge, sign = preferences.judge[rows], preferences.sign_for(a, rows)
    return tuple(
        preferences.judges[each]
        for each in np.unique(judge).tolist()
        if np.unique(sign[judge == each]).size == 1
    )


def _evidence(preferences: Preferences, a: int, b: int, *, in_order: bool) -> PairEvidence:
    rows = preferences.of_pair(a, b)
    return PairEvidence.of(
        preferences.item[rows].tolist(),
        (preferences.first[rows] == a).tolist(),
        preferences.value_for(a, rows).tolist(),
        preferences.judge[rows].tolist(),
        unordered=not in_order,
    )


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
