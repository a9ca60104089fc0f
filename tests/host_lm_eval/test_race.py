"""Races of models on one task of lm-eval: decisions, files, loads, failures, and going on after a stop."""

from __future__ import annotations

import gc
import json
from collections import Counter
from pathlib import Path
from typing import Any

import lm_eval.evaluator
import numpy as np
import pytest
from lm_eval.evaluator import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from tests.host_lm_eval.race_worlds import KIND, Racer, arms_at_once, is_right, manager, racer, truth
from tests.host_lm_eval.worlds import choice

from evalbudget import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races._verdict import Status
from evalbudget.races.samplers import Race as RaceSampler
from evalbudget_lm_eval.races.api import race
from evalbudget_lm_eval.races.output import RaceResult

N = 200
SKILLS = {"good": (0.9, 1), "fair": (0.7, 2), "poor": (0.2, 3)}


@pytest.fixture
def numbers(tmp_path: Path) -> Any:
    return manager(tmp_path / "tasks", n=N)


def arms(**more: Any) -> dict[str, Any]:
    return {name: racer(*skill, **more) for name, skill in SKILLS.items()}


def answered(result: RaceResult) -> dict[str, set[int]]:
    """Documents with a sample in the host's results, by arm."""
    return {name: {s["doc_id"] for s in r["samples"]["numbers"]} for name, r in result.results.items()}


def decisions(result: RaceResult) -> dict[str, Any]:
    board = dict(result.leaderboard.as_json)
    return {key: value for key, value in board.items() if key != "notes"}


def test_the_best_wins_and_everything_is_as_the_host_writes_it(numbers: Any, tmp_path: Path) -> None:
    result = race(
        {**arms(), "broken": racer(0.5, 4, breaks="load")},
        "numbers",
        budget=300,
        output_path=tmp_path / "out",
        task_manager=numbers,
        num_fewshot=2,
        log_samples=True,
        limit=150,
    )
    board = result.leaderboard
    assert board.spent == len(Racer.asked) <= 300
    assert max(Counter(Racer.asked).values()) == 1  # nothing twice
    assert Racer.most_alive == 1
    assert not Racer.alive  # given back at the end
    assert dict(result.loads) == {**{n: Racer.loads[seed] for n, (_, seed) in SKILLS.items()}, "broken": 0}
    assert board.standings[0].name == "good"
    for name, (skill, seed) in SKILLS.items():
        standing = board.of(name)
        assert standing.all_lower <= truth(seed, skill, 150) <= standing.all_upper
        assert standing.readings == len(answered(result)[name])
    lost = board.of("broken")
    assert (lost.status, lost.evaluations) == (Status.LOST, 0)
    assert "RuntimeError: no such weights" in str(lost.left)
    # one order of items: who was asked fewer was asked a part of the others'
    least, middle, most = sorted(answered(result).values(), key=len)
    assert least <= middle <= most <= set(range(150))

    stock = simple_evaluate(
        model=KIND, model_args={}, tasks=["numbers"], num_fewshot=2, limit=150, task_manager=numbers
    )
    own = result.results["good"]
    assert set(own) == {*stock, "evalbudget"}
    prompts = {s["doc_id"]: s["prompt_hash"] for s in stock["samples"]["numbers"]}
    for results in result.results.values():
        assert all(s["prompt_hash"] == prompts[s["doc_id"]] for s in results["samples"]["numbers"])
    row = own["results"]["numbers"]
    assert [name for name in row if name.endswith(",none")][:4] == [
        f"exact_match{ending},none" for ending in ("", "_stderr", "_lower", "_upper")
    ]
    good = board.of("good")
    assert row["exact_match,none"] == good.estimate
    assert row["exact_match_stderr,none"] == good.stderr
    assert (row["exact_match_lower,none"], row["exact_match_upper,none"]) == (good.lower, good.upper)
    assert (row["exact_match_all_lower,none"], row["exact_match_all_upper,none"]) == (
        good.all_lower,
        good.all_upper,
    )
    assert own["config"]["model_args"] == {"skill": 0.9, "seed": 1}

    (file,) = (tmp_path / "out" / "good").glob("results_*.json")
    written = json.loads(file.read_text())
    assert written["evalbudget"]["race"] == json.loads(json.dumps(board.as_json))
    assert written["results"]["numbers"]["exact_match,none"] == row["exact_match,none"]
    (samples,) = (tmp_path / "out" / "good").glob("samples_numbers_*.jsonl")
    assert len(samples.read_text().splitlines()) == board.of("good").readings
    assert not (tmp_path / "out" / "broken").exists()


