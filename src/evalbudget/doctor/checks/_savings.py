"""What other ways of asking would have cost, by replays of these very scores."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from evalbudget.backtest import backtest, backtest_audits, backtest_race
from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, saving
from evalbudget.judges._plan import Prices, forecast
from evalbudget.judges.estimates import variance_components

_SEEDS = 5
_MODELS = 5  # of whose components a mean is taken, and that repeats are replayed of
_ITEMS = 300  # that repeats are replayed on
_LEAST_ITEMS = 20
_LEAST_REPEATS = 4
_SHORTER = 0.9
_LARGEST = 60_000  # cells of the grid that races are replayed on
_MOST_MODELS = 500  # that races are replayed of
_SCORED = 0.95  # of the grid, where they are
_AUDITED = 20, 200  # models and items that audits are replayed on


class RepeatSaving(Check):
    """Adaptive repeats beside plain epochs, at the number of repeats there are."""

    name = "adaptive repeats"

    def examine(self, case: Case) -> Iterable[Finding]:
        """The error of the worst item, by replays."""
        counts = case.recorded.counts
        enough = (counts >= _LEAST_REPEATS).all(axis=(0, 2))
        if not case.is_plain or int(enough.sum()) < _LEAST_ITEMS or not case.within > 0.0:
            return
        rng = np.random.default_rng([case.seed, 1])
        items = np.flatnonzero(enough)
        if items.size > _ITEMS:
            items = np.sort(rng.choice(items, _ITEMS, replace=False))
        models = np.arange(min(len(case.recorded.models), _MODELS))
        part = case.recorded.part(models=models, items=items, raters=np.array([0]))
        r = round(float(counts[:, items].mean()))
        result = backtest(part, ["uniform", "auto"], [f"{r}x"], seeds=_SEEDS, workers=1)
        row = next(row for row in result.rows if row.sampler == "auto")
        if row.ratio is None or not math.isfinite(row.ratio.mean):
            return
        ratio = row.ratio.mean
        told = (
            f"With {r} scores per item in all, the sampler auto would have left {ratio:.2f} times the error "
            f"of plain epochs on the worst item (mean of {_SEEDS} replays on {items.size} of these items)."
        )
        yield saving(
            ratio < _SHORTER,
            "repeats could be spread better",
            "plain epochs do as well",
            told,
            "evalbudget inspect eval, or lm-eval run, with --budget; --sampler auto is the default.",
            {"ratio": ratio},
        )


class RotationSaving(Check):
    """Judges in turns beside every judge on everything, by the D study of these scores."""

    name = "judges in turns"

    def examine(self, case: Case) -> Iterable[Finding]:
        """The standard error of both."""
        judges = len(case.recorded.raters)
        crossed = (case.recorded.counts > 0).all(axis=2).sum(axis=1)
        if judges < 2 or not case.is_plain or int(crossed.max()) < _LEAST_ITEMS:
            return
        errors = []
        for model in np.argsort(-crossed)[:_MODELS].tolist():
            if crossed[model] < _LEAST_ITEMS:
                continue
            pilot = variance_components(case.study.fixed_scores(model))
            prices = Prices(np.ones(pilot.n_judges))
            errors.append(
                [
                    math.sqrt(forecast(pilot, name, 1, prices).variance / crossed[model])
                    for name in ("all", "cyclic")
                ]
            )
        everyone, turns = (float(x) for x in np.mean(errors, axis=0))
        calls = int(case.recorded.counts[:, :, :].astype(bool).sum())
        as_exact = (turns / everyone) ** 2 / judges  # of the calls, with so many more items
        told = (
            f"All {judges} judges on everything: a standard error of {everyone:.3g} per model for {calls:,} "
            f"scores. In turns, one judge per answer: {turns:.3g} for {calls // judges:,}."
        )
        numbers = {
            "stderr_all": everyone,
            "stderr_in_turns": turns,
            "calls": calls,
            "calls_in_turns": calls // judges,
            "calls_as_exact": as_exact,
        }
        more = f" With as many more items as that takes, {as_exact:.0%} of the calls are as exact."
        yield saving(
            as_exact < _SHORTER,
            f"judges in turns: {turns / everyone:.2f} times the error for a {_part(judges)} of the calls",
            "judges in turns would not save",
            told + more * (as_exact < _SHORTER),
            "evalbudget inspect eval, or lm-eval run, --judges a,b,c has them take turns; --rotation all "
            "is for when every answer's own score matters.",
            numbers,
        )


class RaceSaving(Check):
    """A race beside every model on every item, if the question is who is best."""

    name = "race"

    def examine(self, case: Case) -> Iterable[Finding]:
        """Evaluations until the best is proved, by replays."""
        recorded = case.recorded
        models, items = len(recorded.models), len(recorded.items)
        scored = int((recorded.counts > 0).sum())
        if models < 3 or case.is_panel or items < _LEAST_ITEMS or not case.is_plain:
            return
        if models > _MOST_MODELS or scored < _SCORED * models * items:
            return
        if models * items > _LARGEST:
            keep = np.random.default_rng([case.seed, 2]).choice(items, _LARGEST // models, replace=False)
            recorded = recorded.part(items=np.sort(keep))
        result = backtest_race(
            recorded,
            ["race"],
            ["100%"],
            _SEEDS,
            score_range=case.bounds,
            top=0.0,
            intervals=False,
            sampler_options={"race": {"until_proved": True}},
            workers=1,
        )
        (row,) = result.rows
        grid = len(recorded.models) * len(recorded.items)
        share = row.evaluations / grid
        sample = (
            ""
            if recorded is case.recorded
            else f" (on {len(recorded.items):,} of the items, drawn at random)"
        )
        told = (
            f"A race until the best on these very items is proved would have read {row.evaluations:,.0f} of "
            f"{grid:,} scores{sample}, and named the best in {row.p_best:.0%} of {_SEEDS} replays."
        )
        numbers = {"evaluations": row.evaluations, "grid": grid, "best": row.p_best}
        yield saving(
            share < _SHORTER,
            f"who is best on these items: {share:.0%} of these scores",
            "a race would not have been shorter",
            told,
            "If that is the question: evalbudget inspect race, lm-eval race. For every model's own score, "
            "read everything.",
            numbers,
        )


class AuditSaving(Check):
    """An audit beside labelling everything, if the question is who is best in the eyes of people."""

    name = "audit"

    def examine(self, case: Case) -> Iterable[Finding]:
        """Labels until the best is proved, by replays."""
        recorded = case.recorded
        if recorded.reference is None or len(recorded.models) < 2 or not case.is_plain:
            return
        if not np.isfinite(recorded.reference).any():
            return
        rng = np.random.default_rng([case.seed, 3])
        chosen = [
            np.sort(rng.choice(size, min(size, most), replace=False))
            for size, most in zip(recorded.scores.shape, _AUDITED, strict=False)
        ]
        recorded = recorded.part(*chosen)
        if recorded.reference is None or not np.isfinite(recorded.reference).any():
            return
        values = np.concatenate([recorded.reference.ravel(), recorded.scores.ravel()])
        bounds = float(np.nanmin(values)), float(np.nanmax(values))
        result = backtest_audits(recorded, ["audit-eprocess"], seeds=_SEEDS, score_range=bounds)
        (row,) = result.rows
        everything = int(np.isfinite(recorded.reference).any(axis=2).sum())
        share = row.audits / everything
        sample = ""
        if recorded.scores.shape[:2] != case.recorded.scores.shape[:2]:
            part = f"{len(recorded.models)} of these models on {len(recorded.items)} of the items"
            sample = f" of {part}, drawn at random,"
        told = (
            f"An audit{sample} would have asked people for {row.audits:,.0f} of {everything:,} labels; it "
            f"decided in {row.decided:.0%} of {_SEEDS} replays, rightly in {row.correct:.0%}."
        )
        numbers = {"labels": row.audits, "all": everything, "decided": row.decided, "correct": row.correct}
        yield saving(
            share < _SHORTER and row.decided > 0.5,
            f"human labels: {share:.0%} would have decided",
            "an audit would not have been cheaper",
            told,
            "evalbudget inspect audit, lm-eval audit.",
            numbers,
        )


def _part(judges: int) -> str:
    names = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth"}
    return "tenth" if judges == 10 else names.get(judges, f"{judges}th")
