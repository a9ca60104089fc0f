from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.claims import pinned, replications

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import Plugins
from evalbudget.judges.schedules import (
    All,
    Cyclic,
    JudgeSchedule,
    Modulo,
    Priced,
    Random,
    Single,
    check_panel,
    priced_shares,
)

EVERY: list[type[JudgeSchedule]] = [All, Random, Cyclic, Modulo, Priced, Single]


def names(n: int, kind: str = "j") -> list[str]:
    return [f"{kind}{i}" for i in range(n)]


def counts(schedule: JudgeSchedule, epochs: int) -> np.ndarray:
    """Calls per (category, judge)."""
    a = schedule.assign(epochs)
    table = np.zeros((len(schedule.categories), schedule.n_judges), dtype=int)
    np.add.at(table, (schedule.category[a.item], a.judge), 1)
    return table


@st.composite
def cyclic(draw: st.DrawFn) -> Cyclic:
    n = draw(st.integers(1, 60))
    labels = draw(st.lists(st.sampled_from("abcdefg"), min_size=n, max_size=n))
    return Cyclic(
        names(n),
        names(draw(st.integers(2, 23))),
        categories=labels,
        epochs=draw(st.integers(1, 8)),
        seed=draw(st.integers(0, 99)),
    )


@given(cyclic())
@settings(max_examples=80, deadline=None)
def test_cyclic_is_balanced_to_within_one_call(schedule: Cyclic) -> None:
    for epochs in range(1, schedule.epochs + 1):
        assert np.ptp(counts(schedule, epochs), axis=1).max() <= 1
    assert np.ptp(counts(schedule, schedule.epochs).sum(axis=0)) <= 1


@given(cyclic())
@settings(max_examples=30, deadline=None)
def test_an_item_meets_every_judge_once_in_k_generations(schedule: Cyclic) -> None:
    for item in range(0, schedule.n_items, 7):
        met = [schedule.judges_for(item, epoch)[0] for epoch in range(schedule.n_judges)]
        assert sorted(met) == list(range(schedule.n_judges))


@given(cyclic(), st.data())
@settings(max_examples=50, deadline=None)
def test_a_dropped_judge_leaves_categories_balanced_and_other_calls_alone(
    schedule: Cyclic, data: st.DataObject
) -> None:
    if schedule.n_judges < 3:
        return
    gone = data.draw(st.integers(0, schedule.n_judges - 1))
    smaller = schedule.without(gone)
    active = list(smaller.active)
    table = counts(smaller, schedule.epochs)
    assert table[:, gone].sum() == 0
    assert np.ptp(table[:, active], axis=1).max() <= 1
    before, after = schedule.assign(), smaller.assign()
    stays = before.judge != gone
    assert np.array_equal(before.judge[stays], after.judge[stays])
    assert table.sum() == counts(schedule, schedule.epochs).sum()
    # beyond what was planned it goes on
    assert gone not in smaller.judges_for(0, schedule.epochs + 2)


@pytest.mark.parametrize("cls", EVERY)
def test_a_pure_function_of_item_and_epoch(cls: type[JudgeSchedule]) -> None:
    """Completion in any order, with failures asked again, asks the same judges as all at once."""
    items, judges = names(40), names(5)
    labels = [str(i % 3) for i in range(40)]
    at_once = cls(items, judges, categories=labels, epochs=3, seed=7).assign()
    expected: dict[tuple[int, int], tuple[int, ...]] = {}
    for i, e, j in zip(at_once.item.tolist(), at_once.epoch.tolist(), at_once.judge.tolist(), strict=True):
        expected[i, e] = (*expected.get((i, e), ()), j)
    one_by_one = cls(items, judges, categories=labels, epochs=3, seed=7)
    rng = np.random.default_rng(0)
    order = [(i, e) for i in range(40) for e in range(3)] * 2  # every cell fails once
    for at in rng.permutation(len(order)).tolist():
        assert one_by_one.judges_for(*order[at]) == expected[order[at]]


