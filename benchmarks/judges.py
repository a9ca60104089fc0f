"""Measures judge rotation and the estimators behind it; renders docs/judges.md.

Usage::

    python benchmarks/judges.py prices speed
    python benchmarks/judges.py all --write-docs
    python benchmarks/judges.py all --quick
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as RichTable

from evalbudget.backtest import RecordedScores, backtest_rotation
from evalbudget.estimators.judges import (
    JudgeScores,
    effective_votes,
    judge_mean_over_sampled_items,
    panel_mean,
    variance_components,
    variance_components_literal,
)
from evalbudget.planning import Prices, forecast
from evalbudget.rotation import All, Cyclic, JudgeSchedule, Priced, Random

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("EVALBUDGET_DATA", ROOT.parent / "shared" / "data"))
PAPER_F = {"Qwen": 638.0, "Llama": 446.0, "GPT": 602.0}
PRICES = (1.0, 2.0, 5.0, 15.0, 30.0)
CLASSES: dict[str, type[JudgeSchedule]] = {"all": All, "random": Random, "cyclic": Cyclic}


@dataclass(frozen=True)
class Target:
    """A figure that had to be reached, what was measured, and whether it was."""

    text: str
    measured: str
    reached: bool


@dataclass(frozen=True)
class Found:
    """One section: a table of finished text, and what it shows."""

    lead: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class World:
    """Normal components; the panel's biases are fixed."""

    item: float
    generation: float
    interaction: float
    residual: float
    gamma: Floats

    def draw(self, n: int, m: int, rng: np.random.Generator) -> Floats:
        """Scores (items, judges, generations)."""
        K = self.gamma.size
        parts = (
            rng.normal(0, np.sqrt(self.item), (n, 1, 1)),
            rng.normal(0, np.sqrt(self.generation), (n, 1, m)),
            self.gamma[None, :, None],
            rng.normal(0, np.sqrt(self.interaction), (n, K, 1)),
            rng.normal(0, np.sqrt(self.residual), (n, K, m)),
        )
        return np.asarray(sum(parts), dtype=np.float64)


def biases(K: int, variance: float) -> Floats:
    """K deviations with sum zero and this mean square."""
    line = np.linspace(-1.0, 1.0, K)
    return np.asarray(line * np.sqrt(variance / (line**2).mean()), dtype=np.float64)


def names(K: int) -> tuple[str, ...]:
    return tuple(f"judge {j}" for j in range(K))


def components(quick: bool) -> Found:
    n, m, K, R = 80, 10, 5, 20 if quick else 400
    rows, targets = [], []
    for model, f in PAPER_F.items():
        sg = (f - 1) * (K - 1) / (n * m * K)
        truth = np.array([2.0, 0.4, 1.0, sg])
        world = World(2.0, 0.4, 0.0, 1.0, biases(K, sg))
        rng = np.random.default_rng(int(f))
        corrected, literal, fs = [], [], []
        for _ in range(R):
            scores = JudgeScores.from_table(world.draw(n, m, rng), judges=names(K))
            c, p = variance_components(scores), variance_components_literal(scores)
            values = [c.value for c in c.components]
            corrected.append([*values[:2], values[3], values[4]])
            literal.append([component.value for component in p.components])
            fs.append(p.f_statistic)
        for label, draws in (("corrected", corrected), ("paper", literal)):
            mean, error = np.mean(draws, 0), np.std(draws, 0, ddof=1) / np.sqrt(R)
            z = np.abs(mean - truth) / error
            cells = (f"{a:.3f} ±{e:.3f}" for a, e in zip(mean, error, strict=True))
            rows.append((model, label, *cells, f"{np.mean(fs):.0f} ({f:.0f})"))
            targets.append(
                Target(f"{model}, {label}: no bias", f"largest deviation {z.max():.1f} s.e.", z.max() < 3.5)
            )
    return Found(
        f"Crossed designs of n = 80, m = 10, K = 5, {R} draws. Item 2, generation .4, residual 1; judge "
        f"as implied "
        "by the F statistics of the paper, sigma_gamma^2/sigma_eps^2 = (F - 1)(K - 1)/(nmK).",
        ("model", "ANOVA", "item", "generation", "residual", "judge", "F (paper)"),
        tuple(rows),
        tuple(targets),
        (
            "The components of the paper's Table 2 were not available when this was written; only its F "
            "statistics "
            "were. What is checked is that components of a design of that size are recovered and that the F "
            "statistics come back; the item and generation variances are ours.",
        ),
    )


