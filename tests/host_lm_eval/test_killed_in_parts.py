"""A kill in the middle of documents that take several calls: the budget holds, and what was said stays."""

from __future__ import annotations

import copy
import importlib
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.claims import variant
from tests.host_lm_eval.race_worlds import manager
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate, write_task

from evalbudget.book import Book
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.races.api import race
from evalbudget_lm_eval.repeats import run as run_module
from evalbudget_lm_eval.run import rounds

REPEATS = 4


class Killed(CoinModel):
    """Answers so many requests of each document, and is gone.

    Args:
        answers: how many, by the number of the document; empty for all of all.
        run: the folder of the run.
        left: a copy of it, as it was when the model was gone.
    """

    def __init__(self, answers: tuple[int, ...] = (), run: Path = Path(), left: Path = Path()) -> None:
        super().__init__()
        self._answers, self._run, self._left = answers, run, left

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        if not self._answers:
            return super().generate_until(requests)
        heard: Counter[str] = Counter()
        for request in requests:
            prompt, options = request.args
            heard[prompt] += 1
            if heard[prompt] <= self._answers[int(prompt.split()[1])]:
                self._answer(prompt, copy.deepcopy(options))
        shutil.copytree(self._run, self._left)
        raise KeyboardInterrupt


def _cases() -> Iterator[Any]:
    """Each with a model that has a document under way, or with one that has more: in full with both."""
    heard: list[tuple[int, ...]] = [(0, 2), (0, 1, 3), (0, 0, 2), (2, 2), (1, 3), (3, 3, 3, 3), (4, 0)]
    heard += [(0, 0), (4, 3, 0, 0), (4, 4, 1, 0, 0), (3, 0, 0, 0)]
    for number, answers in enumerate(heard):
        for at_once in (1, 4, 6, 9):
            first = at_once == (4, 9)[number % 2]
            yield (answers, at_once) if first else variant(answers, at_once)


@pytest.mark.parametrize(("answers", "at_once"), list(_cases()))
def test_the_budget_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: tuple[int, ...], at_once: int
) -> None:
    monkeypatch.setattr(rounds, "at_a_kill", lambda lm: at_once)
    folder = write_task(tmp_path / "tasks", n=len(answers), repeats=REPEATS)
    run, left = tmp_path / "run", tmp_path / "left"
    run.mkdir()
    budget = REPEATS * len(answers)
    model = Killed(answers, run, left)
    with (
        pytest.raises(KeyboardInterrupt),
        budgeted(budget=budget, journal=run / "j.db", sampler="uniform"),
    ):
        simple_evaluate(folder, model)
    billed = len(model.calls) + min(at_once, budget - len(model.calls))
    for more in (0, 2 * REPEATS):
        again = Killed()
        with budgeted(budget=budget + more, journal=left / "j.db", sampler="uniform"):
            block = simple_evaluate(folder, again)["evalbudget"]
        billed += len(again.calls)
        assert billed <= budget + more
        assert block["spent"] <= budget + more
        assert billed <= block["spent"] + 1e-9
        assert billed > budget + more - 2 * REPEATS  # no more is lost than was under way


@pytest.mark.parametrize(
    ("answers", "at_once", "lost"),
    [
        ((4, 2, 0, 0, 0, 0), 6, 2),
        variant((4, 3, 1, 0, 0, 0), 4, 2),
        ((4, 0, 0, 0, 0, 0), 6, 2),
        variant((0, 0, 0, 0, 0, 0), 1, 1),
        variant((3, 3, 3, 3, 3, 3), 6, 6),
    ],
)
def test_a_race_counts_the_parts_of_documents_that_were_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: tuple[int, ...], at_once: int, lost: int
) -> None:
    monkeypatch.setattr(rounds, "at_a_kill", lambda lm: at_once)
    run, left = tmp_path / "run", tmp_path / "left"
    run.mkdir()
    task = manager(tmp_path / "tasks", n=len(answers), repeats=REPEATS)
    options: dict[str, Any] = {"budget": 2 * len(answers), "task_manager": task, "sampler": "uniform"}
    killed, again, other = Killed(answers, run, left), Killed(), CoinModel()
    with pytest.raises(KeyboardInterrupt):
        race({"a": killed, "b": CoinModel()}, "numbers", journal=run / "j.jsonl", **options)
    board = race({"a": again, "b": other}, "numbers", journal=left / "j.jsonl", **options).leaderboard
    read = sum(standing.readings for standing in board.standings)
    assert read == 2 * len(answers) - lost
    billed = len(killed.calls) + at_once + len(again.calls) + len(other.calls)
    assert billed <= 2 * len(answers) * REPEATS
    assert max(Counter(killed.calls + again.calls).values()) == REPEATS  # what was said is not asked again


def test_what_others_take_meanwhile_is_no_room_for_what_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one budget of two processes, one was killed; before it counts that, the other takes what is free."""
    monkeypatch.setattr(rounds, "at_a_kill", lambda lm: 4)
    folder = write_task(tmp_path / "tasks", n=2, repeats=REPEATS)
    running, left = tmp_path / "run", tmp_path / "left"
    running.mkdir()
    first, other, again = Killed((2, 2), running, left), Killed(), Killed()
    options: dict[str, Any] = {"budget": 24, "store": str(running / "s.db"), "sampler": "uniform"}
    with pytest.raises(KeyboardInterrupt), budgeted(journal=running / "a.db", **options):
        simple_evaluate(folder, first, rounds=2)
    shutil.rmtree(running)
    shutil.copytree(left, running)  # as it was at the kill
    lose, meanwhile = Book.lose, [True]

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    def lose_later(book: Book, requests: Any) -> None:
        if meanwhile:
            meanwhile.clear()
            with pytest.MonkeyPatch.context() as patch:
                budgeted_module = importlib.import_module("evalbudget_lm_eval.repeats.budgeted")
                patch.setattr(budgeted_module, "_lock", threading.Lock())
                patch.setattr(run_module.time, "sleep", stop)  # it waits for the first
                with pytest.raises(KeyboardInterrupt), budgeted(journal=running / "b.db", **options):
                    simple_evaluate(folder, other, rounds=2)
        lose(book, requests)

    monkeypatch.setattr(Book, "lose", lose_later)
    with budgeted(journal=running / "a.db", **options):
        block = simple_evaluate(folder, again, rounds=2)["evalbudget"]
    sent = len(first.calls) + 4 + len(other.calls) + len(again.calls)
    assert other.calls
    assert sent <= block["spent"] <= 24
