from __future__ import annotations

import math

import pytest

from evalbudget import Budget, Unit
from evalbudget.errors import BudgetError


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("2000", 2000, Unit.SCORES),
        (" 2000 ", 2000, Unit.SCORES),
        ("2,000", 2000, Unit.SCORES),
        ("2_000", 2000, Unit.SCORES),
        ("2k", 2000, Unit.SCORES),
        ("1.5k", 1500, Unit.SCORES),
        ("1M", 1_000_000, Unit.SCORES),
        ("20x", 200, Unit.SCORES),
        ("2.5x", 25, Unit.SCORES),
        ("0.35×", 3, Unit.SCORES),
        ("$20", 20, Unit.USD),
        ("$.50", 0.5, Unit.USD),
        ("$1.5k", 1500, Unit.USD),
        ("USD 7", 7, Unit.USD),
        ("12.5 USD", 12.5, Unit.USD),
        ("5Mtok", 5_000_000, Unit.TOKENS),
        ("5 Mtok", 5_000_000, Unit.TOKENS),
        ("5MTok", 5_000_000, Unit.TOKENS),
        ("2 KTokens", 2000, Unit.TOKENS),
        ("300k tokens", 300_000, Unit.TOKENS),
        ("1Gtok", 1e9, Unit.TOKENS),
        (7, 7, Unit.SCORES),
        (7.0, 7, Unit.SCORES),
        (Budget(3), 3, Unit.SCORES),
    ],
)
def test_what_can_be_written(text: str | float | Budget, amount: float, unit: Unit) -> None:
    assert Budget.parse(text, n_items=10) == Budget(amount, unit)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "0", "-5", "$0", "-$3", "0x", "0.01x", "1.5", 1.5, 0, -1, math.nan, math.inf, True),
        *(
            "twenty",
            "20 USD tok",
            "20€",
            "1e3",
            "5tokk",
            "$",
            "x",
            "2kk",
            "1.2.3",
            "$5x",
            "NaN",
            "inf",
            "--5",
        ),
    ],
)
def test_what_cannot(text: str | float) -> None:
    with pytest.raises(BudgetError, match=r"budget .*; write a number of scores"):
        Budget.parse(text, n_items=10)


def test_per_item_needs_items() -> None:
    with pytest.raises(BudgetError, match="per item"):
        Budget.parse("20x")


def test_shown_with_its_unit() -> None:
    assert [str(Budget.parse(b)) for b in ("2000", "$20", "5Mtok")] == [
        "2,000 scores",
        "$20.00",
        "5,000,000 tokens",
    ]


@pytest.mark.parametrize("text", ["$1,50", "1,5k", "0,5", "1,23", 10**400, "9" * 400 + "x"])
def test_decimal_commas_and_absurd_amounts_are_refused(text: str | int) -> None:
    with pytest.raises(BudgetError):
        Budget.parse(text, n_items=3)


def test_commas_separate_thousands() -> None:
    assert Budget.parse("1,250").amount == 1250
    assert Budget.parse("$12,000.50").amount == 12000.5


@pytest.mark.parametrize("text", ["5€", "£3", "5 EUR", "chf 20"])
def test_another_currency_is_told(text: str) -> None:
    with pytest.raises(BudgetError, match="is not in US dollars, as prices are; write"):
        Budget.parse(text)


@pytest.mark.parametrize("text", ["-5", "$-1", "-$3"])
def test_less_than_nothing_is_told(text: str) -> None:
    with pytest.raises(BudgetError, match="must be above zero"):
        Budget.parse(text)
