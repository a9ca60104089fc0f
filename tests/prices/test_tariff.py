"""What calls of many models cost, in dollars or tokens."""

import pytest

from evalbudget.budget import Unit
from evalbudget.errors import BudgetError
from evalbudget.prices import Price, Tariff, Usage, input_tokens_at_most

USD = Tariff(
    Unit.USD,
    {"openai/a": Price(input=1.0), "openai/*": Price(input=2.0), "*": Price(input=3.0, max_output=10)},
)


@pytest.mark.parametrize(("model", "price"), [("openai/a", 1.0), ("openai/b", 2.0), ("google/a", 3.0)])
def test_the_longest_name_that_fits_counts(model: str, price: float) -> None:
    found = USD.price(model)

    assert found is not None
    assert found.input == price


def test_what_the_file_does_not_name_is_asked_elsewhere() -> None:
    tariff = Tariff(Unit.USD, {"a": Price(1.0)}, lambda model: Price(7.0) if model == "b" else None)

    assert tariff.cost("b", Usage(input=1_000_000)) == 7.0
    assert tariff.cost("a", Usage(input=1_000_000)) == 1.0
    with pytest.raises(BudgetError, match="no price is known for c"):
        tariff.cost("c", Usage(input=1))
    assert tariff.cost("c", Usage(input=1, cost=0.25)) == 0.25


def test_models_without_a_price_are_refused_with_the_lines_to_add() -> None:
    with pytest.raises(BudgetError) as refused:
        Tariff(Unit.USD, {"a": Price()}).check(["a", "b", "c/d", "b"])

    assert "no price is known for b, c/d," in str(refused.value)
    assert str(refused.value).endswith(
        "--prices:\n  b: {input: ..., output: ...}\n  c/d: {input: ..., output: ...}"
    )


def test_tokens_need_no_price() -> None:
    tariff = Tariff(Unit.TOKENS)

    tariff.check(["anything"])
    assert tariff.cost("x", Usage(input=5, output=4, cached=3, written=2, cost=9.0)) == 14.0
    assert tariff.most("x", 100, 20) == 120.0


def test_the_length_of_replies_must_be_limited_by_somebody() -> None:
    assert USD.most("google/a", 0, None) == 0.0
    assert Tariff(Unit.TOKENS, {"a": Price(max_output=7)}).most("a", 3, None) == 10.0
    for tariff in (USD, Tariff(Unit.TOKENS)):
        with pytest.raises(BudgetError, match="nothing limits the length of replies of openai/a"):
            tariff.most("openai/a", 10, None)


def test_the_most_of_a_call() -> None:
    assert Tariff(Unit.USD, {"a": Price(1.0, 2.0)}).most("a", 1_000_000, 500_000) == 2.0


@pytest.mark.parametrize("text", ["plain words", "日本語のテキスト", "🙂" * 40, "\ud800", ""])
def test_a_message_has_no_more_tokens_than_bytes_and_some_for_its_template(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))

    assert input_tokens_at_most([text, text]) == 2 * size + 48
