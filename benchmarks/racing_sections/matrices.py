"""Real matrices of models x items without history: regret and how often the answer is good enough."""

from __future__ import annotations

from evalbudget.backtest import RecordedScores, backtest_race
from judges_sections.found import Found, Target
from places import data_file

SAMPLERS = ("uniform", "ucb-e", "lucb", "paired-eprocess", "successive-rejects", "sequential-halving", "race")
BUDGETS = ("2%", "5%", "10%", "20%")
SEEDS = 100


def matrices(quick: bool, seeds: int | None = None) -> Found:
    """Every sampler that does without history, at four shares of the grid."""
    runs = 2 if quick else (seeds or SEEDS)
    rows, targets = [], []
    for file in ("cruxeval_models", "alpacaeval_models"):
        recorded = RecordedScores.load(data_file(file))
        for budget in BUDGETS[-1:] if quick else BUDGETS:
            batch = max(1, min(16, int(recorded.scores.shape[1] * float(budget[:-1]) / 100)))
            found = backtest_race(recorded, SAMPLERS, [budget], runs, batch=batch, intervals=False).rows
            regret = {row.sampler: row.simple_regret for row in found}
            top = {row.sampler: row.p_top for row in found}
            for row in found:
                cells = (f"{row.p_best:.2f}", f"{row.p_top:.2f}", f"{100 * row.simple_regret:.3f}")
                rows.append((file, budget, row.sampler, *cells, f"{row.evaluations:,.0f}"))
            rival = min((name for name in regret if name != "race"), key=lambda name: regret[name])
            # two standard errors of a share of the runs
            noise = 2.0 * (max(top[rival] * (1 - top[rival]), 1 / runs) / runs) ** 0.5
            targets.append(
                Target(
                    f"{file} at {budget}: race as often near the best as the rival with the least regret",
                    f"p(within .01) {top['race']:.2f} against {top[rival]:.2f} of {rival}, regret "
                    f"{100 * regret['race']:.3f} against {100 * regret[rival]:.3f} points",
                    top["race"] >= top[rival],
                    top["race"] >= top[rival] - noise,
                )
            )
    return Found(
        f"Recorded scores, no history, {runs} seeds; batches of 16 or what the budget allows.",
        ("file", "budget", "sampler", "p(best)", "p(within .01)", "regret, points", "evaluations"),
        tuple(rows),
        tuple(targets),
    )
