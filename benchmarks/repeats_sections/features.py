"""Section ``features``: what is known of items beforehand, as a prior of their variances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.backtest import Average, RecordedScores
from evalbudget.repeats.backtest._pool import Pool, pools_of
from evalbudget.repeats.samplers import Auto, Robin, Uniform
from evalbudget.replay._contestant import Contestant, contestants
from evalbudget.sampler import Allocation
from evalbudget.statistics._shrinkage import VariancePrior
from places import data_file
from references.variance_features import FeaturedAuto
from repeats_sections.judges import FILE, MIN_REPEATS
from repeats_sections.readings import run_sampler
from repeats_sections.replays import fixed_errors
from repeats_sections.section import Section, Setting, Table, Target, shown

FloatArray = NDArray[np.float64]

HANNA = "hanna_multijudge.npz"
PER_ITEM = (3, 5, 10, 20)
DEFAULT = "auto"
TOLD = "robin, told the others' variances"
WIN = 1.1

LEAD = (
    f"{FILE}: five judges; an item's earlier logs are the recorded ratings of the same answer by one or all "
    "of the other judges; 'other answers' are those to the same prompt, by the same judge. "
    f"{HANNA}: eleven systems; a reading is one of 20 judges and prompts, and the earlier logs are those of "
    "the other systems' stories for the same prompt, by the same criterion. auto's sample variances are "
    "regressed after the warm-up on the log of the earlier readings' variance (shrunk as in eb-bernstein), "
    "their mean or the item's category; the prediction is a prior of the item's variance, beside what auto "
    "learns. robin is told the geometric mean of all others' shrunk variances and learns nothing. auto's "
    "warm-up takes 3 readings per item: at 3x all its forms are uniform."
)


@dataclass(frozen=True, slots=True)
class Known:
    """One pool, and what is known of its items beforehand.

    Attributes:
        pool: of one judge or system.
        features: by name, shape (n_items, n_features).
        variances: of the items in all earlier logs, geometric means, shape (n_items,).
    """

    pool: Pool
    features: Mapping[str, FloatArray]
    variances: FloatArray


def run(setting: Setting) -> Section:
    seeds = setting.replications(6)
    per_item = PER_ITEM[:2] if setting.quick else PER_ITEM
    budgets = tuple(f"{n}x" for n in per_item)
    sources = dict(known_beforehand(setting.quick))
    rows: list[tuple[str, ...]] = []
    ratios: dict[str, list[tuple[str, Average]]] = {}
    total = sum(len(entrants(known[0])) * len(known) for known in sources.values()) * seeds
    done = 0
    for name, known in sources.items():
        found: dict[str, FloatArray] = {}
        for rule in entrants(known[0]):
            errors = np.empty((len(known), seeds, len(per_item)))
            for p, one in enumerate(known):
                errors[p] = _errors(one.pool, entrants(one)[rule], per_item, seeds)
                done += seeds
                setting.progress("features", done, total)
            found[rule] = errors
        for rule, errors in found.items():
            cells = []
            for b, budget in enumerate(budgets):
                to_uniform, to_auto = (
                    Average.ratio(errors[:, :, b], found[base][:, :, b]) for base in ("uniform", DEFAULT)
                )
                cells.append(shown(to_uniform))
                if rule not in ("uniform", DEFAULT):
                    cells[-1] += f" ({shown(to_auto)})"
                    ratios.setdefault(rule, []).append((f"{name} at {budget}", to_auto))
            if rule != "uniform":
                rows.append((name, rule, *cells))
    title = "Items' features as a prior of their variances"
    table = Table(
        "Worst-item error relative to uniform, and to auto in brackets",
        ("scores", "sampler, what is known beforehand", *budgets),
        tuple(rows),
        f"{seeds} seeds; means over judges or systems, ± is one standard error over seeds.",
    )
    targets = [verdict(f"{rule} wins over {DEFAULT}", found) for rule, found in ratios.items()]
    return Section("features", title, LEAD, (table,), tuple(targets))


def known_beforehand(quick: bool) -> Iterator[tuple[str, list[Known]]]:
    """Recorded pools with their features."""
    keep = slice(40 if quick else None)
    judged = RecordedScores.load(data_file(FILE))
    values = judged.scores[0, keep].transpose(1, 0, 2)
    prompts = np.array([item.rpartition("/")[0] for item in judged.items[keep]])
    yield "answers", _known(values, judged.raters, judged.categories, prompts)
    stories = RecordedScores.load(data_file(HANNA))
    yield "stories", _known(stories.scores[:, keep, :, 0], stories.models, stories.categories, None)


def _known(
    values: NDArray[np.floating[Any]],
    sources: Sequence[str],
    categories: Sequence[str] | None,
    prompts: NDArray[np.str_] | None,
) -> list[Known]:
    """One per judge or system; ``values`` has the shape (n_sources, n_items, n_repeats)."""
    items = tuple(f"item {i}" for i in range(values.shape[1]))
    recorded = RecordedScores(values[None].transpose(0, 2, 1, 3), ("recorded",), items, tuple(sources))
    logs = [earlier(scores) for scores in values.astype(np.float64)]
    log_variance, mean = (np.stack([log[k] for log in logs], axis=1) for k in (0, 1))
    labels = np.array((categories or ("",) * len(items))[: len(items)])
    category = (labels[:, None] == np.unique(labels)[1:]).astype(np.float64)
    found = []
    for s, pool in enumerate(pools_of((recorded,), model=None, rater=None, min_repeats=MIN_REPEATS)):
        others = [o for o in range(len(sources)) if o != s]
        of_others = log_variance[:, others]
        features = {
            "category": category,
            "one other's variance": log_variance[:, [(s + 1) % len(sources)]],
            "all others' variances": of_others,
            "all others' variances and means, category": np.hstack(
                [of_others, mean[:, others], mean[:, others].mean(1, keepdims=True) ** 2, category]
            ),
        }
        if prompts is not None:
            features["other answers' variance"] = _siblings(log_variance[:, s], prompts)[:, None]
        kept = np.array([int(item.split()[1]) for item in pool.items])
        at = {name: columns[kept] for name, columns in features.items()}
        found.append(Known(pool, at, np.exp(of_others.mean(axis=1))[kept]))
    return found


def earlier(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log variance of every item, shrunk, and its mean; the pool's where an item has no readings.

    Args:
        scores: shape (n_items, n_repeats), NaN where none was recorded.
    """
    there = ~np.isnan(scores)
    n = there.sum(axis=1)
    mean = np.where(n > 0, np.nansum(scores, axis=1) / np.maximum(n, 1), np.nanmean(scores))
    squares = np.nansum((scores - mean[:, None]) ** 2, axis=1)
    degrees = np.maximum(n - 1, 0)
    prior = VariancePrior.fit((squares / np.maximum(degrees, 1))[degrees > 0], degrees[degrees > 0])
    return np.log(prior.posterior_mean(squares, degrees)), mean


