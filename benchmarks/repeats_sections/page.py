"""The page docs/benchmarks/repeats.md, rendered from its data: nothing on it is written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from places import Places
from repeats_sections.plot import write_plot
from repeats_sections.section import Section, Table

ORDER = ("gains", "judges", "bias", "sequences", "coverage", "sample", "speed")
JSON, PAGE, PLOT = "repeats.json", "repeats.md", "repeats.png"

_HEAD = """\
# Repeats: what the samplers reach, and what the intervals hold

Rendered from `benchmarks/results/{json}` by the commands below; every figure is one that they printed.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A section with what made it."""

    version: str
    command: str
    section: Section


def read_entries(places: Places) -> dict[str, Entry]:
    """The sections written so far, by name."""
    path = places.results / JSON
    if not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Entry(entry["version"], entry["command"], Section.from_json(entry["section"]))
        for name, entry in found.items()
    }


def write_docs(places: Places, entries: Mapping[str, Entry]) -> None:
    """Write the figures, the plot (if matplotlib is installed) and the page."""
    places.make()
    ordered = {name: entries[name] for name in ORDER if name in entries}
    text = json.dumps({name: asdict(entry) for name, entry in ordered.items()}, indent=1)
    (places.results / JSON).write_text(text + "\n", encoding="utf-8")
    write_plot(places.pages / PLOT, {name: entry.section for name, entry in ordered.items()})
    write_page(places)


def write_page(places: Places) -> None:
    """Render the page from its data and the plot that is there, without running anything."""
    page = render(read_entries(places), plotted=(places.pages / PLOT).is_file())
    (places.pages / PAGE).write_text(page, encoding="utf-8")


def render(entries: Mapping[str, Entry], *, plotted: bool) -> str:
    """The page, as Markdown."""
    parts = [_HEAD.format(json=JSON)]
    if plotted:
        parts.append(f"![Worst-item error against budget]({PLOT})\n")
    for entry in entries.values():
        section = entry.section
        parts.append(f"## {section.title}\n")
        parts.append(f"```bash\n{entry.command}\n```\n")
        parts.append(f"evalbudget {entry.version}. {section.lead}\n")
        parts.extend(_markdown(table) for table in section.tables)
        if section.targets:
            rows = tuple((t.text, t.measured, t.verdict) for t in section.targets)
            parts.append(_markdown(Table("Targets", ("target", "measured", ""), rows)))
    return "\n".join(parts)


def _markdown(table: Table) -> str:
    rule = [":---", *["---:"] * (len(table.columns) - 1)]
    lines = [f"**{table.title}**", ""]
    lines.extend("| " + " | ".join(row) + " |" for row in (table.columns, tuple(rule), *table.rows))
    if table.note:
        lines.extend(["", table.note])
    return "\n".join(lines) + "\n"