def interaction(quick: bool) -> Found:
    n, m, K, R = 80, 10, 5, 20 if quick else 400
    world = World(2.0, 0.2, 0.5, 1.0, biases(K, 0.6))
    rng = np.random.default_rng(1)
    corrected, literal = [], []
    for _ in range(R):
        scores = JudgeScores.from_table(world.draw(n, m, rng), judges=names(K))
        corrected.append([c.value for c in variance_components(scores).components])
        p = [c.value for c in variance_components_literal(scores).components]
        literal.append([p[0], p[1], np.nan, p[2], p[3]])
    truth = np.array([2.0, 0.2, 0.5, 1.0, 0.6])
    rows = [("truth", *(f"{t:.3f}" for t in truth))]
    for label, draws in (("corrected", corrected), ("paper", literal)):
        mean, error = np.mean(draws, 0), np.std(draws, 0, ddof=1) / np.sqrt(R)
        rows.append(
            (
                label,
                *("-" if np.isnan(a) else f"{a:.3f} ±{e:.3f}" for a, e in zip(mean, error, strict=True)),
            )
        )
    ours, theirs = np.mean(corrected, 0)[1] / 0.2, np.mean(literal, 0)[1] / 0.2
    return Found(
        f"An item x judge interaction of half the residual: n = 80, m = 10, K = 5, {R} draws.",
        ("ANOVA", "item", "generation", "item x judge", "residual", "judge"),
        tuple(rows),
        (
            Target("corrected sigma_beta^2 within 10% of truth", f"{ours:.3f} of it", abs(ours - 1) < 0.1),
            Target("the paper's collapses by half", f"{theirs:.3f} of it", theirs < 0.6),
        ),
    )


def predictions(quick: bool) -> Found:
    n, K, R = 80, 5, 50 if quick else 2000
    sg = (PAPER_F["GPT"] - 1) * (K - 1) / (n * 10 * K)
    world = World(2.0, 0.4, 0.0, 1.0, biases(K, sg))
    rng = np.random.default_rng(2)
    pilot = variance_components(
        JudgeScores.from_table(world.draw(40 if quick else 4000, 10, rng), judges=names(K))
    )
    errors: dict[tuple[str, int], list[float]] = {}
    items = [str(i) for i in range(n)]
    for seed in range(R):
        table = world.draw(n, 10, rng)
        for name, cls in CLASSES.items():
            for calls in (5, 10):
                m = calls // K if name == "all" else calls
                a = cls(items, names(K), epochs=m, seed=seed).assign()
                value = table[a.item, a.judge, a.epoch]
                scores = JudgeScores.of(a.item, a.epoch, a.judge, value, judges=names(K), n_items=n)
                raw = not cls.weighs_judges
                estimate = judge_mean_over_sampled_items(scores) if raw else panel_mean(scores)
                errors.setdefault((name, calls), []).append(estimate.value)
    rows, targets = [], []
    for (name, calls), found in errors.items():
        m = calls // K if name == "all" else calls
        predicted = forecast(pilot, name, m, Prices(np.ones(K))).variance / n
        measured, ratio = float(np.var(found)), float(np.var(found)) / predicted
        without = predicted - pilot["item"] / n
        rows.append(
            (name, str(calls), f"{predicted:.5f}", f"{measured:.5f}", f"{ratio:.3f}", f"{without:.5f}")
        )
        targets.append(
            Target(
                f"{name}, {calls} calls: predicted",
                f"measured/predicted {ratio:.3f}",
                abs(ratio - 1) < 5 * np.sqrt(2 / R),
            )
        )
    v = {key: float(np.var(found)) for key, found in errors.items()}
    cut = 1 - v["cyclic", 5] / v["random", 5]
    f_b, f_c = (forecast(pilot, s, 5, Prices(np.ones(K))).variance for s in ("random", "cyclic"))
    net = 1 - (f_c - pilot["item"]) / (f_b - pilot["item"])
    return Found(
        f"Predicted variance of the panel mean (D study) against {R} fresh evaluations, n = 80, K = 5; "
        f"GPT row as "
        "under components.",
        ("rotation", "calls per item", "predicted", "measured", "ratio", "without item variance"),
        tuple(rows),
        tuple(targets),
        (
            f"Random to cyclic at 5 calls: predicted {1 - f_c / f_b:.1%} less variance in all (measured "
            f"{cut:.1%} ±{2 / np.sqrt(R):.1%}), {net:.1%} without the items' share.",
            "How large the total cut is depends on the item variance, which is ours.",
        ),
    )


