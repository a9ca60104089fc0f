"""The same command again: a finished run is told again, and a wrong range costs one round."""

from __future__ import annotations

import logging
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.worlds import CoinModel, bought_in, broken_off, simple_evaluate, write_task

from evalbudget.book import Book
from evalbudget.errors import HeldError, InvalidInputError
from evalbudget.run._lock import held
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.answers import Answered
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.run.kept import Kept
from evalbudget_lm_eval.run.record import Record

BUDGET = 48


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks", n=12)


def _run(folder: Path, model: CoinModel, rounds: int | None = None, **options: Any) -> dict[str, Any]:
    with budgeted(budget=BUDGET, **options):
        return simple_evaluate(folder, model, rounds=rounds)


def _records() -> list[str]:
    return sorted(path.name.rsplit("-", 1)[1] for path in Path("evalbudget-journals").glob("*.db"))


def test_a_finished_run_is_told_again_for_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = _run(folder, CoinModel())
    again = CoinModel(seed=1)
    with caplog.at_level(logging.WARNING):
        told = _run(folder, again)
    assert not again.calls
    assert told["results"] == whole["results"]
    assert any("Another --journal buys everything again" in r.message for r in caplog.records)
    assert _records() == ["1.db"]

    elsewhere = CoinModel(seed=1)
    assert _run(folder, elsewhere, journal="another.db")["results"] != whole["results"]
    assert len(elsewhere.calls) == BUDGET


