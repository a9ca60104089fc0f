"""Shows what a judge prefers, and writes it to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from evalbudget.cli._output import write_text
from evalbudget.tables import obeying_nothing

if TYPE_CHECKING:
    from evalbudget.pairwise import PairwisePurchase, PairwiseReading


def lines(reading: PairwiseReading) -> list[Text]:
    """What is proved, and what to know before reading the tables; names come from anywhere."""
    return [_line(text) for text in (reading.sentence, *reading.notes)]


def _line(text: str) -> Text:
    return Text(obeying_nothing(text))


def show_pairwise(
    bought: PairwisePurchase, *, json_path: str | None = None, save_path: str | None = None
) -> int:
    """Print the reading and write the files that are asked for.

    Returns:
        The exit code: 0 with verdicts to read, 4 without one.
    """
    from evalbudget.pairwise import as_text

    reading = bought.reading
    text = json.dumps(bought.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
    if "-" not in (json_path, save_path):
        parts = [] if reading is None else [*lines(reading), reading.table()]
        for part in (*parts, *map(_line, bought.lines())):
            Console().print(part)
    if json_path is not None:
        write_text(Path(json_path), text + "\n")
    if save_path is not None:
        write_text(Path(save_path), as_text(bought.rows, Path(save_path).suffix), "--save")
    return bought.exit_code
