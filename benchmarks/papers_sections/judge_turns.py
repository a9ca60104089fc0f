"""Figure 2 of CyclicJudge: variance by rotation and budget; the cut with the scenarios in it; plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.judges._plan import Plan, Prices, plan_rotations
from evalbudget.judges.estimates import variance_components
from judges_sections.found import Floats, Table
from papers_sections.judge_world import (
    GENERATIONS,
    JUDGES,
    MODELS,
    SCENARIOS,
    Published,
    one_table,
    scores_of,
)

K = len(JUDGES)
BUDGETS = (5, 10, 20, 40)


@dataclass(frozen=True)
class Turns:
    """Figure 2.

    Attributes:
        table: finished.
        ratio: smallest and largest measured variance over that of the pool's exact constants.
        cut: random to cyclic by Eqs. 4-5, by the pool's constants, and measured, at B = 5, of each model.
    """

    table: Table
    ratio: tuple[float, float]
    cut: dict[str, tuple[float, float, float]]


def pool_constants(table: Floats) -> Floats:
    """N B times the variance of A, B and C where generations are drawn from a pool with replacement.

    C_A = K mean (X_ig. - X_i..)^2, C_B = mean (X_igl - X_i..)^2, C_C = mean (X_igl - X_i.l)^2.

    Args:
        table: shape (scenarios, judges, generations).
    """
    item = table.mean(axis=(1, 2))
    return np.array(
        [
            K * ((table.mean(axis=1) - item[:, None]) ** 2).mean(),
            ((table - item[:, None, None]) ** 2).mean(),
            ((table - table.mean(axis=2, keepdims=True)) ** 2).mean(),
        ]
    )


def figure_2(subsamples: int) -> Turns:
    """Predicted and measured variances of one table's subsamples."""
    rows, ratios, cuts = [], [], {}
    for (name, model), table in zip(MODELS.items(), one_table().values(), strict=True):
        formula, exact = model.rotation_constants(), pool_constants(table)
        for budget in BUDGETS:
            rng = np.random.default_rng([4, budget, int(model.f)])
            measured = _measured(table, budget, subsamples, rng)
            of = SCENARIOS * budget
            ratios += (measured / (exact / of)).tolist()
            cells = [
                " / ".join(f"{1e3 * v:.2f}" for v in row) for row in (formula / of, exact / of, measured)
            ]
            saved = _saved(formula), _saved(exact), _saved(measured)
            rows.append((name, str(budget), *cells, " / ".join(f"{100 * x:.1f}%" for x in saved)))
            if budget == K:
                cuts[name] = saved
    return Turns(
        Table(
            "Figure 2: variance by rotation, x 1e-3",
            (
                "model",
                "B",
                "Eqs. 3-5: A / B / C",
                "this pool: A / B / C",
                "measured: A / B / C",
                "B to C: Eqs. / pool / measured",
            ),
            tuple(rows),
            (
                "A: all judges on each generation; B: random judges; C: in turn. The budget B is calls per "
                f"scenario; {subsamples:,} subsamples of one simulated table each. A pool of ten generations "
                "has 9/10 of the variance between generations, which Eqs. 3-5 do not know.",
            ),
        ),
        (min(ratios), max(ratios)),
        cuts,
    )


def _saved(variances: Floats) -> float:
    """From random judges to judges in turn."""
    return float(1 - variances[2] / variances[1])


