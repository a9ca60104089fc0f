"""The verdict of a gate on one candidate, as a sentence, as JSON, for a pull request and for a build."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evalbudget.comparisons._evidence import GateEvidence, Verdict
from evalbudget.exit_codes import ExitCode
from evalbudget.missing import Missing
from evalbudget.replay._rows import AsJson
from evalbudget.report._missing import missing_words
from evalbudget.shown import shown

_EXIT_CODES = {
    Verdict.NOT_WORSE: ExitCode.DONE,
    Verdict.WORSE: ExitCode.NO,
    None: ExitCode.UNDECIDED,
}
OF_BASELINE = "the baseline: "


@dataclass(frozen=True, repr=False)
class Gate(AsJson):
    """What was found of one candidate.

    Attributes:
        baseline: name.
        candidate: name.
        score: that was compared.
        margin: what a candidate may be worse by, in the units of the score.
        evidence: on the items read.
        n_items: that both could be scored on.
        these_items: the claim is about these items as scored once each, rather than about items like them.
        cluster: by what items are clustered; None for items by themselves.
        spent: what the verdict cost, for people; empty where nothing was bought.
        stopped: why nothing more was bought; empty where nothing was.
        given_up: why the candidate could not be evaluated; empty where it could.
        missing: answers of the baseline and of the candidate that their logs lack.
        not_asked: items of the baseline that have no score of the candidate that counts, and none missing.
        handled: what missing answers count as.
        repeats: answers of the candidate to each item that were to be bought.
        lower_is_better: of the score; ``evidence`` has it turned round.
        is_kept: the baseline's scores were there, and may be there for other candidates, too.
        notes: what the logs say beside their scores, and how items were paired.
    """

    baseline: str
    candidate: str
    score: str
    margin: float
    evidence: GateEvidence
    n_items: int
    these_items: bool = False
    cluster: str | None = None
    spent: str = ""
    stopped: str = ""
    given_up: str = ""
    missing: tuple[int, int] = (0, 0)
    not_asked: int = 0
    handled: Missing = Missing.WORST
    repeats: int = 1
    lower_is_better: bool = False
    is_kept: bool = False
    notes: tuple[str, ...] = ()

    @property
    def difference(self) -> float:
        """Mean of candidate less baseline, as scored; nan before the first item."""
        return 0.0 - self.evidence.difference if self.lower_is_better else self.evidence.difference

    @property
    def interval(self) -> tuple[float, float]:
        """Of the difference."""
        return self._as_scored(self.evidence.interval)

    def _as_scored(self, ends: tuple[float, float]) -> tuple[float, float]:
        return (-ends[1], -ends[0]) if self.lower_is_better else ends

    @property
    def items(self) -> int:
        """Compared; those of which an answer is missing included."""
        return math.ceil(self.evidence.items / self.repeats)

    @property
    def items_needed(self) -> int | None:
        """See GateEvidence."""
        needed = self.evidence.items_needed()
        return None if needed is None else math.ceil(needed / self.repeats)

    @property
    def verdict(self) -> Verdict | None:
        """None: undecided, or one of the two was given up before anything could be compared."""
        return self.evidence.verdict if self.evidence.items or not self.given_up else None

    @property
    def exit_code(self) -> ExitCode:
        """0 not worse, 1 worse, 3 undecided, 4 the candidate could not be evaluated."""
        unknown = self.given_up or (self.spent and self.evidence.failed and not self.evidence.items)
        return ExitCode.FAILED if unknown and self.verdict is None else _EXIT_CODES[self.verdict]

    @property
    def sentence(self) -> str:
        """The verdict, and what it claims."""
        exact = self.evidence.draws.is_exhausted
        sure = "" if exact else f", with {self._confidence} confidence"
        where = f" on these {self.n_items:,} items" if self.these_items else ""
        where += " as scored once" if exact else ""
        if self.verdict is Verdict.NOT_WORSE:
            return (
                f"Not worse: {self.candidate} is not worse than {self.baseline} by {self.margin:g} or "
                f"more{where}{sure}."
            )
        if self.verdict is Verdict.WORSE:
            return f"Worse: {self.candidate} is worse than {self.baseline}{where}{sure}."
        if self.given_up:
            name = self.baseline if self.given_up.startswith(OF_BASELINE) else self.candidate
            return f"Not evaluated: {name} was given up ({self.given_up.removeprefix(OF_BASELINE)})."
        if self.is_open_by_missing:
            low, high = self._as_scored(self.evidence.ends)
            places = self._places
            return (
                f"Undecided: {self.missing_words}; with them the difference is anything from "
                f"{low:+.{places}f} to {high:+.{places}f}."
            )
        return (
            f"Undecided: whether {self.candidate} is worse than {self.baseline} by {self.margin:g} or "
            f"more{where} is not proved either way."
        )

    @property
    def is_open_by_missing(self) -> bool:
        """Whether it is undecided only because of answers that are missing."""
        nothing = not self.spent and not self.evidence.items and self.evidence.failed > 0
        return self.verdict is None and (nothing or self.evidence.if_dropped is not None)

    @property
    def missing_words(self) -> str:
        """How many answers are missing of whom, as a clause; empty where none is."""
        told = missing_words(zip((self.baseline, self.candidate), self.missing, strict=True))
        failed = self.evidence.failed
        return told or (f"{failed:,} item{'s' * (failed != 1)} failed" if failed else "")

    @property
    def _places(self) -> int:
        return max(2, -math.floor(math.log10(max(self.margin, 1e-9))) + 1)

    @property
    def _confidence(self) -> str:
        return f"{100.0 * (1.0 - self.evidence.alpha):.10g}%"

    def lines(self) -> tuple[str, ...]:
        """The sentence, the difference with its interval, what it cost, what would decide it: a line each."""
        told = (self.sentence, self._difference, self._claim, self.reuse, self._cost, self._hint)
        return tuple(shown(line) for line in (*told, *self.notes) if line)

    @property
    def _difference(self) -> str:
        if not self.evidence.items:
            return "No item was scored for both."
        low, high = self.interval
        places = self._places
        told = f"{self.difference:+.{places}f}"
        if low < high:
            told += f" ({low:+.{places}f} to {high:+.{places}f})"
        several = "s" * (self.evidence.clusters != 1)
        clusters = f" in {self.evidence.clusters:,} cluster{several} ({self.cluster})" if self.cluster else ""
        of = f" of {self.n_items:,}" if self.items < self.n_items else ""
        each = f", each answered {self.repeats} times" if self.repeats > 1 else ""
        told = f"Difference {told}, on {self.items:,}{of} items{clusters}{each}."
        if self.missing_words:
            told += f" {self.missing_words}{self._counted}."
        if self.not_asked:
            have = "item of the baseline has" if self.not_asked == 1 else "items of the baseline have"
            told += f" {self.not_asked:,} {have} no score of the candidate that counts."
        return told

    @property
    def _counted(self) -> str:
        if self.handled is Missing.WORST:
            return ": interval and verdict hold whatever they would have been"
        return f", and {'counted as the worst score' if self.handled is Missing.ZERO else 'left out'}"

    @property
    def _claim(self) -> str:
        if self.these_items:
            random = "which items were read; the claim is about these items as scored once each"
        else:
            random = f"{'clusters of items' if self.cluster else 'items'} and repeats"
        fixed = "Fixed-n: holds for logs as they are"
        when = "Holds whenever you look" if self.evidence.is_anytime else fixed
        lower = " Lower is better." if self.lower_is_better else ""
        if self.evidence.draws.is_exhausted:
            return f"Exact for these items as scored once each: the same items asked again may differ.{lower}"
        return (
            f"Random: {random}. {when}; each end of the interval {self._confidence}, guaranteed however the "
            "scores are spread, so wider than the asymptotic interval that evalbudget compare prints of the "
            f"same logs.{lower}"
        )

    @property
    def reuse(self) -> str:
        """What the error is of a gate whose baseline is kept for other candidates; empty for others."""
        if not self.is_kept or self.these_items:
            return ""
        return (
            f"The {100.0 * self.evidence.alpha:.10g}% is over draws of the baseline, too: one that is kept "
            "and was lucky or unlucky is so for every candidate."
        )

    @property
    def _cost(self) -> str:
        return " ".join(part for part in (self.spent, self.stopped) if part)

    @property
    def _hint(self) -> str:
        if self.verdict is not None or self.given_up:
            return ""
        if self.is_open_by_missing:
            dropped = ", --missing drop if chance picked it" if self.evidence.items else ""
            return (
                "Evaluate what is missing; or say what it counts as: --missing zero for wrong answers"
                f"{dropped}."
            )
        if not self.evidence.items:
            return ""
        left = self.n_items - self.items - self.evidence.failed
        if self.these_items:
            those = "item that is left settles" if left == 1 else f"{left:,} items that are left settle"
            settled = f"The {those} it: raise --budget." if left else ""
            return settled or "What failed settles it: mend that, or take a larger --margin."
        needed = self.items_needed
        remedy = "take a larger --margin, or --these-items for a verdict on these items as scored once each."
        if needed is None:
            return "" if left else f"All items are read: {remedy}"
        whole = " and no answer missing" if self.evidence.failed else ""
        told = f"Were there no difference{whole}, about {needed:,} items would prove it not worse"
        return f"{told}." if needed <= self.n_items else f"{told}, and there are {self.n_items:,}: {remedy}"

    def _told(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "verdict": self.verdict.value if self.verdict else "undecided",
            "exit_code": int(self.exit_code),
            "sentence": self.sentence,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "score": self.score,
            "margin": self.margin,
            "alpha": self.evidence.alpha,
            "difference": self.difference,
            "lower": low,
            "upper": high,
            "anytime": self.evidence.is_anytime,
            "items": self.items,
            "repeats": self.repeats,
            "failed": self.evidence.failed,
            "missing": dict(zip(("baseline", "candidate"), self.missing, strict=True)),
            "counted_as": self.handled.value,
            "not_asked": self.not_asked,
            "undecided_by_missing": self.is_open_by_missing,
            "lower_is_better": self.lower_is_better,
            "interval": "guaranteed",
            "items_available": self.n_items,
            "these_items": self.these_items,
            "cluster": self.cluster,
            "clusters": self.evidence.clusters,
            "items_needed": self.items_needed,
            "spent": self.spent or None,
            "claim": self._claim,
            "kept_baseline": self.reuse or None,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<Gate: {shown(self.sentence)}>"
