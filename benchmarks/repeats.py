"""Measures the repeats samplers and what is reported from them; renders docs/benchmarks/repeats.md.

Usage::

    python benchmarks/repeats.py judges bias --write-docs
    python benchmarks/repeats.py all --quick
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table as RichTable

from evalbudget import __version__
from places import Places
from repeats_sections.page import Entry, read_entries, write_docs
from repeats_sections.replays import RECOMMENDED, REFERENCES
from repeats_sections.section import Progress, Section, Setting

SECTIONS = ("gains", "judges", "bias", "sequences", "coverage", "sample", "speed")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("sections", nargs=-1, type=click.Choice([*SECTIONS, "all"]))
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Replications; by default each section has its own number."
)
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that everything runs, measures nothing.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes for replays; they change the time, not the figures.",
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice([*REFERENCES[1:], *RECOMMENDED]),
    help="Leave this sampler out; may be repeated.",
)
@click.option(
    "--replays",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps the replays of judges; delete a sampler's after changing it.",
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write all figures here.")
@click.option(
    "--write-docs",
    "write_docs_",
    is_flag=True,
    help="Update these sections of benchmarks/results/repeats.json, and render docs/benchmarks/repeats.md.",
)
@click.option(
    "--docs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the page to this folder, and its data to the folder's results.",
)
def main(
    sections: tuple[str, ...],
    seeds: int | None,
    quick: bool,
    workers: int,
    without: tuple[str, ...],
    replays: Path | None,
    json_path: Path | None,
    write_docs_: bool,
    docs: Path | None,
) -> None:
    """Run SECTIONS (default: all) and print their tables."""
    chosen = SECTIONS if not sections or "all" in sections else tuple(dict.fromkeys(sections))
    out = Console(width=None if Console().is_terminal else 110, soft_wrap=False)
    entries: dict[str, Entry] = {}
    places = Places.of(docs)
    with _bars() as progress:
        for name in chosen:
            section = _runner(name)(Setting(seeds, quick, workers, without, replays, progress))
            entries[name] = Entry(__version__, _command(name, seeds, quick, without), section)
            _show(out, section)
            if write_docs_:
                write_docs(places, {**read_entries(places), name: entries[name]})
    if json_path is not None:
        text = json.dumps({name: asdict(entry) for name, entry in entries.items()}, indent=1)
        json_path.write_text(text + "\n", encoding="utf-8")


def _runner(name: str) -> Callable[[Setting], Section]:
    run: Callable[[Setting], Section] = import_module(f"repeats_sections.{name.replace('-', '_')}").run
    return run


def _command(name: str, seeds: int | None, quick: bool, without: tuple[str, ...]) -> str:
    parts = ["python benchmarks/repeats.py", name]
    if seeds is not None:
        parts.append(f"--seeds {seeds}")
    if quick:
        parts.append("--quick")
    parts.extend(f"--without {sampler}" for sampler in without)
    return " ".join([*parts, "--write-docs"])


@contextmanager
def _bars() -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        tasks = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield progress


def _show(out: Console, section: Section) -> None:
    out.rule(section.title, align="left")
    out.print(section.lead, markup=False)
    for table in section.tables:
        rich = RichTable(title=table.title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for i, column in enumerate(table.columns):
            rich.add_column(column, justify="left" if i == 0 else "right")
        for row in table.rows:
            rich.add_row(*row)
        out.print()
        out.print(rich)
        if table.note:
            out.print(table.note, markup=False)
    out.print()
    for target in section.targets:
        out.print(str(target), markup=False)


if __name__ == "__main__":
    main()
