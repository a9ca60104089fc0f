"""The bill: a cap that holds, for threads, kills and replies that say nothing of what they cost."""

import json
import random
import threading
from collections.abc import ValuesView
from pathlib import Path

import pytest
from scipy.stats import binomtest

from evalbudget.budget import Budget, Unit
from evalbudget.errors import BudgetError, JournalError
from evalbudget.prices import Price, Tariff, Usage
from evalbudget.run import Bill, Hold, spent_on

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
    return tmp_path / "bill.jsonl"


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
    with pytest.raises(BudgetError, match="a cap in usd cannot be kept by prices in tokens"):
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
        first = Bill.on_file(path, CAP, TOKENS)
        answered = held(first, 30, sample="s", role="judge")
        held(first, 20)  # cut off
        first.settle(answered, Usage(input=12))
        _killed(first)

        second = Bill.on_file(path, CAP, TOKENS)
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
        first = Bill.on_file(path, CAP, TOKENS)
        paid(first, 90, 90)
        first.close()

        lower = Bill.on_file(path, Budget(50.0, Unit.TOKENS), TOKENS)
        assert lower.free == 0.0
        assert lower.reserve("m", 1, 0) is None
        lower.close()

    def test_what_was_learned_of_risks_is_kept(self, path: Path) -> None:
        first = Bill.on_file(path, CAP, TOKENS, risk=0.5)
        paid(first, 5, 50)
        assert held(first, 50).most == 5.0
        _killed(first)

        second = Bill.on_file(path, CAP, TOKENS, risk=0.5)
        assert second.spent == 55.0
        assert held(second, 40).most == 4.0
        second.close()

    def test_a_line_that_a_kill_cut_off_is_dropped(
        self, path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        Bill.on_file(path, CAP, TOKENS).close()
        with path.open("a") as file:
            file.write('{"hold": 0, "mo')

        assert _spent(path) == 0.0
        assert "dropped the last line" in caplog.text

    def test_an_empty_file_is_begun(self, path: Path) -> None:
        path.touch()
        Bill.on_file(path, CAP, TOKENS).close()

        assert json.loads(path.read_text().splitlines()[0])["evalbudget"] == "bill"

    def test_another_unit_is_refused(self, path: Path) -> None:
        Bill.on_file(path, CAP, TOKENS).close()

        with pytest.raises(BudgetError, match="was begun with a budget in tokens, and this one is in usd"):
            Bill.on_file(path, Budget(1.0, Unit.USD), Tariff(Unit.USD))

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ("{}", "line 2 is damaged"),
            ('{"end":0,"cost":1,"why":"answered","tokens":1}', "which was not under way"),
            ('{"hold":0,"model":"m","most":"x","sample":"","role":""}', "line 2 is damaged"),
            ("[]", "line 2 is damaged"),
            ("nonsense", "line 2 is damaged"),
        ],
    )
    def test_damage_is_told_with_its_place(self, path: Path, line: str, told: str) -> None:
        Bill.on_file(path, CAP, TOKENS).close()
        with path.open("a") as file:
            file.write(line + "\n")

        with pytest.raises(JournalError, match=told):
            Bill.on_file(path, CAP, TOKENS)

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ('{"evalbudget":"journal"}', "is no bill of evalbudget; move it away"),
            ('{"evalbudget":"bill","format":9,"version":"7","unit":"usd"}', r"has format 9 \(evalbudget 7\)"),
        ],
    )
    def test_another_file_is_refused(self, path: Path, line: str, told: str) -> None:
        path.write_text(line + "\n")

        with pytest.raises(JournalError, match=told):
            Bill.on_file(path, CAP, TOKENS)

    def test_what_was_spent_on_a_folder_or_on_nothing_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(JournalError, match=r"is no bill of evalbudget .*; name the bill in it"):
            spent_on(tmp_path)
        with pytest.raises(JournalError, match=r"is no bill of evalbudget .*; give a bill that can be read"):
            spent_on(tmp_path / "gone.bill")

    def test_a_second_process_is_refused(self, path: Path) -> None:
        first = Bill.on_file(path, CAP, TOKENS)

        with pytest.raises(JournalError, match="another process"):
            Bill.on_file(path, CAP, TOKENS)
        first.close()


def test_random_schedules_with_kills_never_exceed_the_cap(tmp_path: Path) -> None:
    """Against a provider that keeps its own count: what it bills stays below the cap."""
    for seed in range(60):
        draw = random.Random(seed)
        path, billed = tmp_path / f"{seed}.jsonl", 0
        cap = Budget(5_000.0, Unit.TOKENS)
        for _ in range(draw.randrange(1, 4)):
            account = Bill.on_file(path, cap, TOKENS)
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
    account = Bill.on_file(path, cap, TOKENS)
    account.close()
    return account.spent


def _killed(account: Bill) -> None:
    """What is left of it when its process is killed: the file as it is, without its lock."""
    assert account._lines is not None
    account._lines.close()
    account._lines = None


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
    path = tmp_path / "bill.jsonl"
    account = Bill.on_file(path, CAP, TOKENS)
    for sample, used in (("a", 5), ("a", 7), ("b", 3)):
        hold = account.reserve("m", 10, 10, sample=sample)
        assert hold is not None
        account.settle(hold, Usage(input=used))
    assert account.reserve("m", 10, 10) is not None  # under way
    before = path.read_bytes()
    assert spent_on(path) == (Unit.TOKENS, {"a": 12.0, "b": 3.0, "": 20.0})
    assert path.read_bytes() == before
    account.close()
    path.write_text(path.read_text().replace('"end":0', '"end":99'))
    with pytest.raises(JournalError, match="is damaged"):
        spent_on(path)


HOLD = '{"hold": %d, "model": "m", "most": 5, "sample": "s", "role": ""}'
END = '{"end": %d, "cost": 3, "why": "answered", "tokens": 3}'


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ([HOLD % 0, HOLD % 0], "line 3 is damaged: call 0 begins twice"),
        ([HOLD % 0, END % 0, END % 0], "line 4 is damaged: it ends call 0, which was not under way"),
        ([END % 7], "line 2 is damaged: it ends call 7, which was not under way"),
        (["{}"], "line 2 is damaged"),
    ],
)
def test_a_damaged_bill_is_refused_by_whoever_reads_it(path: Path, lines: list[str], line: str) -> None:
    Bill.on_file(path, CAP, TOKENS).close()
    path.write_text(path.read_text() + "".join(f"{each}\n" for each in lines))
    with pytest.raises(JournalError, match=line):
        spent_on(path)
    with pytest.raises(JournalError, match=line):
        Bill.on_file(path, CAP, TOKENS)


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
