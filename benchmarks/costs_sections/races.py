"""Races: who is named the best for equal money, and what it takes until one is proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from costs_sections.money import TWO_DECADES, Floats
from evalbudget.backtest import Average
from evalbudget.design import Design
from evalbudget.races.samplers import PairedEProcess, Race, RacingSampler, UniformRacing
from evalbudget.races.samplers._base import Cells
from judges_sections.found import Found, Table, Target

MODELS, ITEMS = 30, 500
SEEDS = 150
WANTED = 1.5
SHOWN = (0.02, 0.05, 0.1, 0.2)
LOOKS = np.geomspace(0.005, 1.0, 60)
WAYS = ("every model alike", "race by counts", "race by costs")
PRICES = (
    "all equal",
    "per model, two decades",
    "the same, good models dear",
    "the same, good models cheap",
    "per item, two decades",
    "per model and per item",
    "per model, and noise from cell to cell",
    "per model, and failures dear",
)


@dataclass(frozen=True)
class Outcome:
    """One race.

    Attributes:
        right: whether the best was named, at each of LOOKS, shape (looks,).
        until: share of the grid's cost after which it was named to the end; a grid of looks.
        proved: share of the grid's cost at which the race was over.
    """

    right: Floats
    until: float
    proved: float


def races(quick: bool, seeds: int | None = None) -> Found:
    """Every model alike, the default by counts and by costs, on made-up scores and costs."""
    n_models, n_items, runs = (4, 15, 2) if quick else (MODELS, ITEMS, seeds or SEEDS)
    rows, proofs = [], []
    ratios: dict[str, list[Average]] = {way: [] for way in WAYS[:2]}
    early: list[Average] = []
    proved: list[Average] = []
    identical = True
    for name in PRICES:
        found = _played(name, n_models, n_items, runs)
        until = {way: np.log([outcome.until for outcome in of]) for way, of in found.items()}
        proof = {way: np.array([outcome.proved for outcome in of])[None] for way, of in found.items()}
        against = {way: _ratio(until[way] - until["race by costs"]) for way in WAYS[:2]}
        sooner = Average.ratio(proof["race by counts"], proof["race by costs"])
        if name == "all equal":
            identical = _same(found["race by counts"], found["race by costs"])
        elif name != "per item, two decades":
            for way in ratios:
                ratios[way].append(against[way])
            proved.append(sooner)
        for way, of in found.items():
            if way == "paired-eprocess":
                continue
            right = np.mean([outcome.right for outcome in of], axis=0)
            ratio = against.get(way)
            rows.append(
                (
                    name,
                    way,
                    *(f"{right[int(np.searchsorted(LOOKS, share))]:.2f}" for share in SHOWN),
                    f"{_share_until(right, 0.5)} / {_share_until(right, 0.8)} / {_share_until(right, 0.95)}",
                    f"{100.0 * np.exp(until[way].mean()):.1f}%",
                    "" if ratio is None else f"{ratio.mean:.2f} ± {ratio.stderr:.2f}",
                )
            )
        early.append(_ratio(until["race by counts"] - until["race by costs"]))
        proofs.append(
            (
                name,
                *(f"{100.0 * proof[way].mean():.1f}%" for way in (*WAYS[1:], "paired-eprocess")),
                f"{sooner.mean:.2f} ± {sooner.stderr:.2f}",
            )
        )
    plain, counts = ratios["every model alike"], ratios["race by counts"]
    return Found(
        f"{n_models} models, {n_items} items, pass or fail, {runs} races each. Money is a share of what "
        f"the whole "
        "grid costs. Every model alike: the same items for all, as plain evaluation has it. By counts is "
        "race "
        "stopped by the money; by costs the same after weigh_costs(). Right at a budget: the share of "
        "races that "
        "name the best then. Money until right: the share of the grid at which half, four fifths and 95% "
        "of the "
        "races are right for the first time; and the geometric mean over races of the money after which "
        "a race "
        "names the best to the end. The ratio is of the latter to that by costs: above 1, by costs is "
        "better.",
        (
            "costs",
            "",
            *(f"right at {share:.0%}" for share in SHOWN),
            "50% / 80% / 95% right",
            "right to the end",
            "ratio to by costs",
        ),
        tuple(rows),
        (
            _reached("money until right, 1.5 times less than every model alike", plain),
            _reached("money until right, 1.5 times less than race by counts", counts),
            _reached("money until proved, 1.5 times less than race by counts", proved),
            Target(
                "never worse when costs are equal: the same readings",
                "every outcome the same" if identical else "outcomes differ",
                identical,
            ),
            Target(
                "nowhere worse than by counts, two standard errors aside",
                f"least {min(r.mean for r in early):.2f}",
                all(ratio.mean + 2.0 * ratio.stderr >= 1.0 for ratio in early),
            ),
        ),
        tables=(
            Table(
                "Until the best is proved",
                ("costs", "race by counts", "race by costs", "paired-eprocess", "by counts / by costs"),
                tuple(proofs),
                (
                    "Mean share of the grid's cost at which the race was over. A proof compares models "
                    "on items "
                    "that all contenders have read, whatever these cost: how many a model must read "
                    "follows from "
                    "how near it is to the best. There is nothing to divide.",
                ),
            ),
        ),
    )


def _played(name: str, n_models: int, n_items: int, runs: int) -> Mapping[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {way: [] for way in (*WAYS, "paired-eprocess")}
    design = Design(items=tuple(map(str, range(n_items))), models=tuple(map(str, range(n_models))))
    for seed in range(runs):
        scores, cost = _world(name, n_models, n_items, seed)
        for way, of in found.items():
            sampler: RacingSampler
            if way == "paired-eprocess":
                sampler = PairedEProcess(design, seed=seed)
            else:
                sampler = (UniformRacing if way == "every model alike" else Race)(design, seed=seed)
            if way == "race by costs":
                sampler.weigh_costs()
            of.append(_race(sampler, scores, cost))
    return found


def _world(name: str, n_models: int, n_items: int, seed: int) -> tuple[Floats, Floats]:
    """Scores and costs, shape (models, items)."""
    rng = np.random.default_rng([seed, 31])
    skill, easy = rng.normal(0.0, 0.6, n_models), rng.normal(0.0, 1.2, n_items)
    chance = 1.0 / (1.0 + np.exp(-(skill[:, None] + easy)))
    scores = (rng.random((n_models, n_items)) < chance).astype(float)
    z = rng.standard_normal(n_models)
    if "good models" in name:
        along = (skill - skill.mean()) / skill.std() * (1.0 if "dear" in name else -1.0)
        z = 0.8 * along + 0.6 * z
    of_item = np.exp(TWO_DECADES * rng.standard_normal(n_items))
    noise = np.exp(rng.standard_normal((n_models, n_items)))
    cost = np.full((n_models, n_items), 0.7)
    if "model" in name:
        cost = cost * np.exp(TWO_DECADES * z)[:, None]
    if "per item" in name:
        cost = cost * of_item
    if "noise" in name:
        cost = cost * noise
    if "failures" in name:
        cost = cost * np.exp(-2.0 * scores)
    return scores, cost


def _race(sampler: RacingSampler, scores: Floats, cost: Floats) -> Outcome:
    truth, total = scores.mean(axis=1), float(cost.sum())
    right: list[float] = []
    spent = 0.0

    def look() -> None:
        right.append(float(truth[sampler.leader()] >= truth.max()))

    def learn(cells: Cells, start: int, end: int) -> None:
        part = Cells(cells.model[start:end], cells.item[start:end])
        sampler.learn(part, scores[part.model, part.item], cost[part.model, part.item])

    while (cells := sampler.next_cells()) is not None:
        paid = spent + np.cumsum(cost[cells.model, cells.item])
        start = 0
        while len(right) < LOOKS.size and paid[-1] > LOOKS[len(right)] * total * (1.0 + 1e-9):
            end = int(np.searchsorted(paid, LOOKS[len(right)] * total, side="right"))
            if end > start:
                learn(cells, start, end)
                start = end
            look()
        learn(cells, start, len(cells))
        spent = float(paid[-1])
    while len(right) < LOOKS.size:
        look()
    wrong = np.flatnonzero(np.array(right) == 0.0)
    at = int(wrong[-1]) + 1 if wrong.size else 0
    return Outcome(np.array(right), float(LOOKS[min(at, LOOKS.size - 1)]), spent / total)


def _ratio(logs: Floats) -> Average:
    """Geometric mean of ratios whose logarithms these are."""
    average = Average.of(logs[None])
    return Average(float(np.exp(average.mean)), float(np.exp(average.mean) * average.stderr))


def _share_until(right: Floats, wanted: float) -> str:
    reached = np.flatnonzero(right >= wanted)
    return f"{100.0 * LOOKS[reached[0]]:.1f}%" if reached.size else "-"


def _same(these: list[Outcome], those: list[Outcome]) -> bool:
    pairs = zip(these, those, strict=True)
    return all((a.right == b.right).all() and a.proved == b.proved for a, b in pairs)


def _reached(text: str, ratios: list[Average]) -> Target:
    least, most = min(r.mean for r in ratios), max(r.mean for r in ratios)
    return Target(f"{text}, in every row where models differ", f"{least:.2f} to {most:.2f}", least >= WANTED)
