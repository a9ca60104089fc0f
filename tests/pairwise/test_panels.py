"""Several judges: a win rate is of all of them, and says what position may have done to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from evalbudget.errors import InvalidInputError
from evalbudget_pairwise import Preference, Preferences, bradley_terry, positions, read_preferences, win_rate
from evalbudget_pairwise._bradley_terry import ranks
from pairwise_sections.panels import Panel
from pairwise_sections.worlds import World

NOT_IDENTIFIED = "the effect of position is not identified where each judge saw one order only"


def votes(judge: str, *, won: int, of: int, a_first: bool = True) -> list[Preference]:
    """Of one judge in one order, on items of its own; ``won`` of them for a."""
    shown = ("a", "b") if a_first else ("b", "a")
    side = "first" if a_first else "second"
    return [Preference(f"{judge} {side} {n}", *shown, float((n < won) is a_first), judge) for n in range(of)]


def clopper_pearson(won: int, of: int) -> tuple[float, float]:
    return float(beta.ppf(0.025, won, of - won + 1)), float(beta.ppf(0.975, won + 1, of - won))


def test_two_judges_in_one_order_are_one_rate_of_all_votes() -> None:
    found = Preferences.of([*votes("x", won=12, of=20), *votes("y", won=4, of=4)])
    rate = win_rate(found, 0, 1)
    assert rate.value == pytest.approx(16 / 24)
    assert rate.interval(0.95) == pytest.approx(clopper_pearson(16, 24))
    reading = read_preferences(found)
    assert (reading.winner, reading.pairs[0].position, reading.pairs[0].unidentified) == (None, "none", 0.0)
    assert [(row.rank_low, row.rank_high) for row in reading.models] == [(1, 2), (1, 2)]
    assert reading.models[0].strength == pytest.approx((16 + 0.5) / 25)
    for told in (reading.notes[0], str(reading.to_dict()["notes"])):
        assert NOT_IDENTIFIED in told
    assert "as shown, with whatever position did" in " ".join(str(reading.table()).split())
    held = "Ranks hold all at once"
    assert held not in " ".join(str(reading.table()).split())  # nobody is ruled out of any rank
    both = [*votes("x", won=40, of=40), *votes("x", won=40, of=40, a_first=False)]
    assert held in " ".join(str(read_preferences(Preferences.of(both)).table()).split())


def test_a_crowd_with_one_vote_each_shares_one_effect_of_position() -> None:
    rows = [
        row for n in range(40) for row in votes(f"v{n}", won=int(n % 4 != n % 2), of=1, a_first=n % 2 == 0)
    ]
    found = Preferences.of(rows)
    forward = np.mean([row.value == 1.0 for row in rows if row.first == "a"])
    backward = np.mean([row.value == 0.0 for row in rows if row.first == "b"])
    rate = win_rate(found, 0, 1)
    assert rate.value == pytest.approx((forward + backward) / 2.0)
    low, high = rate.interval(0.95)
    assert 0.0 < low < rate.value < high < 1.0
    assert (-rate).interval(0.95) == pytest.approx((1.0 - high, 1.0 - low))
    pair = read_preferences(found).pairs[0]
    assert (pair.position, pair.unidentified, pair.both_ways) == ("common", 0.0, False)
    assert NOT_IDENTIFIED in read_preferences(found).notes[0]
    assert "chance decided who saw which order" in read_preferences(found).notes[0]


def test_ranks_of_what_is_not_proved_are_said_to_be_no_proof() -> None:
    rows = [row for n in range(40) for row in votes(f"v{n}", won=int(n % 8 > 0), of=1, a_first=n % 2 == 0)]
    found = read_preferences(Preferences.of(rows))
    assert (found.models[0].rank_high, found.pairs[0].proved) == (1, False)
    told = " ".join(str(found.table()).split())
    assert "Ranks are by all differences at once, which is no proof." in told
    assert "hold all at once" not in told


@pytest.mark.parametrize("n", [1, 7])
def test_two_judges_in_opposite_orders_tell_nothing(n: int) -> None:
    found = Preferences.of([*votes("x", won=n, of=n), *votes("y", won=0, of=n, a_first=False)])
    rate = win_rate(found, 0, 1)
    assert rate.value == pytest.approx(0.5)
    assert rate.interval(0.95) == (0.0, 1.0)
    assert ranks(found, 0.95) == [(1, 2), (1, 2)]
    assert "intervals allow for any effect on 100% of the votes" in read_preferences(found).notes[0]


def test_a_judge_in_one_order_counts_less_the_effect_of_the_others_and_widens_the_interval() -> None:
    y = [*votes("y", won=16, of=20), *votes("y", won=8, of=20, a_first=False)]
    alone = win_rate(Preferences.of(y), 0, 1)
    both = win_rate(Preferences.of([*y, *votes("x", won=10, of=10)]), 0, 1)
    assert alone.value == pytest.approx(0.6)
    assert both.value == pytest.approx(0.8 * 0.6 + 0.2 * (1.0 - 0.2))
    assert both.untold == pytest.approx(0.2)
    width = [high - low for low, high in (alone.interval(0.95), both.interval(0.95))]
    assert width[1] > 0.2
    assert width[1] > width[0]
    reading = read_preferences(Preferences.of([*y, *votes("x", won=10, of=10)]))
    assert "x saw a and b in one order only" in reading.notes[0]
    assert "any effect on 20% of the votes" in reading.notes[0]


def test_each_judge_who_saw_both_orders_has_an_effect_of_its_own() -> None:
    """Judge x favours the first and mostly saw a there; y does neither."""
    x = [*votes("x", won=16, of=20), *votes("x", won=1, of=5, a_first=False)]
    y = [*votes("y", won=4, of=8), *votes("y", won=5, of=10, a_first=False)]
    rate = win_rate(Preferences.of([*x, *y]), 0, 1)
    assert rate.value == pytest.approx(0.5)
    assert (rate.position.value, rate.untold) == ("own", 0.0)
    fit = bradley_terry(Preferences.of([*x, *y]))
    assert fit.strength[0] == pytest.approx(0.0, abs=0.02)


def test_a_judge_with_nothing_but_ties_is_one_of_the_judges() -> None:
    ties = [Preference(f"t{n}", "ab"[n % 2], "ba"[n % 2], 0.5, "z") for n in range(20)]
    rows = [*votes("x", won=9, of=10), *votes("x", won=9, of=10, a_first=False), *ties]
    assert win_rate(Preferences.of(rows), 0, 1).value == pytest.approx((0.9 + 0.5) / 2.0)
    only = read_preferences(Preferences.of(ties))
    assert only.winner is None
    assert only.models[0].low < 0.5 < only.models[0].high
    assert only.positions[0].low < 0.0 < only.positions[0].high


@pytest.mark.parametrize("of", [2, 10])
def test_equal_votes_have_an_exact_interval(of: int) -> None:
    rate = win_rate(Preferences.of(votes("x", won=of, of=of)), 0, 1)
    assert rate.interval(0.95) == pytest.approx((0.025 ** (1 / of), 1.0))
    assert (-rate).interval(0.95) == pytest.approx((0.0, 1.0 - 0.025 ** (1 / of)))
    assert math.copysign(1.0, (-rate).value) == 1.0


def test_one_vote_in_an_order_is_not_known_for_certain() -> None:
    """30 wins shown first and one loss shown second: the mean of the orders rests on one vote."""
    found = Preferences.of([*votes("x", won=30, of=30), *votes("x", won=0, of=1, a_first=False)])
    rate = win_rate(found, 0, 1)
    assert rate.value == pytest.approx(0.5)
    low, high = rate.interval(0.95)
    assert low < 0.05
    assert high > 0.95
    assert positions(found)[0].low < 0.05


@pytest.mark.parametrize("seed", range(12))
def test_rates_stay_within_0_and_1_and_add_up(seed: int) -> None:
    """Three models, unequal votes per judge, in whatever order."""
    rng = np.random.default_rng(seed)
    rows = []
    for judge in range(4):
        for n in range(int(rng.integers(1, 12))):
            first, second = rng.permutation(["a", "b", "c"])[:2].tolist()
            won = {"a": 0.99, "b": 0.5, "c": 0.01}
            value = float(rng.random() < 0.5 * (1.0 + won[first] - won[second]))
            rows.append(Preference(f"{judge} {n}", first, second, value, f"judge {judge}"))
    rows.append(Preference("last", "a", "b", 1.0, "judge 0"))
    rows.append(Preference("last", "b", "c", 1.0, "judge 0"))
    reading = read_preferences(Preferences.of(rows))
    rates = [(row.win_rate, row.low, row.high) for row in reading.models]
    rates += [(row.win_rate, row.low, row.high) for row in reading.pairs if row.judgements]
    for rate, low, high in rates:
        assert math.copysign(1.0, rate) == 1.0
        assert 0.0 <= rate <= 1.0
        if not math.isnan(low):
            assert 0.0 <= low <= rate + 1e-12
            assert rate - 1e-12 <= high <= 1.0
            assert high > low
    assert "-0.000" not in str(reading.table()).partition("position bias")[0]


def test_the_plain_mean_over_items_is_what_complete_panels_have() -> None:
    rows = [
        Preference(f"q{n}", *shown, value, judge)
        for n in range(6)
        for judge in ("x", "y", "z")
        for shown, value in ((("a", "b"), float(n % 3 > 0)), (("b", "a"), float(judge == "x")))
    ]
    rate = win_rate(Preferences.of(rows), 0, 1)
    y = np.array([(float(n % 3 > 0) + 2.0 / 3.0) / 2.0 for n in range(6)])
    assert rate.value == pytest.approx(y.mean())
    assert rate.standard_error == pytest.approx(y.std(ddof=1) / np.sqrt(6))
    assert rate.position.value == "both orders"


def test_names_of_judges_and_models_do_not_matter() -> None:
    found = Panel(5, 4, 0.7, orders="mixed").preferences(3)
    turned = Preferences(
        found.items,
        found.models[::-1],
        found.judges,
        found.item,
        1 - found.first,
        1 - found.second,
        4 - found.judge,
        found.value,
    )
    one, same = win_rate(found, 0, 1), win_rate(turned, 1, 0)
    assert one.value == pytest.approx(same.value)
    assert one.interval(0.9) == pytest.approx(same.interval(0.9))
    np.testing.assert_allclose(bradley_terry(found).strength, bradley_terry(turned).strength[::-1], atol=1e-9)


# missing verdicts


def test_missing_verdicts_are_counted_and_what_is_proved_holds_at_their_worst() -> None:
    whole = [*votes("x", won=56, of=60), *votes("x", won=56, of=60, a_first=False)]
    assert read_preferences(Preferences.of(whole)).winner == "a"
    lost = [n for n, row in enumerate(whole) if (row.value == 1.0) is (row.first == "b")]
    assert len(lost) == 8

    def without(places: list[int]) -> Preferences:
        return Preferences.of(row._replace(value=None) if n in places else row for n, row in enumerate(whole))

    some = read_preferences(without(lost))
    assert (some.missing, some.judgements, some.winner) == (8, 112, "a")
    assert some.models[0].win_rate == pytest.approx(1.0, abs=1e-12)
    assert "8 verdicts are missing (8 of a, 8 of b)" in some.notes[0]
    assert (some.models[0].rank_high, some.models[1].rank_low) == (1, 2)
    many = read_preferences(without([*range(30), *range(60, 90)]))
    assert (many.winner, many.pairs[0].undecided) == (None, True)
    assert [(row.rank_low, row.rank_high) for row in many.models] == [(1, 2), (1, 2)]
    assert "Undecided because of them: a and b" in " ".join(many.notes)
    assert many.to_dict()["pairs"][0]["missing"] == 60


def test_a_missing_verdict_is_at_its_worst_for_either_model() -> None:
    rows = [*votes("x", won=3, of=4), *votes("x", won=2, of=4, a_first=False)]
    gone = Preferences.of([*rows, Preference("gone", "a", "b", None, "x")])
    for_a, for_b = (gone.filled(np.full(9, side)) for side in (-1.0, 1.0))
    assert (for_a.value[-1], for_b.value[-1]) == (0.0, 1.0)
    assert gone.voted.value.size == 8
    reading = read_preferences(gone, in_order=True)
    low, high = (read_preferences(each, in_order=True).pairs[0] for each in (for_a, for_b))
    pair = reading.pairs[0]
    assert (pair.anytime_low, pair.anytime_high) == (low.anytime_low, high.anytime_high)


def test_ranks_of_three_models_hold_at_the_worst_of_what_is_missing() -> None:
    world = World((1.6, 0.0, -1.6), ties=0.1).preferences(60, 4)
    assert ranks(world, 0.95) == [(1, 1), (2, 2), (3, 3)]
    rng = np.random.default_rng(1)
    gone = world.where(np.ones(world.value.size, dtype=bool))
    of_b_and_c = (world.first != 0) & (world.second != 0) & (rng.random(world.value.size) < 0.7)
    gone.value[of_b_and_c] = np.nan
    assert ranks(gone, 0.95) == [(1, 1), (2, 3), (2, 3)]


# order not known


def test_without_an_order_rates_are_as_shown_and_nothing_is_proved() -> None:
    rows = [Preference(f"q{n}", "a", "b", float(n % 10 != 0)) for n in range(100)]
    reading = read_preferences(Preferences.of(rows, ordered=False))
    assert (reading.winner, reading.ordered, reading.positions) == (None, False, ())
    assert (reading.models[0].low, reading.models[0].high) == pytest.approx(clopper_pearson(90, 100))
    assert "no effect of position can be seen" in reading.notes[0]
    assert "in an order that is not known" in " ".join(str(reading.table()).split())
    assert [(row.rank_low, row.rank_high) for row in reading.models] == [(1, 2), (1, 2)]


# little, and odd


def test_one_vote_is_read_and_shows_no_interval() -> None:
    reading = read_preferences(Preferences.of(votes("x", won=1, of=1)))
    assert reading.models[0].win_rate == pytest.approx(1.0, abs=1e-12)
    assert math.isnan(reading.models[0].low)
    assert reading.winner is None
    assert str(reading.table())


def test_votes_that_repeat_are_said_and_prove_no_more() -> None:
    rows = [*votes("x", won=9, of=10), *votes("x", won=9, of=10, a_first=False)]
    once, twice = Preferences.of(rows), Preferences.of([*rows, *rows])
    assert win_rate(twice, 0, 1).interval(0.95) == pytest.approx(
        win_rate(once, 0, 1).interval(0.95), abs=0.02
    )
    assert read_preferences(once).repeated == 0
    reading = read_preferences(twice)
    assert reading.repeated == 20
    assert "20 judgements repeat an item, order and judge: their mean counts." in reading.notes


def test_all_missing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no preference with a verdict"):
        Preferences.of([Preference("q", "a", "b", None)])
