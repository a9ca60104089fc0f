"""Published rivals that race models, beside ours, on recorded matrices and simulated leaderboards."""

from __future__ import annotations

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.races.backtest._replay import Grid, race_replay
from evalbudget.replay._contestant import contestants
from evalbudget.sampler import Kind, Sampler
from judges_sections.found import Floats, Found, Table, Target
from places import data_file
from racing_sections.leaderboard import grid_of, leaderboard
from references.sysrs import SySRs
from references.top_two import TopTwo

SAMPLERS: tuple[str | type[Sampler], ...] = ("race", SySRs, TopTwo, "lucb", "ucb-e", "uniform")
RIVALS = ("sysrs", "top-two")
SHARES = (0.02, 0.05, 0.1, 0.2)
SEEDS = 100
DRAWS = (11, 12, 13)
BEST, REGRET, ASKED = range(3)


def matrices(quick: bool) -> dict[str, Grid]:
    """The recorded matrices, and races of 60 models x 800 items drawn from the leaderboard."""
    found = {
        file: Grid.of(RecordedScores.load(data_file(file)), None)
        for file in ("cruxeval_models", "alpacaeval_models")
    }
    for draw in DRAWS[:1] if quick else DRAWS:
        scores = leaderboard(*((20, 100) if quick else (120, 800)), (5000 + draw, 6000 + draw))[1]
        found[f"leaderboard {draw}"] = grid_of(scores)
    return found


def played(grid: Grid, sampler: str | type[Sampler], shares: tuple[float, ...], runs: int) -> Floats:
    """Named the best, regret in points and evaluations, of each race at each budget; (runs, budgets, 3)."""
    (contestant,) = contestants([sampler], {}, Kind.MODELS)
    budgets = [int(share * grid.n_cells) for share in shares]
    batch = max(1, min(16, int(shares[0] * len(grid.items))))
    found = np.empty((runs, len(budgets), 3))
    for seed in range(runs):
        outcomes = [
            outcome
            for group in contestant.groups(budgets)
            for outcome in race_replay(
                grid,
                contestant,
                seed=seed,
                budgets=group,
                batch=batch,
                predictor=None,
                top=0.0,
                level=0.95,
                intervals=False,
            )
        ]
        found[seed] = [(one.best, 100.0 * one.regret, one.evaluations) for one in outcomes]
    return found


def error(runs: Floats) -> float:
    """Standard error of a mean over runs, and over matrices, which are fixed; shape (..., runs)."""
    spread = runs.std(axis=-1, ddof=1) / np.sqrt(runs.shape[-1])
    return float(np.sqrt((spread**2).sum()) / spread.size)


def told(runs: Floats, digits: int, sign: str = "") -> str:
    """Mean and standard error."""
    return f"{runs.mean():{sign}.{digits}f} ± {error(runs):.{digits}f}"


def rivals(quick: bool, seeds: int | None = None) -> Found:
    """Share of the races that name the best, and regret, beside those of race on the same items."""
    runs = 2 if quick else seeds or SEEDS
    shares = SHARES[-1:] if quick else SHARES
    grids = matrices(quick)
    names = [sampler if isinstance(sampler, str) else sampler.name for sampler in SAMPLERS]
    found = {
        (file, name): played(grid, sampler, shares, runs)
        for file, grid in grids.items()
        for name, sampler in zip(names, SAMPLERS, strict=True)
    }
    rows, pooled, targets = [], [], []
    for file in grids:
        for b, share in enumerate(shares):
            for name in names:
                one = found[file, name][:, b]
                cells = (told(one[:, BEST], 2), told(one[:, REGRET], 3), f"{one[:, ASKED].mean():,.0f}")
                rows.append((file, f"{share:.0%}", name, *cells))
    for b, share in enumerate(shares):
        of = {name: np.stack([found[file, name][:, b] for file in grids]) for name in names}
        for name in names:
            less = of[name] - of["race"]
            own = (told(of[name][..., BEST], 3), told(of[name][..., REGRET], 3))
            beside = (told(less[..., BEST], 3, "+"), told(less[..., REGRET], 3, "+"))
            pooled.append((f"{share:.0%}", name, *own, *(("", "") if name == "race" else beside)))
            if name in RIVALS:
                targets += _targets(name, share, less)
    return Found(
        f"No history, {runs} seeds: the same order of items for all, except that `ucb-e` has an order for "
        "each model. Batches of 16 or what the smallest budget allows. A standard error follows each mean. "
        "`sysrs` (arXiv 2606.07726), which is told the budget beforehand, and `top-two`, paired top-two "
        "Thompson sampling, are built from what is published; their files in benchmarks/references say what "
        "was guessed. `sysrs` differs from `successive-rejects` only where its last rounds run out of items. "
        "The leaderboards have 60 models x 800 items each, drawn as in draws.",
        ("file", "budget", "sampler", "p(best)", "regret, points", "evaluations"),
        tuple(rows),
        tuple(targets),
        tables=(
            Table(
                "all matrices",
                (
                    "budget",
                    "sampler",
                    "p(best)",
                    "regret, points",
                    "p(best) less race's",
                    "regret less race's",
                ),
                tuple(pooled),
                ("Mean over the matrices; differences are of the same seeds.",),
            ),
        ),
    )


def _targets(name: str, share: float, less: Floats) -> list[Target]:
    """Whether race is behind a rival, over all matrices; less than two standard errors are noise."""
    made = []
    for what, which, gain in (("p(best)", BEST, 1.0), ("regret", REGRET, -1.0)):
        ahead = gain * less[..., which]
        made.append(
            Target(
                f"{share:.0%}: race not behind {name} in {what}",
                told(less[..., which], 3, "+"),
                bool(ahead.mean() <= 0.0),
                bool(ahead.mean() <= 2.0 * error(ahead)),
            )
        )
    return made
