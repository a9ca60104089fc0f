from __future__ import annotations

import pytest

from evalbudget import Cell, Design, Reading
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers import EBBernstein, Uniform


@pytest.mark.parametrize("sampler", [Uniform, EBBernstein])
def test_a_cell_cannot_be_adopted_twice(sampler: type[Uniform | EBBernstein]) -> None:
    mine = sampler(Design.of_items(2))
    for epoch in (0, 1, 2, 3):
        mine.tell([Reading(mine.adopt(Cell(epoch=epoch)), 1.0)])
    for epoch in (0, 3):
        with pytest.raises(InvalidInputError, match="asked before"):
            mine.adopt(Cell(epoch=epoch))
    assert mine.asked == 4


def test_what_may_be_adopted() -> None:
    """Epochs in any order, and once more what failed."""
    mine = Uniform(Design.of_items(2))
    requests = [mine.adopt(Cell(epoch=epoch)) for epoch in (3, 1, 0)]
    mine.tell([Reading(requests[0], None)])
    mine.adopt(Cell(epoch=3))
    mine.adopt(Cell(epoch=2))
    with pytest.raises(InvalidInputError, match="asked before"):
        mine.adopt(Cell(epoch=2))
