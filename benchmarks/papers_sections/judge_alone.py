"""Table 1 of CyclicJudge: what one judge says of three models, who is first by it, and whom it favours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import (
    JudgeScores,
    judge_mean_over_sampled_items,
    panel_mean,
    self_preference,
)
from evalbudget.judges.schedules import Cyclic, JudgeSchedule, Single
from judges_sections.found import Floats, Table
from papers_sections.judge_world import JUDGES, MODELS, SCENARIOS, one_table

NAMED = ("Qwen", "Llama", "GPT")
ITEMS = tuple(map(str, range(SCENARIOS)))


@dataclass(frozen=True)
class Alone:
    """Table 1 and what follows from it.

    Attributes:
        table: Table 1.
        off: largest distance of a mean here from the published one, in half-widths here.
        narrower: what Table 2 implies for the half-width over what is published: least and largest ratio at
            m = 1, and at m = 10.
    """

    table: Table
    off: float
    narrower: tuple[tuple[float, float], tuple[float, float]]


def _read(table: Floats, schedule: JudgeSchedule) -> JudgeScores:
    a = schedule.assign()
    value = table[a.item, a.judge, a.epoch]
    return JudgeScores.of(a.item, a.epoch, a.judge, value, judges=JUDGES, n_items=SCENARIOS)


def _by_one(table: Floats, judge: str, generations: int) -> Estimate:
    return judge_mean_over_sampled_items(_read(table, Single(ITEMS, JUDGES, judge=judge, epochs=generations)))


def _bootstrap(scenarios: Floats, rng: np.random.Generator) -> float:
    """Half-width of the paper's interval: 2,000 resamples of the scenarios' means."""
    drawn = scenarios[rng.integers(len(scenarios), size=(2000, len(scenarios)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(high - low) / 2


def alone() -> Alone:
    """Table 1 by the rotation ``single``, on one table, with one generation per scenario and with ten."""
    tables, rows, off, ratios = one_table(), [], 0.0, []
    rng = np.random.default_rng(7)
    for judge in NAMED:
        for name, model in MODELS.items():
            published, half = model.single[judge]
            cells = []
            for generations in (1, 10):
                found = _by_one(tables[name], judge, generations)
                width = found.confidence_interval().high - found.value
                off = max(off, abs(found.value - published) / width)
                cells.append(f"{found.value:.2f} ±{width:.2f}")
            drawn = _bootstrap(tables[name][:, JUDGES.index(judge)].mean(axis=1), rng)
            within = model.generation + model.residual
            implied = [1.96 * sqrt((model.item + within / m) / SCENARIOS) for m in (1, 10)]
            ratios.append([x / half for x in implied])
            widths = (f"±{x:.2f}" for x in (drawn, *implied))
            rows.append((judge, name, f"{published:.2f} ±{half:.2f}", *cells, *widths))
    once, often = zip(*ratios, strict=True)
    columns = (
        "judge",
        "model",
        "published",
        "m = 1",
        "m = 10",
        "m = 10, bootstrap",
        "Table 2 implies, m = 1",
        "Table 2 implies, m = 10",
    )
    note = "95% intervals over scenarios, 80 of them; the same simulated table in all rows."
    return Alone(
        Table("Table 1: one judge alone (rotation single)", columns, tuple(rows), (note,)),
        off,
        ((min(once), max(once)), (min(often), max(often))),
    )


@dataclass(frozen=True)
class Rankings:
    """Who is first by one judge, and by the panel in turn.

    Attributes:
        table: finished.
        own: share of tables in which Qwen's judge puts Qwen first, m = 1 and m = 10.
        turns: share in which judges in turn put GPT first, with as many calls.
    """

    table: Table
    own: tuple[float, float]
    turns: tuple[float, float]


def rankings(draws: int) -> Rankings:
    """Simulate many tables: how often each judge puts each model first."""
    rng = np.random.default_rng(3)
    ways = (*NAMED, "judges in turn")
    first = {(way, m): dict.fromkeys(MODELS, 0) for way in ways for m in (1, 10)}
    for seed in range(draws):
        tables = {name: model.table(rng) for name, model in MODELS.items()}
        for m in (1, 10):
            for way in ways:
                if way in JUDGES:
                    value = {
                        name: float(table[:, JUDGES.index(way), :m].mean()) for name, table in tables.items()
                    }
                else:
                    turn = Cyclic(ITEMS, JUDGES, epochs=m, seed=seed)
                    value = {name: panel_mean(_read(table, turn)).value for name, table in tables.items()}
                first[way, m][max(value, key=value.__getitem__)] += 1
    rows = [
        (way, str(m), str(SCENARIOS * m), *(f"{n / draws:.2f}" for n in counts.values()), _expected(way))
        for (way, m), counts in first.items()
    ]

    def shares(way: str, model: str) -> tuple[float, float]:
        return first[way, 1][model] / draws, first[way, 10][model] / draws

    return Rankings(
        Table(
            "Who is first by which judge",
            ("judge", "m", "calls per model", *(f"{name} first" for name in MODELS), "expected means"),
            tuple(rows),
            (f"Shares of {draws} tables. By the panel's mean GPT is first (8.72, 7.87, 7.13).",),
        ),
        shares("Qwen", "Qwen"),
        shares("judges in turn", "GPT"),
    )


def _expected(way: str) -> str:
    at = JUDGES.index(way) if way in JUDGES else None
    means: Mapping[str, float] = {
        name: model.mean + (0.0 if at is None else model.gamma[at]) for name, model in MODELS.items()
    }
    return ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())


@dataclass(frozen=True)
class Favours:
    """Self-preference.

    Attributes:
        table: finished.
        qwen: of Qwen's judge, estimated.
        apart: largest difference of one named judge's bias between two models.
    """

    table: Table
    qwen: float
    apart: float


def favours() -> Favours:
    """``self_preference`` on the table."""
    found = self_preference(np.stack(list(one_table().values())), tuple(MODELS), JUDGES)
    bounds = found.confidence_intervals()
    gammas = np.array([model.gamma for model in MODELS.values()])
    truth = self_preference(gammas[:, None, :].repeat(2, axis=1), tuple(MODELS), JUDGES).value
    rows = tuple(
        (judge, f"{value:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{true:+.2f}")
        for judge, value, low, high, true in zip(
            found.judges, found.value, bounds.low, bounds.high, truth, strict=True
        )
    )
    apart = float(np.ptp(gammas, axis=0)[: len(NAMED)].max())
    columns = ("judge", "self-preference", "interval for all three", "of the published biases")
    note = (
        "How much more a judge gives itself than other judges give it, beyond what it gives the other models "
        "more than they do. The last column has no noise in it."
    )
    table = Table("Self-preference on the same table", columns, rows, (note,))
    return Favours(table, float(found.value[found.judges.index("Qwen")]), apart)