def test_until_proved_the_whole_grid_is_the_cap(numbers: Any) -> None:
    board = race(arms(), "numbers", until_proved=True, task_manager=numbers).leaderboard
    assert board.budget == board.grid == 3 * N
    assert board.spent == len(Racer.asked) < 2 * N
    assert board.sentence == f"good is best on these {N} items, as scored once, with 95% confidence."


def test_decisions_are_those_of_the_sampler_alone(numbers: Any) -> None:
    result = race(arms(), "numbers", budget=300, seed=5, batch=16, task_manager=numbers)
    names = list(SKILLS)
    design = Design(items=tuple(map(str, range(N))), models=tuple(names))
    scores = np.array(
        [[is_right(seed, skill, i) for i in range(N)] for skill, seed in SKILLS.values()], dtype=float
    )
    sampler = RaceSampler(design, seed=5, batch=16)
    while sampler.asked < 300 and (cells := sampler.next_cells(300 - sampler.asked)) is not None:
        sampler.learn(cells, scores[cells.model, cells.item])
    expected = {
        name: set(np.flatnonzero(~np.isnan(sampler.scores_of(m))).tolist()) for m, name in enumerate(names)
    }
    assert answered(result) == expected
    assert result.leaderboard.standings[0].name == names[sampler.leader()]


def test_a_step_loads_each_arm_once(numbers: Any) -> None:
    result = race(arms(), "numbers", budget=600, sampler="uniform", batch=N, keep=2, task_manager=numbers)
    assert result.leaderboard.spent == 600
    assert Racer.most_alive == 2
    # 200 documents in passes of 16, 32, 64 and so on: two of three arms are still there in each of them
    assert sum(result.loads.values()) <= 3 + 4


def test_a_model_behind_a_cache_is_given_back_before_the_next_is_loaded(numbers: Any, tmp_path: Path) -> None:
    gc.disable()  # nobody collects by chance
    try:
        race(
            arms(circle=True),
            "numbers",
            budget=60,
            sampler="uniform",
            task_manager=numbers,
            use_cache=str(tmp_path / "cache"),
        )
    finally:
        gc.enable()
    assert Racer.most_alive == 1


@pytest.mark.parametrize("at_once", [False, True])
def test_models_do_not_answer_from_one_anothers_cache(tmp_path: Path, at_once: bool) -> None:
    greedy = manager(tmp_path / "tasks", n=20, generation_kwargs={"until": ["\n"], "do_sample": False})
    live = {name: Racer(*skill) for name, skill in SKILLS.items()}
    options: dict[str, Any] = {"budget": 60, "sampler": "uniform", "task_manager": greedy}
    cache = str(tmp_path / "cache")
    for _ in range(2):  # the second time without a call
        with arms_at_once(here=at_once):
            board = race(live, "numbers", use_cache=cache, **options).leaderboard
        for name, (skill, seed) in SKILLS.items():
            assert board.of(name).estimate == pytest.approx(truth(seed, skill, 20))
        assert len(Racer.asked) == 60


def test_one_bad_document_costs_no_arm_and_a_dead_one_leaves(numbers: Any) -> None:
    order = race(arms(), "numbers", budget=30, task_manager=numbers, seed=1)
    poison = next(iter(answered(order)["poor"]))  # among the first that everybody is asked
    Racer.asked.clear()
    poisoned = {**arms(), "good": racer(0.9, 1, breaks=str(poison)), "dead": racer(0.5, 4, breaks="always")}
    result = race(poisoned, "numbers", budget=200, task_manager=numbers, seed=1, sampler="uniform")
    board = result.leaderboard
    good, dead = board.of("good"), board.of("dead")
    assert board.spent <= 200
    assert good.status is not Status.LOST
    assert poison not in answered(result)["good"]
    assert good.failed <= 6  # three times the document, and rounds that broke off on it
    assert good.evaluations == good.readings + good.failed
    assert set(good.errors) == {"ConnectionError: the server went away"}
    assert (dead.status, dead.readings, dead.failed) == (Status.LOST, 0, 8)
    assert len(Racer.asked) <= 200 + good.failed  # a round that breaks off is asked again
    assert all(count == 1 for cell, count in Counter(Racer.asked).items() if cell[0] in (2, 3))
    repeated = [n for (seed, n), count in Counter(Racer.asked).items() if seed == 1 and count > 1]
    assert repeated == [poison]  # answers that came in before it are kept


