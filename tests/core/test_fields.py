"""Rows whose fields say how tables show them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import pytest

from evalbudget._fields import Shown, decimals, formatted, percent, share_of_all
from evalbudget.tables import PrintableTable, fill


def _twice(row: Row) -> str:
    return row.name * 2


@dataclass
class Row:
    name: Annotated[str, Shown("who")]
    twice: Annotated[str, Shown("twice", by=_twice)]
    value: Annotated[float, Shown("mean", "+p")]
    standard_error: float
    low: Annotated[float, Shown("{level} interval", "p", to="high")]
    high: float
    usd: Annotated[float | None, Shown("paid", "$", optional=True)] = None


ROWS = [Row("a", "", 0.5, 0.012, 0.25, 0.75), Row("b", "", math.nan, math.nan, 0.1, math.inf)]


def _cells(**more: object) -> dict[str, list[str]]:
    table = PrintableTable()
    fill(table, ROWS, **more)  # type: ignore[arg-type]
    return {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}


def test_fields_make_columns_in_their_order_and_a_dash_where_nothing_is_known() -> None:
    assert _cells() == {
        "who": ["a", "b"],
        "twice": ["aa", "bb"],
        "mean": ["+0.500", "-"],
        "95% interval": ["0.250 to 0.750", "-"],
    }


def test_fields_can_be_chosen_and_left_out() -> None:
    assert list(_cells(only=["value", "name", "low"], without=["low"])) == ["mean", "who"]


@pytest.mark.parametrize(
    ("level", "told"),
    [
        *((0.95, "95%"), (0.9, "90%"), (0.999, "99.9%"), (0.9999, "99.99%"), (0.5, "50%")),
        *((0.99999999999, "99.999999999%"), (0.55, "55%"), (1.0, "100%")),
    ],
)
def test_a_level_is_never_rounded_to_certainty(level: float, told: str) -> None:
    assert percent(level) == told
    assert f"{told} interval" in _cells(level=level)


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.0, "0%"), (0.004, "under 1%"), (0.5, "50%"), (0.996, "over 99%"), (1.0, "100%"), (1.004, "100%")],
)
def test_some_is_not_nothing_and_not_all_is_not_everything(share: float, told: str) -> None:
    assert share_of_all(share) == told


@pytest.mark.parametrize(
    ("value", "form", "told"),
    [
        (1234.5, "p", "1,234.50"),
        (0.0, "e", "-"),
        (0.25, "e", "0.25"),
        (3, ",", "3"),
        (None, ",", "-"),
        (0.123456, "#3", "0.123"),
        (12345.6, "#3", "12,346"),
        (999.4, "#3", "999"),
        (999.96, "#3", "1,000"),
        (150.0, "#2", "150"),
        (99.4, "#2", "99"),
        (99.6, "#2", "100"),
        (12345.6, "~", "12,346"),
        (9999.4, "~", "9,999"),
        (9999.96, "~", "10,000"),
        (12.3456, "~", "12.35"),
        (2.5, "$", "$2.50"),
        (2.5, "usd", "2.50"),
    ],
)
def test_formats(value: float | None, form: str, told: str) -> None:
    assert formatted(value, form, 2) == told


def test_decimals_show_two_digits_of_the_median_error() -> None:
    assert decimals([0.012, math.nan, 0.0]) == 3
    assert decimals([1.2, 12.0, 15.0]) == 0
    assert decimals([]) == 3
