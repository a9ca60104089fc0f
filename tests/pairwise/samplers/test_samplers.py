"""Samplers of pairs: their contract, the order of comparisons, who is asked next, and when they stop."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations
from typing import Any, ClassVar

import pytest
from tests.claims import only

from evalbudget import Cell, Design, Sampler
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import plugins
from evalbudget.testing import SamplerContract, play
from evalbudget.testing._contract import SCORES
from evalbudget_pairwise.samplers import PAIRS, Duel, PairSampler, UniformPairs, duels


class PairContract(SamplerContract):
    n_models = 2
    n_items = 12
    score_range = (0.0, 1.0)
    options: ClassVar[dict[str, Any]] = {"batch": 3}
    sampler: ClassVar[type[PairSampler]] = Duel

    def make(self, design: Design, seed: int) -> Sampler:
        return self.sampler(design, seed=seed, **self.options)

    @pytest.mark.parametrize("score", only({"all-equal", "late-surprise", "huge-and-tiny"}, SCORES))
    def test_any_finite_scores_are_taken(self, score: Any) -> None:
        super().test_any_finite_scores_are_taken(score)


class TestDuelOfTwo(PairContract):
    pass


class TestDuelOfThree(PairContract):
    n_models = 6
    n_items = 8


class TestDuelInBothOrders(PairContract):
    options: ClassVar[dict[str, Any]] = {"orders": "both", "batch": 4}


class TestDuelUntilProved(PairContract):
    n_models = 6
    asks_everything = False
    options: ClassVar[dict[str, Any]] = {"until_proved": True, "batch": 2, "delta": 0.3}


class TestUniform(PairContract):
    n_models = 6
    n_items = 8
    sampler = UniformPairs


def design(n_items: int, n_models: int = 2) -> Design:
    return duels([f"item {i}" for i in range(n_items)], [f"model {m}" for m in range(n_models)], "judge")


def strong(sampler: PairSampler, strength: list[float]) -> Any:
    """A judge who prefers the stronger one, by chance, whichever is first."""

    def score(cell: Cell) -> float:
        first, second = sampler.shown(cell)
        gap = strength[first] - strength[second]
        return float(random.Random(f"{cell}").random() < 0.5 + gap / 2.0)

    return score


def cells_of(sampler: PairSampler, n: int, score: Any = lambda cell: 0.5) -> list[Cell]:
    """In the order of asking."""
    return [reading.request.cell for reading in play(sampler, n, score=score).readings]


def played(sampler: PairSampler, n: int, strength: list[float]) -> Counter[tuple[int, int]]:
    """How often every two models met."""
    shown = [sampler.shown(cell) for cell in cells_of(sampler, n, strong(sampler, strength))]
    return Counter((min(pair), max(pair)) for pair in shown)


def test_they_are_registered_as_samplers_of_pairs_alone() -> None:
    assert plugins().sampler("duel", PAIRS) is Duel
    assert plugins().sampler("uniform", PAIRS) is UniformPairs
    with pytest.raises(UnknownNameError, match="Did you mean 'duel'"):
        plugins().sampler("duell", PAIRS)
    with pytest.raises(InvalidInputError, match="inspect pairwise"):
        plugins().sampler("duel")


def test_a_design_has_every_two_models_in_both_orders() -> None:
    sampler = Duel(design(2, 4))
    shown = [sampler.shown(Cell(model=number)) for number in range(12)]
    assert shown == list(permutations(range(4), 2))
    assert sampler.design.models[0] == "model 0\nmodel 1"


@pytest.mark.parametrize("seed", [0, 1])
def test_fresh_items_come_first_with_alternating_orders_and_one_in_ten_in_both(seed: int) -> None:
    first_pass = cells_of(Duel(design(100), seed=seed), 110)
    items = Counter(cell.item for cell in first_pass)
    assert len(items) == 100
    assert sum(count == 2 for count in items.values()) == 10
    first_shown: dict[int, int] = {}
    for cell in first_pass:
        first_shown.setdefault(cell.item, cell.model)
    assert Counter(first_shown.values()) == {0: 50, 1: 50}


def test_both_orders_of_an_item_are_asked_together() -> None:
    cells = cells_of(Duel(design(10), orders="both"), 8)
    assert [cell.item for cell in cells[::2]] == [cell.item for cell in cells[1::2]]
    assert all(one.model != other.model for one, other in zip(cells[::2], cells[1::2], strict=True))


def test_the_leader_and_its_challenger_are_asked_most() -> None:
    met = played(Duel(design(400, 4)), 600, [1.0, 0.85, 0.2, 0.1])
    assert min(met.values()) >= 8
    assert met[0, 1] > 0.6 * 600
    even = played(UniformPairs(design(400, 4)), 600, [1.0, 0.85, 0.2, 0.1])
    assert max(even.values()) - min(even.values()) <= 8


def test_until_proved_it_stops_at_a_winner() -> None:
    sampler = Duel(design(300, 3), until_proved=True)
    met = play(sampler, 5000, score=strong(sampler, [0.9, 0.3, 0.1]))
    assert sampler.winner == 0
    assert met.stopped == "a winner is proved"
    assert len(met.readings) < 300


def test_it_stops_where_nobody_can_win() -> None:
    sampler = Duel(design(300, 3), until_proved=True)

    def circle(cell: Cell) -> float:
        first, second = sampler.shown(cell)
        return float((second - first) % 3 == 1)

    met = play(sampler, 5000, score=circle)
    assert sampler.winner is None
    assert met.stopped == "every model is proved to be beaten by another one, so there is no winner"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Duel(Design.of_items(3)), "ordered pairs"),
        (lambda: Duel(Design(("a",), ("m", "n", "o"))), "ordered pairs"),
        (lambda: Duel(Design(("a",), ("m", "n"), ("j", "k"))), "one judge"),
        (lambda: Duel(design(3), batch=0), "1 comparison or more"),
        (lambda: Duel(design(3), delta=0.0), "no probability"),
        (lambda: duels(["a"], ["m"], "j"), "between two"),
    ],
)
def test_bad_input_is_refused(make: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        make()


def test_unknown_orders_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="both"):
        Duel(design(3), orders="bth")


def test_models_may_have_lines_in_their_names() -> None:
    names = ["a", "b\nc", "a\nb", "c"]
    design = duels(["x", "y"], names, "judge")
    assert len(set(design.models)) == 12