def test_stopped_anywhere_it_goes_on_to_the_same_end(numbers: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"budget": 100, "batch": 16, "task_manager": numbers}
    whole = race(arms(), "numbers", **options)
    asked, stock = sorted(Racer.asked), lm_eval.evaluator.evaluate
    for stops_at in (3, 50, 81):
        Racer.asked.clear()
        folder = tmp_path / str(stops_at)
        live = {name: Racer(*skill, stops_at=stops_at) for name, skill in SKILLS.items()}
        with pytest.raises(KeyboardInterrupt):
            race(live, "numbers", output_path=folder, **options)
        assert lm_eval.evaluator.evaluate is stock  # the host is as it was
        assert len(Racer.asked) == stops_at
        for model in live.values():
            model.stops_at = 0
        result = race(live, "numbers", output_path=folder, **options)
        assert sorted(Racer.asked) == asked  # nothing twice, and not one more than the budget
        assert decisions(result) == decisions(whole)
        assert answered(result) == answered(whole)
    # over already: nothing is loaded and nothing asked, the files are written again
    Racer.asked.clear()
    again = race(live, "numbers", output_path=folder, **options)
    assert not Racer.asked
    assert dict(again.loads) == dict.fromkeys(SKILLS, 0)
    assert decisions(again) == decisions(whole)
    assert again.results["good"]["results"] == result.results["good"]["results"]
    # more budget, another sampler, one arm more: what is known counts
    more = race(
        {**live, "late": racer(0.5, 9)},
        "numbers",
        output_path=folder,
        **{**options, "budget": 160, "sampler": "uniform"},
    )
    assert more.leaderboard.spent == 160
    assert len(Racer.asked) == 60
    assert not set(Racer.asked) & set(asked)


def test_history_makes_predictions_and_other_items_are_said(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    chance = 1 / (1 + np.exp(-(rng.normal(size=(12, 1)) + rng.normal(size=N))))
    table = (rng.random(chance.shape) < chance).astype(np.float32)[:, :, None, None]
    names = {"models": [f"old-{i}" for i in range(12)], "raters": ["exact_match,none"]}
    np.savez(tmp_path / "known.npz", scores=table, items=np.arange(N).astype(str), **names)
    np.savez(tmp_path / "other.npz", scores=table, items=np.array([f"x{i}" for i in range(N)]), **names)
    notes = []
    for file in ("known.npz", "other.npz"):
        result = race(arms(), "numbers", budget=120, history=tmp_path / file, task_manager=numbers)
        assert result.leaderboard.spent <= 120
        notes.append(result.leaderboard.notes)
    assert notes[0][0].startswith("history has 200 of the 200 items, of 12 models")
    assert notes[0][1].startswith("history dropped: ")  # it is of other models than these
    assert notes[1][0].startswith("history ignored:")
    assert "0 of the 200 items" in notes[1][0]


def test_history_is_earlier_output_of_the_host_on_the_same_task(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "earlier"
    for seed in range(20, 24):  # as a stock run writes them
        tracker = EvaluationTracker(output_path=str(folder / str(seed)))
        results = simple_evaluate(
            model=KIND,
            model_args={"skill": 0.2 + 0.2 * (seed - 20), "seed": seed, "model": f"old-{seed}"},
            tasks=["numbers"],
            limit=60,
            bootstrap_iters=0,
            task_manager=numbers,
            evaluation_tracker=tracker,
        )
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        tracker.save_results_samples(task_name="numbers", samples=samples["numbers"])
    options: dict[str, Any] = {"budget": 100, "limit": 60, "task_manager": numbers}
    result = race(arms(), "numbers", history=folder, **options)
    assert result.leaderboard.notes[0].startswith("history has 60 of the 60 items")
    assert "of 4 models" in result.leaderboard.notes[0]
    # of another task the documents have the same numbers, and are others
    for path in folder.rglob("samples_numbers_*"):
        path.rename(path.with_name(path.name.replace("numbers", "letters")))
    result = race(arms(), "numbers", history=folder, **options)
    assert "holds no earlier samples of task numbers" in result.leaderboard.notes[0]


def test_multiple_choice_by_the_score_chosen(tmp_path: Path) -> None:
    kind = choice("yes", "no", "maybe", target="{{number % 3}}", metrics=("acc", "acc_norm"))
    tasks = manager(tmp_path / "tasks", n=40, **kind)
    with pytest.raises(InvalidInputError, match="acc,none, acc_norm,none; choose one"):
        race(arms(), "numbers", budget=60, task_manager=tasks)
    result = race(arms(), "numbers", budget=60, score="acc_norm", task_manager=tasks)
    board = result.leaderboard
    assert board.spent <= 60  # answered documents, of three calls each
    answered_documents = sum(standing.readings for standing in board.standings)
    assert f"{3 * answered_documents:,} calls" in board.notes[-1]
    for name, results in result.results.items():
        assert board.of(name).readings == len(results["samples"]["numbers"])
        assert "acc_norm_all_lower,none" in results["results"]["numbers"]
