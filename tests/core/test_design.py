from __future__ import annotations

import math

import numpy as np
import pytest

from evalbudget import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError


def test_shape_and_membership() -> None:
    design = Design(items=("a", "b"), models=("m",), raters=("x", "y", "z"))
    assert (design.n_items, design.n_models, design.n_raters) == (2, 1, 3)
    assert Cell(0, 1, 99, 2) in design
    outside = [Cell(1), Cell(item=2), Cell(rater=3), Cell(item=-1), Cell(epoch=-1), Cell(-1), Cell(rater=-1)]
    assert not any(cell in design for cell in outside)
    assert (0, 0, 0, 0) not in design
    assert Design.of_items(3).items == ("0", "1", "2")


@pytest.mark.parametrize("axis", ["items", "models", "raters"])
def test_names_are_there_and_unique(axis: str) -> None:
    for names, complaint in (((), "has no"), (("a", "b", "a"), "'a'"), (("a", ""), "number 1 without")):
        with pytest.raises(InvalidInputError, match=complaint):
            Design(**{"items": ("i",), axis: names})


def test_one_category_per_item() -> None:
    with pytest.raises(InvalidInputError, match="1 categories for 2 items"):
        Design(items=("a", "b"), categories=("c",))


def test_fingerprint_tells_designs_apart() -> None:
    designs = [
        Design(("a", "b")),
        Design(("b", "a")),
        Design(("ab",)),
        Design(("a", "b"), models=("m",)),
        Design(("a",), raters=("b",)),
        Design(("a",), models=("b",)),
    ]
    assert len({d.fingerprint for d in designs}) == len(designs)
    assert Design(("a", "b")).fingerprint == Design(["a", "b"], categories=("x", "y")).fingerprint  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), -1e31])
def test_a_reading_that_is_not_finite_failed(value: float) -> None:
    reading = Reading(Request(0, Cell()), value)
    assert reading.value is None
    assert str(value) in str(reading.error)
    assert Reading(Request(0, Cell()), value, error="timeout").error == "timeout"


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.int64(1), True, 1])
def test_a_reading_holds_a_plain_float(value: float) -> None:
    reading = Reading(Request(0, Cell()), value, cost=np.float32(2))  # type: ignore[arg-type]
    assert (type(reading.value), type(reading.cost)) == (float, float)


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf])
def test_a_reading_costs_a_finite_amount(cost: float) -> None:
    with pytest.raises(InvalidInputError, match="cost"):
        Reading(Request(4, Cell()), 1.0, cost)
