"""Several scores of every answer: the contract, a hand calculation, the measured reference, honest means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from evalbudget import Cell, Design, Reading, Request, Sampler
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items
from evalbudget.repeats.samplers import Auto, Joint
from evalbudget.run import JournalFile, drive
from evalbudget.testing import SamplerContract, gaussian
from references.joint_scores import JointScores

K = 12
Score = Callable[[Cell], float]


def rating(cell: Cell) -> float:
    return float(min(4, max(0, round(2 + (1 + cell.item % 3) * gaussian(cell) / 2))))


def other(cell: Cell) -> float:
    return gaussian(cell._replace(item=cell.item + 100)) * (1 + cell.item % 4)


class Accompanied(Joint):
    """Told the first score only; the second follows from the cell."""

    def tell(self, readings: Iterable[Reading]) -> None:
        super().tell(replace(r, beside=() if r.value is None else (other(r.request.cell),)) for r in readings)


class TestJoint(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return Accompanied(design, ranges=(4.0, 8.0), seed=seed)


class TestJointOfItemScoresOnly(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return Accompanied(design, ranges=(1.0, 8.0), hold_out=False, warmup=2, seed=seed)


class TestJointOfOneScore(SamplerContract):
    def make(self, design: Design, seed: int) -> Sampler:
        return Joint(design, ranges=(4.0,), seed=seed)


class TestJointWithJudgesInTurn(SamplerContract):
    n_raters = 3

    def make(self, design: Design, seed: int) -> Sampler:
        sampler = Accompanied(design, ranges=(4.0, 8.0), seed=seed)
        sampler.rotate(lambda item, epoch: (item + epoch) % 3)
        return sampler


def run(sampler: Sampler, scores: list[Score], n: int) -> list[Request]:
    requests = []
    for _ in range(n):
        (request,) = sampler.ask()
        value, *beside = (score(request.cell) for score in scores)
        sampler.tell((Reading(request, value, beside=tuple(beside)),))
        requests.append(request)
    return requests


def test_the_urgency_is_what_a_hand_calculation_says() -> None:
    values = {(0, 0): (0.0, 1.0), (0, 1): (0.1, 0.3), (1, 0): (1.0, 2.0), (1, 1): (3.0, 9.0)}
    ranges, squares = (1.0, 10.0), ((0.5, 0.02), (0.5, 18.0))
    sampler = Joint(Design.of_items(2), ranges=ranges, budget=20)
    scores: list[Score] = [
        lambda cell, d=d: values[d, cell.item][cell.epoch - 1] if cell.epoch else 5.0 for d in (0, 1)
    ]
    run(sampler, scores, 6)
    last = sampler.ask()[0].cell.item
    for i in (0, 1):
        n, errors = 3 + (i == last), []
        for ss, r in zip(squares, ranges, strict=True):
            m, q = sum(ss) / 2, sum(s * s / 3 for s in ss) / 2
            kappa = 2 + 2 * m * m / (q - m * m + (ss[0] - ss[1]) ** 2 / 4)
            v = (kappa * m + ss[i]) / (kappa + 1)
            errors.append((math.sqrt(v / n) + math.sqrt(math.log(2) * m) / n) / r)
        assert sampler._urgency(i) == pytest.approx(max(errors))


@pytest.mark.parametrize("score", [rating, gaussian], ids=["rating-kernel", "eb-bernstein"])
@pytest.mark.parametrize("copies", [1, 2])
def test_one_score_or_copies_of_it_are_decided_as_by_auto(score: Score, copies: int) -> None:
    units = [10.0**d for d in range(copies)]
    scores: list[Score] = [lambda cell, unit=unit: unit * score(cell) for unit in units]
    joint = Joint(Design.of_items(K), ranges=units, budget=20 * K, seed=3)
    alone = Auto(Design.of_items(K), budget=20 * K, seed=3)
    assert run(joint, scores, 20 * K) == run(alone, [score], 20 * K)


def test_it_decides_as_the_reference_that_was_measured() -> None:
    reference = JointScores(Design.of_items(K), (4.0, 12.0), budget=20 * K, seed=3)
    reference._heap = reference._samplers[0]._ranked(reference._samplers[0]._order)  # so that ties fall alike
    found = []
    for _ in range(20 * K):
        found.append(reference.ask())
        reference.tell([rating(found[-1].cell), other(found[-1].cell)])
    joint = Joint(Design.of_items(K), ranges=(4.0, 12.0), budget=20 * K, seed=3)
    assert run(joint, [rating, other], 20 * K) == found


def test_held_out_readings_steer_nothing() -> None:
    def lying(cell: Cell) -> float:
        return other(cell) + (1000.0 if cell.epoch == 0 else 0.0)

    runs = [
        run(Joint(Design.of_items(K), ranges=(4.0, 8.0), budget=20 * K), [rating, second], 20 * K)
        for second in (other, lying)
    ]
    assert runs[0] == runs[1]


def test_the_benchmark_mean_of_every_score_is_unbiased() -> None:
    """Passes of unlike rates; the plain mean would be 1 to 3 standard deviations off."""
    rates = np.column_stack([np.linspace(0.7, 0.99, 30), np.linspace(0.99, 0.8, 30)])
    errors = np.empty((100, 2))
    for seed in range(len(errors)):
        rng = np.random.default_rng(seed)
        joint, bought = Joint(Design.of_items(30), ranges=(1.0, 1.0), budget=300, seed=seed), []
        for _ in range(300):
            (request,) = joint.ask()
            value, beside = (rng.random(2) < rates[request.cell.item]).astype(float).tolist()
            bought.append(Reading(request, value, beside=(beside,)))
            joint.tell(bought[-1:])
        for d in (0, 1):
            readings = ItemReadings.of_bought(bought, 30, score=d)
            estimate = mean_over_fixed_items(readings, allocation=joint.allocation, fixed_repeats=3)
            errors[seed, d] = estimate.value - rates[:, d].mean()
    z = errors.mean(axis=0) / errors.std(axis=0, ddof=1) * math.sqrt(len(errors))
    assert np.abs(z).max() < 4.0


def test_a_driven_run_goes_on_from_its_journal(tmp_path: Path) -> None:
    async def answer(request: Request) -> Reading:
        if request.id % 7 == 3:
            return Reading(request, rating(request.cell), beside=(math.nan,))
        return Reading(request, rating(request.cell), beside=(other(request.cell),))

    def bought(path: Path, budget: int) -> list[Reading]:
        sampler = Joint(Design.of_items(K), ranges=(4.0, 8.0), budget=10 * K)

        async def main() -> Any:
            return await drive(sampler, answer, budget=budget, concurrency=1, journal=path)

        return list(anyio.run(main).readings)

    whole = bought(tmp_path / "whole", 10 * K)
    bought(tmp_path / "parts", 5 * K)
    assert bought(tmp_path / "parts", 10 * K) == whole
    with JournalFile.open(tmp_path / "parts") as file:
        assert list(file.journal.readings) == whole
    assert sum(reading.value is None for reading in whole) > 10
    assert {len(reading.beside) for reading in whole if reading.value is not None} == {1}


def test_readings_without_all_scores_are_refused() -> None:
    sampler = Joint(Design.of_items(K), ranges=(4.0, 8.0, 1.0))
    (request,) = sampler.ask()
    with pytest.raises(InvalidInputError, match="3 ranges, but the reading of request 0 brings 2 scores"):
        sampler.tell([Reading(request, 1.0, beside=(2.0,))])
    sampler.tell([Reading(request, 1.0, beside=(2.0, 3.0))])
    with pytest.raises(InvalidInputError, match="brings 2; they are counted from 0"):
        ItemReadings.of_bought([Reading(request, 1.0, beside=(2.0,))], K, score=2)


@pytest.mark.parametrize("ranges", [(), (1.0, 0.0), (math.inf,), (1.0, math.nan), (-1.0,)])
def test_ranges_that_are_no_ranges_are_refused(ranges: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="one positive, finite range per score"):
        Joint(Design.of_items(K), ranges=ranges)
