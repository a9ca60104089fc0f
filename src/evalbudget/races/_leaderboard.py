"""Who is best, and what the evaluations prove: one race as a table, as JSON and as a sentence."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evalbudget._fields import percent
from evalbudget.budget import Unit
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import Estimate
from evalbudget.missing import Missing, as_missing
from evalbudget.outage import is_down
from evalbudget.races._board import Board, Standing
from evalbudget.races._draws import ModelDraws
from evalbudget.races._missing_answers import count_of_missing, what_is_missing
from evalbudget.races._purchase import RacePurchase
from evalbudget.races._table import render
from evalbudget.races._verdict import Finding, Verdict, verdict_of
from evalbudget.races.estimates import (
    FEWEST_ITEMS,
    PossibleWinners,
    as_sample,
    differences_from,
    means_at_worst,
    model_ranks,
    possible_winners,
)
from evalbudget.races.samplers import RacingSampler
from evalbudget.run import Bill
from evalbudget.statistics._bounds import FloatArray

LEVEL = 0.95


class Leaderboard(Board):
    """One race, as a table too."""

    def table(self, *, width: int | None = None) -> str:
        """As text, ``width`` columns wide; None: as wide as the terminal."""
        return render(self, width=width)


def leaderboard_of(race: RacePurchase, *, notes: Sequence[str] = (), bill: Bill | None = None) -> Leaderboard:
    """The leaderboard of a race as it stands.

    Args:
        race: to show.
        notes: what to know besides.
        bill: that calls are on, where the budget is money or tokens.
    """
    sampler, bounds, level = race.sampler, race.config.bounds, race.config.level
    models = range(race.design.n_models)
    draws = [sampler.draws(m) for m in models]
    missing, n_items = as_missing(race.config.missing), race.design.n_items
    lowest, highest = means_at_worst(draws, n_items=n_items, missing=missing, bounds=bounds)
    ranks = model_ranks(lowest, level, highest=highest)
    counted = [d.counting_missing(0.0, n_items) for d in draws] if missing is Missing.ZERO else draws
    samples = [as_sample(d, bounds=bounds) for d in counted]
    value = np.array([sample.value for sample in samples])
    eliminated = sampler.eliminated
    lost = frozenset(m for m in models if _is_lost(race, m))
    found = possible_winners(
        draws,
        n_items=n_items,
        among=set(models) - lost,
        bounds=bounds,
        level=level,
        dropped=_dropped_by_proof(sampler),
        missing=missing,
    )
    leader = _leader(race, found, lost, value)
    unread = {m: _unread(race, m) for m in models}
    verdict = verdict_of(
        found,
        leader,
        lost=lost,
        scored={m for m in models if race.lanes[m].tally.readings},
        n_items=n_items,
        n_unread=sum(unread[m] for m in models if m not in lost),
        n_missing=sum(draws[m].n_missing(n_items) for m in set(models) - lost),
        missing=missing,
        n_models=race.design.n_models,
        lower_is_better=race.config.lower_is_better,
    )
    order = sorted(
        models,
        key=lambda m: (m in lost, m != leader, m not in found.models, -_or(float(value[m]), -np.inf)),
    )
    differences = _differences(counted, leader, bounds)
    standings = tuple(
        Standing(
            name=race.design.models[m],
            status=verdict.statuses[m],
            rank=_rank(value, m),
            rank_best=int(ranks.best[m]),
            rank_worst=int(ranks.worst[m]),
            **_as_sample(samples[m], *_at_worst(draws[m], n_items, missing, bounds)),
            all_lower=_or(float(ranks.low[m]), bounds[0]),  # nothing can be known of one that always fails
            all_upper=_or(float(ranks.high[m]), bounds[1]),
            readings=sampler.n_read(m),
            failed=sum(race.lanes[m].tally.failures.values()),
            unread=unread[m],
            missing=n_items - sampler.n_read(m) - unread[m],
            evaluations=int(race.lanes[m].evaluations),
            dropped_at=eliminated.get(m),
            errors=race.lanes[m].tally.failures,
            left=race.lanes[m].left if m in eliminated and not race.lanes[m].absent else None,
            paid=None if race.budget.unit is Unit.SCORES else race.lanes[m].tally.spent,
            **_behind(differences if m != leader else (), m, level),
        )
        for m in order
    )
    if race.config.lower_is_better:
        standings = tuple(_turned(standing, race) for standing in standings)
    named = [race.design.models[m] for m in order if m in found.models]
    return Leaderboard(
        standings=standings,
        sentence=_sentence(race, verdict, draws, leader, named, standings, missing),
        proof=verdict.proof,
        outcome=verdict.outcome.value,
        sampler=sampler.name,
        seed=sampler.seed,
        options={k: list(v) if isinstance(v, tuple) else v for k, v in sampler.options.items()},
        budget=race.most_evaluations,
        spent=race.evaluations,
        grid=race.grid,
        items=race.design.n_items,
        unread=0 if verdict.is_decided else sum(unread[m] for m in found.models),
        until_proved=race.config.until_proved,
        stop_reason=race.stop_reason,
        level=level,
        interval=f"{lowest[0].method}; {lowest[0].validity.value}, {lowest[0].coverage.value} over "
        f"{race.design.n_models} models",
        target=_target(lowest, race),
        notes=(*notes, *_of_the_history(race, notes), *([] if bill is None else [bill.text])),
        missing=missing.value,
        lower_is_better=race.config.lower_is_better,
        unit=race.budget.unit.value,
        paid=None if bill is None else bill.spent,
        wasted=0.0 if bill is None else bill.wasted(sum(lane.tally.spent for lane in race.lanes)),
    )


def _sentence(
    race: RacePurchase,
    verdict: Verdict,
    draws: Sequence[ModelDraws],
    leader: int,
    named: Sequence[str],
    standings: Sequence[Standing],
    missing: Missing,
) -> str:
    if len(standings) == 1:
        return _of_one(standings[0], race, race.config.level)
    if verdict.outcome is Finding.UNDECIDED and missing is Missing.WORST:
        said = what_is_missing(
            draws,
            leader,
            verdict.found.models,
            race.design.models,
            n_items=race.design.n_items,
            bounds=race.config.bounds,
            turned=race.turned,
        )
        if said:
            return said
    return verdict.sentence(named)


def _turned(standing: Standing, race: RacePurchase) -> Standing:
    """In the task's own direction."""
    ends = {"lower": standing.upper, "upper": standing.lower}
    ends |= {"all_lower": standing.all_upper, "all_upper": standing.all_lower}
    known = {"estimate": standing.estimate, **ends}
    own: dict[str, Any] = {k: None if v is None else race.turned(v) for k, v in known.items()}
    return replace(standing, **own)


