"""What do the sources say beside the scores, and what do they leave unknown?"""

from __future__ import annotations

from collections.abc import Iterable

from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind
from evalbudget.recorded._differences import versions_note
from evalbudget.recorded._missing import missing_answers, missing_shares, score_range
from evalbudget.report._sources import Sources as SourcesOfReport


class SourcesCheck(Check):
    """What was left out, and what scores are taken for because nothing says it."""

    name = "sources"

    def examine(self, case: Case) -> Iterable[Finding]:
        """Each note of a reader, and what is unknown."""
        found = SourcesOfReport.of(case.study)
        if found is None:
            return
        versions = _versions_note(case)
        if versions:
            yield Finding(
                Kind.PROBLEM,
                "models were scored on different versions of the task",
                versions,
                "Evaluate all models on one version. If only the number differs, say so: --across-tasks.",
            )
        for note in found.notes:
            if note != versions:
                yield Finding(Kind.BEWARE, "said by the source", note)
        if found.assumed:
            yield Finding(
                Kind.FINE,
                "not said by the source",
                " ".join(found.assumed),
                "Where that is wrong, say so: --lower-is-better; evalbudget compare --score-range, "
                "--missing.",
            )


def _versions_note(case: Case) -> str:
    declared = case.recorded.declared
    return "" if declared is None else versions_note(case.recorded.models, declared.settings)


class MissingScores(Check):
    """Scores that should be there and are not, and what they could do to the means."""

    name = "missing scores"

    def examine(self, case: Case) -> Iterable[Finding]:
        """One finding for all models: how many are missing of each, and the worst that they could be."""
        recorded = case.recorded
        answers, shares = missing_answers(recorded), missing_shares(recorded)
        if not answers.any():
            return
        (low, high), known = score_range(recorded)
        told = []
        for model, name in enumerate(recorded.models):
            if answers[model]:
                share = shares[model][~(shares[model] != shares[model])].mean()
                told.append(f"{answers[model]:,} of {name} (up to {share * (high - low):.3g} of its mean)")
        seen = "" if known else f", if scores lie between {low:g} and {high:g} as those that are there"
        yield Finding(
            Kind.PROBLEM if float(answers.max()) > 0.01 * shares.shape[1] else Kind.BEWARE,
            "scores are missing",
            f"Missing answers: {'; '.join(told)}{seen}. If what fails is what would be wrong, means without "
            "them are too high, and the model that fails more looks better.",
            "Run what is missing again, or say what it counts as: evalbudget compare or report "
            "--missing zero, --missing drop.",
            {"missing": float(answers.sum())},
        )


class RaceVerdict(Check):
    """The verdict of a race, which nothing but the race itself can give."""

    name = "verdict of a race"

    def examine(self, case: Case) -> Iterable[Finding]:
        """What it said when it ended."""
        race = case.recorded.race
        if race is not None:
            text = " ".join(part for part in (race.sentence, race.proof) if part)
            yield Finding(Kind.FINE, f"these are the scores of a {race.kind}; its own verdict", text)