def _measured(table: Floats, budget: int, subsamples: int, rng: np.random.Generator) -> Floats:
    """Variances of the mean over scenarios by A, B and C."""
    n, judges, pool = table.shape
    at, whole = np.arange(n)[:, None], table.mean(axis=1)
    means = np.zeros((3, subsamples))
    for s in range(subsamples):
        g = rng.integers(pool, size=(n, budget))
        means[0, s] = whole[at, g[:, : budget // judges]].mean()
        means[1, s] = table[at, rng.integers(judges, size=(n, budget)), g].mean()
        means[2, s] = table[at, np.arange(budget) % judges, g].mean()
    return np.asarray(means.var(axis=1, ddof=1), dtype=np.float64)


@dataclass(frozen=True)
class Cuts:
    """From random to cyclic judges at B = 5.

    Attributes:
        table: finished.
        total: with the scenarios' variance, by the equations.
        fixed: measured variance over Prop. 1's where the same scenarios are evaluated again.
    """

    table: Table
    total: dict[str, float]
    fixed: dict[str, float]


def cuts(evaluations: int) -> Cuts:
    """Fresh evaluations: new scenarios each time, and the same scenarios each time."""
    rows, total, fixed = [], {}, {}
    for name, model in MODELS.items():
        constants = model.rotation_constants() / (SCENARIOS * K)
        share = model.item / SCENARIOS
        fresh, again = _evaluated(model, evaluations, np.random.default_rng([5, int(model.f)]))
        net, total[name] = (float(1 - (x + constants[2]) / (x + constants[1])) for x in (0.0, share))
        fixed[name] = float(again[1] / (share + constants[2]))
        error = np.sqrt(4 / evaluations)
        rows.append(
            (
                name,
                f"{net:.1%}",
                f"{1 - again[1] / again[0]:.1%} ±{(1 - net) * error:.1%}",
                f"{total[name]:.1%}",
                f"{1 - fresh[1] / fresh[0]:.1%} ±{(1 - total[name]) * error:.1%}",
                f"{fixed[name]:.3f}",
            )
        )
    return Cuts(
        Table(
            "Random judges to judges in turn at B = 5: how much variance is saved",
            (
                "model",
                "scenarios left out",
                "measured, same scenarios",
                "scenarios counted",
                "measured, new scenarios",
                "same scenarios: measured / Prop. 1",
            ),
            tuple(rows),
            (f"{evaluations:,} evaluations of 80 scenarios per cell; ± one standard error.",),
        ),
        total,
        fixed,
    )


def _evaluated(model: Published, evaluations: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Variances of (random, cyclic) over evaluations of new scenarios, and of the same scenarios."""
    gamma, means = np.array(model.gamma), np.zeros((2, evaluations))
    items = rng.normal(0, np.sqrt(model.item / SCENARIOS), evaluations)
    noise = np.sqrt(model.generation + model.residual)
    for e in range(evaluations):
        judge = rng.integers(K, size=(SCENARIOS, K))
        means[0, e] = (gamma[judge] + noise * rng.standard_normal((SCENARIOS, K))).mean()
        means[1, e] = (gamma + noise * rng.standard_normal((SCENARIOS, K))).mean()
    return np.var(means + items, axis=1, ddof=1), np.var(means, axis=1, ddof=1)


@dataclass(frozen=True)
class Order:
    """Whether all judges on few generations beat random judges.

    Attributes:
        table: finished.
        equations: by (K - 1) sigma_beta^2 < sigma_gamma^2, of each model.
        pools: share of simulated tables in which A has the smaller exact constant.
    """

    table: Table
    equations: dict[str, bool]
    pools: dict[str, float]


def all_against_random(draws: int) -> Order:
    """By the equations, on average over pools of ten, and in single pools."""
    rows, equations, pools = [], {}, {}
    for name, model in MODELS.items():
        rng = np.random.default_rng([6, int(model.f)])
        found = np.array([pool_constants(model.table(rng)) for _ in range(draws)])
        left, right = (K - 1) * model.generation, model.judge
        equations[name] = left < right
        pools[name] = float((found[:, 0] < found[:, 1]).mean())
        expected = model.pool_constants() / (SCENARIOS * K)
        rows.append(
            (
                name,
                f"{left:.3f}",
                f"{right:.3f}",
                "A" if equations[name] else "B",
                f"{1e3 * expected[0]:.2f} / {1e3 * expected[1]:.2f}",
                "A" if expected[0] < expected[1] else "B",
                f"{pools[name]:.2f}",
            )
        )
    return Order(
        Table(
            "All judges on each generation (A) against random judges (B)",
            (
                "model",
                "(K - 1) generation",
                "judge",
                "Eqs. 3-4: better",
                "expected in a pool of ten, B = 5: A / B, x 1e-3",
                "better there",
                "A better, share of tables",
            ),
            tuple(rows),
            (f"{draws} tables of {GENERATIONS} generations, subsampled with replacement as in Figure 2.",),
        ),
        equations,
        pools,
    )


def plans() -> tuple[Table, dict[str, tuple[int, int]]]:
    """What ``plan`` buys for 400 calls, and the generations per scenario of its cyclic plans."""
    rows, generations = [], {}
    calls = float(SCENARIOS * K)
    for name, table in one_table().items():
        pilot = variance_components(scores_of(table))
        chosen = []
        for most in (None, SCENARIOS):
            for plan in plan_rotations(pilot, Prices(np.ones(K)), money=calls, max_items=most):
                scenarios = "any number" if most is None else str(most)
                if not isinstance(plan, Plan):
                    rows.append((name, scenarios, plan.strategy, "-", "-", "-", "-"))
                    continue
                bought = (str(plan.items), str(plan.generations), str(plan.calls), f"±{plan.half_width:.3f}")
                rows.append((name, scenarios, plan.strategy, *bought))
                if plan.strategy == "cyclic":
                    chosen.append(plan.generations)
        generations[name] = (chosen[0], chosen[1])
    return (
        Table(
            "plan: 400 calls, this table as the pilot",
            (
                "model",
                "scenarios there are",
                "rotation",
                "scenarios",
                "generations",
                "calls",
                "half-width, 95%",
            ),
            tuple(rows),
        ),
        generations,
    )
