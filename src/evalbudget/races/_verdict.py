"""What a race has shown, in words: from the scores read alone, whatever was planned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evalbudget._fields import percent
from evalbudget.missing import Missing
from evalbudget.races._missing_answers import counted_as
from evalbudget.races.estimates import PossibleWinners, Rule

_NAMED = 5


class Status(StrEnum):
    """How a model came out."""

    BEST = "best"
    """No other one may be the best: with the stated confidence, or since all was read."""
    TIE = "tie"
    """Every item was read, and it has exactly the same mean as the others that tie; none is better."""
    LEADS = "leads"
    """Nothing is decided; the sampler would name it if it had to."""
    POSSIBLE = "possible"
    """It may be the best: not ruled out yet."""
    BEHIND = "behind"
    """Ruled out: another one is better."""
    LOST = "lost"
    """It kept failing, or its task ended early; nothing is claimed of it."""


class Finding(StrEnum):
    """What came out."""

    BEST = "best"
    TIE = "tie"
    UNDECIDED = "undecided"
    NOTHING = "nothing"
    """No model has a score, or all of them were lost."""


@dataclass(frozen=True)
class Verdict:
    """What came out, and of whom.

    Attributes:
        outcome: of the race.
        statuses: of each model.
        found: which models may be the best, of those that were not lost.
        scored: models with a score.
        n_items: of the benchmark.
        n_unread: of the models compared, items they have not answered and that have not failed.
        n_missing: of the models compared, items that were given up.
        missing: what these count as.
        lower_is_better: of the scores.
    """

    outcome: Finding
    statuses: tuple[Status, ...]
    found: PossibleWinners
    scored: frozenset[int]
    n_items: int
    n_unread: int
    n_missing: int
    missing: Missing
    lower_is_better: bool

    @property
    def is_decided(self) -> bool:
        """Whether the best model is known, or the best models."""
        return self.outcome in (Finding.BEST, Finding.TIE)

    def sentence(self, names: Sequence[str]) -> str:
        """One sentence that a reader can take at its word.

        Args:
            names: of the models that may be the best, the leader first.
        """
        return self._said(names) + " Lower is better." * self.lower_is_better

    def _said(self, names: Sequence[str]) -> str:
        n_lost = self.statuses.count(Status.LOST)
        among = " of those that answered" if n_lost else ""
        sure = f"with {percent(self.found.level)} confidence"
        if self.outcome is Finding.NOTHING:
            return "Every model was lost, so none is best." if self.scored else "No model has a score."
        if self.outcome is Finding.BEST and not self.found.is_exact:
            of = f"on these {self.n_items:,} items"
            if self._some_left_out:
                of = "on the items that any two of them answered"
            return f"{names[0]} is best{among} {of}, as scored once, {sure}."
        if self.outcome is Finding.BEST:
            return f"{names[0]} is best{among}: {self._exactly}."
        if self.outcome is Finding.TIE:
            same = f"the same mean over all {self.n_items:,} items, as scored once"
            if self._some_left_out:
                same = "no difference on the items that any two of them answered"
            rest = f"none is better{among}"
            if not self.found.is_exact:
                rest = f"{sure} none is better{among}"
            return f"A tie: {listed(names)} have {same}; {rest}."
        if not names:
            return "Undecided: missing answers leave no order, each model being behind another one."
        if len(self.statuses) == 1:
            return f"Nothing to compare: {names[0]} is the only model."
        if n_lost == len(self.statuses) - 1:
            return f"Nothing to compare: only {names[0]} is left, the others were lost."
        leads = "leads" if len(self.scored) > 1 else "has the only scores"
        return f"Undecided: {names[0]} {leads}{among}; {listed(names[1:])} cannot be ruled out yet."

    @property
    def _some_left_out(self) -> bool:
        """Whether models are compared on different items."""
        return self.n_missing > 0 and self.missing is Missing.DROP

    @property
    def _exactly(self) -> str:
        if self._some_left_out:
            return "it beats every other one on the items that both answered"
        if self.n_unread or (self.n_missing and self.missing is Missing.WORST):
            return "what was not read cannot change that"
        most = "lowest" if self.lower_is_better else "highest"
        return f"it has the {most} mean over all {self.n_items:,} items, as scored once"

    @property
    def proof(self) -> str:
        """What the sentence rests on; empty if nothing is decided."""
        if not self.is_decided:
            return ""
        rests_on = "intervals that hold for all models at once"
        if self.found.is_exact:
            rests_on = "exact, by the scores read alone"
        elif self.found.rule is Rule.PAIRED:
            rests_on = "paired e-values over the items that models both read, in random order"
        return f"{rests_on}; {counted_as(self.missing)}" if self.n_missing else rests_on


def verdict_of(
    found: PossibleWinners,
    leader: int,
    *,
    lost: Collection[int],
    scored: Collection[int],
    n_items: int,
    n_unread: int,
    n_missing: int,
    missing: Missing,
    n_models: int,
    lower_is_better: bool,
) -> Verdict:
    """What came out.

    Args:
        found: the possible winners among the models that were not lost.
        leader: the model to name first.
        lost: the others.
        scored: models with a score.
        n_items: of the benchmark.
        n_unread: see :class:`Verdict`.
        n_missing: see there.
        missing: see there.
        n_models: in the race.
        lower_is_better: of the scores.
    """
    left = [m for m in range(n_models) if m not in lost]
    if not any(m in scored for m in left):
        outcome = Finding.NOTHING
    elif len(found.models) == 1 and len(left) > 1:
        outcome = Finding.BEST
    elif found.tied:
        outcome = Finding.TIE
    else:
        outcome = Finding.UNDECIDED
    statuses = tuple(_status(m, outcome, found, lost, leader) for m in range(n_models))
    counts = n_items, n_unread, n_missing
    return Verdict(outcome, statuses, found, frozenset(scored), *counts, missing, lower_is_better)


def _status(
    model: int, outcome: Finding, found: PossibleWinners, lost: Collection[int], leader: int
) -> Status:
    if model in lost:
        return Status.LOST
    if outcome is Finding.NOTHING:
        return Status.POSSIBLE
    if model not in found.models:
        return Status.BEHIND
    if outcome is Finding.UNDECIDED:
        return Status.LEADS if model == leader else Status.POSSIBLE
    return Status.BEST if outcome is Finding.BEST else Status.TIE


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Names as English lists them; the first few of many."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
