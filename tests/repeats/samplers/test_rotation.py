"""Repeats under judges that take turns: the contract, and what is learned once judges are taken out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.asking import Asking, counts_of
from tests.claims import only

from evalbudget import Cell, Design, Reading, Sampler
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.judges.schedules import Cyclic
from evalbudget.repeats.samplers import EBBernstein, RatingKernel, RepeatSampler, Uniform
from evalbudget.statistics._judge_effects import judge_effects
from evalbudget.testing import SamplerContract, gaussian, play
from evalbudget.testing._contract import SCORES


def rotated(name: str, design: Design, seed: int = 0, **options: Any) -> RepeatSampler:
    sampler: Any = plugins().sampler(name)(design, seed=seed, **options)
    schedule = Cyclic(design.items, design.raters, epochs=8, seed=seed)
    sampler.rotate(lambda item, epoch: schedule.judges_for(item, epoch)[0], rotation="cyclic")
    assert isinstance(sampler, RepeatSampler)
    return sampler


class TestRotated(SamplerContract):
    n_raters = 3

    @pytest.fixture(
        autouse=True,
        params=[
            ("uniform", {}),
            ("eb-bernstein", {}),
            ("robin-hood", {"t0": 3}),
            ("rating-kernel", {}),
            ("auto", {}),
        ],
        ids=lambda given: " ".join([given[0], *map(str, given[1])]),
    )
    def _use(self, request: pytest.FixtureRequest) -> None:
        self._name, self._options = request.param

    def make(self, design: Design, seed: int) -> Sampler:
        return rotated(self._name, design, seed, **self._options)

    # how ratings spread is shown by the contracts of each sampler alone
    @pytest.mark.parametrize("score", only({"all-equal", "late-surprise", "huge-and-tiny"}, SCORES))
    def test_any_finite_scores_are_taken(self, score: Any) -> None:
        super().test_any_finite_scores_are_taken(score)


def panel(n_items: int, n_judges: int = 3) -> Design:
    return Design(
        items=tuple(f"item {i}" for i in range(n_items)), raters=tuple(f"judge {j}" for j in range(n_judges))
    )


@pytest.mark.parametrize("name", ["eb-bernstein", "robin-hood"])
def test_judges_that_only_differ_by_a_constant_change_no_decision(name: str) -> None:
    # the biases are dyadic and the scores too, so that taking them out is exact
    def score(cell: Cell) -> float:
        return gaussian(cell._replace(rater=0))

    def biased(cell: Cell) -> float:
        return score(cell) + (-64.0, 0.0, 64.0)[cell.rater]

    runs = [
        [
            reading.request.cell
            for reading in play(
                rotated(name, panel(7), **({"t0": 3} if name == "robin-hood" else {})), 140, score=s
            ).readings
        ]
        for s in (score, biased)
    ]
    # the least-squares fit differs between the runs by its share of the noise, and in nothing else
    counts = [Counter(cell.item for cell in run) for run in runs]
    assert counts[0] == counts[1]


def test_without_rotation_the_same_biases_pass_for_noise() -> None:
    """What the test above would see."""

    def biased(cell: Cell) -> float:
        return gaussian(cell._replace(rater=0)) + (-64.0, 0.0, 64.0)[cell.epoch % 3]

    plain = [
        Counter(r.request.cell.item for r in play(EBBernstein(Design.of_items(7)), 140, score=s).readings)
        for s in (gaussian, biased)
    ]
    assert plain[0] != plain[1]


def test_effects_against_dense_least_squares() -> None:
    rng = np.random.default_rng(0)
    item, judge = rng.integers(12, size=90), rng.integers(4, size=90)
    value = rng.normal(size=12)[item] + np.array([0.5, -1.0, 2.0, 0.0])[judge] + rng.normal(size=90)
    X = np.hstack([np.eye(12)[item], np.eye(4)[judge]])
    gamma = np.linalg.lstsq(X, value, rcond=None)[0][12:]
    found = judge_effects(item, judge, value, 4)
    assert np.allclose(found, gamma - gamma.mean())


def test_judges_that_never_meet_are_not_compared() -> None:
    # judges 0 and 1 share items, 2 and 3 share items, but the pairs do not
    item = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    judge = np.array([0, 1, 0, 1, 2, 3, 2, 3])
    value = np.array([0.0, 1.0, 0.0, 1.0, 50.0, 54.0, 60.0, 64.0])
    found = judge_effects(item, judge, value, 4)
    assert np.allclose(found, [-0.5, 0.5, -2.0, 2.0])


def test_nothing_scored_has_no_effects() -> None:
    empty = np.zeros(0, dtype=np.int64)
    assert judge_effects(empty, empty, np.zeros(0), 3).tolist() == [0.0, 0.0, 0.0]


def test_consecutive_readings_of_an_item_go_to_different_judges() -> None:
    sampler = rotated("eb-bernstein", panel(5))
    by_item: dict[int, list[int]] = {}
    for reading in play(sampler, 60).readings:
        cell = reading.request.cell
        by_item.setdefault(cell.item, []).append(cell.rater)
    for raters in by_item.values():
        assert set(raters[:3]) == {0, 1, 2}


@pytest.mark.parametrize("part", [1, 5, 17, 29])
def test_judges_are_balanced_within_a_round_too(part: int) -> None:
    sampler = rotated("uniform", panel(30))
    calls = Counter(reading.request.cell.rater for reading in play(sampler, 30 + part).readings)
    assert max(calls.values()) - min(calls[j] for j in range(3)) <= 1


def test_one_judge_that_always_fails_closes_no_item() -> None:
    design, asked = panel(6), dict[tuple[int, int], int]()
    schedule = Cyclic(design.items, design.raters, epochs=8)
    sampler = EBBernstein(design)
    # as a host deals them: each call of an item has a judge of its own
    sampler.rotate(lambda item, epoch: schedule.judges_for(item, asked.get((item, epoch), epoch))[0])
    book = Asking(sampler)
    for _ in range(120):
        (request,) = book.ask(1)
        item, epoch = request.cell.item, request.cell.epoch
        asked[item, epoch] = call = book.book.attempt(request)
        judge = schedule.judges_for(item, call)[0]
        book.tell([Reading(request, None if judge == 1 else gaussian(request.cell._replace(rater=judge)))])
    assert book.closed == ()
    assert min(book.counts()) >= 3


def test_an_item_that_every_judge_fails_on_closes() -> None:
    def score(cell: Cell) -> float | None:
        return None if cell.item == 2 else gaussian(cell)

    sampler = rotated("eb-bernstein", panel(6))
    played = play(sampler, 60, score=score)
    assert played.closed == (Cell(item=2),)
    assert counts_of(played, 6)[2] == 0


def test_huge_scores_stay_finite() -> None:
    sampler = rotated("eb-bernstein", panel(4))
    assert sum(counts_of(play(sampler, 40, score=lambda cell: 1e29 * gaussian(cell)), 4)) == 40


def test_several_raters_without_rotation_are_refused() -> None:
    sampler = Uniform(panel(3))
    with pytest.raises(InvalidInputError, match="does not know who scores what"):
        play(sampler, 1)


def test_rotation_of_one_judge_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="has the one rater 'rater'"):
        Uniform(Design.of_items(3)).rotate(lambda item, epoch: 0)


def test_the_rotation_is_part_of_the_configuration() -> None:
    assert rotated("rating-kernel", panel(3)).config["rotation"] == "cyclic"
    assert "rotation" not in RatingKernel(Design.of_items(3)).config
