"""The bill: a cap that holds, for threads, kills and replies that say nothing of what they cost."""

import random
import sqlite3
import threading
from collections.abc import ValuesView
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest
from sqlalchemy import text

from evalbudget.book._tables import LAYOUT
from evalbudget.budget import Budget, Unit
from evalbudget.errors import BudgetError, JournalError
from evalbudget.prices import Price, Tariff, Usage
from evalbudget.run import Bill, Hold, bill_on_file, kept_name, spent_on
from evalbudget.run._bill_rows import BillRows
from evalbudget.store import Address, Database

CAP = Budget(100.0, Unit.TOKENS)
TOKENS = Tariff(Unit.TOKENS)


def bill(cap: float = 100.0, *, risk: float = 0.0) -> Bill:
    return Bill(Budget(cap, Unit.TOKENS), TOKENS, risk=risk)


def held(account: Bill, most: int = 100, reply: int = 0, *, model: str = "m", **more: str) -> Hold:
    """A call that was begun."""
    hold = account.reserve(model, most, reply, **more)
    assert hold is not None
    return hold


def paid(account: Bill, cost: int, most: int = 100, **more: str) -> float:
    """What a call came to that was begun and has ended."""
    return account.settle(held(account, most, **more), Usage(input=cost))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.bill"


def test_a_call_is_reserved_at_its_most_and_settled_at_its_cost() -> None:
    account = bill()
    hold = held(account, 30, 20, sample="s", role="judge")

    assert (account.held, account.free, account.spent, account.under_way) == (50.0, 50.0, 0.0, 1)
    assert account.settle(hold, Usage(input=10, output=5)) == 15.0
    assert (account.held, account.free, account.spent, account.under_way) == (0.0, 85.0, 15.0, 0)
    assert account.of_sample("s") == 15.0


def test_room_is_kept_for_what_must_follow() -> None:
    account = bill()
    (first,) = account.reserve_all("m", [(20, 0, "s")], follows={"s": [("j1", 30.0), ("j2", 25.0)]})
    assert (account.held, account.room, account.free) == (20.0, 55.0, 25.0)
    assert not account.reserve_all("m", [(20, 0, "t")], follows={"t": [("j1", 6.0)]})
    held(account, 25)
    account.settle(first, Usage(input=5))
    assert account.free == 15.0

    (judge,) = account.reserve_all("j1", [(28, 0, "s")], role="judge", follows={"s": [("j2", 25.0)]})
    assert (account.room, account.free) == (25.0, 17.0)
    account.release(judge)  # it was refused, and is sent again: nobody else takes what it needs
    assert (account.room, account.free) == (53.0, 17.0)
    account.reserve_all("j1", [(28, 0, "s")], role="judge", follows={"s": [("j2", 25.0)]})
    account.reserve_all("j2", [(25, 0, "s")], role="judge", follows={"s": ()})
    assert (account.room, account.free) == (0.0, 17.0)

    account.reserve_all("m", [(5, 0, "u")], follows={"u": [("j1", 12.0)]})
    assert account.free == 0.0
    account.clear_room("u")
    assert account.free == 12.0


def test_room_that_was_spent_by_others_pays_nothing() -> None:
    dear = Tariff(Unit.USD, {"m": Price(1e6, 0.0), "j": Price(1e6, 0.0)})
    account = Bill(Budget(100.0, Unit.USD), dear)
    (model,) = account.reserve_all("m", [(20, 0, "s")], follows={"s": [("j", 40.0)]})
    (other,) = account.reserve_all("m", [(10, 0, "t")], follows={"t": [("j", 30.0)]})
    account.settle(model, Usage(input=20, cost=55.0))  # more than it can cost, says who bills it
    account.settle(other, Usage(input=10))
    assert (account.spent, account.room, account.free) == (65.0, 70.0, 0.0)
    assert not account.reserve_all("j", [(40, 0, "s")], role="judge", follows={"s": ()})
    (judge,) = account.reserve_all("j", [(30, 0, "t")], role="judge", follows={"t": ()})
    account.settle(judge, Usage(input=30))
    assert account.spent <= 100.0


def test_a_call_that_does_not_fit_is_not_begun() -> None:
    account = bill()
    first = held(account, 60)

    assert account.reserve("m", 41, 0) is None
    assert account.held == 60.0
    held(account, 40)
    account.settle(first, Usage(input=1))
    assert account.free == 59.0


