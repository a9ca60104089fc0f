"""Until the best is proved: evaluations beside those of lucb, and how often a winner is named wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from evalbudget import Design
from evalbudget.backtest import RecordedScores
from evalbudget.races.samplers import LUCB, PairedEProcess, Race, RacingSampler
from judges_sections.found import Floats, Found, Target
from places import data_file
from references.outcomes import OutcomeKind, outcome_of

SEEDS = 40
RUNS = 1000
DELTA = 0.05
N = 100


def finish(sampler: RacingSampler, scores: Floats) -> int:
    """To its own end, after so many rounds; a score that is missing closes its cell."""
    rounds = 0
    while (cells := sampler.next_cells()) is not None:
        sampler.learn(cells, scores[cells.model, cells.item])
        rounds += 1
    return rounds


def make(name: str, scores: Floats, seed: int) -> RacingSampler:
    """A sampler at the same error for all."""
    design = Design(tuple(map(str, range(scores.shape[1]))), tuple(map(str, range(scores.shape[0]))))
    if name == "race --until-proved":
        return Race(design, until_proved=True, delta=DELTA, seed=seed)
    return (LUCB if name == "lucb" else PairedEProcess)(design, delta=DELTA, seed=seed)


def until_proved(quick: bool, seeds: int | None = None) -> Found:
    """Evaluations until the rule says who is the best, on recorded matrices without history."""
    runs = 2 if quick else seeds or SEEDS
    rows, targets = [], []
    for file in ("cruxeval_models", "alpacaeval_models"):
        scores = RecordedScores.load(data_file(file)).scores[:, :, 0, 0].astype(np.float64)
        best = int(np.nanmean(scores, axis=1).argmax())
        median: dict[str, float] = {}
        for name in ("lucb", "paired-eprocess", "race --until-proved"):
            ended = [make(name, scores, seed) for seed in range(runs)]
            rounds = np.median([finish(sampler, scores) for sampler in ended])
            asked = np.array([sampler.asked for sampler in ended])
            right = np.mean([outcome_of(sampler) == (OutcomeKind.BEST, (best,)) for sampler in ended])
            median[name] = float(np.median(asked))
            quartiles = (f"{q:,.0f}" for q in np.percentile(asked, (25, 50, 75)))
            share = f"{median[name] / scores.size:.1%}"
            rows.append((file, name, *quartiles, share, f"{rounds:,.0f}", f"{right:.2f}"))
        ratio = median["race --until-proved"] / median["lucb"]
        targets.append(
            Target(
                f"{file}: race --until-proved needs at most .30 of the evaluations of lucb, at the median",
                f"{ratio:.3f}",
                ratio <= 0.30,
            )
        )
    return Found(
        f"delta {DELTA:g}, no history, {runs} random orders of the items. Right: the model with the highest "
        "mean of all is declared the only best. Rounds: each is planned once the last "
        "one is read; median.",
        ("file", "sampler", "lower quartile", "median", "upper quartile", "of the grid", "rounds", "right"),
        tuple(rows),
        tuple(targets),
    )


def ties(rng: np.random.Generator) -> Floats:
    """Two models with as many items passed, which ones being a matter of chance."""
    passed = np.arange(N) < N // 2
    return np.stack([rng.permutation(passed) for _ in range(2)]).astype(np.float64)


def crowd(rng: np.random.Generator) -> Floats:
    """Ten models, five exactly tied at the top, five an item behind."""
    return np.stack([rng.permutation(np.arange(N) < N // 2 - (i > 4)) for i in range(10)]).astype(np.float64)


def duplicate(rng: np.random.Generator) -> Floats:
    """The best model twice, and three worse ones."""
    chance = np.array([0.7, 0.7, 0.6, 0.5, 0.3])[:, None]
    scores = (rng.random((5, N)) < chance).astype(np.float64)
    scores[0] = np.arange(N) < int(0.8 * N)
    scores[1] = scores[0]
    return scores


def one_item(rng: np.random.Generator) -> Floats:
    """Two models that differ on a third of the items, to one side once more than to the other."""
    sign = np.zeros(N)
    sign[:35] = np.where(np.arange(35) % 2, 1.0, -1.0)  # 17 and 18
    return np.stack([(1.0 - sign) / 2.0, (1.0 + sign) / 2.0])


def adversarial(rng: np.random.Generator) -> Floats:
    """Tied; the items on which the first one fails come first in the dataset."""
    passed = np.arange(N) >= N // 2
    return np.stack([passed, ~passed]).astype(np.float64)


WORLDS: dict[str, tuple[str, Callable[[np.random.Generator], Floats]]] = {
    "two exactly tied": ("any", ties),
    "five exactly tied of ten": ("any", crowd),
    "the best model twice": ("any", duplicate),
    "one item decides": ("wrong", one_item),
    "adversarial item order, tied": ("any", adversarial),
}


def played(world: Callable[[np.random.Generator], Floats], runs: int) -> Iterator[tuple[OutcomeKind, bool]]:
    """What is declared, and whether a best one alone is named as the winner."""
    for seed in range(runs):
        scores = world(np.random.default_rng([seed, 17]))
        sampler = make("race --until-proved", scores, seed)
        finish(sampler, scores)
        means = scores.sum(axis=1)
        named = outcome_of(sampler).models
        yield outcome_of(sampler).kind, means[list(named)].min() == means.max()


def wrong_winners(quick: bool, seeds: int | None = None) -> Found:
    """How often race --until-proved declares a winner where there is none, or the wrong one."""
    runs = 2 if quick else seeds or RUNS
    rows, targets = [], []
    for name, (counted, world) in WORLDS.items():
        ends = list(played(world, runs))
        winners = np.mean([kind is OutcomeKind.BEST for kind, _ in ends])
        wrong = np.mean([kind is OutcomeKind.BEST and not best for kind, best in ends])
        exact = np.mean([kind is OutcomeKind.TIE and best for kind, best in ends])
        rows.append((name, f"{winners:.3f}", f"{wrong:.3f}", f"{exact:.3f}"))
        share = float(winners if counted == "any" else wrong)
        targets.append(
            Target(
                f"{name}: a {'winner' if counted == 'any' else 'wrong winner'} declared in at most .05",
                f"{share:.3f}",
                share <= 0.05,
            )
        )
    return Found(
        f"{N} items, delta {DELTA:g}, {runs} runs each. Where models are exactly tied every winner is wrong; "
        "where one item decides only the other model is.",
        ("world", "winner declared", "a worse one", "tie proved"),
        tuple(rows),
        tuple(targets),
    )
