"""The records of processes that share a budget: each keeps one of its own."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalbudget.errors import HeldError
from evalbudget_lm_eval.run.record import END, RUN, Record, look


def record_of_own(first: Path | None, run: Mapping[str, Any], *, named: bool) -> Record:
    """The record of this process: one that a killed process left, or another one.

    Args:
        first: where the first process keeps its own, ``...-1.db``; None to keep none.
        run: what must be the same for a record to be continued.
        named: the user named this very file.

    Raises:
        HeldError: the file that was named is another process's.
        JournalError: a record cannot be read or written, or is of another run.
    """
    if first is None or named:
        return Record.open(first, RUN, run)
    for path in _candidates(first):
        try:
            return Record.open(path, RUN, run)
        except HeldError:
            continue
    raise AssertionError("there is always another number")


def _candidates(first: Path) -> Iterator[Path]:
    """Records that were broken off, those that are finished, then new ones."""
    numbered = (first.with_name(re.sub(r"-1$", f"-{n}", first.stem) + END) for n in itertools.count(1))
    there: list[Path] = []
    for path in numbered:
        if not path.exists():
            yield from sorted(there, key=lambda each: look(each)[0].finished)
            yield path
            yield from numbered
            return
        there.append(path)