def test_waiting_helps_only_while_something_is_under_way() -> None:
    account = bill()

    assert not account.may_fit("m", 10, 0)
    hold = held(account, 90)
    assert account.may_fit("m", 100, 0)
    assert not account.may_fit("m", 101, 0)
    account.settle(hold, Usage(input=80))
    assert not account.may_fit("m", 10, 0)


def test_what_another_thread_ended_meanwhile_was_worth_waiting_for() -> None:
    account = bill()
    hold = held(account, 90)
    before = account.under_way
    assert account.reserve("m", 50, 0) is None
    account.settle(hold, Usage(input=1))

    assert not account.may_fit("m", 50, 0)
    assert account.may_fit("m", 50, 0, under_way=before)
    assert not account.may_fit("m", 100, 0, under_way=before)


def test_a_refused_call_costs_nothing_and_a_lost_one_its_most() -> None:
    account = bill()
    refused, lost = held(account, 10), held(account, 20)

    account.release(refused)
    account.lose(lost)
    assert (account.spent, account.held) == (20.0, 0.0)
    (row,) = account.rows
    assert (row.calls, row.cost, row.unknown, row.unknown_cost) == (1, 20.0, 1, 20.0)


@pytest.mark.parametrize("usage", [None, Usage(), Usage(input=-3), Usage(input=2, output=-1)])
def test_a_reply_that_does_not_say_what_it_cost_counts_at_its_most(usage: Usage | None) -> None:
    account = bill()
    assert account.settle(held(account, 10, 5), usage) == 15.0
    assert account.rows[0].unknown == 1


def test_what_costs_more_than_its_most_is_counted_and_told() -> None:
    account = bill()
    account.settle(held(account, 10, 5), Usage(input=10, output=8))
    assert (account.spent, account.over) == (18.0, 3.0)


def test_a_call_ends_once() -> None:
    account = bill()
    hold = held(account, 10)

    account.settle(hold, Usage(input=4))
    account.lose(hold)
    account.release(hold)
    assert account.settle(hold, Usage(input=9)) == 0.0
    assert account.spent == 4.0
    assert account.rows[0].calls == 1


def test_a_call_that_is_sent_again_is_paid_twice() -> None:
    account = bill(50.0)
    hold = held(account, 20, sample="s")

    assert account.again(hold)
    assert (account.spent, account.held) == (20.0, 20.0)
    assert not account.again(hold)
    account.settle(hold, Usage(input=5))
    assert (account.spent, account.held, account.of_sample("s")) == (25.0, 0.0, 25.0)
    assert not account.again(hold)


def test_a_bill_that_is_closed_leaves_nothing_under_way() -> None:
    account = bill()
    for sample in ("a", "a", "b"):
        account.reserve("m", 10, 0, sample=sample)
    account.close()
    assert (account.spent, account.under_way) == (30.0, 0)


def test_what_a_sample_needs_at_most_is_the_most_it_had_spent_and_reserved() -> None:
    account = bill(1_000.0)
    first, beside = held(account, 50, sample="a"), held(account, 20, sample="a")
    assert account.most_of_sample == 70.0
    account.reserve("m", 500, 0)
    for hold in (first, beside):
        account.settle(hold, Usage(input=10))
    assert account.most_of_sample == 70.0
    account.reserve("m", 40, 0, sample="a")
    account.reserve("m", 65, 0, sample="b")
    assert account.most_of_sample == 70.0
    account.reserve("m", 11, 0, sample="a")
    assert account.most_of_sample == 71.0


def test_costs_are_told_by_model_and_role_the_dearest_first() -> None:
    account = bill()
    for model, role, tokens in (("a", "", 3), ("b", "judge", 5), ("a", "judge", 4), ("b", "judge", 2)):
        paid(account, tokens, 10, model=model, role=role)

    told = [(row.model, row.role, row.calls, row.cost, row.tokens) for row in account.rows]
    assert told == [("b", "judge", 2, 7.0, 7), ("a", "judge", 1, 4.0, 4), ("a", "", 1, 3.0, 3)]


