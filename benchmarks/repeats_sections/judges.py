"""Section ``judges``: real ratings of five LLM judges, replayed."""

from __future__ import annotations

import numpy as np

from evalbudget.backtest import Average, RecordedScores
from evalbudget.repeats.backtest._pool import pools_of
from places import data_file
from repeats_sections.replays import RECOMMENDED, Errors, Measured, compared, measured
from repeats_sections.section import Section, Setting, Table, Target, shown

FILE = "judge_repeats.npz"
MIN_REPEATS = 6
BUDGETS = ("5x", "10x", "20x", "50x")

TITLE = "Real judges"
LEAD = (
    f"{FILE}: ratings 1 to 10 of prompt-response pairs, several per judge; items with at least {MIN_REPEATS} "
    "parsed ratings. Worst-item error relative to uniform at the same budget: per judge the mean over seeds "
    "divided by uniform's mean over seeds, then the mean over judges. robin is told the true variances; "
    "robin-hood cannot start below 20x. auto, the default, is rating-kernel on these ratings."
)


def run(setting: Setting) -> Section:
    recorded = RecordedScores.load(data_file(FILE))
    pools = pools_of((recorded,), model=None, rater=None, min_repeats=MIN_REPEATS)
    if setting.quick:
        first = RecordedScores(recorded.scores[:, :40], recorded.models, recorded.items[:40], recorded.raters)
        pools = pools_of((first,), model=None, rater=None, min_repeats=MIN_REPEATS)
    seeds = setting.replications(20)
    found = measured(pools, BUDGETS, seeds, setting, "judges")
    errors = found.worst
    items = ", ".join(f"{pool.rater} {len(pool.items):,}" for pool in pools)
    return Section(
        "judges",
        TITLE,
        LEAD,
        (
            _means(errors, f"{seeds} seeds; ± is one standard error over seeds. Items: {items}."),
            _benchmark_mean(found),
            _coverage(found),
            _told(found),
            *(_per_judge(errors, [pool.rater for pool in pools], budget) for budget in BUDGETS[1:]),
            _absolute(errors),
        ),
        (*_default_targets(found), *_targets(errors)),
        _curves(errors),
    )


def _ratio(errors: Errors, sampler: str, budget: str, to: str = "uniform") -> Average:
    return Average.ratio(errors[sampler, budget], errors[to, budget])


def _means(errors: Errors, note: str) -> Table:
    rows = [
        (
            name,
            *(shown(_ratio(errors, name, b)) if (name, b) in errors else "-" for b in BUDGETS),
        )
        for name in compared(errors)
    ]
    return Table("Relative to uniform, mean over judges", ("sampler", *BUDGETS), tuple(rows), note)


def mean_error(found: Measured, sampler: str, budget: str) -> Average:
    """Error of the printed estimate relative to plain epochs, averaged over pools."""
    variance = found.variance[sampler, budget]
    root = np.sqrt(variance.mean(axis=1, keepdims=True))
    return Average.of(root + (variance - variance.mean(axis=1, keepdims=True)) / (2 * root))


def _benchmark_mean(found: Measured) -> Table:
    rows = [
        (name, *(shown(mean_error(found, name, b)) if (name, b) in found.variance else "-" for b in BUDGETS))
        for name in compared(found.worst)
        if name != "robin"
    ]
    note = (
        "Standard deviation of the printed estimate around the items' true mean, from the shares its "
        "readings had and the true variances. robin-hood's estimate rests on its warm-up."
    )
    return Table(
        "Error of the benchmark mean, relative to plain epochs", ("sampler", *BUDGETS), tuple(rows), note
    )


def _coverage(found: Measured) -> Table:
    rows = [
        (
            name,
            *(f"{found.covered[name, b].mean():.3f}" if (name, b) in found.covered else "-" for b in BUDGETS),
        )
        for name in compared(found.worst)
        if name in RECOMMENDED
    ]
    n = next(iter(found.covered.values())).size
    return Table(
        "Share of replays whose repeats interval (95%) holds the true mean",
        ("sampler", *BUDGETS),
        tuple(rows),
        f"{n} replays each.",
    )


def _told(found: Measured) -> Table:
    rows = [
        (name, *(shown(Average.of(found.told[name, b])) if (name, b) in found.told else "-" for b in BUDGETS))
        for name in compared(found.worst)
        if name in RECOMMENDED
    ]
    return Table(
        "Reported standard error of the repeats over the true one, mean over replays",
        ("sampler", *BUDGETS),
        tuple(rows),
        "The true one is that of the shares which the readings had, with the true variances. Replays of one "
        "seed share their draws at all budgets, so the shares of covered replays above err alike; this ratio "
        "tells more.",
    )


