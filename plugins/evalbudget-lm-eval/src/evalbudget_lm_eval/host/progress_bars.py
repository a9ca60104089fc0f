"""The host's progress bars, without those of small rounds: a run in rounds would draw hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm.std import tqdm  # type: ignore[import-untyped]

from evalbudget_lm_eval.host.patched import WhileAnyone

WORTH_A_BAR = 100
"""Documents of a round that takes long enough to be watched."""

_hidden: ContextVar[bool] = ContextVar("hidden", default=False)
"""Whether this thread draws no bar: another one may load a model, and show that."""


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
    before = _hidden.set(True)
    try:
        with _heeded:
            yield
    finally:
        _hidden.reset(before)


@contextmanager
def _without_bars() -> Iterator[None]:
    kept, stock = vars(tqdm)["__init__"], tqdm.__init__  # kept is a descriptor, which makes stock

    def without(self: Any, *args: Any, **options: Any) -> None:
        stock(self, *args, **({**options, "disable": True} if _hidden.get() else options))

    tqdm.__init__ = without
    try:
        yield
    finally:
        tqdm.__init__ = kept


_heeded = WhileAnyone(_without_bars)
