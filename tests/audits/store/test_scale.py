from __future__ import annotations

import pytest

from evalbudget.audits.store import Scale
from evalbudget.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "scale", "shown"),
    [
        ("1..10", Scale(1, 10), "1 to 10"),
        ("0..1 by 1", Scale(0, 1, 1), "0 or 1"),
        ("0.0..1.0", Scale(0, 1), "0 to 1"),
        ("1..10 by 1", Scale(1, 10, 1), "whole numbers 1 to 10"),
        ("1..5 by 0.5", Scale(1, 5, 0.5), "1 to 5 in steps of 0.5"),
        ("-2..2 by 1", Scale(-2, 2, 1), "whole numbers -2 to 2"),
    ],
)
def test_reads_what_people_write(text: str, scale: Scale, shown: str) -> None:
    assert Scale.parse(text) == scale
    assert str(scale) == shown


@pytest.mark.parametrize(
    "text", ["", "10", "10..1", "a..b", "1..2 by x", "1..2 by 0.3", "1..2 by -1", "0..inf", "0..9999 by 1"]
)
def test_refuses_what_is_no_scale(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"scale|steps|range"):
        Scale.parse(text)


def test_scores_snap_to_their_level() -> None:
    scale = Scale(0, 1, 0.1)
    assert scale.levels is not None
    assert scale.levels[-1] == 1.0
    assert scale.check(0.1 + 0.2) == scale.levels[3]
    assert Scale(0, 1).levels is None
    assert Scale(0, 1).check(0.123) == 0.123
    assert Scale(1, 10, 1).to_unit(10) == 1.0
    assert Scale(1, 10, 1).from_unit(scale.to_unit(0.5)) == 5.5


def test_one_is_the_best_whichever_way_is_better() -> None:
    up, down = Scale(1, 10), Scale(1, 10, lower_is_better=True)
    assert (up.to_unit(10), down.to_unit(10), down.to_unit(1)) == (1.0, 0.0, 1.0)
    assert [down.from_unit(down.to_unit(score)) for score in (1, 4, 10)] == pytest.approx([1, 4, 10])
    assert str(down) == "1 to 10, lower is better"
