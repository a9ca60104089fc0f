"""One budget on one task and one model, spent by several processes of lm-eval."""

from __future__ import annotations

import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.host_lm_eval.worlds import (
    EVALBUDGET,
    CoinModel,
    averaged,
    broken_off,
    environment,
    samples_in,
    simple_evaluate,
    write_task,
)

import evalbudget
import warm
from evalbudget.book import Book
from evalbudget.errors import BudgetError, InvalidInputError, JournalError, StoreDownError, StoreError
from evalbudget.store import looked_into
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.log_folder import open_scores
from evalbudget_lm_eval.repeats.finished_run import answers_in
from evalbudget_lm_eval.repeats.shared import record_of_own
from evalbudget_lm_eval.run.record import ANSWERS, FILE
from loopback import Asked, Server

BUDGET = 60
IN_ROUNDS = f"from evalbudget_lm_eval.repeats import run\nrun.ROUND = 5\n{EVALBUDGET}"

LUCK = random.Random(0)


def answer(asked: Asked) -> str:
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    return f"{number}" if LUCK.random() > number / 16 else "?"


def started(server: Server, folder: Path) -> subprocess.Popen[Any]:
    command = [
        *(sys.executable, "-c", IN_ROUNDS, "lm-eval", "run", "--model", "local-chat-completions"),
        *("--model_args", server.chat_args("m", max_retries=1), "--tasks", "numbers"),
        *("--include_path", str(folder / "tasks"), "--apply_chat_template"),
        *("--gen_kwargs", "temperature=1,seed=None", "--budget", str(BUDGET)),
        *("--store", str(folder / "store.db"), "--output_path", str(folder / "out"), "--log_samples"),
    ]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return warm.Popen(command, host="lm-eval", env=environment(), **options)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_two_processes_one_killed_and_run_again(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_task(tmp_path / "tasks", n=8)
    both = threading.Event()
    server.answer, server.latency = lambda asked: answer(asked) if both.wait(300) else "", 0.4
    running = [started(server, tmp_path) for _ in range(2)]
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and least_heard(tmp_path) < 2:
        if len(records(tmp_path)) == 2:  # whoever is the first to start does not buy everything
            both.set()
        time.sleep(0.02)
    both.set()
    running[1].send_signal(signal.SIGKILL)
    running[1].communicate()
    server.latency = 0.01
    running[1] = started(server, tmp_path)
    told = [process.communicate(timeout=240)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    assert BUDGET - 1 <= len(server.served) <= BUDGET  # but for the call that was cut off

    summaries = [text[text.index("\nnumbers with m\n") :] for text in told]
    assert summaries[0] == summaries[1]
    assert re.search(r"Spent +60 of 60 calls\n", summaries[0])
    each = r"(, all equally often|, 7 to 8 each, as the\s+budget goes)?"
    readings = rf"Readings +(59|60) of 8 items{each}, of\s+2\s+processes;"
    assert re.search(readings, summaries[0]), told
    rows, blocks = zip(
        *(results_in(path) for path in (tmp_path / "out").rglob("results_*.json")), strict=True
    )
    assert rows[0] == rows[1]
    assert blocks[0]["estimates"] == blocks[1]["estimates"]
    asked = Counter((each["doc_id"], each["epoch"]) for each in samples_in(tmp_path / "out"))
    assert set(asked.values()) == {1}
    assert asked.total() == blocks[0]["readings"]

    model, said = answers_in(tmp_path / "out")
    assert (model, len(said.said)) == ("m", 8)
    assert "answers to 8 documents, and the first to each is scored" in caplog.text
    whole = open_scores(tmp_path / "out")
    assert whole is not None
    assert whole.purchases is not None
    assert whole.purchases[0].allocation.value == blocks[0]["allocation"]
    (read,) = evalbudget.read(tmp_path / "out").estimate().rows
    assert read.estimate == pytest.approx(rows[0]["exact_match,none"], abs=1e-12)
    part = next((tmp_path / "out").rglob("samples_*.jsonl"))
    with pytest.raises(InvalidInputError, match="1 of 2 processes bought that shared a budget"):
        open_scores(part)
    with pytest.raises(InvalidInputError, match="each log holds only its own part"):
        answers_in(part)


def records(folder: Path) -> list[Path]:
    """Of the processes that have begun."""
    return list((folder / "out").glob("*/*.db"))


def least_heard(folder: Path) -> int:
    """Answers that the slower of two processes has."""
    query = select(func.count()).where(ANSWERS.c.kind == "said")
    heard = []
    for path in records(folder):
        with suppress(JournalError), looked_into(path, FILE) as db:  # one may be about to begin
            heard.append(int(db.rows(query)[0][0]))
    return min(heard) if len(heard) == 2 else 0


def results_in(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    found = json.loads(path.read_text())
    return found["results"]["numbers"], found["evalbudget"]


def run(folder: Path, lm: CoinModel, process: str = "a", **more: Any) -> dict[str, Any]:
    """In a process that keeps its record in a folder of its own."""
    given = {"budget": 48, "store": "store.db", "journal": f"{process}.db", **more}
    with budgeted(**given):
        return simple_evaluate(folder, lm, rounds=5)


def test_who_is_interrupted_leaves_the_rest_to_others_and_sees_the_whole_later(tmp_path: Path) -> None:
    folder, one, two = write_task(tmp_path / "tasks", n=8), CoinModel(seed=1), CoinModel(seed=2)
    with broken_off(CoinModel, "_answer", 13), pytest.raises(KeyboardInterrupt):
        run(folder, one)
    assert len(one.calls) == 12
    whole = run(folder, two, "b")["evalbudget"]
    assert len(two.calls) == 48 - 12  # a local model bills nobody for what was cut off
    assert (whole["spent"], whole["readings"], whole["failed"]) == (48.0, 48, 0)
    assert len(whole["shared"]["processes"]) == 2

    again = run(folder, CoinModel(fail_at=1))
    assert again["evalbudget"]["estimates"] == whole["estimates"]
    assert again["evalbudget"]["shared"]["processes"] == whole["shared"]["processes"]
    assert len(again["samples"]["numbers"]) == 12
    late = run(folder, CoinModel(fail_at=1), "c")
    assert late["evalbudget"]["estimates"] == whole["estimates"]
    assert late["samples"]["numbers"] == []


def test_others_hear_of_every_answer_where_documents_are_asked_one_by_one(tmp_path: Path) -> None:
    """After a round that broke off: who is killed before it is over has bought nothing in vain."""
    settled: list[int] = []

    class Model(CoinModel):
        def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
            with closing(sqlite3.connect("store.db")) as db:
                settled.extend(db.execute("SELECT count(*) FROM calls WHERE cost IS NOT NULL").fetchone())
            return super()._answer(prompt, kwargs)

    whole = run(write_task(tmp_path / "tasks", n=8), Model(fail_at=2))["evalbudget"]
    assert (whole["spent"], whole["readings"]) == (48.0, 48)
    assert settled[:5] == [0, 0, 1, 2, 3]


def test_what_others_bought_is_in_no_row_of_this_process(tmp_path: Path) -> None:
    own = "def process(doc, results):\n    return {'right': float(results[0] == doc['text']), 'long': 1.0}\n"
    folder = write_task(tmp_path / "tasks", n=8, own=own, metric_list=averaged("right", "long"))
    alone = run(folder, CoinModel())["results"]["numbers"]
    assert {"right,none", "long,none"} <= alone.keys()  # all was bought here
    rows = run(folder, CoinModel(), "b")["results"]["numbers"]
    assert "long,none" not in rows
    assert rows["right,none"] == alone["right,none"]


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"budget": "$5"}, BudgetError, "count scores"),
        ({"until": "item±0.3", "score_range": "0..1"}, InvalidInputError, "take no --until"),
        ({"repeat": "judge"}, InvalidInputError, "take no --repeat judge; drop"),
        ({"judges": "a,b"}, InvalidInputError, "take no --judges; drop"),
        ({"store": "postgresql://me:secret@host/db"}, InvalidInputError, "PGPASSWORD"),
    ],
)
def test_what_they_cannot_do_is_refused(more: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message), budgeted(**{"budget": 48, "store": "store.db", **more}):
        pass


