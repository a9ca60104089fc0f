"""How a gate goes while it runs: a live line on a terminal, a line per twentieth of the items elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from evalbudget.comparisons._gate_sampler import GateSampler
from evalbudget.races import RacePurchase
from evalbudget.shown import shown

_LINES = 20
_PAUSE = 0.25  # seconds between two looks on a terminal


class GateProgress:
    """Told the state of a gate after each reading or round.

    Args:
        console: to write to.
        clock: seconds that go on.

    Attributes:
        so_far: how far the gate has come, for a message when it is broken off.
    """

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None
        self._next = float("-inf")
        self._mark = 0
        self.so_far = ""

    def begins(self, race: RacePurchase) -> None:
        """Say what is about to be spent at most."""
        baseline, candidate = race.design.models[:2]
        most = f", for {race.budget} at most" if race.config.budget is not None else ""
        each = ""
        if race.repeats > 1:
            each = f" with {race.repeats} answers each"
            each += ": one could not decide" if getattr(race.config, "repeats", None) is None else ""
        self._line(
            f"gate: {candidate} against {baseline}, on up to {race.design.n_items // race.repeats:,} "
            f"items{each}{most}, until it is decided"
        )

    def __call__(self, race: RacePurchase) -> None:
        """Show what changed, if it is time."""
        self.so_far = f" after {race.evaluations:,} evaluations"
        if self._console.is_terminal:
            if self._clock() >= self._next:
                self._next = self._clock() + _PAUSE
                if self._live is None:
                    self._live = Live(console=self._console, auto_refresh=False, transient=True)
                    self._live.start()
                self._live.update(Text(_state(race)), refresh=True)
            return
        mark = race.evaluations * _LINES // race.design.n_items
        if mark > self._mark:
            self._mark = mark
            self._line(_state(race))

    def close(self) -> None:
        """Take the live line away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, text: str) -> None:
        self._console.print(shown(text), emoji=False, highlight=False, markup=False, soft_wrap=True)


def _state(race: RacePurchase) -> str:
    """Items so far, and what they say."""
    assert isinstance(race.sampler, GateSampler)
    found = race.sampler.evidence(1)
    each = race.repeats
    told = f"gate: {-(-found.items // each):,} of {race.design.n_items // each:,} items"
    if not found.items:
        return told
    low, high = found.interval
    verdict = f"; {found.verdict}" if found.verdict else ""
    return f"{told}; difference {found.difference:+.3f} ({low:+.3f} to {high:+.3f}){verdict}"
