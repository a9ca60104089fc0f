"""What one call costs, at least as its provider reports it and at most before it is made."""

import math
import random

import pytest

from evalbudget.errors import InvalidInputError
from evalbudget.prices import Price, Usage

PRICE = Price(input=3.0, output=15.0, cached=0.3, written=3.75)


def test_tokens_are_priced_by_the_million() -> None:
    usage = Usage(input=1_000, output=200, cached=4_000, written=100)

    assert PRICE.cost(usage) == pytest.approx((3_000 + 3_000 + 1_200 + 375) / 1e6)


def test_cached_tokens_cost_what_others_do_unless_the_price_says_otherwise() -> None:
    assert Price(input=2.0).cost(Usage(cached=500, written=500)) == pytest.approx(0.002)


def test_calls_and_seconds_cost_too() -> None:
    assert Price(call=0.01, second=0.002).cost(Usage(input=1, seconds=3.0)) == pytest.approx(0.016)


def test_what_the_provider_says_stands_above_the_price() -> None:
    assert PRICE.cost(Usage(input=10, cost=0.5)) == 0.5


@pytest.mark.parametrize(
    ("tokens", "million"), [(200_000, 1.0), (200_001, 2.0), (1_000_000, 2.0), (1_000_001, 3.0)]
)
def test_a_tier_holds_for_the_whole_call_once_it_is_passed(tokens: int, million: float) -> None:
    price = Price(input=1.0, tiers=(Price(input=2.0, above=200_000), Price(input=3.0, above=1_000_000)))

    assert price.cost(Usage(input=tokens - 1_000, cached=600, written=400)) == pytest.approx(
        million * tokens / 1e6
    )


def test_no_call_costs_more_than_its_most() -> None:
    draw = random.Random(7)
    for _ in range(3_000):
        base = Price(
            input=draw.random(),
            output=draw.random(),
            cached=draw.choice([None, 2 * draw.random()]),
            written=draw.choice([None, 2 * draw.random()]),
            call=draw.random() / 1e4,
            tiers=(Price(input=draw.random(), output=draw.random(), above=draw.randrange(1, 2_000)),),
        )
        most_in, most_out = draw.randrange(3_000), draw.randrange(500)
        used = sorted(draw.randrange(most_in + 1) for _ in range(3))
        usage = Usage(used[0], draw.randrange(most_out + 1), used[1] - used[0], used[2] - used[1])
        assert base.cost(usage) <= base.most(most_in, most_out) + 1e-15


def test_the_most_of_a_call_without_tiers_or_caches_is_reached() -> None:
    price = Price(input=1.0, output=4.0, call=0.5)

    assert price.most(100, 50) == price.cost(Usage(input=100, output=50)) == 0.5 + 3e-4


def test_a_tier_that_cannot_be_reached_is_not_in_the_most() -> None:
    price = Price(input=1.0, tiers=(Price(input=9.0, above=100),))

    assert price.most(99, 0) == pytest.approx(99e-6)
    assert price.most(101, 0) == pytest.approx(9 * 101e-6)


@pytest.mark.parametrize(
    "usage",
    [
        *(Usage(), Usage(input=-1), Usage(output=-1), Usage(input=5, cached=-5), Usage(input=1, cost=-0.1)),
        *(Usage(input=1, seconds=math.nan), Usage(input=1, cost=math.inf)),
    ],
)
def test_usage_that_cannot_be_is_told(usage: Usage) -> None:
    assert not usage.is_plausible


@pytest.mark.parametrize("usage", [Usage(input=1), Usage(output=1), Usage(cached=3), Usage(cost=0.1)])
def test_usage_that_can_be_is_taken(usage: Usage) -> None:
    assert usage.is_plausible


@pytest.mark.parametrize("number", [-1.0, math.nan, math.inf])
def test_a_price_below_zero_or_without_end_is_refused(number: float) -> None:
    with pytest.raises(InvalidInputError, match=r"output is .*; write a number of zero or more"):
        Price(output=number)


def test_tiers_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"tiers begin above \[5, 5\]"):
        Price(tiers=(Price(above=5), Price(above=5)))
