"""Who judges, and how alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind
from evalbudget.report._judges import Judges as JudgesOfReport
from evalbudget.report._reference import AgainstReference

_FEW = 0.6  # votes by judge
_ROUNDING = 1e-9  # of the largest score


class Judges(Check):
    """One judge, whose bias is in every score; judges that differ; panels smaller than they look."""

    name = "judges"

    def examine(self, case: Case) -> Iterable[Finding]:
        """One judge; or biases, scales and how many independent votes there are; and what labels say."""
        labels = AgainstReference.of(case.study)
        if labels is not None:
            yield _against_labels(labels)
        if not case.is_panel:
            if case.is_graded and labels is None:
                yield Finding(
                    Kind.BEWARE,
                    "one judge",
                    "All scores are by one rater. If it is a judge model, its bias is in every score, and "
                    "nothing here shows how large it is.",
                    "Add judges that take turns, at the same number of calls: evalbudget inspect eval "
                    "--judges a,b,c, lm-eval run. Or have people label some answers: evalbudget inspect "
                    "audit, lm-eval audit.",
                )
            return
        found = JudgesOfReport.of(case.study)
        if found is None:
            return
        first = found.rows[0]
        rounding = _ROUNDING * float(np.nanmax(np.abs(case.recorded.scores)))
        lenient = first.bias > rounding
        apart = [row for row in found.rows if row.all_low > rounding or row.all_high < -rounding]
        if apart:
            worst = max(apart, key=lambda row: abs(row.bias))
            yield Finding(
                Kind.BEWARE,
                "judges are not equally strict",
                f"{len(apart)} of {len(found.rows)} judges differ from the panel's mean; most of all "
                f"{worst.judge}, by {worst.bias:+.3g} ({worst.all_low:+.3g} to {worst.all_high:+.3g}). "
                "Scores by different judges must not be compared, nor one judge's taken for the truth.",
                "Have every answer of every model judged by the same judges, or all judges in turns "
                "(evalbudget inspect eval --judges a,b,c, lm-eval run): their biases are then taken out.",
                {"judges": len(found.rows), "apart": len(apart), "largest": worst.bias},
            )
        else:
            yield Finding(
                Kind.FINE,
                "no judge stands out",
                f"No judge of {len(found.rows)} differs from the panel's mean beyond chance"
                + (f"; {first.judge} is the most lenient, by {first.bias:+.3g}." if lenient else "."),
                "",
                {"judges": len(found.rows), "largest": first.bias},
            )
        if found.votes is None:
            return
        votes, judges = found.votes.value, found.votes.judges
        bound = "at most " if found.votes.upper_bound else ""
        alike = votes < _FEW * judges
        yield Finding(
            Kind.BEWARE if alike else Kind.FINE,
            f"{judges} judges are {bound}{votes:.1f} independent votes",
            f"By how alike they err, the mean of this panel is as exact as that of {bound}{votes:.1f} judges "
            "who err independently."
            + (" Errors that all of them share do not show here." if found.votes.upper_bound else ""),
            "Replace judges of one family by one; a judge of another family is worth more." if alike else "",
            {"votes": votes, "judges": judges},
        )


def _against_labels(labels: AgainstReference) -> Finding:
    """What human labels say of the judge, or of the panel's mean."""
    row = labels.rows[-1]
    apart = row.low > 0.0 or row.high < 0.0
    beware = " The labels seem to be on another scale: then this means nothing." if labels.odd else ""
    return Finding(
        Kind.BEWARE if apart or labels.odd else Kind.FINE,
        "judged differently than by the labels" if apart else "no bias beyond chance against the labels",
        f"Against the labels {row.judge} is off by {row.bias:+.3g} ({row.low:+.3g} to {row.high:+.3g}), on "
        f"{row.items:,} items, and correlates with them at {row.correlation:.2f}.{beware}",
        "Take the bias out with a random sample of labels: evalbudget inspect audit, lm-eval audit."
        if apart
        else "",
        {"bias": row.bias, "low": row.low, "high": row.high, "correlation": row.correlation},
    )
