"""Percent of one model beside fractions of another: refused; weak models on one scale are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import Baseline, compare, gate
from evalbudget.doctor import diagnose
from evalbudget.errors import InvalidInferenceError
from evalbudget.report import report


def scored(**models: Sequence[float]) -> RecordedScores:
    """Each model's scores, as often as makes 40 items."""
    table = np.array([np.resize(own, 40) for own in models.values()], dtype=float)
    return RecordedScores(
        table[:, :, None, None], tuple(models), tuple(map(str, range(40))), ("exact_match",)
    )


def gated(both: RecordedScores) -> object:
    first, second = (both.part(models=np.array([number])) for number in (0, 1))
    return gate(Baseline.of(first, name="kept"), second, margin=5.0, score_range=(0.0, 100.0))


@pytest.mark.parametrize(
    ("percent", "fraction"),
    [([0, 100, 100], [0, 1, 1, 0]), ([0, 50, 100], [0, 0.5, 1]), ([0, 100], [0.25, 1])],
    ids=["two-valued", "graded", "mixed"],
)
@pytest.mark.parametrize("asked", [compare, report, lambda both: diagnose(both, []), gated])
def test_percent_beside_fractions_is_refused(
    asked: Callable[[RecordedScores], object], percent: list[float], fraction: list[float]
) -> None:
    with pytest.raises(InvalidInferenceError, match="100") as refused:
        asked(scored(a=percent, b=fraction))
    for word in ("a ", "b ", "look like percent", "to 1) like fractions", "Divide the former by 100"):
        assert word in str(refused.value)


def test_a_third_model_changes_nothing_of_that_and_a_declared_range_does() -> None:
    three = scored(a=[0, 1], b=[0, 100], c=[55, 100])
    with pytest.raises(InvalidInferenceError, match="look like percent"):
        compare(three)
    assert len(compare(three, score_range=(0.0, 100.0)).rows) == 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0, 100, 100], [0, 0, 0]),
        ([0, 100, 37, 80], [0, 1, 0, 1]),
        ([0, 100, 0.4, 80], [0.2, 1, 0, 1]),
        ([0, 90, 75], [0, 0.5, 1]),
        ([0, 100, 50], [0, 0.5, 0.75]),
    ],
    ids=["all wrong", "whole points", "fractions of percent", "never 100", "never 1"],
)
@pytest.mark.parametrize("asked", [compare, report, lambda both: diagnose(both, []), gated])
def test_weak_models_on_one_scale_are_not(
    asked: Callable[[RecordedScores], object], first: list[float], second: list[float]
) -> None:
    asked(scored(a=first, b=second))
