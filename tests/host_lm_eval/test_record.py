"""What the record of a run or a race says of calls that were under way, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evalbudget.errors import JournalError
from evalbudget_lm_eval.arms.compared import Compared
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.races.run import _Arm
from evalbudget_lm_eval.run.record import RACE, Bought, Kept, Record
from evalbudget_lm_eval.run.resume import count_cut_off
from evalbudget_lm_eval.run.rounds import failed_alone


def cell(doc_id: int, epoch: int = 0) -> Asked:
    return Asked("numbers", doc_id, epoch)


def answer(doc_id: int) -> Answered:
    record = {"filter": "none", "metrics": ["acc"], "acc": 1.0, "doc_id": doc_id, "epoch": 0}
    return Answered(*cell(doc_id), {"acc,none": 1.0}, 1, (record,))


def begun(path: Path) -> Record:
    return Record.open(path, RACE, {"task": "numbers"})


def reopened(path: Path) -> Kept:
    record = begun(path)
    record.close()
    return record.of("a")


def cut_off(path: Path) -> list[Asked]:
    record, cut = begun(path), []
    count_cut_off(record.of("a"), cut.append)
    record.close()
    return cut


def test_as_many_as_were_asked_side_by_side_count_as_paid_and_only_once(tmp_path: Path) -> None:
    path = tmp_path / "race.jsonl"
    record = begun(path)
    kept = record.of("a")
    kept.ask({cell(5): 1, cell(3): 1, cell(9, 1): 1, cell(4): 2, cell(8): 1}, 2)
    kept.answer(answer(5))
    kept.hear(cell(3), 0, "42")  # it was answered, and is scored when the race goes on
    kept.hear(cell(4), 0, "4")  # in part
    record.close()
    assert reopened(path).under_way == [cell(9, 1), cell(4), cell(8)]
    assert cut_off(path) == [cell(9, 1)]
    assert cut_off(path) == []
    kept = reopened(path)
    assert kept.unanswered == 1  # what was said of the fourth and may have been under way
    assert kept.said[cell(4)] == {0: ["4"]}


@pytest.mark.parametrize("ends", ["whole", "stopped"])
def test_nothing_is_under_way_after_a_whole_round_or_an_error(tmp_path: Path, ends: str) -> None:
    path = tmp_path / "race.jsonl"
    record = begun(path)
    kept = record.of("a")
    kept.ask({cell(5): 1, cell(3): 1}, 8)
    kept.answer(answer(5))
    if ends == "whole":
        kept.fail(cell(3), 1.0, "failed")
    else:
        kept.stop("ConnectionError")
    record.close()
    assert not reopened(path).under_way


def test_what_was_written_is_read_back_by_arm(tmp_path: Path) -> None:
    path = tmp_path / "race.jsonl"
    record = begun(path)
    one, other = record.of("a"), record.of("b")
    one.open({"model": "hf"}, {"frame": {}})
    one.answer(answer(5))
    other.fail(cell(5), 0.0, "not asked")
    one.hear(cell(3), 0, [-1.5, True])
    one.hear(cell(3), 1, "7")
    record.close()
    with path.open("ab") as file:
        file.write(b'{"arm":"a","of":["numbers",3,0],"requ')  # killed in the middle of a line
    record = begun(path)
    one, other = record.of("a"), record.of("b")
    record.close()
    assert (one.model, one.opened) == ({"model": "hf"}, {"frame": {}})
    assert [bought.answer for bought in one.bought] == [answer(5)]
    assert one.bought[0].cost == 1.0
    assert one.said == {cell(3): {0: [[-1.5, True]], 1: ["7"]}}
    assert other.bought == [Bought(cell(5), 0.0, error="not asked")]
    assert path.read_bytes().endswith(b'"said":"7"}\n')


def test_names_of_tasks_stay_where_what_is_said_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "numbers2024")
    asked = Asked("numbers2024", 3, 0)
    record = begun(tmp_path / "race.jsonl")
    record.of("a").hear(asked, 0, "it is numbers2024")
    record.close()
    assert reopened(tmp_path / "race.jsonl").said == {asked: {0: ["it is ***"]}}


HEADER: dict[str, Any] = {
    "evalbudget": "lm-eval race",
    "format": 1,
    "version": "9",
    "settings": {"task": "x"},
}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "is no record of a race: it has no header line; delete it"),
        ([{**HEADER, "evalbudget": "lm-eval run"}], "line 1: this is not the record of a race on lm-eval"),
        ([{**HEADER, "evalbudget": "journal"}], "line 1: this is not the record of a race on lm-eval"),
        ([{**HEADER, "format": 2}], r"format 2 \(evalbudget 9\); this version reads format 1"),
        ([{"evalbudget": "lm-eval race", "format": 1}], "line 1 is damaged: no 'settings'"),
        ([HEADER], r"other questions \(task = 'x' there, 'numbers' here\); use the settings recorded"),
        ([HEADER, {"arm": "a", "other": 1}], r"line 2 is damaged: an entry \['arm', 'other'\]"),
        ([HEADER, {"arm": "a", "of": ["x", 1]}], "line 2 is damaged"),
        ([HEADER, [1]], "line 2 is damaged: not a JSON object"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, lines: list[Any], message: str) -> None:
    path = tmp_path / "race.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = path.read_text()
    with pytest.raises(JournalError, match=message):
        begun(path)
    assert path.read_text() == before
    path.unlink()
    begun(path).close()  # nobody holds it


def test_only_what_failed_by_itself_speaks_against_a_model_when_a_race_goes_on(tmp_path: Path) -> None:
    """A round that breaks off is charged for as many calls as may have been billed; that is no proof."""
    record = begun(tmp_path / "r.jsonl")
    kept = record.of("a")
    kept.answer(answer(0))
    for number in range(1, 17):
        kept.fail(cell(number), 1.0, "timed out")
    kept.fail(cell(17), 1.0, "refused", alone=True)
    kept.fail(cell(18), 0.0, "not asked")
    record.close()
    again = reopened(tmp_path / "r.jsonl")
    assert len(failed_alone(again.bought)) == 1
    assert failed_alone(again.bought[:1]) == []


@pytest.mark.parametrize("paid", [True, False])
def test_a_race_records_whether_a_cell_failed_by_itself(paid: bool) -> None:
    kept = Kept(lambda entry: None)
    race = SimpleNamespace(completed=lambda *_, **__: None)
    compared = Compared("t", "t", {"t": None}, {"t": (3,)}, {"t": "acc,none"})
    arm: Any = _Arm(cast("Any", race), 0, cast("Any", SimpleNamespace(kept=kept)), compared, None)
    arm.failed(cell(3), TimeoutError("late"), paid=paid)  # paid: cut off with others
    assert [(one.cost, one.alone) for one in kept.bought] == [(1.0, not paid)]
