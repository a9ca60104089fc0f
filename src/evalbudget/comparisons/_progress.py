"""How a gate goes while it runs: a live line on a terminal, a line per twentieth of the items elsewhere."""

from __future__ import annotations

from rich.text import Text

from evalbudget.comparisons._gate_sampler import GateSampler
from evalbudget.races import RacePurchase
from evalbudget.races._progress import LINES, RaceProgress


class GateProgress(RaceProgress):
    """Told the state of a gate after each reading or round."""

    _mark = 0

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

    def _part(self, race: RacePurchase) -> int:
        return race.evaluations * LINES // race.design.n_items

    def _state(self, race: RacePurchase) -> Text:
        return Text(_told(race))

    def _say(self, race: RacePurchase) -> None:
        self._line(_told(race))


def _told(race: RacePurchase) -> str:
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
