"""Races on a group of the host's: documents of all its tasks, each weighing the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager
from tests.host_lm_eval.race_worlds import Racer, racer, truth
from tests.host_lm_eval.worlds import write_group, write_task

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval import race
from evalbudget_lm_eval.log_folder import open_scores

SIZES = {"few": 10, "some": 20, "many": 30}
ARMS = {"good": racer(0.95, 0), "fair": racer(0.6, 1), "poor": racer(0.1, 2)}


def group(folder: Path, *, by_size: bool = True) -> TaskManager:
    """A group of three tasks, whose numbers tell the task too."""
    first = 0
    for name, size in SIZES.items():
        write_task(folder, name, size, doc_to_text=f"say {{{{number + {first}}}}} please")
        lines = [{"number": i, "text": f"{i + first}"} for i in range(size)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        first += size
    write_group(folder, "all_of_them", list(SIZES), by_size=by_size, filter_list="none")
    return TaskManager(include_path=str(folder), include_defaults=False)


def test_every_document_of_the_group_weighs_the_same(tmp_path: Path) -> None:
    tasks, out = group(tmp_path / "tasks"), tmp_path / "out"
    found = race(ARMS, "all_of_them", budget="100%", task_manager=tasks, output_path=out, batch=16)
    asked = list(Racer.asked)
    assert len(asked) == len(set(asked)) <= 180
    assert found.leaderboard.standings[0].name == "good"
    whole = race(
        {"good": ARMS["good"], "fair": ARMS["fair"]},
        "all_of_them",
        sampler="uniform",
        budget="100%",
        task_manager=tasks,
        batch=60,
    )
    for name, (_, args) in ARMS.items():
        if name in whole.results:
            rows = whole.results[name]["groups"]["all_of_them"]
            assert rows["exact_match,none"] == pytest.approx(truth(**args, n=60))
            assert (
                rows["exact_match_lower,none"] <= rows["exact_match,none"] <= rows["exact_match_upper,none"]
            )
            assert whole.results[name]["results"]["few"]["exact_match,none"] <= 1.0
    recorded = open_scores(out)
    assert recorded is not None
    assert {item.partition("/")[0] for item in recorded.items} == set(SIZES)

    # the same again is told from the record, and a larger share goes on with it
    Racer.asked.clear()
    again = race(ARMS, "all_of_them", budget="100%", task_manager=tasks, output_path=out, batch=16)
    assert not Racer.asked
    assert again.leaderboard.spent == found.leaderboard.spent
    later = race(  # what others answered predicts, task by task
        {"new": racer(0.9, 7), "old": racer(0.3, 8)},
        "all_of_them",
        budget="50%",
        task_manager=tasks,
        history=out,
        sampler="pulse",
        batch=8,
    )
    assert later.leaderboard.standings[0].name == "new"


def test_a_loser_may_have_no_answer_in_some_tasks(tmp_path: Path) -> None:
    tasks, out = group(tmp_path / "tasks"), tmp_path / "out"
    found = race(ARMS, "all_of_them", budget=24, task_manager=tasks, output_path=out, batch=4)
    assert set(found.results) == set(ARMS)
    assert found.leaderboard.spent <= 24


def test_groups_that_cannot_race(tmp_path: Path) -> None:
    alike = group(tmp_path / "alike", by_size=False)
    with pytest.raises(InvalidInputError, match="weighs its tasks alike"):
        race(ARMS, "all_of_them", budget="50%", task_manager=alike)
    tasks = group(tmp_path / "tasks")
    with pytest.raises(InvalidInputError, match="has a task of its own"):
        race(
            {"good": ARMS["good"]},
            "all_of_them",
            settings={"x": {"tasks": "few"}, "y": {"tasks": "many"}},
            budget="50%",
            task_manager=tasks,
        )
    with pytest.raises(UnknownNameError, match="all_of_them"):
        race(ARMS, "all_of_then", budget="50%", task_manager=tasks)
