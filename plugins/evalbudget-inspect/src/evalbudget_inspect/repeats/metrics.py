"""Our rows among the host's metrics: what the bought scores prove about the benchmark mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from evalbudget import Allocation
from evalbudget.hooks import plugins
from evalbudget_inspect.host.current_run import current_run
from evalbudget_inspect.host.readings import estimates_of, without_counts
from evalbudget_inspect.host.score_values import known_range

_of_all: dict[str, Callable[[], Mapping[str, float]]] = {}


def share_rows(eval_id: str, rows: Callable[[], Mapping[str, float]]) -> None:
    """Have the rows of a run be these, of the readings of all processes that share its budget."""
    _of_all[eval_id] = rows


@metric(name="evalbudget", scores="unreduced")
def budget_estimates(
    allocation: str = "fixed",
    fixed_repeats: int = 1,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
    accuracy: bool = False,
    estimators: Sequence[str] = (),
    cluster: str | None = None,
) -> Metric:
    """The benchmark mean, and how sure it is.

    ``estimate``, ``stderr``, ``lower`` and ``upper``: items and repeats are random. ``repeats_stderr``,
    ``repeats_lower`` and ``repeats_upper``: these items asked again, only the repeats are random. The
    intervals are for a fixed number of readings and asymptotic; the rules are those of
    :func:`~evalbudget.repeats._mean_rows.mean_rows`.

    Args:
        allocation: how the sampler's counts depend on scores; see ``evalbudget.Allocation``.
        fixed_repeats: readings every item got whatever its scores were.
        low: the smallest possible score, if declared.
        high: the largest possible score, if declared.
        level: of the intervals.
        accuracy: the scorer's own metrics include the host's ``accuracy``.
        estimators: names of further ones, whose rows are added.
        cluster: field of the samples' metadata; those with the same value are not independent.

    Raises:
        UnknownNameError: no such estimator is installed.
    """
    further = [plugins().estimator(name) for name in estimators]
    bounds = (low, high) if low is not None and high is not None else None

    def compute(scores: list[SampleScore]) -> Value:
        run = current_run.get()
        if run is not None and run.spec.eval_id in _of_all:
            return without_counts(_of_all[run.spec.eval_id]())
        known = bounds or known_range([s.score.value for s in scores], accuracy=accuracy)
        how = Allocation(allocation)
        return dict(estimates_of(scores, how, fixed_repeats, known, level, further, cluster))

    return compute
