"""Joint allocation over several scores, against a hand calculation and against the sampler of one score."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evalbudget import Cell, Design
from evalbudget.repeats.samplers import Auto
from evalbudget.testing import gaussian
from references.joint_scores import JointScores, OneNumber

K = 12
Score = Callable[[Cell], float]


def rating(cell: Cell) -> float:
    return float(min(4, max(0, round(2 + (1 + cell.item % 3) * gaussian(cell) / 2))))


def cells(chooser: Any, scores: list[Score], n: int) -> list[tuple[Cell, float | None]]:
    found = []
    for _ in range(n):
        request = chooser.ask()
        found.append((request.cell, request.weight))
        chooser.tell([score(request.cell) for score in scores])
    return found


@pytest.mark.parametrize("total", [False, True], ids=["largest", "sum"])
def test_the_urgency_is_what_a_hand_calculation_says(total: bool) -> None:
    values = {  # of epochs 1 and 2; epoch 0 is held out
        (0, 0): (0.0, 1.0),
        (0, 1): (0.1, 0.3),
        (1, 0): (1.0, 2.0),
        (1, 1): (3.0, 9.0),
    }
    ranges, squares = (1.0, 10.0), {0: (0.5, 0.02), 1: (0.5, 18.0)}
    chooser = JointScores(Design.of_items(2), ranges, total=total, budget=20)
    scores = [lambda cell, d=d: values[d, cell.item][cell.epoch - 1] if cell.epoch else 5.0 for d in (0, 1)]
    cells(chooser, scores, 6)
    last = chooser.ask().cell.item

    errors = np.empty((2, 2))  # score, item
    for d, ss in squares.items():
        m = sum(ss) / 2
        q = sum(s * s / 3 for s in ss) / 2
        kappa = 2 + 2 * m * m / (q - m * m + (ss[0] - ss[1]) ** 2 / 2 / 2)
        assert q - m * m + (ss[0] - ss[1]) ** 2 / 4 > 0.001 * m * m
        for i in (0, 1):
            n = 3 + (i == last)
            v = (kappa * m + ss[i]) / (kappa + 1)
            errors[d, i] = (math.sqrt(v / n) + math.sqrt(math.log(2)) * math.sqrt(m) / n) / ranges[d]
    expected = (errors**2).sum(axis=0) if total else errors.max(axis=0)
    assert [chooser.urgency(i) for i in (0, 1)] == pytest.approx(expected)


@pytest.mark.parametrize("score", [rating, gaussian], ids=["rating-kernel", "eb-bernstein"])
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("total", [False, True], ids=["largest", "sum"])
def test_one_score_or_copies_of_it_are_decided_as_by_auto(score: Score, copies: int, total: bool) -> None:
    units = [10.0**d for d in range(copies)]
    scores: list[Score] = [lambda cell, unit=unit: unit * score(cell) for unit in units]
    design = Design.of_items(K)
    chooser = JointScores(design, units, total=total, budget=20 * K, seed=3)
    chooser._heap = chooser._samplers[0]._ranked(chooser._samplers[0]._order)  # so that ties fall alike
    alone = OneNumber(Auto(design, budget=20 * K, seed=3), [1.0])
    assert cells(chooser, scores, 20 * K) == cells(alone, [score], 20 * K)


def test_held_out_readings_steer_nothing_and_all_scores_have_the_same_weights() -> None:
    def other(cell: Cell) -> float:
        return gaussian(cell._replace(item=cell.item + 100)) * (1 + cell.item % 4)

    def lying(cell: Cell) -> float:
        return other(cell) + (1000.0 if cell.epoch == 0 else 0.0)

    design = Design.of_items(K)
    runs = [
        cells(JointScores(design, [5.0, 9.0], budget=20 * K), [rating, second], 20 * K)
        for second in (other, lying)
    ]
    assert runs[0] == runs[1]
    chooser = JointScores(design, [5.0, 9.0], budget=20 * K)
    for _ in range(10 * K):
        request = chooser.ask()
        assert {one.weight for one in chooser._requests} == {request.weight}
        chooser.tell([rating(request.cell), other(request.cell)])


def test_the_score_that_varies_decides() -> None:
    def flat(cell: Cell) -> float:
        return float(cell.item)

    def noisy_at_0(cell: Cell) -> float:
        return gaussian(cell) * (5.0 if cell.item == 0 else 0.1)

    for scores in ([flat, noisy_at_0], [noisy_at_0, flat]):
        chooser = JointScores(Design.of_items(K), [1.0, 1.0], budget=10 * K)
        asked = [cell.item for cell, _ in cells(chooser, scores, 10 * K)]
        assert asked.count(0) > 2 * 10 * K / K


def test_a_mean_of_scores_is_what_the_sampler_is_told() -> None:
    told = []

    class Listening(Auto):
        def tell(self, readings: Any) -> None:
            readings = tuple(readings)
            told.extend(reading.value for reading in readings)
            super().tell(readings)

    chooser = OneNumber(Listening(Design.of_items(2)), [0.5, 0.0, 0.05])
    chooser.ask()
    chooser.tell([1.0, math.nan, 10.0])
    assert told == [1.0]