def test_a_large_dropped_panel_keeps_within_one_overall_with_one_category() -> None:
    schedule = Cyclic(names(1000), names(7), epochs=2).without("j3").without("j0")
    assert np.ptp(counts(schedule, 2)[:, list(schedule.active)].sum(axis=0)) <= 1
    assert "'j3' was dropped" in schedule.notes[0]


@pytest.mark.claim
def test_dropped_judges_leave_the_panel_balanced_overall() -> None:
    example = Cyclic(
        names(17),
        list("abcdef"),
        categories=np.random.default_rng(203).integers(6, size=17).tolist(),
        epochs=2,
        seed=203,
    )
    assert np.ptp(counts(example.without(0), 2).sum(axis=0)[1:]) <= 1
    rng, spread = np.random.default_rng(0), []
    R = replications(300, 1000)
    for seed in range(R):
        K, n, epochs = int(rng.integers(3, 8)), int(rng.integers(4, 40)), int(rng.integers(1, 4))
        labels = rng.integers(int(rng.integers(1, 7)), size=n).tolist()
        schedule = Cyclic(names(n), names(K), categories=labels, epochs=epochs, seed=seed).without(0)
        table = counts(schedule, epochs)[:, 1:]
        assert np.ptp(table, axis=1).max() <= 1
        spread.append(np.ptp(table.sum(axis=0)))
    assert max(spread) <= 2
    # where staying calls leave no better; 25 in 1000 if calls only go to who has least
    assert spread.count(2) <= 0.02 * R
    pinned(spread.count(2), 5)


def test_priced_shares_survive_a_dropped_judge() -> None:
    schedule = Priced(names(400), names(4), prices=[1, 1, 4, 9], seed=1).without(0)
    total = counts(schedule, 1).sum(axis=0)[1:]
    assert np.abs(total - 400 * np.array([6, 3, 2]) / 11).max() <= 1


def test_judges_of_one_price_share_what_does_not_come_out_even() -> None:
    labels = [str(i % 40) for i in range(400)]
    schedule = Priced(names(400), names(4), prices=[1, 1, 4, 4], categories=labels, seed=1).without(0)
    table = counts(schedule, 1)[:, 1:]
    assert np.abs(table[:, 1] - table[:, 2]).max() > 0  # some category cannot treat them alike
    assert abs(int(table[:, 1].sum() - table[:, 2].sum())) <= 2


def test_items_meet_new_judges_instead_of_a_dropped_one() -> None:
    for seed in range(10):
        schedule = Cyclic(names(20), names(4), epochs=3, seed=seed).without(1)
        for item in range(20):
            assert len({schedule.judges_for(item, epoch) for epoch in range(3)}) == 3


@pytest.mark.parametrize(("K", "drops"), [(2, 1), (3, 2), (20, 2), (123, 2)])
def test_dropping_from_100k_items_takes_less_than_a_second(K: int, drops: int) -> None:
    schedule = Cyclic(names(100_000), names(K), categories=[str(i % 11) for i in range(100_000)])
    schedule.assign()
    for judge in range(drops):
        start = time.thread_time()
        schedule = schedule.without(judge)
        schedule.assign()
        assert time.thread_time() - start < 1.0


def test_all_asks_everybody_and_random_is_fair() -> None:
    assert All(names(3), names(4)).judges_for(2, 5) == (0, 1, 2, 3)
    assert All(names(3), names(4)).without("j1").judges_for(0) == (0, 2, 3)
    assert All(names(3), names(4)).without("j1").calls_per_generation == 3
    schedule = Random(names(20_000), names(5), seed=1)
    share = np.bincount(schedule.assign().judge) / 20_000
    assert np.abs(share - 0.2).max() < 4 * np.sqrt(0.16 / 20_000)
    dropped = np.bincount(schedule.without(2).assign().judge, minlength=5) / 20_000
    assert dropped[2] == 0
    assert np.abs(dropped[[0, 1, 3, 4]] - 0.25).max() < 0.02


