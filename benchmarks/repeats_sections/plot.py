"""Worst-item error against budget, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from repeats_sections.section import Section
from repeats_sections.table2 import PAPER

COLOURS = {
    "uniform": "#888888",
    "robin": "#222222",
    "robin-hood": "#d98c00",
    "eb-bernstein": "#0b6bb5",
    "auto": "#b5176b",
}


def write_plot(path: Path, sections: Mapping[str, Section]) -> None:
    """Draw what is there; without matplotlib or curves leave the file alone."""
    shown = [name for name in ("judges", "table2") if name in sections and sections[name].curves]
    if not shown:
        return
    try:
        import matplotlib as mpl
    except ImportError:
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(shown), figsize=(5.2 * len(shown), 4.0), squeeze=False)
    for axis, name in zip(axes[0], shown, strict=True):
        for sampler, curve in sections[name].curves.items():
            budgets, values, errors = zip(*curve, strict=True)
            style = {"linestyle": "--"} if sampler in ("robin", "uniform") else {}
            label = "robin (knows the variances)" if sampler == "robin" else sampler
            axis.errorbar(
                budgets, values, errors, label=label, color=COLOURS.get(sampler), marker="o", ms=3, **style
            )
        axis.set_xscale("log")
        ticks = sorted({point[0] for curve in sections[name].curves.values() for point in curve})
        if name == "judges":
            axis.set(xlabel="readings per item", ylabel="worst-item error / uniform", title="five LLM judges")
            labels = [f"{tick:.0f}" for tick in ticks]
            axis.set_ylim(bottom=0)
        else:
            axis.set(xlabel="readings", ylabel="worst-item error", title="0-4 pool fitted to Table 2")
            labels = [f"{tick / 1000:.0f}k" for tick in ticks]
            for (sampler, budget), value in PAPER.items():
                axis.plot(float(budget), value, marker="x", ms=8, color=COLOURS[sampler], linestyle="none")
            axis.set_yscale("log")
            axis.set_yticks([0.2, 0.3, 0.5, 0.8, 1.2], ["0.2", "0.3", "0.5", "0.8", "1.2"])
            axis.plot([], [], marker="x", ms=8, color="black", linestyle="none", label="as published")
        axis.set_xticks(ticks, labels)
        axis.minorticks_off()
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)