def real(quick: bool) -> Found:
    rows, targets = [], []
    for file, budgets, seeds in (("judge_repeats", (250, 1000), 2000), ("hanna_multijudge", (200, 800), 200)):
        recorded = RecordedScores.load(DATA / f"{file}.npz")
        found = backtest_rotation(recorded, budgets=budgets, seeds=10 if quick else seeds)
        at = {(row.rotation, row.budget): row for row in found.rows}
        for row in found.rows:
            ratio = row.rmse**2 / at["cyclic", row.budget].rmse ** 2
            rows.append(
                (
                    file,
                    row.rotation,
                    str(row.budget),
                    f"{row.bias:+.4f}",
                    f"{row.rmse:.4f}",
                    f"{ratio:.2f}",
                    f"{row.coverage:.3f}",
                    f"{row.half_width:.4f}",
                )
            )
        for budget in budgets:
            c, s = at["cyclic", budget], at["single", budget]
            targets.append(
                Target(
                    f"{file}, {budget} calls: cyclic covers .94 to .97",
                    f"{c.coverage:.3f} (±{np.sqrt(0.05 * 0.95 / (c.seeds * c.models)):.3f})",
                    0.94 <= round(c.coverage, 3) <= 0.97,
                )
            )
            targets.append(
                Target(f"{file}, {budget} calls: single judge misses", f"{s.coverage:.3f}", s.coverage < 0.8)
            )
            ratio = c.rmse**2 / at["random", budget].rmse ** 2
            noise = float(6 / np.sqrt(c.seeds * c.models))
            targets.append(
                Target(
                    f"{file}, {budget} calls: cyclic no worse than random",
                    f"squared error {ratio:.3f} of it, 3 s.e. are {noise:.3f}",
                    ratio < 1 + noise,
                )
            )
    hanna = RecordedScores.load(DATA / "hanna_multijudge.npz")
    votes = []
    if hanna.reference is not None:
        for m in range(len(hanna.models)):
            scores = JudgeScores.from_table(hanna.scores[m], judges=hanna.raters)
            human = np.asarray(np.nanmean(hanna.reference[m], axis=1), dtype=np.float64)
            votes.append((effective_votes(scores, truth=human).value, effective_votes(scores).value))
    against, among = np.mean(votes, axis=0)
    return Found(
        "Equal numbers of judge calls; truth is the panel mean over all recorded; items drawn with "
        "replacement.",
        ("file", "rotation", "calls", "bias", "rmse", "sq. error / cyclic", "coverage", "half-width"),
        tuple(rows),
        tuple(targets),
        (
            f"The 20 judges of hanna are worth {against:.1f} independent votes against the human labels "
            f"(mean over "
            f"models); their agreement alone would say {among:.1f}: the panel mean is not the truth.",
        ),
    )