def test_several_tasks_are_refused(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=8)
    write_task(folder, "more", n=8)
    with (
        budgeted(budget=48, store="store.db"),
        pytest.raises(InvalidInputError, match="one task at a time, and this is 2"),
    ):
        simple_evaluate(folder, CoinModel(), "numbers", "more")
    assert not Path("store.db").exists()


def test_others_are_refused_and_so_is_a_store_that_was_begun_anew(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=8)
    run(folder, CoinModel())
    with pytest.raises(StoreError, match="seed = 0 there, 1 here"):
        run(folder, CoinModel(), "b", seed=1)
    with pytest.raises(StoreError, match=r"score_range = None there, \[0.0, 1.0\] here"):
        run(folder, CoinModel(), "c", score_range="0..1")
    with pytest.raises(JournalError, match=r"store = 'store\.db' there, 'other.db' here"):
        run(folder, CoinModel(), store="other.db")
    Path("store.db").unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match="the store was begun anew"):
            run(folder, CoinModel(fail_at=1))
        run(folder, CoinModel(), "d")


def test_a_process_takes_the_record_of_a_killed_one_and_no_others(tmp_path: Path) -> None:
    first = tmp_path / "evalbudget-journals" / "numbers-ab12-1.db"
    records = [record_of_own(first, {}, named=False) for _ in range(3)]
    assert [record.path.stem[-1] for record in records if record.path is not None] == ["1", "2", "3"]
    names = [record.worker for record in records]
    assert len(set(names)) == 3
    records[0].finish()
    for record in records[:2]:
        record.close()
    again = [record_of_own(first, {}, named=False) for _ in range(3)]
    assert [record.worker for record in islice(again, 2)] == [names[1], names[0]]  # broken off, then finished
    assert again[2].path == first.with_name("numbers-ab12-4.db")
    for record in (records[2], *again):
        record.close()


def test_a_store_that_goes_away_ends_the_run_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, lm, again = write_task(tmp_path / "tasks", n=8), CoinModel(seed=1), CoinModel(seed=2)
    trade, turns = Book.trade, 0

    def gone(book: Book, *given: Any, **more: Any) -> Any:
        nonlocal turns
        turns += 1
        if turns > 7:
            raise StoreDownError("store.db cannot be reached")
        return trade(book, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Book, "trade", gone)
        with pytest.raises(StoreDownError, match="cannot be reached"):
            run(folder, lm)
    assert 0 < len(lm.calls) < 48
    found = run(folder, again)
    assert len(lm.calls) + len(again.calls) == 48
    assert found["evalbudget"]["readings"] == len(found["samples"]["numbers"]) == 48
