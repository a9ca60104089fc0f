"""What the sources say beside the scores: what was left out, and what they leave unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from evalbudget.recorded._declared import Declared
from evalbudget.recorded._direction import notes_of
from evalbudget.report._numbers import new_table
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable


@dataclass(frozen=True)
class Sources(Section):
    """Notes of the readers, and what the scores are taken for where the sources do not say it.

    Attributes:
        notes: sentences: what was left out, counted once, renamed or not read, and of whom.
        assumed: sentences: what is unknown, and what it is taken for.
    """

    name: ClassVar[str] = "sources"
    title: ClassVar[str] = "What the sources say"

    notes: tuple[str, ...]
    assumed: tuple[str, ...]

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None where nothing was left out and all is known."""
        recorded = study.recorded
        declared = recorded.declared
        told = declared or Declared.of(recorded.models, recorded.items, recorded.raters)
        found = cls(notes_of(recorded), unknown(told, recorded.raters))
        return found if found.notes or found.assumed else None

    def tables(self) -> tuple[NotedTable, ...]:
        """The notes, if there are any; what is merely unknown stands in the JSON and on pages."""
        return (_listed("notes", self.notes),) if self.notes else ()

    def page_tables(self) -> tuple[NotedTable, ...]:
        """All of it."""
        return (*self.tables(), *((_listed("taken for", self.assumed),) if self.assumed else ()))

    def to_dict(self) -> dict[str, Any]:
        """Both lists."""
        return {"notes": list(self.notes), "assumed": list(self.assumed)}


def unknown(declared: Declared, raters: tuple[str, ...]) -> tuple[str, ...]:
    """What a source does not say of its scores, and what that is taken for.

    Args:
        declared: by the source.
        raters: their names.
    """
    found = []
    ways = [rater for rater, lower in zip(raters, declared.lower_is_better, strict=True) if lower is None]
    if ways and not declared.direction_missing:  # else it is among the notes
        found.append(f"Whether higher {_of(ways, raters)} is better is not said: higher is taken for better.")
    ranges = [rater for rater, known in zip(raters, declared.ranges, strict=True) if known is None]
    if ranges:
        found.append(f"The range of {_of(ranges, raters)} is not said: it is taken from the scores.")
    if not all(declared.digests):
        found.append("What was asked is not said of every item: items of one id are taken for the same.")
    if not all(declared.complete):
        found.append("Which items each model was to be asked is not said: a missing score counts as missing.")
    return tuple(found)


def _of(some: list[str], raters: tuple[str, ...]) -> str:
    return "scores" if len(some) == len(raters) else ", ".join(some)


def _listed(title: str, sentences: tuple[str, ...]) -> NotedTable:
    table = new_table(title, "", [])
    table.show_header = False
    table.add_column("note", overflow="fold")
    for sentence in sentences:
        table.add_row(sentence)
    return table
