"""The default sampler: what it chooses, when, and that it then decides as the chosen one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalbudget import Cell, Design
from evalbudget.repeats.samplers import Auto, EBBernstein, RatingKernel
from evalbudget.testing import gaussian, play

K = 12


def rating(cell: Cell) -> float:
    return float(min(4, max(0, round(2 + gaussian(cell)))))


def per_item(cell: Cell) -> float:
    """Items differ, an item's readings never."""
    return float(cell.item % 3)


@pytest.mark.parametrize(
    ("score", "chosen"),
    [(rating, RatingKernel), (gaussian, EBBernstein), (per_item, EBBernstein)],
    ids=["few-levels", "all-different", "no-disagreement"],
)
def test_it_chooses_by_what_the_warm_up_shows(
    score: Callable[[Cell], float], chosen: type[EBBernstein]
) -> None:
    auto = Auto(Design.of_items(K), seed=3)
    play(auto, 3 * K, score=score)
    assert auto.chosen is None  # the warm-up ends with the next request
    (request,) = auto.ask(1)
    assert auto.chosen == chosen.name
    assert request.id == 3 * K
    again = Auto(Design.of_items(K), seed=3)
    other = chosen(Design.of_items(K), seed=3)
    runs = [[e.request for e in play(s, 12 * K, score=score)] for s in (again, other)]
    assert runs[0] == runs[1]


def test_more_than_32_different_scores_leave_it_to_the_variances() -> None:
    for levels, chosen in ((32, "rating-kernel"), (33, "eb-bernstein")):
        auto = Auto(Design.of_items(100))
        play(auto, 301, score=lambda cell, n=levels: float((7 * cell.item + 3 * cell.epoch) % n))
        assert auto.chosen == chosen


def test_it_is_the_one_that_says_so_in_journals() -> None:
    auto = Auto(Design.of_items(2), budget=40)
    assert auto.config["sampler"] == "auto"
    assert auto.config["hold_out"] is True
    assert "budget" not in auto.config  # it changes no decision
    assert auto.warmup == auto.fixed_repeats == 3
    assert auto.chosen is None