def prices(quick: bool) -> Found:
    rows, ratios = [], []
    recorded = RecordedScores.load(DATA / "judge_repeats.npz")
    seeds = 20 if quick else 1500
    rng = np.random.default_rng(3)
    orders = [np.argsort(np.argsort(rng.random(5))) for _ in range(2 if quick else 4)]
    for order in [np.arange(5), *orders]:
        price = [PRICES[i] for i in order]
        found = backtest_rotation(recorded, ["cyclic", "priced"], budgets=[500], seeds=seeds, prices=price)
        c, p = found.rows
        ratio = p.variance * p.cost / (c.variance * c.cost)
        ratios.append(ratio)
        error = ratio * 2 / np.sqrt(seeds)
        rows.append(
            (
                "judge_repeats",
                ", ".join(f"{x:g}" for x in price),
                f"{ratio:.3f} ±{error:.3f}",
                f"{c.coverage:.3f}",
                f"{p.coverage:.3f}",
            )
        )
    theory = np.sqrt(PRICES).sum() ** 2 / (5 * np.sum(PRICES))
    return Found(
        f"Variance times dollars of priced over cyclic, 500 calls, {seeds} seeds, prices 1, 2, 5, 15, 30 "
        f"in several "
        "orders over the judges.",
        ("file", "prices of the judges", "variance x dollars, priced / cyclic", "coverage cyclic", "priced"),
        tuple(rows),
        (
            Target(
                "priced below cyclic (expected .53 to .97)",
                f"{min(ratios):.3f} to {max(ratios):.3f}",
                max(ratios) < 1,
            ),
        ),
        (f"Theory with equal variances within judges: {theory:.3f}.",),
    )


