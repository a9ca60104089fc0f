from __future__ import annotations

import numpy as np
import pytest

from evalbudget import Allocation
from evalbudget.judges._panel import Call, PanelRows
from evalbudget.judges.estimates import JudgeScores, judge_corrected, judge_corrected_generations
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items

N_ITEMS, EPOCHS, JUDGES = 30, 6, ("a", "b", "c")


def crossed(seed: int) -> JudgeScores:
    """Three judges score every answer; answers differ much, judges of one answer little."""
    rng = np.random.default_rng(seed)
    item, epoch, judge = (x.ravel() for x in np.indices((N_ITEMS, EPOCHS, len(JUDGES))))
    answer = rng.normal(5.0, 1.0, (N_ITEMS, EPOCHS))
    value = answer[item, epoch] + rng.normal(0.0, 0.3, item.size) + np.array([-1.0, 0.0, 1.0])[judge]
    return JudgeScores.of(item, epoch, judge, value, judges=JUDGES, n_items=N_ITEMS)


def test_an_answer_scored_by_several_judges_is_one_repeat() -> None:
    scores = crossed(0)
    found = judge_corrected_generations(scores)
    assert found.counts.tolist() == [EPOCHS] * N_ITEMS
    assert found.epoch.tolist() == list(range(EPOCHS)) * N_ITEMS
    assert found.moments.mean == pytest.approx(judge_corrected(scores).moments.mean)


def test_the_error_of_repeats_is_that_of_answers() -> None:
    """The standard deviation over many panels of the same items: sqrt((1 + .09/3) / (6 * 30))."""
    truth = np.sqrt((1.0 + 0.09 / 3) / (EPOCHS * N_ITEMS))
    printed = []
    for seed in range(20):
        scores = crossed(seed)
        columns = (scores.item, scores.epoch, scores.judge, scores.value)
        calls = [Call(*call) for call in zip(*(column.tolist() for column in columns), strict=True)]
        printed.append(PanelRows(calls, JUDGES).mean.rows["repeats_stderr"])
    assert np.mean(printed) == pytest.approx(truth, rel=0.05)


def test_phases_that_were_lost_leave_the_first_readings() -> None:
    rng = np.random.default_rng(0)
    item, epoch = np.repeat(np.arange(5), 4), np.tile(np.arange(4), 5)
    value = rng.normal(0.0, 1.0, 20)
    bare = ItemReadings.of(item, epoch, value, phase=np.full(20, np.nan))
    found = mean_over_fixed_items(bare, allocation=Allocation.PHASED, fixed_repeats=3)
    first = mean_over_fixed_items(
        ItemReadings.of(item, epoch, value), allocation=Allocation.ADAPTIVE, fixed_repeats=3
    )
    assert (found.value, found.standard_error) == (first.value, first.standard_error)