def _of_one(standing: Standing, race: RacePurchase, level: float) -> str:
    """The answer where nobody is compared: how good the model is."""
    if standing.estimate is None:
        return f"No estimate: nothing of {standing.name} was scored."
    items = f"these {race.design.n_items:,} items"
    if standing.readings == race.design.n_items:
        return f"{standing.name} scores {standing.estimate:.4g} on {items}, as scored once: all were read."
    width = standing.all_upper - standing.all_lower
    places = max(0, 2 - math.floor(math.log10(width))) if width > 0.0 else 3
    score = f"{standing.name} scores {standing.estimate:.{places}f}"
    interval = f"{standing.all_lower:.{places}f} to {standing.all_upper:.{places}f}"
    if standing.missing and race.config.missing == Missing.WORST:
        answered = f"{score} on the {standing.readings:,} of {items} that it answered"
        missing = f"whatever its {count_of_missing(standing.missing)}"
        if not standing.unread:
            return f"{answered}, and {interval} on all of them, {missing}."
        return (
            f"{answered}; {percent(level)} interval {interval} for all of them, whenever you look, {missing}."
        )
    return (
        f"{score} on {items}; {percent(level)} interval {interval}, whenever you look, from "
        f"{standing.readings:,} of them."
    )


def _dropped_by_proof(sampler: RacingSampler) -> frozenset[int] | None:
    """Whom the sampler's own proof has ruled out; None if it keeps none.

    A proof leaves no error for a second rule: half of it is for a single best model, and both halves are
    used where two are exactly tied. A model that it merely lost sight of is not among them.
    """
    return sampler.proved_worse if sampler.proved_error else None


