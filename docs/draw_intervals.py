"""Draws the pictures of docs/intervals.md, from seeded simulations with the package's own estimators.

Prints the figures that the page quotes. The colours stand out on white and on black; lines differ in width or
dashes too, for readers who see no colour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.repeats.estimates import (
    ItemReadings,
    betting,
    eb_wilson,
    mean_over_fixed_items,
    mean_over_sampled_items,
)
from evalbudget.sampler import Allocation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = Path(__file__).with_name("pictures")
THIN, THICK, WORDS = "#3b82f6", "#d97706", "#808080"
BOUNDS = (0.0, 10.0)


@dataclass(frozen=True)
class Picture:
    """What is drawn, and what the page may say of it."""

    told: str
    draw: Callable[[Axes], None]
    height: float


def _rated(means: NDArray[np.float64], repeats: int, rng: np.random.Generator) -> ItemReadings:
    """Whole scores from 0 to 10, `repeats` of each item, around its mean; means of shape (n_items,)."""
    scores = rng.binomial(10, np.repeat(means[:, None] / 10, repeats, axis=1)).astype(float)
    return _readings(scores)


def _readings(scores: NDArray[np.float64]) -> ItemReadings:
    items, epochs = np.indices(scores.shape)
    return ItemReadings.of(items.ravel(), epochs.ravel(), scores.ravel())


def two_targets(runs: int = 20, items: int = 40, repeats: int = 4) -> Picture:
    """Runs on items of their own: the mean of all items like these, and that of the run's own items."""
    rng = np.random.default_rng(1)
    centre, rows = 6.0, []
    for _ in range(runs):
        means = BOUNDS[1] * rng.beta(3.0, 2.0, items)  # whose mean is 6
        readings = _rated(means, repeats, rng)
        like = mean_over_sampled_items(readings, allocation=Allocation.FIXED).confidence_interval(0.95)
        these = mean_over_fixed_items(readings, allocation=Allocation.FIXED).confidence_interval(0.95)
        rows.append((like.low, like.high, these.low, these.high, float(means.mean())))
    low, high, own_low, own_high, own = np.array(rows).T
    held = int(np.sum((low <= centre) & (centre <= high)))
    held_own = int(np.sum((own_low <= own) & (own <= own_high)))

    def draw(axes: Axes) -> None:
        rank = np.arange(runs)
        axes.hlines(rank, low, high, colors=THIN, linewidth=1.6, label="items like these: lower, upper")
        axes.hlines(rank, own_low, own_high, colors=THICK, linewidth=5, label="these items again: repeats_*")
        axes.plot(own, rank, "|", color=WORDS, markersize=9, markeredgewidth=2, label="mean of its items")
        axes.axvline(centre, color=WORDS, linestyle="--", label="mean of all items like these")
        axes.set_yticks([])
        axes.set_ylabel(f"{runs} runs")
        axes.set_xlabel("benchmark mean")

    told = f"{held} of {runs} thin lines hold the dashed line, {held_own} of {runs} thick ones their own mark"
    return Picture(told, draw, 4.6)


def looking(items: int = 200, step: int = 5, most: int = 200) -> Picture:
    """Share of items whose interval was wrong at one look at least, by how long one has been looking."""
    rng = np.random.default_rng(2)
    chances = rng.uniform(0.2, 0.8, items)
    scores = rng.binomial(1, np.repeat(chances[:, None], most, axis=1)).astype(float)
    looks = np.arange(step, most + 1, step)
    once, always = [], []
    wrong, wrong_always = np.zeros(items, bool), np.zeros(items, bool)
    # these intervals only ever become narrower: who is inside the last one was inside all of them
    left = ~betting(_readings(scores), bounds=(0, 1)).confidence_intervals(0.95).contains(chances)
    for look in looks:
        readings = _readings(scores[:, :look])
        wrong |= ~eb_wilson(readings, bounds=(0, 1)).confidence_intervals(0.95).contains(chances)
        narrowing = betting(_readings(scores[left, :look]), bounds=(0, 1)).confidence_intervals(0.95)
        wrong_always[left] |= ~narrowing.contains(chances[left])
        once.append(wrong.mean())
        always.append(wrong_always.mean())

    def draw(axes: Axes) -> None:
        axes.plot(looks, once, color=THICK, linewidth=3, label="lower, upper: made for the end")
        axes.plot(looks, always, color=THIN, linewidth=1.6, label="anytime_lower, anytime_upper")
        axes.axhline(0.05, color=WORDS, linestyle="--", label="5%")
        axes.set_ylim(0, None)
        axes.set_xlabel(f"scores per item, looked at after every {step}")
        axes.set_ylabel("items that were ever outside")

    told = f"After {most} scores {once[-1]:.0%} of the items had been outside the first interval at some look"
    return Picture(f"{told}, {always[-1]:.1%} outside the second", draw, 3.6)


def on_average(items: int = 40, repeats: int = 12) -> Picture:
    """Items with both intervals that a log has for them."""
    rng = np.random.default_rng(3)
    means = np.sort(BOUNDS[1] * rng.beta(3.0, 2.0, items))
    readings = _rated(means, repeats, rng)
    short = eb_wilson(readings, bounds=BOUNDS).confidence_intervals(0.95)
    long = betting(readings, bounds=BOUNDS).confidence_intervals(0.95)
    missed = ~short.contains(means)
    inside, always = items - int(missed.sum()), int(long.contains(means).sum())

    def draw(axes: Axes) -> None:
        at = np.arange(items)
        axes.vlines(at, long.low, long.high, colors=THIN, linewidth=1.2, label="anytime_lower, anytime_upper")
        axes.vlines(at, short.low, short.high, colors=THICK, linewidth=4, label="lower, upper")
        axes.plot(at, means, "_", color=WORDS, markersize=8, markeredgewidth=2, label="true mean")
        axes.plot(at[missed], means[missed], "x", color=WORDS, markersize=11, label="outside lower, upper")
        axes.set_xticks([])
        axes.set_xlabel(f"{items} items, {repeats} scores each")
        axes.set_ylabel("score of the item")

    told = f"{inside} of {items} true means lie on the thick lines, {always} of {items} on the thin ones"
    return Picture(told, draw, 4.0)


PAINTED: dict[str, Callable[[], Picture]] = {
    "two-targets": two_targets,
    "looking": looking,
    "on-average": on_average,
}
"""By the name of the file."""


def write(name: str, picture: Picture) -> None:
    """The picture as SVG, without a background, its text as text."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Any = {"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 12}
    style |= dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), WORDS
    )
    with mpl.rc_context(style):
        figure = Figure(figsize=(8, picture.height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        picture.draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        PICTURES.mkdir(exist_ok=True)
        figure.savefig(PICTURES / f"{name}.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    for name, make in PAINTED.items():
        picture = make()
        write(name, picture)
        print(f"{name}: {picture.told}.")
