"""Measures judge rotation and the estimators behind it; renders docs/judges.md.

Usage::

    python benchmarks/judges.py prices speed
    python benchmarks/judges.py all --write-docs
    python benchmarks/judges.py all --quick
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click
from judges_sections.components import components, interaction
from judges_sections.found import DATA, ROOT, Found, Target
from judges_sections.predictions import predictions
from judges_sections.repeats import repeats
from judges_sections.replays import prices, real
from judges_sections.schedules import period, speed
from rich.console import Console
from rich.table import Table as RichTable

SECTIONS: dict[str, Callable[[bool], Found]] = {
    "components": components,
    "interaction": interaction,
    "predictions": predictions,
    "real": real,
    "prices": prices,
    "repeats": repeats,
    "period": period,
    "speed": speed,
}
_NEEDS_DATA = ("real", "prices", "repeats")


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
