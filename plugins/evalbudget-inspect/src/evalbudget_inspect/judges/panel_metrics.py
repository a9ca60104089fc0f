"""Our rows where judges take turns: what the panel says, each judge's bias, where the variance comes from."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.judges import Call, PanelRows
from evalbudget.judges.estimates import short_names
from evalbudget.repeats import finite
from evalbudget_inspect.host.readings import (
    clusters_of,
    estimates_of,
    phase_of,
    readings_of,
    was_asked,
    without_counts,
)
from evalbudget_inspect.host.score_values import in_range, known_range, score_to_float
from evalbudget_inspect.host.scoring import METADATA


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
    cluster: str | None = None,
) -> Metric:
    """The panel's mean, and how sure it is.

    ``estimate``, ``stderr``, ``lower`` and ``upper``: items and repeats are random, the judges are these
    ones, and every judge weighs the same. ``repeats_stderr``, ``repeats_lower`` and ``repeats_upper``: these
    items asked again. ``bias_<judge>`` is a judge's deviation from the panel's mean. ``variance_<source>``
    and ``share_<source>`` say where the variance of a single score by one of the judges comes from, as far as
    the rotation tells sources apart.

    Where repeats depend on scores, the estimate rests on those that may count for it (see
    ``evalbudget.judges.estimates._panel_mean``), the variances on those bought whatever the scores, and the
    biases on all of them.

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
        cluster: field of the samples' metadata; those with the same value are not independent.
    """
    bounds = (low, high) if low is not None and high is not None else None
    how = Allocation(allocation)

    def compute(scores: list[SampleScore]) -> Value:
        calls = panel_calls(scores, judges, bounds)
        known = bounds or known_range([sample.score.value for sample in scores])
        if calls is None:
            return dict(estimates_of(scores, how, fixed_repeats, known, level, cluster=cluster))
        found = PanelRows(
            calls,
            judges,
            kept=kept,
            weighs_judges=weighs_judges,
            allocation=how,
            fixed_repeats=fixed_repeats,
            bounds=known,
            level=level,
            clusters=clusters_of(filter(_was_called, scores), cluster),
        )
        biases = zip(short_names(judges), found.biases(fixed=False).values(), strict=True)
        rows = {f"bias_{judge}": bias.value for judge, bias in biases} | found.components
        return without_counts(found.mean.rows) | finite(rows)

    return compute


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
        if not _was_called(sample):
            continue
        asked |= was_asked(ours)
        try:
            value = score_to_float(sample.score, sample.scorer or "scorer", strict=True)
        except InvalidInputError:
            return None
        item = items.setdefault(str(sample.sample_id), len(items))
        for judge, read in readings_of(ours, value).items():
            if judge in number:
                read = read if in_range(read, bounds) else float("nan")
                calls.append(Call(item, int(ours["epoch"]) - 1, number[judge], read, phase_of(ours)))
    return calls if asked else None


def _was_called(sample: SampleScore) -> bool:
    ours = (sample.score.metadata or {}).get(METADATA) or {}
    return was_asked(ours) or "judge" in ours