def period(quick: bool) -> Found:
    K, per, R = 5, 40, 50 if quick else 1000
    kinds = [f"category {c}" for c in range(4)]
    n = per * len(kinds)
    category = [kinds[(i // K) % len(kinds)] for i in range(n)]
    hard = np.arange(n) % K - (K - 1) / 2  # every K-th item is of one kind
    gamma = biases(K, 1.0)
    code = np.array([kinds.index(c) for c in category])
    plain = np.arange(n) % K
    worst: list[list[float]] = []
    worst_plain: list[list[float]] = []
    error = []
    rng = np.random.default_rng(4)
    for seed in range(R):
        noise = rng.normal(0, 1, n)
        judge = Cyclic([str(i) for i in range(n)], names(K), categories=category, seed=seed).assign().judge
        for assigned, out in ((judge, worst), (plain, worst_plain)):
            # interaction of kind and judge: what a periodic order turns into bias
            x = hard + gamma[assigned] * (1 + 0.5 * hard) + noise
            found = [x[code == c].mean() - hard[code == c].mean() for c in range(len(kinds))]
            out.append(found)
        x = hard + gamma[judge] * (1 + 0.5 * hard) + noise
        error.append([x[code == c].std(ddof=1) / np.sqrt(per) for c in range(len(kinds))])
    rows = []
    for label, out in (("cyclic", worst), ("item mod K", worst_plain)):
        mean = np.mean(out, axis=0)
        rows.append((label, *(f"{b:+.3f}" for b in mean), f"{np.mean(error):.3f}"))
    ours = float(np.abs(np.mean(worst, axis=0)).max())
    return Found(
        "Items of kind i mod K in an order of period K = 5; judges differ more on hard items; four "
        "categories of 40.",
        ("assignment", *(f"bias, {kind}" for kind in kinds), "standard error"),
        tuple(rows),
        (
            Target(
                "no category biased by more than its standard error",
                f"largest {ours:.3f}, standard error {np.mean(error):.3f}",
                ours < float(np.mean(error)),
            ),
        ),
    )


def speed(quick: bool) -> Found:
    n = 5_000 if quick else 100_000
    items, rows, slowest = [str(i) for i in range(n)], [], 0.0
    categories = [str(i % 50) for i in range(n)]
    for K in (2, 5, 20, 123):
        for name, build in (
            ("cyclic", lambda k: Cyclic(items, names(k), categories=categories)),
            (
                "priced",
                lambda k: Priced(items, names(k), categories=categories, prices=range(1, k + 1)),
            ),
            ("random", lambda k: Random(items, names(k), categories=categories)),
            (
                "cyclic, one judge dropped",
                lambda k: Cyclic(items, names(k), categories=categories).without(0),
            ),
        ):
            start = time.perf_counter()
            schedule = build(K)
            counts = np.bincount(schedule.assign().judge, minlength=K)[list(schedule.active)]
            seconds = time.perf_counter() - start
            slowest = max(slowest, seconds)
            rows.append((name, str(K), f"{seconds:.3f}", f"{counts.min()} to {counts.max()}"))
    return Found(
        f"{n:,} items assigned, construction included.",
        ("rotation", "judges", "seconds", "calls per judge"),
        tuple(rows),
        (Target("100k items in under a second", f"slowest {slowest:.2f} s", slowest < 1.0),),
    )


SECTIONS: dict[str, Callable[[bool], Found]] = {
    "components": components,
    "interaction": interaction,
    "predictions": predictions,
    "real": real,
    "prices": prices,
    "period": period,
    "speed": speed,
}
_NEEDS_DATA = ("real", "prices")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("sections", nargs=-1, type=click.Choice([*SECTIONS, "all"]))
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that everything runs, measures nothing.")
@click.option("--write-docs", "write", is_flag=True, help="Update these sections of docs/judges.md.")
@click.option("--docs", type=click.Path(path_type=Path), default=ROOT / "docs", help="Where to write.")
def main(sections: tuple[str, ...], quick: bool, write: bool, docs: Path) -> None:
    """Run SECTIONS (default: all) and print their tables."""
    chosen = list(SECTIONS) if not sections or "all" in sections else list(dict.fromkeys(sections))
    out = Console(width=None if Console().is_terminal else 130)
    for name in chosen:
        if name in _NEEDS_DATA and not DATA.is_dir():
            out.print(f"{name}: not measured, no recorded scores in {DATA}; set EVALBUDGET_DATA")
            continue
        found = SECTIONS[name](quick)
        table = RichTable(title=name, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in found.columns:
            table.add_column(column)
        for row in found.rows:
            table.add_row(*row)
        out.print(found.lead, markup=False)
        out.print(table)
        for line in (*found.notes, *map(_told, found.targets)):
            out.print(line, markup=False)
        out.print()
        if write:
            _write(docs, name, f"python benchmarks/judges.py {name}{' --quick' if quick else ''}", found)


def _told(target: Target) -> str:
    return f"{target.text}: {'reached' if target.reached else 'not reached'} ({target.measured})"


def _write(docs: Path, name: str, command: str, found: Found) -> None:
    """Keep the figures in judges.json, and render all of them."""
    docs.mkdir(parents=True, exist_ok=True)
    file = docs / "judges.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    kept[name] = {"command": command, **asdict(found)}
    kept = {section: kept[section] for section in SECTIONS if section in kept}
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False, default=bool) + "\n", encoding="utf-8")
    parts = [
        "# Judges: what rotation reaches, and what the intervals hold\n",
        "Rendered by the commands below; every figure is one they printed. Nothing here is edited by hand.\n",
    ]
    for section, entry in kept.items():
        parts.append(f"## {section}\n\n`{entry['command']} --write-docs`\n\n{entry['lead']}\n")
        lines = [entry["columns"], ["---"] * len(entry["columns"]), *entry["rows"]]
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")
        parts.extend(f"{note}\n" for note in entry["notes"])
        told = [f"- {_told(Target(**target))}" for target in entry["targets"]]
        parts.append("\n".join(told) + "\n")
    (docs / "judges.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
