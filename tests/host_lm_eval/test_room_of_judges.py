"""What is kept for the judges of an answer, until each of them was asked."""

from __future__ import annotations

import time

import pytest

from evalbudget.budget import Budget, Unit
from evalbudget.prices import Tariff, Usage
from evalbudget.run import Bill, Hold
from evalbudget_lm_eval.arms.paid_arms import PaidArms
from evalbudget_lm_eval.host import paid_calls
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.paid_calls import PaidCalls, judging
from evalbudget_lm_eval.host.usage import Size
from evalbudget_lm_eval.host.used_up import UsedUpError

CELL = "essays:0:0"


def _paid(*judges: float) -> PaidCalls:
    """An answer is there, which judges of one model have yet to see."""
    paid = PaidCalls(Bill(Budget(100.0, Unit.TOKENS), Tariff(Unit.TOKENS)))
    paid.expect({CELL: [("j", most) for most in judges]})
    (answer,) = paid.hold("m", [Size(10, 0)], [CELL], 0.0)
    paid.bill.lose(answer)
    assert (paid.bill.spent, paid.bill.room) == (10.0, sum(judges))
    return paid


def _asks(paid: PaidCalls, most: int) -> list[Hold]:
    before = judging.set([CELL])
    try:
        return paid.hold("j", [Size(most, 0)], [CELL], 0.0)
    finally:
        judging.reset(before)


def test_a_refused_call_is_sent_again_out_of_its_own_room() -> None:
    paid = _paid(20.0, 20.0, 20.0)
    for _ in range(3):
        holds = _asks(paid, 20)
        assert (paid.bill.held, paid.bill.room) == (20.0, 40.0)
        paid.release(holds, [CELL])
        assert (paid.bill.held, paid.bill.room) == (0.0, 60.0)
    for left in (40.0, 20.0, 0.0):
        _asks(paid, 20)
        assert paid.bill.room == left


@pytest.mark.parametrize("first", [5, 60])
def test_judges_of_one_model_have_their_own_room_each(first: int) -> None:
    paid = _paid(5.0, 60.0)
    assert _asks(paid, first)
    assert paid.bill.room == 65 - first


def test_a_local_arm_waits_for_judges_of_another_that_are_about_to_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paid_calls, "_OTHERS", 0.2)
    arms = PaidArms(Bill(Budget(100.0, Unit.TOKENS), Tariff(Unit.TOKENS)), ["local", "other"])
    arms._dearest["local"] = 60.0
    assert not arms._waits("local", 0)
    other = arms.paid["other"]
    other.expect({CELL: [("j", 70.0)]})
    (answer,) = other.hold("m", [Size(10, 0)], [CELL], 0.0)
    other.bill.settle(answer, Usage(10))
    assert arms._waits("local", 0)  # its answer is being scored: nothing is under way
    deadline = time.monotonic() + 30
    while arms._waits("local", 0):  # but not for ever
        assert time.monotonic() < deadline


def test_room_of_another_process_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paid_calls, "_OTHERS", 0.2)
    paid = _paid()
    with pytest.raises(UsedUpError):
        paid.check_waiting("m", [Size(10, 0)], 0)
    paid.bill.room_of_others = 95.0
    paid.check_waiting("m", [Size(10, 0)], 0)
    time.sleep(0.3)
    with pytest.raises(UsedUpError):
        paid.check_waiting("m", [Size(10, 0)], 0)


def test_an_arm_whose_answers_can_be_judged_waits_for_no_other() -> None:
    arms = PaidArms(Bill(Budget(100.0, Unit.TOKENS), Tariff(Unit.TOKENS)), ["one", "other"])
    for paid in arms.paid.values():
        paid.expect({CELL: [("j", 35.0)], "essays:1:0": [("j", 35.0)]})
        (answer,) = paid.hold("m", [Size(10, 0)], [CELL], 0.0)
        paid.bill.settle(answer, Usage(10))
    one, other = arms.paid["one"], arms.paid["other"]
    for paid in (one, other):
        with pytest.raises(UsedUpError):
            paid.check_waiting("m", [Size(10, 0)], 0)  # it ends its round, and has its answer judged
    before = judging.set([CELL])
    (judge,) = other.hold("j", [Size(35, 0)], [CELL], 0.0)
    judging.reset(before)
    other.bill.settle(judge, Usage(1))
    other.settled(Asked("essays", 0, 0))
    other.check_waiting("m", [Size(10, 0)], 0)  # now it waits for the first
