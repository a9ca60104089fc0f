"""The verdict of a gate on one candidate, as a sentence, as JSON, for a pull request and for a build."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.budget import shown_amount
from evalbudget.comparisons._baseline import PANEL, UNNAMED, Baseline
from evalbudget.comparisons._config import GateConfig
from evalbudget.comparisons._evidence import GateEvidence, Verdict, check_margin
from evalbudget.comparisons._gate_sampler import GateSampler
from evalbudget.exit_codes import ExitCode
from evalbudget.races import RacePurchase
from evalbudget.replay._rows import defined
from evalbudget.run import Bill

_EXIT_CODES = {
    Verdict.NOT_WORSE: ExitCode.DONE,
    Verdict.WORSE: ExitCode.NO,
    None: ExitCode.UNDECIDED,
}
_OF_BASELINE = "the baseline: "


@dataclass(frozen=True, repr=False)
class Gate:
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
        missing: items of the baseline that a candidate's log says nothing of.
        repeats: answers of the candidate to each item that were to be bought.
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
    missing: int = 0
    repeats: int = 1

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
        """None: undecided."""
        return self.evidence.verdict

    @property
    def exit_code(self) -> ExitCode:
        """0 not worse, 1 worse, 3 undecided, 4 the candidate could not be evaluated."""
        unknown = self.given_up or (self.spent and self.evidence.failed >= self.evidence.items)
        return ExitCode.FAILED if unknown and self.verdict is None else _EXIT_CODES[self.verdict]

    @property
    def sentence(self) -> str:
        """The verdict, and what it claims."""
        sure = "exactly" if self.evidence.draws.is_exhausted else f"with {self._confidence} confidence"
        where = f" on these {self.n_items:,} items" if self.these_items else ""
        if self.verdict is Verdict.NOT_WORSE:
            return (
                f"Not worse: {self.candidate} is not worse than {self.baseline} by {self.margin:g} or "
                f"more{where}, {sure}."
            )
        if self.verdict is Verdict.WORSE:
            return f"Worse: {self.candidate} is worse than {self.baseline}{where}, {sure}."
        if self.given_up:
            name = self.baseline if self.given_up.startswith(_OF_BASELINE) else self.candidate
            return f"Not evaluated: {name} was given up ({self.given_up.removeprefix(_OF_BASELINE)})."
        return (
            f"Undecided: whether {self.candidate} is worse than {self.baseline} by {self.margin:g} or "
            f"more{where} is not proved either way."
        )

    @property
    def _confidence(self) -> str:
        return f"{100.0 * (1.0 - self.evidence.alpha):.10g}%"

    def lines(self) -> tuple[str, ...]:
        """The sentence, the difference with its interval, what it cost, and what would decide it."""
        return tuple(
            line for line in (self.sentence, self._difference, self._claim, self._cost, self._hint) if line
        )

    @property
    def _difference(self) -> str:
        if not self.evidence.items:
            return "No item was scored for both."
        low, high = self.evidence.interval
        places = max(2, -math.floor(math.log10(max(self.margin, 1e-9))) + 1)
        told = f"{self.evidence.difference:+.{places}f}"
        if low < high:
            told += f" ({low:+.{places}f} to {high:+.{places}f})"
        several = "s" * (self.evidence.clusters != 1)
        clusters = f" in {self.evidence.clusters:,} cluster{several} ({self.cluster})" if self.cluster else ""
        of = f" of {self.n_items:,}" if self.items < self.n_items else ""
        each = f", each answered {self.repeats} times" if self.repeats > 1 else ""
        told = f"Difference {told}, on {self.items:,}{of} items{clusters}{each}."
        if self.evidence.failed:
            told += (
                f" {self.evidence.failed:,} more failed: against 'not worse' they count as the worst "
                "that they "
                "could be, for 'worse' not at all."
            )
        if self.missing:
            told += f" {self.missing:,} items of the baseline are not in the candidate's log."
        return told

    @property
    def _claim(self) -> str:
        if self.these_items:
            random = "which items were read; the claim is about these items as scored once each"
        else:
            random = f"{'clusters of items' if self.cluster else 'items'} and repeats"
        fixed = "Fixed-n: holds for logs as they are"
        when = "Holds whenever you look" if self.evidence.is_anytime else fixed
        return f"Random: {random}. {when}; each end of the interval {self._confidence}."

    @property
    def _cost(self) -> str:
        return " ".join(part for part in (self.spent, self.stopped) if part)

    @property
    def _hint(self) -> str:
        if self.verdict is not None or self.given_up or not self.evidence.items:
            return ""
        left = self.n_items - self.items - self.evidence.failed
        if self.these_items:
            settled = f"The {left:,} items that are left settle it: raise --budget." if left else ""
            return settled or "What failed settles it: mend that, or take a larger --margin."
        needed = self.items_needed
        remedy = "take a larger --margin, or --these-items for a verdict on these items as scored once each."
        if needed is None:
            return "" if left else f"All items are read: {remedy}"
        told = f"Were there no difference, about {needed:,} items would prove it not worse"
        return f"{told}." if needed <= self.n_items else f"{told}, and there are {self.n_items:,}: {remedy}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are None."""
        low, high = self.evidence.interval
        found: dict[str, Any] = defined(
            {
                "verdict": self.verdict.value if self.verdict else "undecided",
                "exit_code": int(self.exit_code),
                "sentence": self.sentence,
                "baseline": self.baseline,
                "candidate": self.candidate,
                "score": self.score,
                "margin": self.margin,
                "alpha": self.evidence.alpha,
                "difference": self.evidence.difference,
                "lower": low,
                "upper": high,
                "anytime": self.evidence.is_anytime,
                "items": self.items,
                "repeats": self.repeats,
                "failed": self.evidence.failed,
                "missing": self.missing,
                "items_available": self.n_items,
                "these_items": self.these_items,
                "cluster": self.cluster,
                "clusters": self.evidence.clusters,
                "items_needed": self.items_needed,
                "spent": self.spent or None,
                "claim": self._claim,
            }
        )
        return found

    def to_json(self, *, indent: int | None = 2) -> str:
        """:meth:`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<Gate: {self.sentence}>"


def gate(
    baseline: Baseline,
    candidate: RecordedScores,
    *,
    margin: float,
    delta: float = 0.05,
    score: str | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    these_items: bool = False,
    cluster: str | None = None,
) -> Gate:
    """The verdict on a candidate whose scores are there.

    The evidence is the mean of what :class:`~evalbudget.comparisons.GateSampler` would have gathered in
    several orders of the items, so that it depends on none. It may be looked at once: do not extend a log
    because it was undecided.

    Args:
        baseline: its scores.
        candidate: scores of one model.
        margin: what the candidate may be worse by, in the units of the score, above 0.
        delta: probability of a wrong verdict.
        score: of the candidate, by which it is compared; None for the only one, or the panel's.
        score_range: smallest and largest possible score.
        these_items: see Gate.
        cluster: by what items are clustered, if ``baseline`` has clusters.

    Raises:
        InvalidInputError: no item in common, several models, a margin or a score out of range, another task.
        UnknownNameError: no such score.
    """
    wanted = score or (None if baseline.score in (UNNAMED, PANEL) else baseline.score)
    other = Baseline.of(candidate, name=candidate.models[0], score=wanted)
    baseline.check_task(other.task)
    items = baseline.shared(list(other.scores))
    baseline, other = baseline.within(score_range), other.within(score_range)
    low, high = score_range
    code = baseline.codes(items) if cluster is not None and not these_items else np.arange(len(items))
    order = np.argsort(code, kind="stable")
    old, new = (
        (np.array([each.scores[items[k]] for k in order.tolist()]) - low) / (high - low)
        for each in (baseline, other)
    )
    evidence = GateEvidence.of(
        old,
        new,
        code[order],
        margin=check_margin(margin, score_range),
        alpha=delta,
        largest=int(np.bincount(code).max()),
        pool=len(items) if these_items else None,
        span=high - low,
        unordered=True,
    )
    return Gate(
        *(baseline.name, other.name, baseline.score, margin, evidence, len(items)),
        these_items=these_items,
        cluster=None if these_items else cluster,
        missing=len(baseline.scores) - len(items),
    )


def gate_of(race: RacePurchase, config: GateConfig, score: str, bill: Bill | None = None) -> Gate:
    """The verdict on a candidate whose scores were bought, or are being bought.

    Args:
        race: of the baseline and the candidate, in this order, by :class:`GateSampler`.
        config: what the user asked for.
        score: that was compared.
        bill: that calls are on, where the budget is money or tokens.
    """
    assert isinstance(race.sampler, GateSampler)
    decided = race.sampler.evidence(1)
    given_up = ""
    for model, lane in enumerate(race.lanes[:2]):
        lost = lane.left or ("it kept failing" if model in race.sampler.lost else "")
        if lane.absent or not lost:
            continue
        errors = ", ".join(sorted(lane.tally.failures, key=lambda kind: -lane.tally.failures[kind])[:2])
        why = f"{lost}: {errors}" if errors and lane.left is None else lost
        given_up = f"{_OF_BASELINE}{why}" if model == 0 else why
    if bill is not None:
        spent = f"{shown_amount(bill.spent, bill.cap.unit)} of {bill.cap} spent"
    else:
        spent = f"{race.evaluations:,} evaluations bought"
        spent += f", of {race.budget} at most" if config.budget is not None else ""
    asked = race.lanes[0].evaluations
    of_baseline = f"{asked:,.0f} evaluations were of the baseline" if asked else "the baseline cost nothing"
    return Gate(
        *(race.design.models[0], race.design.models[1], score, config.options["margin"], decided),
        n_items=race.design.n_items // race.repeats,
        repeats=race.repeats,
        these_items=race.sampler.these_items,
        cluster=config.cluster,
        spent=f"{spent[0].upper()}{spent[1:]}; {of_baseline}.",
        stopped="" if decided.verdict else f"Stopped: {race.stop_reason}.",
        given_up=given_up,
    )
