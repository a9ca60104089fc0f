"""Eleven story writers, five judges with four prompts each, three humans."""

from __future__ import annotations

from dataclasses import replace

from evalbudget.backtest import RecordedScores, backtest_audits
from judges_sections.found import Found, Target
from places import data_file

SEEDS = 8


def hanna(quick: bool, seeds: int | None = None) -> Found:
    """Ranked by a fraction of the labels, the judge's verdict beside it."""
    runs = 1 if quick else seeds or SEEDS
    everyone = RecordedScores.load(data_file("hanna_multijudge"))
    rows, share, wrong, top = [], 0.0, 0, 1.0
    machines = _without(everyone, 0)
    for what, recorded in (("all 11 systems", everyone), ("the 10 machines", machines)):
        for judge in (None, recorded.raters[-4]):
            for margin in (0.0,) if recorded is everyone else (0.0, 0.1):
                found = backtest_audits(
                    recorded,
                    ["audit-eprocess", "pp-lucb", "human-only"],
                    seeds=runs,
                    rater=judge,
                    score_range=(1.0, 5.0),
                    judge_range=(0.0, 5.0),
                    margin=margin,
                    top=0.05,
                )
                full = len(found.models) * found.items
                for row in found.rows:
                    if row.sampler == "audit-eprocess":
                        share = max(share, row.audits / full)
                        wrong = max(wrong, round(row.wrong * runs))
                        top = min(top, row.top)
                    verdicts = ", ".join(f"{name} {n}" for name, n in row.verdict_counts.items())
                    judged = f"{found.judge_best} ({-found.behind:+.2f})"
                    rows.append(
                        (
                            what,
                            judge or "mean of 20",
                            f"{margin:g}",
                            row.sampler,
                            f"{row.correct:.2f}",
                            f"{row.top:.2f}",
                            f"{row.pulls:,.0f}",
                            f"{row.audits:,.0f} ({row.audits / full:.0%})",
                            f"{row.cost:,.0f}",
                            verdicts,
                            judged,
                        )
                    )
    return Found(
        f"{len(everyone.models)} systems (one of them human writers) x {len(everyone.items)} items; a label "
        f"is the mean of the human raters, 1 to 5; prices 1 and 20, delta .05, {runs} seeds. top: the system "
        "named is within .2 points (.05 of the scale) of the best. The last column is what the judge alone "
        "names on all items, and how far that is from the best.",
        (
            "systems",
            "judge",
            "margin",
            "sampler",
            "correct",
            "top",
            "pulls",
            "audits",
            "cost",
            "verdicts",
            "judge alone",
        ),
        tuple(rows),
        (
            Target("a fraction of the labels", f"at most {share:.0%}", share < 0.6),
            Target("no wrong verdict beyond delta", f"{wrong} of {runs}", wrong <= max(1, 0.2 * runs)),
            Target("the system named is near the best", f"at least {top:.2f} of the audits", top >= 0.9),
        ),
        (
            "Without the human writers the two best systems differ by .01 of 5 points: only labels of nearly "
            "all of their answers tell which is best of these items, and a margin of .1 spares them.",
        ),
    )


def _without(recorded: RecordedScores, model: int) -> RecordedScores:
    keep = [m for m in range(len(recorded.models)) if m != model]
    reference = recorded.reference
    return replace(
        recorded,
        scores=recorded.scores[keep],
        models=tuple(recorded.models[m] for m in keep),
        reference=None if reference is None else reference[keep],
    )
