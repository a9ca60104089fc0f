"""What the record of a race says of calls that were under way when it was broken off."""

from __future__ import annotations

from pathlib import Path

from evalbudget_lm_eval.host.answers import Answered
from evalbudget_lm_eval.races.record import Bought, RaceRecord


def reopened(path: Path) -> RaceRecord:
    record = RaceRecord.open(path, "numbers", {})
    record.close()
    return record


def test_as_many_as_were_asked_side_by_side_count_as_paid(tmp_path: Path) -> None:
    path = tmp_path / "race.jsonl"
    record = RaceRecord.open(path, "numbers", {})
    record.asked("a", [(5, 0), (3, 0), (9, 1), (4, 0), (8, 0)], 2)
    record.bought("a", Bought(5, 0, 1.0, Answered("numbers", 5, 0, {"acc,none": 1.0}, 1, ())))
    record.said("a", 3, 0, 0, "42")  # it was answered, and is scored when the race goes on
    record.close()
    cut_off = reopened(path).known["a"].cut_off()
    assert [(one.doc_id, one.epoch, one.cost, one.answer) for one in cut_off] == [
        (9, 1, 1.0, None),
        (4, 0, 1.0, None),
    ]

    record = RaceRecord.open(path, "numbers", {})
    for one in cut_off:
        record.bought("a", one)
    record.asked("a", [], 0)
    record.close()
    assert not reopened(path).known["a"].cut_off()


def test_nothing_is_under_way_after_a_whole_round(tmp_path: Path) -> None:
    path = tmp_path / "race.jsonl"
    record = RaceRecord.open(path, "numbers", {})
    record.asked("a", [(5, 0), (3, 0)], 8)
    record.bought("a", Bought(5, 0, 1.0, Answered("numbers", 5, 0, {"acc,none": 1.0}, 1, ())))
    record.bought("a", Bought(3, 0, 1.0, None, "failed"))
    record.close()
    assert not reopened(path).known["a"].cut_off()
