"""Races of models, run by the real host: who is asked, what it costs, what the logs say."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import HeadlineMetric, recompute_metrics
from inspect_ai.scorer import Scorer
from inspect_ai.solver import TaskState, generate
from tests.claims import variant
from tests.host_inspect.race_tasks import attempts, board, cells, model, quiz, run, three
from tests.host_inspect.worlds import scoring, told_by

from evalbudget.errors import InvalidInputError
from evalbudget.races._verdict import Status
from evalbudget_inspect import race
from evalbudget_inspect.races.all_races import take_boards

ROWS = {"estimate", "lower", "upper", "all_lower", "all_upper", "rank", "rank_best", "rank_worst", "readings"}


def test_a_race_ends_at_the_budget_and_names_the_best(tmp_path: Path) -> None:
    logs = run(race(quiz(), budget=60, sampler="ucb-e", batch=5), three(), tmp_path)
    assert [log.status for log in logs] == ["success"] * 3
    assert attempts(logs) == 60
    found = board(logs)
    assert (found.spent, found.budget, found.grid, found.items) == (60, 60, 90, 30)
    assert found.standings[0].name == "simulated/b"
    for log in logs:
        standing, rows = found.of(log.eval.model), told_by(log)
        assert rows.keys() >= ROWS
        assert standing.readings == len(log.samples or []) == rows["readings"]
        assert rows["lower"] == standing.lower <= rows["estimate"] <= standing.upper == rows["upper"]
        assert (rows["all_lower"], rows["all_upper"]) == (standing.all_lower, standing.all_upper)
        assert log.results.headline.metric == "estimate"
        assert rows["rank"] == standing.rank
        assert log.eval.dataset.name == "questions"
        entry = log.results.scores[0].metadata["evalbudget"]
        assert entry["arm"] == log.eval.model
        assert entry["sampler"] == "ucb-e"
        assert entry["race"]["outcome"] == entry["outcome"] == found.outcome


def test_a_headline_of_the_tasks_own_stays() -> None:
    own = HeadlineMetric(scorer="match", metric="accuracy")
    assert race(quiz(headline_metric=own), budget=60).headline_metric == own
    assert race(quiz(), budget=60).headline_metric == HeadlineMetric(scorer="match", metric="estimate")


def test_until_proved_the_whole_grid_is_the_cap(tmp_path: Path) -> None:
    logs = run(race(quiz(60), until_proved=True), three(), tmp_path)
    found = board(logs)
    assert found.until_proved
    assert found.budget == found.grid == 180
    assert attempts(logs) == found.spent < 150
    assert found.sentence == "simulated/b is best on these 60 items, as scored once, with 95% confidence."


def test_an_exhausted_model_has_its_exact_mean(tmp_path: Path) -> None:
    logs = run(race(quiz(12), budget=1000, sampler="uniform"), three(), tmp_path)
    found = board(logs)
    assert found.spent == attempts(logs) == 36
    for log in logs:
        true = np.mean([s.scores["match"].value == "C" for s in log.samples or []])
        standing = found.of(log.eval.model)
        assert standing.all_lower == standing.all_upper == standing.estimate == pytest.approx(true)
        assert standing.lower < true < standing.upper  # of items like these
        assert standing.status is (Status.BEST if standing.name == "simulated/b" else Status.BEHIND)
    assert found.sentence == "simulated/b is best: it has the highest mean over all 12 items, as scored once."


@pytest.mark.parametrize(
    ("options", "many"),
    [
        ({"sampler": "lucb", "batch": 5}, {"max_connections": 3}),
        variant({"sampler": "sequential-halving"}, {}),
        variant({"sampler": "visit"}, {}),
    ],
)
def test_decisions_do_not_depend_on_concurrency(
    options: dict[str, Any], many: dict[str, int], tmp_path: Path
) -> None:
    seen = []
    for number, hands in enumerate([{"max_samples": 1}, many]):
        models = [model("a", 0.2, latency=0.002), model("b", 0.95), model("c", 0.5, latency=0.001)]
        logs = run(race(quiz(20), budget=40, **options), models, tmp_path / str(number), **hands)
        seen.append((cells(logs), [(s.name, s.estimate, s.dropped_at) for s in board(logs).standings]))
    assert seen[0] == seen[1]


def test_a_task_function_makes_the_same_race_as_a_task(tmp_path: Path) -> None:
    @task
    def raced() -> Task:
        return race(quiz(), budget=24, sampler="ucb-e", batch=4)

    whole = run(race(quiz(), budget=24, sampler="ucb-e", batch=4), three(), tmp_path / "task")
    made = run(raced, three(), tmp_path / "function")
    assert cells(whole) == cells(made)


def test_no_sample_slot_is_held_while_waiting(tmp_path: Path) -> None:
    # one slot per task: an arm that waited in it could not be asked again
    logs = run(race(quiz(), budget=70, sampler="ucb-e", batch=3), three(), tmp_path, max_samples=1)
    assert attempts(logs) == 70


def test_errors_cost_and_are_asked_again(tmp_path: Path) -> None:
    models = [model("a", 0.2, fail=0.2), model("b", 0.95, fail=0.2), model("c", 0.5)]
    logs = run(race(quiz(14), budget=44, sampler="uniform"), models, tmp_path)
    assert [log.status for log in logs] == ["success"] * 3
    assert attempts(logs) == board(logs).spent == 44
    failed = sum(s.error is not None for log in logs for s in log.samples or [])
    assert failed == sum(s.failed for s in board(logs).standings) > 0
    again = [s for log in logs for s in log.samples or [] if s.epoch > 1]
    assert again


@pytest.mark.parametrize("budget", [60, variant(61)])
def test_retries_of_the_host_count(budget: int, tmp_path: Path) -> None:
    models = [model("a", 0.2, fail=0.3), model("b", 0.95, fail=0.3)]
    logs = run(race(quiz(), budget=budget, sampler="uniform"), models, tmp_path, retry_on_error=2)
    assert attempts(logs) == board(logs).spent == budget
    assert sum(s.readings + s.failed for s in board(logs).standings) == board(logs).spent  # each was a call


def test_a_model_that_always_fails_is_lost_and_the_others_go_on(tmp_path: Path) -> None:
    models = [*three(), model("broken", 0.5, fail=1.0)]
    logs = run(race(quiz(20), budget=90, sampler="uniform"), models, tmp_path)
    found = board([log for log in logs if log.results])
    assert found.of("simulated/broken").status is Status.LOST
    assert found.of("simulated/broken").readings == 0
    assert found.of("simulated/broken").evaluations <= 45  # not all of the budget
    assert found.spent == attempts(logs) <= 90
    assert found.standings[0].status is Status.BEST
    assert "Lost:    simulated/broken: it kept failing: RuntimeError" in found.table()


def test_when_every_model_fails_nobody_is_named(tmp_path: Path) -> None:
    models = [model(name, 0.5, fail=1.0) for name in ("a", "b")]
    take_boards()
    logs = run(race(quiz(), budget=120, sampler="uniform"), models, tmp_path)
    with pytest.raises(InvalidInputError, match="none of these logs is of a race in which a model has a sc"):
        board(logs)  # inspect computes no results where nothing was scored
    (found,) = take_boards()  # what the command prints
    assert found.sentence == "No model has a score."
    assert {s.status for s in found.standings} == {Status.LOST}
    assert {(s.rank, s.estimate) for s in found.standings} == {(None, None)}
    assert found.spent == attempts(logs) < 120  # given up before all is spent
    shown = found.table()
    assert "No model has a score." in shown
    for name in ("a", "b"):
        assert f"Lost:    simulated/{name}: it kept failing: RuntimeError" in shown


def test_a_task_that_dies_leaves_the_race(tmp_path: Path) -> None:
    models = [model("a", 0.3), model("b", 0.9), model("dies", 0.5, fail=0.5)]
    logs = run(race(quiz(), budget=60, sampler="ucb-e", batch=4), models, tmp_path, fail_on_error=True)
    status = {log.eval.model: log.status for log in logs}
    assert status == {"simulated/a": "success", "simulated/b": "success", "simulated/dies": "error"}
    found = board(logs)
    assert found.of("simulated/dies").status is Status.LOST
    assert found.of("simulated/dies").left == "its task ended early"
    assert sum(s.evaluations for s in found.standings) == found.spent <= 60
    assert found.spent >= 55  # what was under way when it died may have been billed


@pytest.mark.parametrize("sampler", [variant("uniform"), "race"])
def test_a_leader_whose_task_dies_proves_nothing_of_the_others(tmp_path: Path, sampler: str) -> None:
    models = [model("a", 0.2), model("b", 0.2), model("dies", 1.0, fail=0.05)]
    logs = run(race(quiz(), budget=60, sampler=sampler), models, tmp_path, fail_on_error=True)
    status = {log.eval.model: log.status for log in logs}
    assert status["simulated/a"] == status["simulated/b"] == "success"
    if status["simulated/dies"] == "error":
        found = board(logs)
        assert found.of("simulated/dies").status is Status.LOST
        assert "confidence" not in found.sentence
        assert found.standings[-1].name == "simulated/dies"


def test_limit_sample_ids_and_shuffle(tmp_path: Path) -> None:
    made = {"budget": 500, "sampler": "uniform"}
    limited = run(race(quiz(), **made), three(), tmp_path / "limit", limit=7, max_samples=1)
    assert {name: len(c) for name, c in cells(limited).items()} == {f"simulated/{m}": 7 for m in "abc"}
    assert board(limited).items == 7
    assert {told_by(log)["rank"] for log in limited} == {1, 2, 3}  # known to all when each log was written
    chosen = run(race(quiz(), **made), three(), tmp_path / "ids", sample_id=["item-3", "item-20"])
    assert {item for c in cells(chosen).values() for item, _ in c} == {"item-3", "item-20"}
    shuffled = run(race(quiz(), **made), three(), tmp_path / "shuffle", limit=7, sample_shuffle=5)
    items = {frozenset(c) for c in cells(shuffled).values()}
    assert len(items) == 1
    assert items != {frozenset(c) for c in cells(limited).values()}


def test_two_races_in_one_run_are_apart(tmp_path: Path) -> None:
    tasks = [race(quiz(name=name), budget=24, sampler="ucb-e", batch=4) for name in ("first", "second")]
    logs = run(tasks, three(), tmp_path, max_tasks=6)
    alone = run(race(quiz(name="first"), budget=24, sampler="ucb-e", batch=4), three(), tmp_path / "alone")
    for name in ("first", "second"):
        of_race = [log for log in logs if log.eval.task == name]
        assert attempts(of_race) == board(of_race).spent == 24
        assert cells(of_race) == cells(alone)


def test_two_races_one_after_the_other(tmp_path: Path) -> None:
    tasks = [race(quiz(name=name), budget=30, sampler="ucb-e", batch=4) for name in ("first", "second")]
    logs = run(tasks, three(), tmp_path)  # inspect's own default: as many tasks at once as models
    assert [log.status for log in logs] == ["success"] * 6
    assert attempts(logs) == 60


def test_settings_race_each_other(tmp_path: Path) -> None:
    def skilled(skill: float) -> Scorer:
        return scoring("skilled", lambda state: float(hash((str(state.sample_id), 7)) % 100 < 100 * skill))()

    tasks = race(
        {"good": quiz(scorer=skilled(0.9)), "poor": quiz(scorer=skilled(0.3))}, budget=40, sampler="uniform"
    )
    assert [t.name for t in tasks] == ["quiz-good", "quiz-poor"]
    logs = run(tasks, model("m", 0.5), tmp_path / "one", max_tasks=2)
    assert [s.name for s in board(logs).standings] == ["good", "poor"]
    assert attempts(logs) == 40
    tasks = race({"good": quiz(), "poor": quiz()}, budget=40, sampler="uniform")
    logs = run(tasks, [model("x", 0.9), model("y", 0.1)], tmp_path / "grid", max_tasks=4)
    names = {s.name for s in board(logs).standings}
    assert names == {f"{label} simulated/{m}" for label in ("good", "poor") for m in "xy"}


def test_fourteen_models(tmp_path: Path) -> None:
    models = [model(f"m{i:02d}", 0.1 + 0.06 * i) for i in range(14)]
    logs = run(race(quiz(4), budget=28, sampler="uniform"), models, tmp_path)
    assert attempts(logs) == board(logs).spent == 28
    assert {len(c) for c in cells(logs).values()} == {2}
    assert sorted(s.rank for s in board(logs).standings if s.rank)[0] == 1


def test_scores_on_another_scale(tmp_path: Path) -> None:
    rating = scoring("rating", lambda state: 1 + 9 * float(state.output.completion == "C"))
    raced = race(quiz(8, scorer=rating()), budget=24, sampler="uniform", score_range="1..10")
    logs = run(raced, three(), tmp_path)
    for log in logs:
        rows = told_by(log)
        assert rows["estimate"] == pytest.approx(rows["mean"])
        assert 1 <= rows["lower"] <= rows["upper"] <= 10


def test_unscored_answers_are_failures(tmp_path: Path) -> None:
    def sometimes(state: TaskState) -> float:
        silent = state.epoch == 1 and str(state.sample_id).endswith("3")
        return float("nan") if silent else float(state.output.completion == "C")

    raced = quiz(14, scorer=scoring("sometimes", sometimes)())
    logs = run(race(raced, budget=200, sampler="uniform"), three(), tmp_path)
    assert {s.failed for s in board(logs).standings} == {2}
    assert attempts(logs) == board(logs).spent == 3 * (14 + 2)


def test_files_in_the_input_are_read(tmp_path: Path) -> None:
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText

    picture = tmp_path / "dot.png"
    picture.write_bytes(bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"))
    seen: list[str] = []

    def look(state: TaskState) -> int:
        seen.append(getattr(state.messages[0].content[1], "image", "")[:15])
        return 1

    looks = scoring("looks", look)
    content = [ContentText(text="What is this?"), ContentImage(image=str(picture))]
    samples = [Sample(id=str(i), input=[ChatMessageUser(content=content)]) for i in range(4)]
    base = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=looks(), name="pictures")
    logs = run(race(base, budget=8, sampler="uniform"), three()[:2], tmp_path / "logs")
    assert [log.status for log in logs] == ["success"] * 2
    assert seen == ["data:image/png;"] * 8


def test_on_trio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trio")
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", "trio")
    found: list[Any] = []

    def on_its_own_thread() -> None:
        found.extend(run(race(quiz(), budget=50, sampler="ucb-e", batch=4), three(), tmp_path))

    thread = threading.Thread(target=on_its_own_thread)
    thread.start()
    thread.join(180)
    assert attempts(found) == board(found).spent == 50


def test_scored_again_outside_of_a_race(tmp_path: Path) -> None:
    log = run(race(quiz(), budget=40, sampler="uniform"), three(), tmp_path)[0]
    recompute_metrics(log)
    assert told_by(log)["readings"] == len(log.samples or [])