def _default_targets(found: Measured) -> tuple[Target, ...]:
    name, errors = "auto", found.worst
    if (name, "20x") not in errors:
        return ()
    targets = [
        Target.at_most(f"{name}: worst-item error at {budget}", _ratio(errors, name, budget), most)
        for budget, most in (("10x", 0.78), ("20x", 0.70), ("50x", 0.60))
    ]
    for budget in BUDGETS:
        targets.append(
            Target.at_most(
                f"{name}: error of the benchmark mean at {budget}", mean_error(found, name, budget), 1.05
            )
        )
        covered = found.covered[name, budget]
        share, n = float(covered.mean()), covered.size
        noise = 2 * float(np.sqrt(0.05 * 0.95 / n))
        targets.append(
            Target(
                f"{name}: coverage of the repeats interval .93-.97 at {budget}",
                f"{share:.3f} of {n}",
                0.93 <= round(share, 3) <= 0.97,
                0.93 - noise <= share <= 0.97 + noise,
            )
        )
        told = Average.of(found.told[name, budget])
        targets.append(
            Target(
                f"{name}: reported over true standard error within .95-1.05 at {budget}",
                shown(told),
                0.95 <= told.mean <= 1.05,
            )
        )
    return tuple(targets)


def _per_judge(errors: Errors, judges: list[str], budget: str) -> Table:
    names = [name for name in compared(errors) if name != "uniform" and (name, budget) in errors]
    rows = [
        (
            judge,
            *(
                shown(Average.ratio(errors[name, budget][[j]], errors["uniform", budget][[j]]))
                for name in names
            ),
        )
        for j, judge in enumerate(judges)
    ]
    return Table(f"Relative to uniform, per judge, at {budget}", ("judge", *names), tuple(rows))


def _absolute(errors: Errors) -> Table:
    rows = [
        (name, *(shown(Average.of(errors[name, b])) if (name, b) in errors else "-" for b in BUDGETS))
        for name in compared(errors)
    ]
    return Table("Worst-item error in points, mean over judges", ("sampler", *BUDGETS), tuple(rows))


def _targets(errors: Errors) -> tuple[Target, ...]:
    found = []
    for name in sorted(set(RECOMMENDED) & set(compared(errors))):
        for budget, most in (("20x", 0.72), ("50x", 0.62)):
            ratio = _ratio(errors, name, budget)
            found.append(Target.at_most(f"{name}: worst-item error at {budget}", ratio, most))
    if ("robin-hood", "20x") in errors:
        literal = {budget: _ratio(errors, "robin-hood", budget) for budget in ("20x", "50x")}
        found.append(
            Target(
                "robin-hood within 1.0 ± 0.05 at 20x",
                shown(literal["20x"]),
                abs(literal["20x"].mean - 1) <= 0.05,
            )
        )
        found.append(
            Target("robin-hood .51-.62 at 50x", shown(literal["50x"]), 0.51 <= literal["50x"].mean <= 0.62)
        )
    for name in sorted(set(RECOMMENDED) & set(compared(errors))):
        known = _ratio(errors, name, "20x", to="robin")
        found.append(
            Target(f"{name} <= 1.25 x robin at 20x (open problem)", shown(known), known.mean <= 1.25)
        )
        if ("robin-hood", "50x") not in errors:
            continue
        differences = errors[name, "50x"] - errors["robin-hood", "50x"]
        behind = int((differences.mean(axis=1) > 0).sum())
        clearly = 0
        if differences.shape[1] > 1:
            stderr = differences.std(axis=1, ddof=1) / np.sqrt(differences.shape[1])
            clearly = int((differences.mean(axis=1) > 2 * stderr).sum())
        found.append(
            Target(
                f"{name} behind robin-hood at 50x for no judge (open problem)",
                f"behind for {behind} of {len(differences)}, by over two standard errors for {clearly}",
                behind == 0,
            )
        )
    return tuple(found)


def _curves(errors: Errors) -> dict[str, list[tuple[float, float, float]]]:
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for name in compared(errors):
        for budget in BUDGETS:
            if (name, budget) in errors:
                ratio = _ratio(errors, name, budget)
                curves.setdefault(name, []).append((float(budget[:-1]), ratio.mean, ratio.stderr))
    return curves