def test_priced_counts_against_the_optimum() -> None:
    prices = np.array([1.0, 2, 5, 15, 30])
    labels = [str(i % 4) for i in range(1000)]
    schedule = Priced(names(1000), names(5), prices=prices.tolist(), categories=labels, seed=3)
    table = counts(schedule, 1)
    share = (1 / np.sqrt(prices)) / (1 / np.sqrt(prices)).sum()
    assert np.abs(table.sum(axis=0) - 1000 * share).max() <= 1
    assert np.abs(table - 250 * share).max() <= 2
    # brute force over the simplex finds nothing cheaper
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(5), 20_000)
    best = (1 / share).sum() * (share @ prices)
    assert ((1 / others).sum(axis=1) * (others @ prices)).min() >= best * 0.999999
    assert np.allclose(priced_shares(prices), share)


@given(st.integers(2, 20), st.integers(1, 6), st.integers(0, 200), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_priced_keeps_its_shares_in_every_category(K: int, C: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 2 * K + extra
    labels = [str(c) for c in rng.integers(C, size=n)]
    prices = (10 ** rng.uniform(0, 2, K)).tolist()
    table = counts(Priced(names(n), names(K), prices=prices, categories=labels, seed=seed), 1)
    share = table.sum(axis=0) / n
    assert table.sum(axis=0).min() >= 2
    assert np.abs(table - table.sum(axis=1, keepdims=True) * share).max() <= 2


def test_priced_gives_everybody_two_calls() -> None:
    schedule = Priced(names(30), names(3), prices={"j0": 1, "j1": 4, "j2": 10_000})
    assert counts(schedule, 1).sum(axis=0).tolist() == [19, 9, 2]
    dear = Priced(names(300), names(3), prices=[1, 2, 3])
    shares = np.sqrt([1, 1 / 2, 1 / 3])
    assert np.abs(counts(dear, 1).sum(axis=0) - 300 * shares / shares.sum()).max() <= 1
    assert counts(Priced(names(2), names(5)), 1).sum() == 2
    assert counts(schedule.without("j0"), 1).sum() == 30


@pytest.mark.parametrize("K", [2, 3, 20, 123])
def test_panels_of_2_to_123_judges_and_100k_items_in_a_second(K: int) -> None:
    items, labels = names(100_000), [str(i % 11) for i in range(100_000)]
    start = time.thread_time()
    schedule = Cyclic(items, names(K), categories=labels)
    found = schedule.assign()
    assert time.thread_time() - start < 1.0
    assert np.ptp(np.bincount(found.judge, minlength=K)) <= 1


def test_an_order_of_period_k_biases_no_category() -> None:
    """Kind of item = i mod K: each judge meets every kind about equally often."""
    K, n = 5, 400
    labels = [str(i // K % 2) for i in range(n)]
    kind = np.arange(n) % K
    met = np.zeros((K, K))
    for seed in range(200):
        a = Cyclic(names(n), names(K), categories=labels, seed=seed).assign()
        np.add.at(met, (a.judge, kind[a.item]), 1)
    share = met / met.sum(axis=1, keepdims=True)
    assert np.abs(share - 1 / K).max() < 0.02


def test_fewer_items_than_judges_is_allowed_and_said() -> None:
    schedule = Cyclic(names(3), names(5))
    assert len(set(schedule.assign().judge.tolist())) == 3
    assert "3 judge calls for 5 judges: at least 2 of them score nothing" in schedule.notes[0]
    assert Cyclic(names(5), names(5)).notes == ()


def test_single_takes_one_judge_by_name_or_by_seed() -> None:
    assert Single(names(3), ["only"]).judges_for(1) == (0,)
    assert Single(names(3), names(5), judge="j4").judges_for(0) == (4,)
    drawn = {Single(names(1), names(5), seed=s).judges_for(0)[0] for s in range(60)}
    assert drawn == set(range(5))
    assert "knows nothing of its bias" in Single(names(3), ["only"]).notes[0]
    other = Single(names(50), names(5), judge="j4").without("j4")
    assert len(set(other.assign().judge.tolist())) == 1
    assert "'j4' alone" not in other.notes[-1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cyclic(names(3), ["a", "b", "a"]), "judge 'a' is listed more than once; list each"),
        (lambda: Cyclic(names(3), ["a"]), "'cyclic' needs at least 2 judges .* only the judge 'a'"),
        (lambda: All(names(3), ["a"]), "or use the rotation 'single'"),
        (lambda: Single(names(3), []), "needs at least 1 judges and was given no judge"),
        (lambda: Cyclic(names(3), ["a", ""]), "judge number 1 has no name"),
        (lambda: Cyclic(names(3), "abc"), "give a list of names"),
        (lambda: Cyclic([], ["a", "b"]), "no items"),
        (lambda: Cyclic(names(3), ["a", "b"], categories=["x"]), "1 categories for 3 items"),
        (lambda: Cyclic(names(3), ["a", "b"], epochs=0), "epochs is 0"),
        (lambda: Cyclic(names(3), ["a", "b"]).judges_for(3), "item 3, epoch 0 is not in the schedule"),
        (lambda: Cyclic(names(3), ["a", "b"]).judges_for(0, -1), "epoch -1"),
        (lambda: Cyclic(names(3), ["a", "b"]).without("a").without("a"), "dropped already"),
        (lambda: Cyclic(names(3), ["a", "b"]).without("a").without("b"), "the only one left"),
        (lambda: Priced(names(3), ["a", "b"], prices=[1, 0]), "prices of judge 'b' is 0"),
        (lambda: Priced(names(3), ["a", "b"], prices={"a": 1}), "no entry for judge 'b'"),
        (lambda: Priced(names(3), ["a", "b"], prices=[1, 2, 3]), "3 entries for 2 judges"),
        (lambda: Priced(names(3), ["a", "b"], prices=[1, float("nan")]), "prices of judge 'b' is nan"),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()  # type: ignore[operator]


def test_unknown_names_are_suggested() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown judge 'haku'. Did you mean 'haiku'"):
        Cyclic(names(3), ["haiku", "gpt"]).without("haku")
    with pytest.raises(UnknownNameError, match="unknown judge in prices 'gtp'"):
        Priced(names(3), ["haiku", "gpt"], prices={"gtp": 1})
    with pytest.raises(UnknownNameError, match="unknown judge '9'"):
        Single(names(3), ["haiku"], judge=9)
    with pytest.raises(UnknownNameError, match=r"unknown rotation 'cyclc'. Did you mean 'cyclic'"):
        Plugins([]).schedule("cyclc")


def test_modulo_is_the_papers_rotation() -> None:
    once = Modulo(names(7), ["a", "b", "c"])
    assert [once.judges_for(i) for i in range(7)] == [(i % 3,) for i in range(7)]
    often = Modulo(names(4), ["a", "b", "c"], epochs=5, seed=9)
    assert [often.judges_for(i, j) for i in range(4) for j in range(5)] == [(j % 3,) for j in range(5)] * 4
    assert not Modulo.weighs_judges
    moved = often.without("b").assign()
    assert set(moved.judge.tolist()) == {0, 2}


def test_registered_through_the_hook() -> None:
    plugins = Plugins([])
    assert plugins.schedules == {cls.name: cls for cls in EVERY}
    assert plugins.found[0].provides["schedules"] == tuple(cls.name for cls in EVERY)
    assert plugins.schedule("cyclic") is Cyclic


def test_check_panel_returns_the_names() -> None:
    assert check_panel(["a", "b"]) == ("a", "b")
    assert Cyclic(names(3), names(2)).assign(0).item.size == 0
