"""What the record of a run or a race says of calls that were under way, and what it refuses."""

from __future__ import annotations

import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from evalbudget.errors import HeldError, InvalidInputError, JournalError
from evalbudget.store import Address, Database
from evalbudget_lm_eval.arms.compared import Compared
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.races.run import _Arm
from evalbudget_lm_eval.repeats.shared import record_of_own
from evalbudget_lm_eval.run.kept import Bought, Kept
from evalbudget_lm_eval.run.record import FILE, RACE, RUN, Record, look, path_named
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
    path = tmp_path / "race.db"
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
    path = tmp_path / "race.db"
    record = begun(path)
    kept = record.of("a")
    kept.ask({cell(5): 1, cell(3): 1}, 8)
    kept.answer(answer(5))
    if ends == "whole":
        kept.fail(cell(3), 1.0, "failed")
    else:
        kept.stop()
    record.close()
    assert not reopened(path).under_way


def test_what_was_written_is_read_back_by_arm(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    record = begun(path)
    one, other = record.of("a"), record.of("b")
    one.open({"model": "hf"}, {"frame": {}})
    one.answer(answer(5))
    other.fail(cell(5), 0.0, "not asked")
    one.hear(cell(3), 0, [-1.5, True])
    one.hear(cell(3), 1, "7")
    record.close()
    record = begun(path)
    one, other = record.of("a"), record.of("b")
    record.close()
    assert (one.model, one.opened) == ({"model": "hf"}, {"frame": {}})
    assert [bought.answer for bought in one.bought] == [answer(5)]
    assert one.bought[0].cost == 1.0
    assert one.said == {cell(3): {0: [[-1.5, True]], 1: ["7"]}}
    assert other.bought == [Bought(cell(5), 0.0, error="not asked")]


def test_names_of_tasks_stay_where_what_is_said_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "numbers2024")
    asked = Asked("numbers2024", 3, 0)
    record = begun(tmp_path / "race.db")
    record.of("a").hear(asked, 0, "it is numbers2024")
    record.close()
    assert reopened(tmp_path / "race.db").said == {asked: {0: ["it is ***"]}}


BEGUN = "update answers set what = '{}' where kind = 'begun'"
SAID = "update answers set {} where kind = 'said'"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (BEGUN.format('["run", {}, "w"]'), "is the record of a run on lm-eval, not of a race"),
        (
            BEGUN.format('["race", {"task": "x"}, "w"]'),
            r"other questions \(task = 'x' there, 'numbers' here\)",
        ),
        ("pragma application_id = 1", "is a database, but no record; move it away to begin anew"),
        ("pragma user_version = 2", "has format 2; .* reads format 1. Install the version that wrote it"),
        ("drop table answers", "no such table: answers; move it away to begin anew"),
        (SAID.format("kind = 'other'"), "row 2 of answers is damaged: .*a row of 'other'"),
        (SAID.format("document = 'x'"), "row 2 of answers is damaged"),
        (SAID.format("what = '{'"), "row 2 of answers is damaged"),
        (SAID.format("what = '{}'"), "row 2 of answers is damaged: .*; move it away to begin anew"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, damage: str, message: str) -> None:
    path = tmp_path / "race.db"
    record = begun(path)
    record.of("a").hear(cell(3), 0, "42")
    record.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        db.commit()
    before = path.read_bytes()
    with pytest.raises(JournalError, match=message) as refused:
        begun(path)
    assert str(path) in str(refused.value)
    assert path.read_bytes() == before
    path.unlink()
    begun(path).close()  # nobody holds it


@pytest.mark.parametrize("content", [b"", b'{"evalbudget": "lm-eval race", "format": 1}\n', b"\0" * 5000])
def test_what_is_no_record_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "race.db"
    path.write_bytes(content)
    for use in (begun, look):  # look: what stands where a run would go on
        with pytest.raises(JournalError, match=r"race\.db is .*no record.*move it away to begin anew"):
            use(path)
    assert path.read_bytes() == content
    for place in (tmp_path, tmp_path / "race.db" / "inside.db"):
        with pytest.raises(JournalError, match=str(tmp_path)):
            begun(place)


def test_one_process_at_a_time_and_a_look_changes_nothing(tmp_path: Path) -> None:
    """Also of a record that is open, or whose process was killed."""
    path = tmp_path / "run.db"
    record = Record.open(path, RUN, {"task": "numbers"})
    record.of().hear(cell(3), 0, "42")
    record.count_by({"score_range": None})
    with pytest.raises(HeldError, match=r"run\.db is being written by another process; wait for it to end"):
        Record.open(path, RUN, {"task": "numbers"})

    def looked_at(path: Path, timed: int) -> dict[str, bytes]:
        for _ in range(2):
            before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
            found, told, _ = look(path)
            assert (found.settings, found.counted) == ({"task": "numbers"}, {"score_range": None})
            assert (found.finished, found.timed, told.readings) == (timed > 0, timed, 0)
            assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before
        return before

    assert looked_at(path, 0).keys() == {"run.db", "run.db-wal", ".run.db.lock"}
    record.finish(seconds=1.0, readings=4)
    (killed := tmp_path.with_name("killed") / "run.db").parent.mkdir()
    for name, data in looked_at(path, 4).items():
        killed.with_name(name).write_bytes(data)
    record.close()
    assert looked_at(path, 4).keys() == {"run.db", ".run.db.lock"}
    assert looked_at(killed, 4).keys() == {"run.db", "run.db-wal", ".run.db.lock"}
    again = Record.open(killed, RUN, {"task": "numbers"})
    assert again.of().said == {cell(3): {0: ["42"]}}
    again.close()
    assert looked_at(killed, 4).keys() == {"run.db", ".run.db.lock"}


