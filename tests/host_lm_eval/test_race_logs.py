"""What a race wrote says, read again, what the race said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.host_lm_eval.log_worlds import declared, read
from tests.host_lm_eval.race_worlds import Racer, fresh_racers, manager, racer
from tests.host_lm_eval.worlds import write_group, write_task
from tests.hostile.damage import check_damage

from evalbudget.backtest import RaceRecord
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import gate, race
from evalbudget_lm_eval.races.output import RaceResult

ARMS = {"good": racer(0.95, 0), "fair": racer(0.6, 1), "poor": racer(0.1, 2)}


def check(out: Path, found: RaceResult) -> None:
    recorded = read(out)
    board = found.leaderboard
    assert recorded.race == RaceRecord.of(board.as_json, score=recorded.raters[0])
    told = {standing.name: standing for standing in board.standings}
    assert set(recorded.models) == {name for name, one in told.items() if one.readings}
    assert recorded.race is not None
    assert recorded.race.sentence == board.sentence
    for row in recorded.race.rows:
        one = told[row.model]
        assert (row.estimate, row.lower, row.upper) == (one.estimate, one.all_lower, one.all_upper)
        if row.read:
            scored = recorded.counts[recorded.models.index(row.model)].sum(axis=1) > 0
            assert row.read == np.count_nonzero(scored)
    assert all(declared(recorded).complete)  # nobody is missing what it was not asked


@pytest.mark.parametrize(
    "options",
    [{"budget": "50%"}, {"until_proved": True}, {"budget": "100%", "sampler": "uniform"}],
    ids=["budget", "until proved", "uniform"],
)
def test_a_race(tmp_path: Path, options: dict[str, Any]) -> None:
    tasks, out = manager(tmp_path / "tasks", n=40), tmp_path / "out"
    check(out, race(ARMS, "numbers", task_manager=tasks, output_path=out, **options))


def test_a_race_that_went_on(tmp_path: Path) -> None:
    tasks, out = manager(tmp_path / "tasks", n=40), tmp_path / "out"
    race(ARMS, "numbers", task_manager=tasks, output_path=out, budget="25%")
    check(out, race(ARMS, "numbers", task_manager=tasks, output_path=out, budget="50%"))


@pytest.mark.parametrize("told", [False, None])
def test_a_race_for_the_lowest_score(told: bool | None, tmp_path: Path) -> None:
    entry: dict[str, Any] = {"metric": "said", "aggregation": "mean"}  # the host knows none of this name
    entry |= {} if told is None else {"higher_is_better": told}
    own = 'def process(doc, results):\n    return {"said": results[0] == doc["text"]}\n'
    tasks, out = manager(tmp_path / "tasks", n=40, metric_list=[entry], own=own), tmp_path / "out"
    options: dict[str, Any] = {"lower_is_better": True} if told is None else {}
    found = race(ARMS, "numbers", task_manager=tasks, output_path=out, until_proved=True, **options)
    assert found.leaderboard.leader.name == "poor"
    assert found.leaderboard.outcome == "best"
    assert found.leaderboard.leader.estimate is not None
    assert found.leaderboard.leader.estimate < 0.3
    assert declared(read(out)).lower_is_better == (True,)
    check(out, found)


def test_a_race_goes_by_one_of_several_scores_and_says_which(tmp_path: Path) -> None:
    own = (
        "def process(doc, results):\n"
        "    said = results[0] == doc['text']\n"
        "    return {'said': said, 'lost': not said}\n"
    )
    entries = [
        {"metric": name, "aggregation": "mean", "higher_is_better": name == "said"}
        for name in ("lost", "said")
    ]
    tasks, out = manager(tmp_path / "tasks", n=20, metric_list=entries, own=own), tmp_path / "out"
    race(ARMS, "numbers", task_manager=tasks, output_path=out, budget="50%", score="lost")
    recorded = read(out)
    assert recorded.race is not None
    assert (recorded.race.score, recorded.race.lower_is_better) == ("lost", True)


def test_the_lowest_is_not_the_best_where_the_task_says_that_the_highest_is(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"lower_is_better": True, "task_manager": manager(tmp_path, n=10)}
    refused = r"'numbers' says that higher .* leave it out"
    with fresh_racers():
        with pytest.raises(InvalidInputError, match=refused):
            race(ARMS, "numbers", until_proved=True, **asked)
        with pytest.raises(InvalidInputError, match=refused):
            gate(ARMS["poor"], "numbers", baseline_model=ARMS["good"], margin=0.1, **asked)
        assert not Racer.asked


def test_tasks_of_which_one_says_nothing_name_the_flag(tmp_path: Path) -> None:
    own = 'def process(doc, results):\n    return {"said": results[0] == doc["text"]}\n'
    entry = {"metric": "said", "aggregation": "mean"}
    write_task(tmp_path, "low", 10, metric_list=[entry | {"higher_is_better": False}], own=own)
    write_task(tmp_path, "silent", 10, metric_list=[entry], own=own)
    write_group(tmp_path, "both", ["low", "silent"])
    with pytest.raises(InvalidInputError, match=r"'low' says that lower .* give --lower-is-better"):
        race(ARMS, "both", task_manager=manager(tmp_path), budget=20)
    assert race(ARMS, "both", task_manager=manager(tmp_path), lower_is_better=True, budget=60)


def test_tasks_that_do_not_agree_which_way_is_better(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    for name, higher in (("low", False), ("high", True)):
        entry = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": higher}
        write_task(folder, name, 10, metric_list=[entry])
    write_group(folder, "both", ["low", "high"])
    with pytest.raises(InvalidInputError, match="task 'low' says that lower exact_match is better"):
        race(ARMS, "both", task_manager=manager(folder), budget=20)


def test_a_race_on_a_group(tmp_path: Path) -> None:
    folder, out = tmp_path / "tasks", tmp_path / "out"
    write_task(folder, "few", 10)
    write_task(folder, "many", 30)
    write_group(folder, "both", ["few", "many"])
    tasks = manager(folder)
    check(out, race(ARMS, "both", task_manager=tasks, output_path=out, budget="50%"))


def test_a_race_of_tasks_with_other_prompts(tmp_path: Path) -> None:
    folder, out = tmp_path / "tasks", tmp_path / "out"
    write_task(folder, "plain", 30)
    write_task(folder, "polite", 30, doc_to_text="kindly say {{number}} please")
    kind, args = racer(0.6, 1)
    found = race(
        {"m": (kind, args)},
        "plain",
        settings={"plain": {"tasks": "plain"}, "polite": {"tasks": "polite"}},
        task_manager=manager(folder),
        output_path=out,
        budget="100%",
    )
    check(out, found)
    recorded = read(out)
    assert len(recorded.items) <= 30  # the same documents
    assert (recorded.counts[:, :, 0].sum(axis=0) == 2).any()


def test_logs_of_two_races_have_no_verdict(tmp_path: Path) -> None:
    tasks, out = manager(tmp_path / "tasks", n=20), tmp_path / "out"
    for name in ("first", "second"):
        arms = {f"{name} {arm}": told for arm, told in ARMS.items()}
        race(arms, "numbers", task_manager=tasks, output_path=out / name, budget="50%")
    assert read(out / "first").race is not None
    assert read(out).race is None


def test_a_race_without_samples_says_what_to_do(tmp_path: Path) -> None:
    tasks, out = manager(tmp_path / "tasks", n=20), tmp_path / "out"
    race(ARMS, "numbers", task_manager=tasks, output_path=out, budget="50%", log_samples=False)
    with pytest.raises(InvalidInputError, match=r"results without samples.*--log_samples"):
        read(out)


@pytest.mark.claim
def test_what_a_race_says_after_any_damage(tmp_path: Path) -> None:
    out = tmp_path / "out"
    race(ARMS, "numbers", task_manager=manager(tmp_path / "tasks", n=20), output_path=out, budget="50%")
    path = next(out.rglob("results_*.json"))
    whole = json.loads(path.read_text())
    block = json.dumps(whole.pop("evalbudget")).encode()

    def put(data: bytes) -> None:
        path.write_bytes(json.dumps(whole).encode()[:-1] + b', "evalbudget": ' + data + b"}")
        read(out)

    put(block)
    check_damage(block, put, out, examples=60)
