"""Our rows where judges take turns: what the panel says, each judge's bias, where the variance comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.estimators.judges import (
    JudgeScores,
    bias_rows,
    component_rows,
    count_rows,
    judge_mean_over_sampled_items,
    panel_mean,
    short_names,
)
from evalbudget.estimators.result import Estimate
from evalbudget.repeats import describe_panel, finite, mean_estimates
from evalbudget_inspect.metrics import item_readings
from evalbudget_inspect.rotating import readings_of, was_asked
from evalbudget_inspect.scoring import METADATA
from evalbudget_inspect.values import in_range, known_range, score_to_float

Call = tuple[int, int, int, float]
"""Item, epoch (from 0), judge, score (nan if there is none)."""


@metric(name="evalbudget_panel", scores="unreduced")
def panel_estimates(
    judges: list[str],
    weighs_judges: bool = True,
    kept: bool = False,
    allocation: str = "fixed",
    fixed_repeats: int = 1,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
    prices: list[float] | None = None,
) -> Metric:
    """The panel's mean, and how sure it is.

    ``estimate``, ``stderr``, ``lower`` and ``upper``: items and repeats are random, the judges are these
    ones, and every judge weighs the same. ``repeats_stderr``, ``repeats_lower`` and ``repeats_upper``: these
    items asked again. ``bias_<judge>`` is a judge's deviation from
    the panel's mean. ``variance_<source>`` and ``share_<source>`` say where the variance of a single score by
    one of the judges comes from, as far as the rotation tells sources apart. ``judges``, ``items`` and
    ``readings`` count what was scored. ``calls_<judge>`` counts what a judge was asked, replies that could
    not be read and calls that ended in an error included (the host's own retries of a request are not);
    ``cost_<judge>`` is that times the judge's price.

    Where repeats depend on scores, the estimate rests on those that may count for it (see
    ``evalbudget.estimators.judges.panel_mean``), and the variances on those bought whatever the scores.

    A scorer that asks no judge has the rows of a task without a panel.

    Args:
        judges: names of the panel.
        weighs_judges: False for the raw mean of the scores, where the rotation is a baseline.
        kept: every epoch of an item scored the same generation.
        allocation: how the sampler's counts depend on scores; see ``evalbudget.Allocation``.
        fixed_repeats: readings every item got whatever its scores were.
        low: the smallest possible score, if declared.
        high: the largest possible score, if declared.
        level: of the intervals.
        prices: of one call of each judge, in the same order; None if unknown.
    """
    bounds = (low, high) if low is not None and high is not None else None
    how = Allocation(allocation)

    def compute(scores: list[SampleScore]) -> Value:
        counts: Calls | None = getattr(compute, _CALLS, None)
        calls = panel_calls(scores, judges, bounds)
        known = None if counts is None else counts()
        if calls is None and known is not None and any(known) and not scores:
            return _calls(judges, known, prices)  # all failed: the host hides what is not scored
        if calls is None:
            return mean_estimates(
                item_readings(scores, bounds),
                allocation=how,
                fixed_repeats=fixed_repeats,
                bounds=bounds,
                level=level,
            )
        found = judge_scores(calls, judges, kept=kept)
        estimate = panel_estimate(
            calls, judges, kept=kept, weighs_judges=weighs_judges, allocation=how, fixed_repeats=fixed_repeats
        )
        mean = describe_panel(
            estimate,
            judge_scores(calls, judges, kept=False),  # what may count goes by the epoch
            allocation=how,
            fixed_repeats=fixed_repeats,
            bounds=bounds or known_range([sample.score.value for sample in scores]),
            level=level,
        )
        values = {**mean.rows, **count_rows(found)}
        if known is None:
            known = (found.counts + found.failed).tolist()
        fixed = found if how is Allocation.FIXED else _first(calls, fixed_repeats, judges, kept)
        values |= (
            bias_rows(found) | component_rows(fixed, one_generation=kept) | _calls(judges, known, prices)
        )
        return dict(finite(values))

    return compute


Calls = Callable[[], Sequence[int] | None]
_CALLS = "__evalbudget_calls__"


def counting(metric: Metric, calls: Calls) -> None:
    """Tell a panel's metric how often each judge was asked: the host hides from it what is not scored.

    Args:
        metric: from :func:`panel_estimates`.
        calls: per judge, those that failed included; None where it is unknown.
    """
    setattr(metric, _CALLS, calls)


def _calls(judges: Sequence[str], calls: Sequence[int], prices: Sequence[float] | None) -> dict[str, float]:
    short = short_names(judges)
    rows = {f"calls_{name}": float(n) for name, n in zip(short, calls, strict=True)}
    if prices is not None:
        paid = zip(short, calls, prices, strict=True)
        rows |= {f"cost_{name}": n * price for name, n, price in paid}
    return rows


def panel_calls(
    scores: Sequence[SampleScore], judges: Sequence[str], bounds: tuple[float, float] | None
) -> list[Call] | None:
    """The scores as judge calls; None if no judge gave them, or they are no numbers."""
    number = {name: i for i, name in enumerate(judges)}
    items: dict[str, int] = {}
    calls: list[Call] = []
    asked = False
    for sample in scores:
        ours = (sample.score.metadata or {}).get(METADATA) or {}
        if not was_asked(ours) and "judge" not in ours:
            continue
        asked |= was_asked(ours)
        try:
            value = score_to_float(sample.score, sample.scorer or "scorer")
        except InvalidInputError:
            return None
        item = items.setdefault(str(sample.sample_id), len(items))
        for judge, read in readings_of(ours, value).items():
            if judge in number:
                read = read if in_range(read, bounds) else float("nan")
                calls.append((item, int(ours["epoch"]) - 1, number[judge], read))
    return calls if asked else None


def panel_estimate(
    calls: Sequence[Call],
    judges: Sequence[str],
    *,
    kept: bool = False,
    weighs_judges: bool = True,
    allocation: Allocation = Allocation.FIXED,
    fixed_repeats: int = 1,
) -> Estimate:
    """The panel's mean as far as the allocation allows."""
    if allocation is Allocation.FIXED:
        scores = judge_scores(calls, judges, kept=kept)
        return panel_mean(scores) if weighs_judges else judge_mean_over_sampled_items(scores)
    scores = judge_scores(calls, judges, kept=False)  # what may count goes by the epoch
    return panel_mean(scores, allocation=allocation, fixed_repeats=fixed_repeats)


def judge_scores(
    calls: Sequence[Call], judges: Sequence[str], *, kept: bool, n: int | None = None
) -> JudgeScores:
    """Calls as scores, of ``n`` items (None: as many as were called).

    Where a generation is kept, all its scores are of the one generation, and a judge's second score of it
    counts as one of another.
    """
    if kept:
        again: dict[tuple[int, int], int] = {}
        renumbered: list[Call] = []
        for item, _, judge, value in sorted(calls, key=lambda call: call[:3]):
            count = again.get((item, judge), 0)
            again[item, judge] = count + 1
            renumbered.append((item, count, judge, value))
        calls = renumbered
    item_, epoch_, judge_, value_ = zip(*calls, strict=True) if calls else ((), (), (), ())
    return JudgeScores.of(item_, epoch_, judge_, value_, judges=judges, n_items=n)


def _first(calls: Sequence[Call], repeats: int, judges: Sequence[str], kept: bool) -> JudgeScores:
    return judge_scores([call for call in calls if call[1] < repeats], judges, kept=kept)
