"""Shows what a judge prefers, and writes it to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from evalbudget.cli._output import publish, write_text
from evalbudget.shown import shown

if TYPE_CHECKING:
    from evalbudget.pairwise import PairwisePurchase, PairwiseReading


def lines(reading: PairwiseReading) -> list[Text]:
    """What is proved, and what to know before reading the tables; names come from anywhere."""
    return [Text(shown(text)) for text in (reading.sentence, *reading.notes)]


def show_pairwise(
    bought: PairwisePurchase, *, json_path: str | None = None, save_path: str | None = None
) -> int:
    """Print the reading and write the files that are asked for.

    Returns:
        The exit code: 0 with verdicts to read, 4 without one.
    """
    from evalbudget.pairwise import as_text

    reading = bought.reading
    parts: list[RenderableType] = [] if reading is None else [*lines(reading), reading.table()]
    parts += [Text(shown(line)) for line in bought.lines()]
    publish(bought.to_json(), json_path, *(() if save_path == "-" else parts))
    if save_path is not None:
        write_text(Path(save_path), as_text(bought.rows, Path(save_path).suffix), "--save")
    return bought.exit_code