def test_a_process_that_was_killed_before_it_began_stops_nobody(tmp_path: Path) -> None:
    first = tmp_path / "numbers-ab12-1.db"
    Database.create(Address(path=first), FILE, {"version": "1"}).close()
    found, told, _ = look(first)
    assert (found.counted, found.finished, told.readings) == (None, False, 0)
    record = record_of_own(first, {"task": "numbers"}, named=False)
    assert record.path == first
    record.close()
    assert look(first)[0].settings == {"task": "numbers"}


def test_a_link_to_a_record_is_that_record(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    record = Record.open(tmp_path / "there" / "run.db", RUN, {"task": "numbers"})
    record.count_by({"score_range": None})
    (link := tmp_path / "link.db").symlink_to(tmp_path / "there" / "run.db")
    with pytest.raises(HeldError, match=r"run\.db is being written by another process"):
        Record.open(link, RUN, {"task": "numbers"})
    assert look(link)[0].counted == {"score_range": None}
    record.close()
    Record.open(link, RUN, {"task": "numbers"}).close()


def test_nobody_is_told_to_move_away_what_another_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files have no locks beside them."""
    monkeypatch.setattr("evalbudget.store._database._PATIENCE", 0.1)
    monkeypatch.setattr("evalbudget.run._own_file.held", lambda path: None)
    record = begun(tmp_path / "race.db")
    with pytest.raises(JournalError, match=r"kept locked by another process .* then try again$"):
        begun(tmp_path / "race.db")
    record.close()


@pytest.mark.parametrize("journal", ["", ".", "..", "/"])
def test_a_folder_is_no_name_of_a_record(journal: str) -> None:
    with pytest.raises(InvalidInputError, match="names a folder; name a file in it"):
        path_named(journal)


def test_a_store_is_nobodys_own_record(tmp_path: Path) -> None:
    own, store = str(tmp_path / "s"), str(tmp_path / "x" / ".." / "s.db")
    with pytest.raises(InvalidInputError, match="each process has a journal of its own"):
        path_named(own, store)
    assert path_named(own, "postgresql://u@h/d#s") == tmp_path / "s.db"


def test_a_reply_that_comes_after_its_record_was_closed_keeps_nobody_out(tmp_path: Path) -> None:
    record = begun(tmp_path / "race.db")
    record.close()
    with pytest.raises(JournalError, match=r"race\.db cannot be written: it was closed"):
        record.of("a").hear(cell(3), 0, "42")
    assert reopened(tmp_path / "race.db").said == {}


def test_a_record_is_its_owners_alone_and_any_text_survives(tmp_path: Path) -> None:
    path, said = tmp_path / "race.db", "a half \ud83d, a zero \0, \N{SNOWMAN}"
    record = begun(path)
    record.of("arm \udcff").hear(cell(3), 0, said)
    record.of("arm \udcff").hear(cell(3), 1, [math.nan, math.inf, 10**400, np.float32(0.5)])
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
    record.close()
    assert path.stat().st_mode & 0o777 == 0o600
    record = begun(path)
    heard = record.of("arm \udcff").said[cell(3)]
    record.close()
    assert heard[0] == [said]
    assert repr(heard[1]) == repr([[math.nan, math.inf, 10**400, 0.5]])


def test_arms_write_at_the_same_time(tmp_path: Path) -> None:
    record = begun(tmp_path / "race.db")

    def write(arm: str) -> None:
        for number in range(100):
            record.of(arm).hear(cell(number), 0, arm)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, map(str, range(8))))
    record.close()
    again = begun(tmp_path / "race.db")
    again.close()
    for arm in map(str, range(8)):
        assert again.of(arm).said == {cell(number): {0: [arm]} for number in range(100)}


def test_only_what_failed_by_itself_speaks_against_a_model_when_a_race_goes_on(tmp_path: Path) -> None:
    """A round that breaks off is charged for as many calls as may have been billed; that is no proof."""
    record = begun(tmp_path / "r.db")
    kept = record.of("a")
    kept.answer(answer(0))
    for number in range(1, 17):
        kept.fail(cell(number), 1.0, "timed out")
    kept.fail(cell(17), 1.0, "refused", alone=True)
    kept.fail(cell(18), 0.0, "not asked")
    record.close()
    again = reopened(tmp_path / "r.db")
    assert len(failed_alone(again.bought)) == 1
    assert failed_alone(again.bought[:1]) == []


@pytest.mark.parametrize("paid", [True, False])
def test_a_race_records_whether_a_cell_failed_by_itself(paid: bool) -> None:
    kept = Kept(lambda *row: None)
    race = SimpleNamespace(completed=lambda *_, **__: None)
    compared = Compared("t", "t", {"t": None}, {"t": (3,)}, {"t": "acc,none"})
    arm: Any = _Arm(cast("Any", race), 0, cast("Any", SimpleNamespace(kept=kept)), compared, None)
    arm.failed(cell(3), TimeoutError("late"), paid=paid)  # paid: cut off with others
    assert [(one.cost, one.alone) for one in kept.bought] == [(1.0, not paid)]
