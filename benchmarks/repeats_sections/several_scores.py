"""Section ``several-scores``: readings that bring several scores at once, and what should then decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from evalbudget.backtest import Average
from evalbudget.repeats.samplers import Auto, Uniform
from references.joint_scores import Chooser, JointScores, OneNumber
from repeats_sections.judges import FILE
from repeats_sections.replays import numbers_of
from repeats_sections.section import Section, Setting, Table, Target, shown
from repeats_sections.together import HANNA, World, normal_world, recorded_worlds, run_chooser

PER_ITEM = (5, 10, 20)
CORRELATIONS = (0.0, 0.5, 0.9)
RULES = ("uniform", "mean of the scores", "joint, largest", "joint, sum")
JOINT = RULES[2:]
ONE, BEST = "one score, mean over which", "one score, the best in hindsight"
WIN = 1.1

Errors = Mapping[str, NDArray[np.float64]]
"""Rule -> worst-item error over the range, shape (n_seeds, n_budgets, n_scores)."""

LEAD = (
    f"Every reading brings all scores of an item. {FILE}: the ratings of five judges; {HANNA}: six criteria, "
    "a reading being one of 20 judges and prompts; and four scores with normal noise on scales of 1 to 100, "
    "whose log variances have the correlation named. What decides: auto told one of the scores, in turn "
    "each; auto told the mean of the scores, each over its range; or jointly one auto per score, asking the "
    "item where the largest of their errors over the range (or the sum of the squares) is largest. Errors "
    "are each score's worst-item error over its range; draws are the same for all rules."
)


def run(setting: Setting) -> Section:
    worlds = [*recorded_worlds(setting.quick)]
    worlds += [normal_world(rho, 40 if setting.quick else 300) for rho in CORRELATIONS]
    per_item = PER_ITEM[:2] if setting.quick else PER_ITEM
    seeds = setting.replications(16)
    budgets = tuple(f"{n}x" for n in per_item)
    found, means = {}, []
    for w, world in enumerate(worlds):
        rules = _rules(world, per_item[-1])
        errors = {}
        for r, (rule, build) in enumerate(rules.items()):
            done = (w * len(rules) + r) * seeds
            errors[rule], mean = _played(
                world, build, per_item, seeds, setting, done, len(rules) * len(worlds)
            )
            if rule in RULES[1:]:
                means.append((world.name, rule, *mean))
        found[world] = errors
    recorded = {world: errors for world, errors in found.items() if world.recorded}
    tables = [
        _relative(found, budgets, "The worst of the scores", worst, seeds),
        _relative(found, budgets, "Mean over the scores", typical, seeds),
        *(_per_score(world, errors, budgets) for world, errors in recorded.items()),
        _against(found, budgets),
        Table(
            f"Each score's benchmark mean at {budgets[-1]}",
            (
                "scores",
                "what decides",
                "error / plain epochs, worst score",
                "coverage",
                "reported / true error",
            ),
            tuple(means),
            "As in the section on real judges: from the shares that the readings had and the true variances; "
            "coverage of the repeats interval (95%) and the reported standard error are means over the "
            "scores.",
        ),
    ]
    return Section(
        "several-scores", "Several scores at once", LEAD, tuple(tables), tuple(_targets(recorded, budgets))
    )


def _rules(world: World, per_item: int) -> dict[str, Callable[[int], Chooser]]:
    """Choosers of a seed; ``one:d`` is told score d."""
    design, n = world.pools[0].design, len(world.scores)
    budget = per_item * len(world.pools[0].items)

    def told(weights: list[float]) -> Callable[[int], Chooser]:
        return lambda seed: OneNumber(Auto(design, budget=budget, seed=seed), weights)

    def joint(total: bool) -> Callable[[int], Chooser]:
        return lambda seed: JointScores(design, world.ranges, total=total, budget=budget, seed=seed)

    rules: dict[str, Callable[[int], Chooser]] = {
        "uniform": lambda seed: OneNumber(Uniform(design, seed=seed), [1.0]),
        RULES[1]: told([1.0 / (n * scale) for scale in world.ranges]),
        JOINT[0]: joint(False),
        JOINT[1]: joint(True),
    }
    return rules | {f"one:{d}": told([float(e == d) for e in range(n)]) for d in range(n)}


def _played(
    world: World,
    build: Callable[[int], Chooser],
    per_item: tuple[int, ...],
    seeds: int,
    setting: Setting,
    done: int,
    rules: int,
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Errors, shape (n_seeds, n_budgets, n_scores); what the last table says of the means."""
    k = len(world.pools[0].items)
    errors = np.empty((seeds, len(per_item), len(world.scores)))
    of_means = np.empty((seeds, len(world.scores), 3))
    for seed in range(seeds):
        chooser = build(seed)
        runs = run_chooser(world, chooser, per_item[-1] * k, seed)
        for d, (pool, one) in enumerate(zip(world.pools, runs, strict=True)):
            for b, n in enumerate(per_item):
                error = np.abs(one.until(n * k).moments.mean - pool.means).max()
                errors[seed, b, d] = error / world.ranges[d]
            of_means[seed, d] = numbers_of(pool, chooser.sampler, one, per_item[-1] * k)[1:]
        setting.progress("several-scores", done + seed + 1, rules * seeds)
    worst = float(np.sqrt(of_means[:, :, 0].mean(axis=0)).max())
    return errors, (f"{worst:.3f}", f"{of_means[:, :, 1].mean():.3f}", f"{of_means[:, :, 2].mean():.3f}")


