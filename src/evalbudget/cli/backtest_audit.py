"""``evalbudget backtest`` with samplers of audits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evalbudget.errors import InvalidInputError
from evalbudget.scale import parse_range

if TYPE_CHECKING:
    from evalbudget.backtest import AuditResult, RecordedScores


def audits_on(
    recorded: RecordedScores,
    samplers: list[str],
    allocators: list[str],
    *,
    seeds: int,
    rater: str | None,
    score_range: str | None,
    judge_range: str | None,
    prices: str | None,
    delta: float,
    margin: float,
    epsilon: float,
    max_labels: int | None,
    progress: Callable[[int, int], None],
) -> AuditResult:
    """Compare the systems of a recording by judge and audits, with what a user typed."""
    from evalbudget.backtest import backtest_audits  # numpy takes its time: not for --help

    options: dict[str, dict[str, Any]] = {}
    if max_labels is not None:
        options = {name: {"max_labels": max_labels} for name in samplers}
    return backtest_audits(
        recorded,
        samplers,
        allocators,
        seeds,
        rater=rater,
        score_range=None if score_range is None else parse_range(score_range),
        judge_range=None if judge_range is None else parse_range(judge_range),
        prices=(1.0, 20.0) if prices is None else _prices(prices),
        delta=delta,
        margin=margin,
        epsilon=epsilon,
        sampler_options=options,
        progress=progress,
    )


def _prices(text: str) -> tuple[float, float]:
    try:
        judge, label = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInputError(
            f"--prices {text!r}: with samplers of audits write the price of a judge's score and of a human "
            "label, for example 1,20"
        ) from None
    return judge, label