def test_results_that_never_reached_the_disk_are_not_bought_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = Record.finish

    def killed(self: Record, *given: Any, **named: Any) -> None:
        finish(self, *given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Record, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            _run(folder, CoinModel())
    again = CoinModel()
    assert _run(folder, again)["evalbudget"]["spent"] == BUDGET
    assert not again.calls


def test_a_range_that_most_scores_leave_stops_before_the_second_round(folder: Path) -> None:
    model = CoinModel()
    options: dict[str, Any] = {"rounds": 12, "journal": "j.db", "sampler": "uniform"}
    with pytest.raises(
        InvalidInputError, match=r"--score_range is 2\.\.9.* of the first 12 scores .* from 1 to 1"
    ):
        _run(folder, model, score_range="2..9", **options)
    assert len(model.calls) == 12
    with pytest.raises(InvalidInputError, match=r"is 3\.\.9"):  # and not after a second one
        _run(folder, model, score_range="3..9", **options)
    assert len(model.calls) == 12
    block = _run(folder, model, score_range="0..1", **options)["evalbudget"]
    assert (block["spent"], block["failed"]) == (BUDGET, 0)
    assert len(model.calls) == BUDGET  # what was answered counts
    assert all(r.value is not None for r in bought_in("j.db").readings)


def test_the_same_command_with_the_right_range_buys_nothing_twice(folder: Path) -> None:
    model = CoinModel()
    with pytest.raises(
        InvalidInputError, match="same command with the right range: no answer is bought twice"
    ):
        _run(folder, model, score_range="2..9", rounds=12, sampler="uniform")
    assert len(model.calls) == 12
    block = _run(folder, model, score_range="0..1", rounds=12, sampler="uniform")["evalbudget"]
    assert (block["spent"], block["failed"], len(model.calls)) == (BUDGET, 0, BUDGET)
    assert _records() == ["1.db"]


def test_a_finished_record_with_a_higher_budget_is_not_called_finished(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _run(folder, CoinModel(), journal="j.db")
    model = CoinModel()
    with caplog.at_level(logging.WARNING), budgeted(budget=BUDGET + 12, journal="j.db"):
        block = simple_evaluate(folder, model)["evalbudget"]
    assert (block["spent"], len(model.calls)) == (BUDGET + 12, 12)
    assert not any("is finished" in r.message for r in caplog.records)


@pytest.mark.parametrize("sampler", ["auto", "sample"])
def test_a_larger_budget_goes_on_with_what_a_smaller_one_paid_for(
    sampler: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def buys(budget: int) -> int:
        model = CoinModel()
        with budgeted(budget=budget, sampler=sampler):
            assert simple_evaluate(folder, model)["evalbudget"]["spent"] == budget
        return len(model.calls)

    assert buys(24) == 24
    caplog.clear()
    assert buys(36) == 12
    assert "24 calls are spent; another --journal buys everything again" in caplog.text
    assert buys(36) == 0
    assert buys(24) == 24  # for so little there is nothing to go on with
    assert (buys(30), buys(40)) == (6, 4)  # each with the first that it can pay for
    assert _records() == ["1.db", "2.db"]


def test_a_run_beside_one_with_another_budget_has_a_record_of_its_own(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with broken_off(CoinModel, "_answer", at=31), pytest.raises(KeyboardInterrupt):
        _run(folder, CoinModel())
    (path,) = Path("evalbudget-journals").glob("*.db")
    lock = held(path.resolve())  # as its process has it
    assert lock is not None
    with lock:
        with pytest.raises(HeldError):
            _run(folder, CoinModel(fail_at=1))
        with budgeted(budget=BUDGET + 12):
            assert simple_evaluate(folder, CoinModel(seed=1))["evalbudget"]["spent"] == BUDGET + 12
    assert "or of one that runs now" in caplog.text
    assert _records() == ["1.db", "2.db"]


def test_the_same_command_twice_at_once_buys_once_also_before_the_first_has_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evalbudget_lm_eval.repeats.purchase.book_of", killed)
        with pytest.raises(KeyboardInterrupt):
            _run(folder, CoinModel())
    (path,) = Path("evalbudget-journals").glob("*.db")
    lock = held(path.resolve())  # as a process has it that has just begun
    assert lock is not None
    with pytest.raises(HeldError):
        _run(folder, CoinModel(fail_at=1))
    lock.release(force=True)
    _run(folder, CoinModel())
    assert _records() == ["1.db"]


def test_another_range_is_another_run(folder: Path) -> None:
    assert _run(folder, CoinModel(), score_range="0.5..1")["evalbudget"]["failed"] > 0
    model = CoinModel()
    assert _run(folder, model, score_range="0..1")["evalbudget"]["failed"] == 0
    assert len(model.calls) == BUDGET


def test_a_run_of_another_range_that_was_broken_off_is_left_alone(folder: Path) -> None:
    _run(folder, CoinModel())
    with broken_off(CoinModel, "_answer", at=41), pytest.raises(KeyboardInterrupt):
        _run(folder, CoinModel(), score_range="0..2")
    again = CoinModel()
    _run(folder, again)
    assert not again.calls
    _run(folder, again, score_range="0..2")
    assert len(again.calls) == BUDGET - 40
    assert _records() == ["1.db", "2.db"]


def test_a_named_record_of_another_range_is_refused(folder: Path) -> None:
    _run(folder, CoinModel(), journal="j.db", score_range="0..1")
    with pytest.raises(InvalidInputError, match=r"j\.db counts scores by .*0\.0, 1\.0.* and this run by"):
        _run(folder, CoinModel(), journal="j.db", score_range="0..5")


def test_a_record_whose_process_was_killed_at_its_end_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Record) -> None:
        shutil.copytree("evalbudget-journals", "left")
        close(self)

    close = Record.close
    with monkeypatch.context() as patch:
        patch.setattr(Record, "close", killed)
        patch.setattr(Book, "close", lambda self, **_: None)
        _run(folder, CoinModel())
    assert len(list(Path("left").glob("*.db-wal"))) == 1
    shutil.rmtree("evalbudget-journals")
    Path("left").rename("evalbudget-journals")
    again = CoinModel()
    assert _run(folder, again)["evalbudget"]["spent"] == BUDGET
    assert not again.calls
    (path,) = (each for each in Path("evalbudget-journals").iterdir() if not each.name.startswith("."))
    assert path.suffix == ".db"


def test_answers_without_a_number_are_not_outside_of_a_range(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = PrimedTasks.run

    def without_numbers(self: PrimedTasks, *args: Any, **options: Any) -> list[Answered]:
        found = tell(self, *args, **options)
        return [replace(a, metrics={"exact_match,none": math.nan}) if a.doc_id < 8 else a for a in found]

    monkeypatch.setattr(PrimedTasks, "run", without_numbers)
    assert _run(folder, CoinModel(), score_range="0..1")["evalbudget"]["spent"] == BUDGET


def test_a_run_is_one_file_of_the_name_it_was_given(tmp_path: Path) -> None:
    """With what was asked, said and paid; names with dots have a file each."""
    folder = write_task(tmp_path / "tasks", n=12)
    with broken_off(Kept, "hear", at=5), pytest.raises(KeyboardInterrupt):
        _run(folder, CoinModel(), journal="m.1")
    _run(folder, CoinModel(), journal="m.2")
    _run(folder, CoinModel(), journal="plain")
    assert {path.name for path in Path().iterdir() if path.is_file()} == {
        *("m.1", ".m.1.lock", "m.2", ".m.2.lock", "plain.db", ".plain.db.lock")
    }
    again = CoinModel()
    assert _run(folder, again, journal="m.1")["evalbudget"]["spent"] == BUDGET
    assert len(again.calls) == BUDGET - 4