def _of_the_history(race: RacePurchase, notes: Sequence[str]) -> tuple[str, ...]:
    """What the sampler says of the history, if nobody has said so: that it dropped it."""
    said = str(getattr(race.sampler, "history_note", ""))
    return (said,) if said and not any(note.startswith(said) for note in notes) else ()


def _leader(race: RacePurchase, found: PossibleWinners, lost: Collection[int], value: FloatArray) -> int:
    """The one the sampler would name, if it may be the best; else the possible one with the best estimate."""
    chosen = race.sampler.leader()
    if chosen in found.models and np.isfinite(value[chosen]):
        return chosen
    candidates = found.models or found.certain or set(range(race.design.n_models)) - set(lost)
    candidates = candidates or set(range(race.design.n_models))
    return max(candidates, key=lambda m: (_or(float(value[m]), -np.inf), -m))


def _is_lost(race: RacePurchase, model: int) -> bool:
    lane = race.lanes[model]
    # the sampler may not have got round to giving the model up
    silent = is_down(lane.tally.failed, successes=lane.tally.readings)
    return not lane.absent and (lane.left is not None or model in race.sampler.lost or silent)


def _unread(race: RacePurchase, model: int) -> int:
    closed = sum(cell.model == model for cell in race.sampler.closed)
    return race.design.n_items - int(np.isfinite(race.sampler.scores_of(model)).sum()) - closed


def _rank(value: FloatArray, model: int) -> int | None:
    if not np.isfinite(value[model]):
        return None
    return 1 + sum(bool(other > value[model]) for other in value)


def _at_worst(
    draws: ModelDraws, n_items: int, missing: Missing, bounds: tuple[float, float]
) -> tuple[Estimate, ...]:
    """The model's score with its missing answers as the lowest, and as the highest, if they count so."""
    if missing is not Missing.WORST or not draws.n_missing(n_items):
        return ()
    return tuple(as_sample(draws.counting_missing(score, n_items), bounds=bounds) for score in (0.0, 1.0))


def _as_sample(estimate: Estimate, *at_worst: Estimate) -> dict[str, Any]:
    """Estimate, standard error and interval, items and repeats random."""
    own = estimate.confidence_interval(LEVEL)
    lower, upper = _finite(own.low), _finite(own.high)
    if lower is not None and at_worst:
        ends = [own, *(estimate.confidence_interval(LEVEL) for estimate in at_worst)]
        lower, upper = min(end.low for end in ends), max(end.high for end in ends)
    reason = None
    if lower is None:
        reason = f"{estimate.n} items read: an interval needs {FEWEST_ITEMS} or more"
        if estimate.n >= FEWEST_ITEMS:
            reason = "only the anchors were read, which are no random items"
    return {
        "estimate": _finite(estimate.value),
        "stderr": _finite(estimate.standard_error),
        "lower": lower,
        "upper": upper,
        "no_interval": reason,
    }


def _differences(
    draws: Sequence[ModelDraws], leader: int, bounds: tuple[float, float]
) -> tuple[Estimate, ...]:
    try:
        return differences_from(draws, leader, bounds=bounds)
    except InvalidInferenceError:  # models that read items in orders of their own
        return ()


def _behind(differences: Sequence[Estimate], model: int, level: float) -> dict[str, Any]:
    if not differences:
        return {}
    interval = differences[model].confidence_interval(level)
    return {
        "behind": _finite(differences[model].value),
        "behind_all_lower": _finite(interval.low),
        "behind_all_upper": _finite(interval.high),
    }


def _target(estimates: Sequence[Estimate], race: RacePurchase) -> str:
    targets = {estimate.target for estimate in estimates}
    if len(targets) == 1:
        return targets.pop()
    return f"mean of each model over the items, of {race.design.n_items}, that did not fail for it"


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _or(value: float, other: float) -> float:
    return float(value) if np.isfinite(value) else other