def _siblings(log_variance: FloatArray, prompts: NDArray[np.str_]) -> FloatArray:
    """Mean over the other answers to the same prompt."""
    _, group = np.unique(prompts, return_inverse=True)
    total, n = np.bincount(group, log_variance)[group], np.bincount(group)[group]
    return np.asarray(
        np.where(n > 1, (total - log_variance) / np.maximum(n - 1, 1), log_variance.mean()), dtype=np.float64
    )


def entrants(known: Known) -> dict[str, Contestant]:
    """What is compared, by name."""
    told = {"variances": known.variances.tolist()}
    found = {
        "uniform": contestants([Uniform], {})[0],
        DEFAULT: contestants([Auto], {})[0],
        TOLD: contestants([Robin], {Robin.name: told})[0],
    }
    for name, columns in known.features.items():
        (found[f"auto, {name}"],) = contestants([FeaturedAuto], {FeaturedAuto.name: {"features": columns}})
    return found


def _errors(pool: Pool, entrant: Contestant, per_item: tuple[int, ...], seeds: int) -> FloatArray:
    """Worst-item errors, shape (n_seeds, n_budgets); a budget changes weights, never what is asked."""
    k = len(pool.items)
    amounts = tuple(n * k for n in per_item)
    if entrant.sampler.allocation is Allocation.FIXED or entrant.sampler is Robin:
        return fixed_errors(pool, entrant, amounts, seeds)
    errors = np.empty((seeds, len(per_item)))
    for seed in range(seeds):
        sampler = entrant.build(pool, objective="worst-item", seed=seed, budget=amounts[-1])
        played = run_sampler(pool, sampler, amounts[-1], seed)
        for b, amount in enumerate(amounts):
            errors[seed, b] = np.abs(played.until(amount).moments.mean - pool.means).max()
    return errors


def verdict(text: str, ratios: list[tuple[str, Average]]) -> Target:
    """1.1 times better beyond two standard errors at two budgets of recorded scores, and nowhere worse."""
    wins = [name for name, one in ratios if one.mean + 2.0 * one.stderr <= 1.0 and one.mean <= 1.0 / WIN]
    worse = [name for name, one in ratios if one.mean - 2.0 * one.stderr > 1.0]
    measured = f"{WIN:g} times better: {', '.join(wins) or 'nowhere'}; worse: {', '.join(worse) or 'nowhere'}"
    return Target(text, measured, len(wins) >= 2 and not worse)