def test_many_threads_never_go_over() -> None:
    account = bill(1_000.0)
    bought: list[float] = []

    def buy(seed: int) -> None:
        draw = random.Random(seed)
        while True:
            most = draw.randrange(1, 30)
            hold = account.reserve("m", most, 0)
            if hold is None:
                return
            bought.append(account.settle(hold, Usage(input=draw.randrange(1, most + 1))))

    threads = [threading.Thread(target=buy, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert account.spent == sum(bought)
    assert 950.0 < account.spent <= 1_000.0
    assert (account.held, account.under_way) == (0.0, 0)


def test_dollars() -> None:
    account = Bill(Budget(1.0, Unit.USD), Tariff(Unit.USD, {"m": Price(1.0, 10.0)}))
    hold = held(account, 500_000, 50_000)

    assert hold.most == 1.0
    assert account.settle(hold, Usage(input=100_000, output=1_000)) == pytest.approx(0.11)


@pytest.mark.parametrize("risk", [-0.1, 1.0, 2.0])
def test_a_risk_is_a_chance(risk: float) -> None:
    with pytest.raises(BudgetError, match="--risk is"):
        bill(risk=risk)


def test_cap_and_prices_are_in_one_unit() -> None:
    with pytest.raises(BudgetError, match="a cap in dollars cannot be kept by prices in tokens"):
        Bill(Budget(1.0, Unit.USD), TOKENS)


class TestRisk:
    """What is reserved where a risk is accepted: a share that calls of the model seldom exceed."""

    def test_the_most_is_reserved_until_enough_is_known(self) -> None:
        account = bill(10_000.0, risk=0.1)
        for number in range(1, 9):
            hold = held(account)
            assert hold.most == 100.0
            account.settle(hold, Usage(input=number))

        ninth = held(account)
        assert ninth.most == 100.0
        account.settle(ninth, Usage(input=9))
        tenth = held(account)  # the largest of 9 is exceeded by the 10th with chance 1/10
        assert (tenth.most, tenth.bound) == (9.0, 100.0)

    def test_more_calls_under_way_share_the_risk(self) -> None:
        account = bill(10_000.0, risk=0.1)
        for number in range(1, 20):
            paid(account, number)

        assert [held(account).most for _ in range(3)] == [18.0, 19.0, 100.0]

    def test_another_model_teaches_nothing(self) -> None:
        account = bill(10_000.0, risk=0.5)
        paid(account, 1, model="a")

        assert held(account, model="b").most == 100.0

    def test_the_next_call_exceeds_what_is_reserved_no_more_often_than_accepted(self) -> None:
        draw = random.Random(11)
        over = 0
        for _ in range(2_000):
            account = bill(1e9, risk=0.1)
            for _ in range(30):
                paid(account, max(1, int(1_000 * draw.random() ** 3)), 1_000)
            over += max(1, int(1_000 * draw.random() ** 3)) > held(account, 1_000).most
        assert over == 195
        assert binomtest(over, 2_000, 0.1, alternative="greater").pvalue > 0.01

    def test_without_a_reply_the_most_counts(self) -> None:
        account = bill(1_000.0, risk=0.5)
        paid(account, 10)
        hold = held(account)
        assert hold.most == 10.0
        assert account.lose(hold) == 100.0
        assert account.over == 90.0


class TestFile:
    """The bill on file."""

    def test_a_killed_run_goes_on_where_it_was(self, path: Path) -> None:
        first = bill_on_file(path, CAP, TOKENS)
        answered = held(first, 30, sample="s", role="judge")
        held(first, 20)  # cut off
        first.settle(answered, Usage(input=12))
        _killed(first)

        second = bill_on_file(path, CAP, TOKENS)
        assert (second.spent, second.held, second.under_way) == (32.0, 0.0, 0)
        assert second.of_sample("s") == 12.0
        assert [(row.role, row.cost, row.unknown) for row in second.rows] == [
            ("", 20.0, 1),
            ("judge", 12.0, 0),
        ]
        assert second.reserve("m", 69, 0) is None
        assert second.reserve("m", 68, 0) is not None
        _killed(second)
        assert _spent(path) == 100.0

    def test_what_is_over_the_cap_leaves_nothing_to_reserve(self, path: Path) -> None:
        first = bill_on_file(path, CAP, TOKENS)
        paid(first, 90, 90)
        first.close()

        lower = bill_on_file(path, Budget(50.0, Unit.TOKENS), TOKENS)
        assert lower.free == 0.0
        assert lower.reserve("m", 1, 0) is None
        lower.close()

    def test_what_was_learned_of_risks_is_kept(self, path: Path) -> None:
        first = bill_on_file(path, CAP, TOKENS, risk=0.5)
        paid(first, 5, 50)
        assert held(first, 50).most == 5.0
        _killed(first)

        second = bill_on_file(path, CAP, TOKENS, risk=0.5)
        assert second.spent == 55.0
        assert held(second, 40).most == 4.0
        second.close()

    def test_a_write_that_a_kill_cut_off_is_none(self, path: Path) -> None:
        first = bill_on_file(path, CAP, TOKENS)
        paid(first, 5)
        try:
            first._once(
                lambda turn: turn.connection.execute(text("UPDATE paid_calls SET cost = 99")) and 1 / 0
            )
        except ZeroDivisionError:
            _killed(first)

        assert _spent(path) == 5.0

    def test_another_unit_is_refused(self, path: Path) -> None:
        bill_on_file(path, CAP, TOKENS).close()

        with pytest.raises(
            BudgetError, match="was begun with a budget in tokens, and this one is in dollars"
        ):
            bill_on_file(path, Budget(1.0, Unit.USD), Tariff(Unit.USD))

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ("UPDATE paid_calls SET most = 'x'", "could not convert string"),
            ("UPDATE paid_calls SET cost = -1.0", "-1.0 is no amount"),
            ("UPDATE paid_calls SET cost = 9e999", "inf is no amount"),
            ("UPDATE paid_calls SET tokens = 'many'", "invalid literal"),
            ("UPDATE paid_calls SET reached = 'x'", "could not convert string"),
            ("UPDATE meta SET value = 'x'", "'x' is not a valid Unit"),
            ("ALTER TABLE paid_calls RENAME TO gone", "no such table: paid_calls"),
        ],
    )
    def test_damage_is_told(self, path: Path, change: str, told: str) -> None:
        first = bill_on_file(path, CAP, TOKENS)
        paid(first, 5)
        first.close()
        _change(path, change)
        with pytest.raises(
            JournalError, match=rf"a\.bill is .*damaged: .*{told}.*; restore a copy, or begin anew in another"
        ):
            spent_on(path)
        with pytest.raises(
            JournalError, match=rf"a\.bill is .*damaged: .*{told}.*; restore a copy"
        ) as refused:
            bill_on_file(path, CAP, TOKENS)
        assert str(refused.value).count("; ") == 1

    def test_another_file_is_refused(self, path: Path) -> None:
        path.write_text("{}\n")
        for use in (spent_on, lambda path: bill_on_file(path, CAP, TOKENS)):
            with pytest.raises(JournalError, match=r"a\.bill is no bill, or damaged: .*not a database"):
                use(path)
        with pytest.raises(JournalError, match=r"; restore a copy, or begin anew in another folder$"):
            bill_on_file(path, CAP, TOKENS)
        path.unlink()
        bill_on_file(path, CAP, TOKENS).close()
        _change(path, "PRAGMA user_version = 2")
        told = r"a\.bill has format 2; this version of evalbudget reads format 1\. Install the version"
        with pytest.raises(JournalError, match=f"{told} that wrote it$"):
            bill_on_file(path, CAP, TOKENS)

    def test_a_shared_book_a_folder_and_a_broken_link_are_no_bill(self, path: Path) -> None:
        Database.create(Address(path=path), LAYOUT, {"version": "1"}).close()
        with pytest.raises(JournalError, match=r"is a database, but no bill; restore a copy, or begin anew"):
            bill_on_file(path, CAP, TOKENS)
        path.unlink()
        path.symlink_to("gone.bill")
        with pytest.raises(JournalError, match=r"a\.bill is a link to what is gone; restore a copy, or"):
            bill_on_file(path, CAP, TOKENS)
        path.unlink()
        path.mkdir()
        with pytest.raises(JournalError, match=r"a\.bill is a folder; name a file$"):
            bill_on_file(path, CAP, TOKENS)

    def test_a_closed_bill_takes_no_call_and_is_silent_about_late_ends(self, path: Path) -> None:
        account = bill_on_file(path, CAP, TOKENS)
        hold, late = held(account, 30), held(account, 20)
        account.lose(late)
        account.close()
        for act in (
            lambda: account.reserve("m", 10, 0),
            lambda: account.again(hold),
            lambda: account.add(hold, 5.0, "answered", 5),
        ):
            with pytest.raises(JournalError, match="the bill is closed"):
                act()
        assert (account.spent, account.held, account.under_way) == (50.0, 0.0, 0)
        assert account.settle(hold, Usage(input=12)) == account.lose(late) == 0.0
        account.release(hold)
        account.close()
        assert _spent(path) == 50.0

    def test_room_is_as_before_when_its_calls_cannot_be_written(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account = bill_on_file(path, CAP, TOKENS)
        account.reserve_all("m", [(1, 0, "s")], follows={"s": [("j", 5.0)]})
        with monkeypatch.context() as patch:
            patch.setattr("sqlalchemy.Connection.commit", _full)
            with pytest.raises(JournalError, match="disk full"):
                account.reserve_all("m", [(1, 0, "s")], follows={"s": [("j", 9.0)], "t": [("j", 7.0)]})
        assert (account.room_of(["s"]), account.room_of(["t"]), account.room) == (5.0, 0.0, 5.0)
        assert held(account, 94).most == 94.0
        account.close()

    def test_a_call_whose_row_is_gone_cannot_end(self, path: Path) -> None:
        account = bill_on_file(path, CAP, TOKENS)
        hold = held(account, 30)
        account._once(lambda turn: turn.connection.execute(text("DELETE FROM paid_calls")))
        gone = r"a\.bill is damaged: call 0, which is under way, is no longer in it; restore a copy, or begin"
        with pytest.raises(JournalError, match=gone):
            account.settle(hold, Usage(input=12))
        assert not hold.ended
        _killed(account)

    def test_what_is_known_can_be_read_while_all_is_read_anew(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account = bill_on_file(path, CAP, TOKENS)
        for cost in (5, 7):
            paid(account, cost, 10, sample="s")
        hold = held(account, 30)
        with monkeypatch.context() as patch:
            patch.setattr("sqlalchemy.Connection.commit", _full)
            with pytest.raises(JournalError, match="disk full"):
                account.reserve("m", 1, 0)
        seen, changed = [], BillRows.changed

        def slow(*given: Any) -> Any:
            for row in changed(*given):
                seen.append((account.spent, account.of_sample("s")))
                yield row

        monkeypatch.setattr(BillRows, "changed", staticmethod(slow))
        account.settle(hold, Usage(input=3))  # reads all, since nobody knows how far the last one got
        assert seen == [(12.0, 12.0)] * 3
        assert (account.spent, account.held, account.free) == (15.0, 0.0, 85.0)
        account.close()
        assert _spent(path) == 15.0

    def test_what_cannot_be_written_is_not_begun_and_can_be_ended_again(self, path: Path) -> None:
        account = bill_on_file(path, CAP, TOKENS)
        hold = held(account, 30, sample="s")
        account.reserve_all("m", [(1, 0, "t")], follows={"t": [("j", 5.0)]})
        real, account._kept = account._kept, BillRows(Full())
        for end in (lambda: account.settle(hold, Usage(input=12)), lambda: account.release(hold)):
            with pytest.raises(JournalError, match="disk full"):
                end()
        with pytest.raises(JournalError, match="disk full"):
            account.reserve("m", 10, 0)
        assert not hold.ended
        account._kept = real
        assert (account.spent, account.held, account.room) == (0.0, 31.0, 5.0)
        assert account.settle(hold, Usage(input=12)) == 12.0
        assert hold.ended
        account.close()
        assert _spent(path) == 13.0

    @pytest.mark.parametrize("when", ["act", "commit"])
    def test_a_turn_that_is_taken_back_was_none(
        self, path: Path, when: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account = bill_on_file(path, CAP, TOKENS)
        hold = held(account, 30, sample="s")
        with monkeypatch.context() as patch:
            what = "evalbudget.run._bill_rows.change" if when == "act" else "sqlalchemy.Connection.commit"
            patch.setattr(what, _full)
            with pytest.raises(JournalError, match="disk full"):
                account.settle(hold, Usage(input=12))
        assert account.settle(hold, Usage(input=12)) == 12.0
        assert (account.spent, account.held, account.under_way) == (12.0, 0.0, 0)
        _killed(account)
        assert _spent(path) == 12.0

    def test_names_and_numbers_that_no_database_holds(self, path: Path) -> None:
        cap = Budget(1e30, Unit.TOKENS)
        odd = "arm\udcff \0 é"
        account = bill_on_file(path, cap, TOKENS)
        hold = held(account, 10**25, sample=odd, role=odd, model=odd)
        account.reserve_all("m", [(1, 0, odd)], follows={odd: [("j", 5.0)]})
        assert account.settle(hold, Usage(input=2**63)) == 2.0**63
        assert (account.of_sample(odd), account.room_of([odd])) == (2.0**63, 5.0)
        account.close()
        assert spent_on(path)[1] == {kept_name(odd): 2.0**63 + 1}
        with closing(bill_on_file(path, cap, TOKENS)) as again:
            assert again.of_sample(kept_name(odd)) == 2.0**63 + 1

    def test_what_was_spent_on_a_folder_or_on_nothing_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(JournalError, match=r"^bill .* is a folder; name a file"):
            spent_on(tmp_path)
        with pytest.raises(JournalError, match=r"gone\.bill does not exist; the run that fills it"):
            spent_on(tmp_path / "gone.bill")

    def test_a_second_process_is_refused(self, path: Path) -> None:
        first = bill_on_file(path, CAP, TOKENS)

        with pytest.raises(JournalError, match="another process"):
            bill_on_file(path, CAP, TOKENS)
        first.close()


def test_random_schedules_with_kills_never_exceed_the_cap(tmp_path: Path) -> None:
    """Against a provider that keeps its own count: what it bills stays below the cap."""
    for seed in range(20):
        draw = random.Random(seed)
        path, billed = tmp_path / f"{seed}.bill", 0
        cap = Budget(5_000.0, Unit.TOKENS)
        for _ in range(draw.randrange(1, 4)):
            account = bill_on_file(path, cap, TOKENS)
            under_way = []
            for _ in range(draw.randrange(50, 600)):
                hold = account.reserve("m", draw.randrange(1, 30), draw.randrange(20))
                if hold is not None:
                    cost = draw.randrange(1, int(hold.most) + 1)
                    fate = draw.random()
                    billed += cost * (fate < 0.9)
                    under_way.append((hold, cost, fate))
                if under_way and (hold is None or draw.random() < 0.6):
                    hold, cost, fate = under_way.pop(draw.randrange(len(under_way)))
                    if fate < 0.8:
                        account.settle(hold, Usage(input=cost))
                    elif fate < 0.9:
                        account.lose(hold)
                    else:
                        account.release(hold)
                assert billed <= account.spent + account.held <= cap.amount
            _killed(account)
        assert billed <= _spent(path, cap) <= cap.amount


def _spent(path: Path, cap: Budget = CAP) -> float:
    account = bill_on_file(path, cap, TOKENS)
    account.close()
    return account.spent


def _killed(account: Bill) -> None:
    """What is left of it when its process is killed: the file as it is, without its lock."""
    account.opened.close()
    account.keep(BillRows(Full()))


def _change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
        file.commit()


def _full(*_: object) -> None:
    raise JournalError("disk full")


class Full:
    """Nothing can be written."""

    once = later = staticmethod(_full)


def test_room_for_one_more_sample_beside_those_under_way() -> None:
    account = bill()
    assert account.is_blank
    assert account.has_room([])
    first = account.reserve("m", 20, 20, sample="a")
    assert first is not None
    assert not account.is_blank
    assert account.has_room(["a"])  # 60 are free, and the other has what it needs
    second = account.reserve("m", 20, 0, sample="b")
    assert second is not None
    assert not account.has_room(["a", "b"])  # 40 are free; b may need 20 more, and another one 40
    account.settle(first, Usage(input=10, output=0))
    assert not account.has_room(["b", "c"])
    assert account.has_room(["b"])


def test_what_a_file_says_was_spent_without_writing_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.bill"
    account = bill_on_file(path, CAP, TOKENS)
    for sample, used in (("a", 5), ("a", 7), ("b", 3)):
        hold = account.reserve("m", 10, 10, sample=sample)
        assert hold is not None
        account.settle(hold, Usage(input=used))
    assert account.reserve("m", 10, 10) is not None  # under way
    before = _bytes(tmp_path)
    assert spent_on(path) == (Unit.TOKENS, {"a": 12.0, "b": 3.0, "": 20.0})
    assert _bytes(tmp_path) == before
    account.close()


class Counting(dict[int, Hold]):
    """Counts calls under way that are looked at to sum them."""

    seen = 0

    def values(self) -> ValuesView[Hold]:
        self.seen += len(self)
        return super().values()


def test_what_is_held_is_exact_and_summed_seldom() -> None:
    account = bill(1e6)
    holds = account.reserve_all("m", [(i + 1, 0, "") for i in range(1000)])
    account._open = under_way = Counting(account._open)
    for ended, hold in enumerate(holds, start=1):
        account.release(hold)
        assert account.held == sum(range(ended + 1, 1001))
    assert under_way.seen < 2 * len(holds)


def _bytes(folder: Path) -> dict[str, bytes]:
    """Of all files that are there."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