def worst(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the scores."""
    return np.asarray(errors.max(axis=2), dtype=np.float64)


def typical(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the scores."""
    return np.asarray(errors.mean(axis=2), dtype=np.float64)


Measure = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def values(errors: Errors, rule: str, measure: Measure) -> NDArray[np.float64]:
    """Shape (n_seeds, n_budgets); BEST is chosen after the fact, for each budget."""
    if rule not in (ONE, BEST):
        return measure(errors[rule])
    each = np.stack([measure(found) for name, found in errors.items() if name.startswith("one:")])
    if rule == ONE:
        return np.asarray(each.mean(axis=0))
    best = each.mean(axis=1).argmin(axis=0)
    return np.stack([each[d, :, b] for b, d in enumerate(best.tolist())], axis=1)


def ratio(errors: Errors, rule: str, to: str, budget: int, measure: Measure) -> Average:
    """Of the means over seeds, paired by seed."""
    return Average.ratio(
        values(errors, rule, measure)[None, :, budget], values(errors, to, measure)[None, :, budget]
    )


def _relative(
    found: Mapping[World, Errors], budgets: tuple[str, ...], what: str, measure: Measure, seeds: int
) -> Table:
    rows = [
        (
            world.name,
            rule,
            *(shown(ratio(errors, rule, "uniform", b, measure)) for b in range(len(budgets))),
        )
        for world, errors in found.items()
        for rule in (ONE, BEST, *RULES[1:])
    ]
    note = f"{seeds} seeds; ± is one standard error. The best score to be told is known only afterwards."
    return Table(f"{what}, relative to uniform", ("scores", "what decides", *budgets), tuple(rows), note)


def _per_score(world: World, errors: Errors, budgets: tuple[str, ...]) -> Table:
    b = 1
    names = [name for name in errors if name.startswith("one:")]
    rows = []
    for d, score in enumerate(world.scores):
        of_score = {rule: found[None, :, b, d] for rule, found in errors.items()}
        own = of_score[f"one:{d}"]
        others = np.mean([of_score[name] for name in names if name != f"one:{d}"], axis=0)
        told = (own, others, *(of_score[rule] for rule in RULES[1:]))
        rows.append((score, *(shown(Average.ratio(one, of_score["uniform"])) for one in told)))
    return Table(
        f"{world.name}: every score at {budgets[b]}, relative to uniform",
        ("score", "told this score", "told another one", *RULES[1:]),
        tuple(rows),
    )


def _against(found: Mapping[World, Errors], budgets: tuple[str, ...]) -> Table:
    rows = [
        (
            world.name,
            f"{joint} / {to}",
            *(shown(ratio(errors, joint, to, b, worst)) for b in range(len(budgets))),
        )
        for world, errors in found.items()
        for joint in JOINT
        for to in (ONE, BEST, RULES[1])
    ]
    return Table("The worst of the scores, rule over rule", ("scores", "rules", *budgets), tuple(rows))


def _targets(recorded: Mapping[World, Errors], budgets: tuple[str, ...]) -> list[Target]:
    """Whether a joint rule wins over one score, over the mean of the scores, and is never worse."""
    return [
        verdict(
            f"{joint} wins over {to}",
            [
                (f"{world.name} at {budget}", ratio(errors, joint, to, b, worst))
                for world, errors in recorded.items()
                for b, budget in enumerate(budgets)
            ],
        )
        for joint in JOINT
        for to in (ONE, RULES[1])
        if recorded
    ]


def verdict(text: str, ratios: list[tuple[str, Average]]) -> Target:
    """1.1 times better beyond two standard errors at two budgets of recorded scores, and nowhere worse."""
    wins = [name for name, one in ratios if one.mean + 2.0 * one.stderr <= 1.0 and one.mean <= 1.0 / WIN]
    worse = [name for name, one in ratios if one.mean - 2.0 * one.stderr > 1.0]
    measured = f"{WIN:g} times better: {', '.join(wins) or 'nowhere'}; worse: {', '.join(worse) or 'nowhere'}"
    return Target(text, measured, len(wins) >= 2 and not worse)
