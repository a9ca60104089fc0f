"""Our rows among the metrics of an arm's log."""

from __future__ import annotations

import math

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from evalbudget.errors import InvalidInputError
from evalbudget.repeats import finite
from evalbudget.statistics import known_mean
from evalbudget_inspect.host.current_run import current_run
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import RACE_METRIC
from evalbudget_inspect.races.all_races import gate_of_run, standing_of

_OF_ONE = ("estimate", "stderr", "lower", "upper", "readings")
_OF_CLUSTERS = ("estimate", "readings")
"""Where items or answers belong together: errors that take them for independent would be too small."""
_ROWS = (
    "estimate",
    "stderr",
    "lower",
    "upper",
    "all_lower",
    "all_upper",
    "rank",
    "rank_best",
    "rank_worst",
    "dropped_at",
    "readings",
)


@metric(name=RACE_METRIC, scores="unreduced")
def race_estimates(score: str = "", key: str | None = None) -> Metric:
    """Where this model stands in the race.

    ``estimate`` is of the mean over the benchmark's items; ``stderr``, ``lower`` and ``upper`` take items and
    repeats for random, as the host's own ``stderr`` does. ``all_lower`` and ``all_upper`` are of the mean
    over these very items, for all models at once, whenever one looks. ``rank`` is by estimate, ``rank_best``
    and ``rank_worst`` what the latter allow. ``dropped_at`` is the number of evaluations of all models when
    the sampler asked this one nothing more, absent if it did not drop it. ``readings`` counts its scores.

    In a gate there are no ranks: ``difference`` is of the candidate less the baseline, with its interval, in
    the candidate's log.

    Scored again outside of a race, only the mean of the scores and their number are left.

    Args:
        score: name of the scorer that decides.
        key: of its scores, if they are dicts.
    """

    def compute(scores: list[SampleScore]) -> Value:
        run = current_run.get()
        standing = None if run is None else standing_of(run)
        if standing is None:
            return dict(_mean(scores, score, key))
        gate = None if run is None else gate_of_run(run)
        if gate is not None:
            low, high = gate.interval
            told = {"difference": gate.difference, "difference_lower": low, "difference_upper": high}
            told = told if standing.name == gate.candidate else {}
            rows = _OF_CLUSTERS if gate.cluster is not None or gate.repeats > 1 else _OF_ONE
            known = {name: getattr(standing, name) for name in rows}
            return _led(finite(told | {name: value for name, value in known.items() if value is not None}))
        values = {name: getattr(standing, name) for name in _ROWS}
        return _led({name: float(value) for name, value in values.items() if value is not None})

    return compute


def _mean(scores: list[SampleScore], name: str, key: str | None) -> dict[str, float]:
    values = []
    for sample in scores:
        try:
            values.append(score_to_float(sample.score, name, key))
        except InvalidInputError:
            return _led({})
    return _led(finite({"estimate": known_mean(values), "readings": float(sum(map(math.isfinite, values)))}))


def _led(rows: dict[str, float]) -> dict[str, float]:
    """With an estimate, if only nan where there is none: the host looks for it, and says where it is not."""
    return {"estimate": math.nan} | rows
