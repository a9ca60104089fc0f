"""Repeats x rotation: the default sampler, with the judges taken out of scores or not, at equal calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget import Design
from evalbudget.backtest import RecordedScores
from evalbudget.judges.schedules import Cyclic, JudgeSchedule, Random
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.replay._contestant import contestants
from evalbudget.statistics._judge_effects import judge_effects
from judges_sections.found import Floats, Found, Target
from places import data_file

PER_ITEM = (20, 50)
SPREAD = (-2.0, -1.0, 0.0, 1.0, 2.0)


@dataclass(frozen=True)
class Way:
    """A way to spend the calls.

    Attributes:
        sampler: registered name.
        schedule: who scores what.
        informed: whether the sampler takes the judges out before it looks at variances.
        corrected: whether the item estimates do.
    """

    sampler: str
    schedule: type[JudgeSchedule]
    informed: bool
    corrected: bool

    def __str__(self) -> str:
        judges = {Random: "random judges", Cyclic: "judges in turn"}[self.schedule]
        seen = ", judges taken out" if self.informed else ", raw variances"
        return f"{self.sampler}, {judges}" + ("" if self.sampler == "uniform" else seen)


UNIFORM = Way("uniform", Random, informed=False, corrected=False)
WAYS = (
    UNIFORM,
    Way("uniform", Cyclic, informed=False, corrected=True),
    Way("auto", Cyclic, informed=False, corrected=True),
    Way("auto", Cyclic, informed=True, corrected=True),
)


def repeats(quick: bool) -> Found:
    recorded = RecordedScores.load(data_file("judge_repeats")).scores[0].astype(np.float64)
    whole = recorded[~np.isnan(recorded).any(axis=(1, 2))]
    size, seeds = (30, 1) if quick else (1000, 8)
    pool = whole[np.random.default_rng(0).choice(len(whole), size, replace=False)]
    rows, ratio = [], {}
    for label, shift in (("as recorded", 0.0), ("judges moved apart by -2 .. 2", 1.0)):
        scores = pool + shift * np.array(SPREAD)[:, None]
        for per_item in PER_ITEM[:1] if quick else PER_ITEM:
            found = {way: [worst(way, scores, per_item, seed) for seed in range(seeds)] for way in WAYS}
            base = np.mean(found[UNIFORM])
            for way, errors in found.items():
                ratio[label, per_item, way] = float(np.mean(errors) / base)
                noise = np.std(errors, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
                cells = (f"{np.mean(errors):.3f} ±{noise:.3f}", f"{ratio[label, per_item, way]:.3f}")
                rows.append((label, f"{per_item}x", str(way), *cells))
    last = PER_ITEM[0] if quick else PER_ITEM[-1]
    raw, informed = (ratio["judges moved apart by -2 .. 2", last, way] for way in WAYS[2:4])
    return Found(
        f"Worst-item error of {size} items of judge_repeats, 5 judges, {seeds} seeds; truth is each item's "
        "mean over the panel.",
        ("panel", "calls per item", "way", "worst-item error", "/ uniform, random judges"),
        tuple(rows),
        (
            Target(
                f"at {last}x, judges that differ: variances without the judges beat raw ones",
                f"{informed:.3f} against {raw:.3f} of uniform",
                informed < raw,
            ),
        ),
        (
            "Turns alone halve the error: an item that met every judge equally often has no error from the "
            "judges left. On judges as alike as the recorded ones taking them out changes little.",
        ),
    )


def worst(way: Way, scores: Floats, per_item: int, seed: int) -> float:
    """Largest error of an item's estimate; scores of shape (items, judges, recorded repeats)."""
    n, K, recorded = scores.shape
    items, judges = tuple(map(str, range(n))), tuple(map(str, range(K)))
    schedule = way.schedule(items, judges, epochs=per_item, seed=seed)
    (entrant,) = contestants([way.sampler], {})
    design = Design(items=items, raters=judges if way.informed else ("panel",))
    sampler = entrant.construct(design, seed=seed, known={"budget": per_item * n})
    assert isinstance(sampler, RepeatSampler)

    def judge_of(item: int, epoch: int) -> int:
        return schedule.judges_for(item, epoch)[0]

    if way.informed:
        sampler.rotate(judge_of, rotation=schedule.name)
    rng = np.random.default_rng([seed, 1])
    draws: list[list[int]] = [[] for _ in range(n)]
    item, judge, value = [], [], []
    book = ArrayBook(sampler)
    while book.n < per_item * n and (asked := book.ask(per_item * n - book.n)) is not None:
        own = []
        for i, epoch in zip(asked.item.tolist(), asked.epoch.tolist(), strict=True):
            while epoch >= len(draws[i]):
                draws[i].extend(rng.integers(recorded, size=64).tolist())
            own.append((i, judge_of(i, epoch), draws[i][epoch]))
        i_, j_, which = map(np.array, zip(*own, strict=True))
        item.append(i_)
        judge.append(j_)
        value.append(scores[i_, j_, which])
        book.tell(value[-1])
    at, by, x = (np.concatenate(column) for column in (item, judge, value))
    if way.corrected:
        x = x - judge_effects(at, by, x, K)[by]
    estimate = np.bincount(at, x, n) / np.bincount(at, minlength=n)
    return float(np.abs(estimate - scores.mean(axis=(1, 2))).max())
