"""All findings on some scores, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evalbudget._third_party import is_ours, third_party
from evalbudget.backtest import RecordedScores
from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind
from evalbudget.errors import EvalbudgetError
from evalbudget.estimate import check_level
from evalbudget.recorded._missing import missing_answers
from evalbudget.recorded._percent import require_one_unit
from evalbudget.repeats._wording import WIDTH, count, wrapped
from evalbudget.replay._rows import AsJson

_ORDER = list(Kind)
_INDENT = 9


@dataclass(frozen=True)
class Diagnosis(AsJson):
    """What was found.

    Attributes:
        path: of the scores.
        models: how many.
        items: how many.
        raters: names.
        readings: how many scores.
        findings: the worst first.
        silent: checks that these scores say nothing of, and why.
    """

    path: str
    models: int
    items: int
    raters: tuple[str, ...]
    readings: int
    findings: tuple[Finding, ...]
    silent: tuple[tuple[str, str], ...] = ()

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind is kind)

    @property
    def sentence(self) -> str:
        """How many of each kind."""
        parts = [f"{count(len(self.of(Kind.PROBLEM)), 'problem')}"]
        if self.of(Kind.BEWARE):
            parts.append(f"{len(self.of(Kind.BEWARE))} to beware of")
        if self.of(Kind.SAVING):
            parts.append(count(len(self.of(Kind.SAVING)), "saving"))
        return ", ".join(parts) + "."

    def lines(self, width: int = WIDTH) -> list[str]:
        """As lines of text."""
        raters = count(len(self.raters), "rater")
        what = f"{count(self.models, 'model')}, {count(self.items, 'item')}, {raters}"
        found = wrapped(f"{self.path}: {what}, {count(self.readings, 'score')}. {self.sentence}", width)
        for finding in self.findings:
            about = f" ({finding.score})" if finding.score else ""
            found.append("")
            found += wrapped(f"{finding.title}{about}", width, first=f"{finding.kind.upper():<{_INDENT}}")
            found += wrapped(finding.text, width, first=" " * _INDENT)
            if finding.remedy:
                found += wrapped(finding.remedy, width, first=" " * _INDENT + "-> ")
        for name, why in self.silent:
            found += ["", *wrapped(f"{name}: {why}", width, first=f"{'UNKNOWN':<{_INDENT}}")]
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _told(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence}


def diagnose(
    recorded: RecordedScores,
    checks: Sequence[type[Check]],
    *,
    path: str = "scores",
    level: float = 0.95,
    seed: int = 0,
) -> Diagnosis:
    """Look for everything that the checks know.

    Args:
        recorded: the scores. Different metrics are examined one by one, judges of the same thing together.
        checks: in the order of their findings, among those of one kind.
        path: of the scores, to name them by.
        level: of intervals.
        seed: of what is drawn.

    Raises:
        InvalidInputError: the level is none.
        InvalidInferenceError: judges on different scales, or percent beside fractions.
    """
    check_level(level)
    require_one_unit(recorded)
    parts = [("", recorded)]
    if not recorded.one_measure and len(recorded.raters) > 1:
        parts = [
            (name, recorded.part(raters=np.array([number]), may_be_empty=True))
            for number, name in enumerate(recorded.raters)
        ]
    found: list[Finding] = []
    silent: dict[str, str] = {}
    for name, part in parts:
        if not part.counts.any():
            continue
        case = _case(part, recorded, level, seed)
        if case.is_panel:
            case.study.require_one_scale("--rater NAME")
        for check in checks:
            ours = (Exception,) if is_ours(check) else ()
            try:
                with third_party(partial(silent.__setitem__, check.name), *ours):
                    found += [
                        replace(finding, check=check.name, score=name) for finding in check().examine(case)
                    ]
            except EvalbudgetError as ex:
                silent.setdefault(check.name, str(ex))
    found = _of_all(found, sum(bool(part.counts.any()) for _, part in parts))
    found.sort(key=lambda finding: _ORDER.index(finding.kind))
    return Diagnosis(
        path,
        len(recorded.models),
        len(recorded.items),
        recorded.raters,
        int(recorded.counts.sum()),
        tuple(found),
        tuple(silent.items()),
    )


def _of_all(found: Sequence[Finding], scorers: int) -> list[Finding]:
    """What is said alike of several scorers is said once."""
    alike: dict[tuple[Kind, str, str], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.kind, finding.title, finding.text), []).append(finding)
    names = [list(dict.fromkeys(each.score for each in group)) for group in alike.values()]
    return [
        replace(group[0], score="" if len(own) == scorers else ", ".join(own))
        for group, own in zip(alike.values(), names, strict=True)
    ]


def _case(part: RecordedScores, whole: RecordedScores, level: float, seed: int) -> Case:
    """Scores of one metric, without models that only other scorers scored."""
    here = np.asarray(part.counts.any(axis=(1, 2)) | (missing_answers(part) > 0))
    by = np.asarray(whole.counts.any(axis=1))
    elsewhere = {
        name: [whole.raters[number] for number in np.flatnonzero(by[m])]
        for m, name in enumerate(whole.models)
        if not here[m] and by[m].any()
    }
    kept = [m for m, name in enumerate(part.models) if name not in elsewhere]
    return Case(part.part(models=np.array(kept)) if elsewhere else part, level, seed, elsewhere)
