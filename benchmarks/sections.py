"""The command line of benchmarks made of sections, and the page that shows what they printed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from judges_sections.found import Found, Target
from places import Places


@dataclass(frozen=True)
class Page:
    """A benchmark.

    Attributes:
        script: that measures it, without the ending.
        name: of its page in docs/benchmarks/ and of its data in benchmarks/results/.
        title: of the page.
        sections: functions of ``quick`` and, if they take it, ``seeds``.
        strict: whether the command ends with exit code 1 if a target is missed.
    """

    script: str
    name: str
    title: str
    sections: Mapping[str, Callable[..., Found]]
    strict: bool = False


def command(page: Page) -> click.Command:
    """``python benchmarks/SCRIPT.py [SECTIONS] [--quick] [--write-docs]``."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("sections", nargs=-1, type=click.Choice([*page.sections, "all"]))
    @click.option("--quick", is_flag=True, help="Tiny sizes: shows that everything runs, measures nothing.")
    @click.option("--seeds", type=click.IntRange(min=2), help="Replications; each section's own otherwise.")
    @click.option(
        "--write-docs",
        "write",
        is_flag=True,
        help=f"Update these sections of docs/benchmarks/{page.name}.md.",
    )
    @click.option(
        "--docs",
        type=click.Path(path_type=Path, file_okay=False),
        help="Write the page to this folder, and its data to the folder's results.",
    )
    def main(
        sections: tuple[str, ...], quick: bool, seeds: int | None, write: bool, docs: Path | None
    ) -> None:
        """Run SECTIONS (default: all) and print their tables."""
        chosen = list(page.sections) if not sections or "all" in sections else list(dict.fromkeys(sections))
        out = Console(width=None if Console().is_terminal else 130)
        missed = False
        for name in chosen:
            run, options = page.sections[name], ""
            if seeds is None or "seeds" not in inspect.signature(run).parameters:
                found = run(quick)
            else:
                found, options = run(quick, seeds), f" --seeds {seeds}"
            _print(out, name, found)
            missed = missed or not all(target.reached for target in found.targets)
            if write:
                options += " --quick" if quick else ""
                _keep(
                    page, Places.of(docs), name, f"python benchmarks/{page.script}.py {name}{options}", found
                )
        if page.strict and missed:
            raise SystemExit(1)

    return main


def _print(out: Console, name: str, found: Found) -> None:
    out.print(found.lead, markup=False)
    _print_table(out, name, found.columns, found.rows, found.notes)
    for table in found.tables:
        out.print()
        _print_table(out, table.title, table.columns, table.rows, table.notes)
    for line in map(_told, found.targets):
        out.print(line, markup=False)
    out.print()


def _print_table(
    out: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> None:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    out.print(table)
    for note in notes:
        out.print(note, markup=False)


def _told(target: Target) -> str:
    missed = "within noise" if target.within_noise else "not reached"
    return f"{target.text}: {'reached' if target.reached else missed} ({target.measured})"


def _keep(page: Page, places: Places, name: str, told: str, found: Found) -> None:
    """Keep the figures of one section as JSON, and write the page anew."""
    places.make()
    file = places.results / f"{page.name}.json"
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    kept[name] = {"command": told, **asdict(found)}
    kept = {section: kept[section] for section in page.sections if section in kept}
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False, default=bool) + "\n", encoding="utf-8")
    write_page(page, places)


def write_page(page: Page, places: Places) -> None:
    """Render the page from its data, without running anything."""
    kept = json.loads((places.results / f"{page.name}.json").read_text(encoding="utf-8"))
    (places.pages / f"{page.name}.md").write_text(render(page, kept), encoding="utf-8")


def render(page: Page, kept: Mapping[str, Any]) -> str:
    """The page, as Markdown.

    Args:
        page: the benchmark.
        kept: its sections as they stand in the data.
    """
    parts = [
        f"# {page.title}\n",
        "Rendered by the commands below; every figure is one they printed. Nothing here is edited by hand.\n",
    ]
    for section, entry in kept.items():
        parts.append(f"## {section}\n\n`{entry['command']} --write-docs`\n\n{entry['lead']}\n")
        parts.extend(_rendered(entry))
        for table in entry.get("tables", ()):
            parts.extend((f"### {table['title']}\n", *_rendered(table)))
        parts.append("\n".join(f"- {_told(Target(**target))}" for target in entry["targets"]) + "\n")
    return "\n".join(parts)


def _rendered(table: Mapping[str, Any]) -> list[str]:
    """A table as Markdown, and its notes."""
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    shown = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"
    return [shown, *(f"{note}\n" for note in table["notes"])]


def _cell(text: str) -> str:
    """Text of a cell: a bar in it would begin the next one."""
    return text.replace("|", "\\|")
