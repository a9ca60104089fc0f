"""The host's progress bars, without those of small rounds: a run in rounds would draw hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.std import tqdm  # type: ignore[import-untyped]

WORTH_A_BAR = 100
"""Documents of a round that takes long enough to be watched."""


@contextmanager
def bars_of_a_round(documents: int, *, hidden: bool = False) -> Iterator[None]:
    """Draw no bar while a small round runs.

    Args:
        documents: of the round.
        hidden: draw none while a large one runs either.
    """
    if documents >= WORTH_A_BAR and not hidden:
        yield
        return
    kept, stock = vars(tqdm)["__init__"], tqdm.__init__  # kept is a descriptor, which makes stock

    def without(self: Any, *args: Any, **options: Any) -> None:
        stock(self, *args, **{**options, "disable": True})

    tqdm.__init__ = without
    try:
        yield
    finally:
        tqdm.__init__ = kept
