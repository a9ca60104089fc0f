"""Worst-item error against budget, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from repeats_sections.section import Section

COLOURS = {
    "uniform": "#888888",
    "robin": "#222222",
    "robin-hood": "#d98c00",
    "eb-bernstein": "#0b6bb5",
    "auto": "#b5176b",
}


def write_plot(path: Path, sections: Mapping[str, Section]) -> None:
    """Draw the section ``judges``; without matplotlib or curves leave the file alone."""
    if "judges" not in sections or not sections["judges"].curves:
        return
    try:
        import matplotlib as mpl
    except ImportError:
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    curves = sections["judges"].curves
    figure, axis = plt.subplots(figsize=(5.2, 4.0))
    for sampler, curve in curves.items():
        budgets, values, errors = zip(*curve, strict=True)
        label = "robin (knows the variances)" if sampler == "robin" else sampler
        axis.errorbar(
            budgets,
            values,
            errors,
            label=label,
            color=COLOURS.get(sampler),
            marker="o",
            ms=3,
            linestyle="--" if sampler in ("robin", "uniform") else "-",
        )
    axis.set_xscale("log")
    ticks = sorted({point[0] for curve in curves.values() for point in curve})
    axis.set(xlabel="readings per item", ylabel="worst-item error / uniform", title="five LLM judges")
    axis.set_ylim(bottom=0)
    axis.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
    axis.minorticks_off()
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)
