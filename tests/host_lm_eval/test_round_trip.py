"""What a run of ours wrote gives, read again, the run's own rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.claims import variant
from tests.host_lm_eval.judged_worlds import evaluate, write_judged
from tests.host_lm_eval.money_worlds import GENERATION, PaidServer, luck, price_file
from tests.host_lm_eval.worlds import write_group, write_scored, write_task

import evalbudget
from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import compare
from evalbudget.judges import Call, PanelRows
from evalbudget.judges.estimates import JudgeScores
from evalbudget.repeats import BenchmarkMean, describe_group, describe_mean
from evalbudget.repeats.estimates import Strata
from evalbudget.report import report
from evalbudget.report._study import Study, readings_of
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.log_folder import open_scores
from loopback import Server, rating

COIN: dict[str, Any] = {"model": "evalbudget-test-coin", "apply_chat_template": False}


@pytest.fixture
def paid() -> Iterator[PaidServer]:
    with PaidServer(answer=luck) as running:
        yield running


def means_of(recorded: RecordedScores, *, drawn: bool) -> dict[str | None, BenchmarkMean]:
    """What the core says of the only model: of all items, or of those of each task of a group."""
    study, declared = Study(recorded), recorded.declared
    assert declared is not None
    purchase, scores = study.purchase(0), study.scores(0)
    how: dict[str, Any] = {
        "allocation": purchase.allocation,
        "fixed_repeats": max(purchase.fixed_repeats, 1),
        "bounds": declared.ranges[0],
    }
    if study.is_panel:
        return {None: describe_panel(scores, kept=recorded.one_generation, **how)}
    if drawn:
        how["strata"] = Strata.of(None, len(recorded.items))
    tasks = np.array(recorded.categories or [None] * len(recorded.items))
    return {
        task: describe_mean(readings_of(scores.where(tasks[scores.item] == task)), **how)
        for task in dict.fromkeys(tasks.tolist())
    }


def describe_panel(scores: JudgeScores, **how: Any) -> BenchmarkMean:
    phases = np.full(scores.value.size, np.nan) if scores.phase is None else scores.phase
    places = zip(scores.item, scores.epoch, scores.judge, strict=True)
    calls = [
        Call(int(item), int(epoch), int(judge), float(value), float(phase))
        for (item, epoch, judge), value, phase in zip(places, scores.value, phases, strict=True)
    ]
    sizes = scores.phase_sizes
    return PanelRows(calls, scores.judges, n_items=scores.n_items, phase_sizes=sizes, **how).mean


def check_rows(
    out: Path, found: dict[str, Any], task: str, score: str, named: str | None = None, *, drawn: bool = False
) -> None:
    """The core's rows of what stands below a folder are those of the run, to the last digits."""
    recorded = open_scores(out, task=named)
    assert recorded is not None
    assert recorded.declared is not None
    assert all(
        "asked again" in note or "came back without a score" in note for note in recorded.declared.notes
    )
    means = means_of(recorded, drawn=drawn)
    if None in means:
        mean = means[None]
    else:
        sizes = {task: float(len(recorded.part(items=of(recorded, task)).items)) for task in means if task}
        mean = describe_group({task: mean for task, mean in means.items() if task}, sizes)
    rows = found["results"][task]
    metric, _, chosen = score.partition(",")
    words = {"": "estimate", "_stderr": "stderr", "_lower": "lower", "_upper": "upper"}
    words |= {f"_repeats{ending}": f"repeats{ending}" for ending in ("_stderr", "_lower", "_upper")}
    named_here = {word: f"{metric}{ending},{chosen}" for ending, word in words.items()}
    ours = {word: rows[key] for word, key in named_here.items() if key in rows and word in mean.rows}
    assert len(ours) >= 4
    assert {word: mean.rows[word] for word in ours} == pytest.approx(ours, abs=1e-12)
    scores = evalbudget.read(out, task=named)
    scores.recorded.save(out / "saved.npz")
    again = [evalbudget.read(out / "saved.npz"), evalbudget.from_frame(scores.readings())]
    for one in (scores, *again):
        (row,) = one.models().to_dict("records")
        assert {word: row[word] for word in ours} == pytest.approx(ours, abs=1e-12)
    (out / "saved.npz").unlink()


def of(recorded: RecordedScores, task: str) -> Any:
    return np.flatnonzero(np.array(recorded.categories) == task)


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "uniform", "budget": 60},
        {"sampler": "eb-bernstein", "budget": 75},
        {"sampler": "auto", "budget": 200},
        {"sampler": "rating-kernel", "budget": 75},
    ],
    ids=lambda options: options["sampler"],
)
def test_repeats(tmp_path: Path, options: dict[str, Any]) -> None:
    folder, out = write_task(tmp_path / "tasks"), tmp_path / "out"
    with budgeted(seed=3, **options):
        found = evaluate(folder, "model=coin,seed=3", "numbers", output=out, **COIN)
    check_rows(out, found, "numbers", "exact_match,none")


@pytest.mark.parametrize("sampler", ["uniform", variant("eb-bernstein")])
def test_judges_in_turn(server: Server, judges: list[str], tmp_path: Path, sampler: str) -> None:
    folder, out = write_judged(tmp_path / "task", judges, n=10), tmp_path / "out"
    with budgeted(sampler=sampler, budget=60, seed=1):
        found = evaluate(folder, server.chat_args("writer"), output=out)
    check_rows(out, found, "essays", "judged,panel")


@pytest.mark.parametrize(
    ("sampler", "failing"),
    [("uniform", "b"), ("eb-bernstein", "abc"), variant("uniform", "abc"), variant("eb-bernstein", "b")],
)
def test_judges_that_fail_on_a_document(
    server: Server, judges: list[str], tmp_path: Path, sampler: str, failing: str
) -> None:
    """What one judge failed on another scored: missing is only what none did."""
    for judge in failing:
        server.answers[judge] = lambda asked: (
            "no idea" if "topic: topic 2\n" in asked.prompt else rating()(asked)
        )
    folder, out = write_judged(tmp_path / "task", judges, n=6), tmp_path / "out"
    with budgeted(sampler=sampler, budget=36, seed=1):
        found = evaluate(folder, server.chat_args("writer"), output=out)
    rows, (row,) = found["results"]["essays"], evalbudget.read(out).estimate().rows
    worst = found["evalbudget"]["summary"]["at_worst"]
    assert (worst is None) is (failing == "b")
    told = [rows[f"judged{ending},panel"] for ending in ("", "_stderr", "_lower", "_upper")]
    told[2:] = worst or told[2:]
    assert [row.estimate, row.standard_error, row.low, row.high] == pytest.approx(told, abs=1e-12)
    recorded = open_scores(out)
    assert recorded is not None
    assert recorded.declared is not None
    said = "failed and were asked again" if failing == "b" else "1 document of essays has no score of writer"
    assert said in " ".join(recorded.declared.notes)


@pytest.mark.parametrize(
    ("task", "budget"),
    [({"rotation": "all"}, 45), ({"repeats": 2}, 40)],
    ids=["all judges score all", "two responses to an answer"],
)
def test_several_scores_of_an_answer(
    server: Server, judges: list[str], tmp_path: Path, task: dict[str, Any], budget: int
) -> None:
    # one judge has no score for a document
    server.answers["b"] = lambda asked: "no idea" if "topic: topic 2\n" in asked.prompt else rating()(asked)
    warm = {"gen_kwargs": {"temperature": 1}}
    folder, out = write_judged(tmp_path / "task", judges, n=4, **warm, **task), tmp_path / "out"
    with budgeted(sampler="eb-bernstein", budget=budget, seed=1):
        found = evaluate(folder, server.chat_args("writer"), output=out)
    check_rows(out, found, "essays", "judged,panel")


def test_plain_answers_that_judges_failed_on(
    server: Server, judges: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers["b"] = lambda asked: "no idea" if "topic: topic 2\n" in asked.prompt else rating()(asked)
    folder, out = write_judged(tmp_path / "task", judges, n=10, rotation="all"), tmp_path / "out"
    found = evaluate(folder, server.chat_args("writer"), output=out)["results"]["essays"]
    (row,) = evalbudget.read(out).estimate().rows
    assert found["judged_missing,panel"] == 1
    assert row.low < found["judged_lower,panel"]
    told = f"1 of 30 calls have no score; the 95% interval {row.low:.4g} to {row.high:.4g} holds"
    assert told in caplog.text


def test_judges_of_kept_answers(server: Server, judges: list[str], tmp_path: Path) -> None:
    warm = {"gen_kwargs": {"temperature": 1}}
    folder, out = write_judged(tmp_path / "task", judges, n=6, **warm), tmp_path / "out"
    with budgeted(repeat="judge", budget=40, seed=1):
        found = evaluate(folder, server.chat_args("writer"), output=out)
    check_rows(out, found, "essays", "judged,panel")


@pytest.mark.parametrize("sampler", ["uniform", "eb-bernstein"])
def test_groups_and_their_tasks(tmp_path: Path, sampler: str) -> None:
    folder, out = tmp_path / "tasks", tmp_path / "out"
    write_task(folder, "one", n=10)
    write_task(folder, "two", n=6)
    write_group(folder, "both", ["one", "two"])
    with budgeted(sampler=sampler, budget=100, seed=3):
        found = evaluate(folder, "model=coin,seed=3", "both", output=out, **COIN)
    for task in ("one", "two"):
        check_rows(out, found, task, "exact_match,none", task)
    check_rows(out, found, "both", "exact_match,none", "both")
    check_rows(out, found, "both", "exact_match,none")


@pytest.mark.parametrize("budget", [200, 30], ids=["all", "a sample"])
def test_a_group_with_documents_that_failed_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, out = tmp_path / "tasks", tmp_path / "out"
    for name, n in (("one", 20), ("two", 12)):
        write_scored(
            folder, "exact_match", "(results[0] > '4') / (doc['number'] not in (5, 13))", name=name, n=n
        )
    write_group(folder, "both", ["one", "two"])
    with budgeted(budget=budget, seed=3):
        found = evaluate(folder, "model=coin,seed=3", "both", output=out, **COIN)
    rows, summary = found["results"]["both"], found["evalbudget"]["summary"]
    (row,) = evalbudget.read(out).estimate().rows
    told = [rows["exact_match,none"], rows["exact_match_stderr,none"], *summary["at_worst"]]
    assert [row.estimate, row.standard_error, row.low, row.high] == pytest.approx(told, abs=1e-12)
    assert row.low < rows["exact_match_lower,none"]
    assert summary["rows"]["estimate"] == pytest.approx(row.estimate, abs=1e-12)
    assert "holds whatever items without a score would score" in summary["parts"][0]["lacking"]


def test_two_models_on_a_group_differ_by_what_their_tasks_do(tmp_path: Path) -> None:
    folder, out = tmp_path / "tasks", tmp_path / "out"
    write_task(folder, "one", n=20)
    write_task(folder, "two", n=12)
    write_group(folder, "both", ["one", "two"])
    found = []
    for seed in (3, 4):
        with budgeted(budget=200, seed=seed):
            model = f"model=coin{seed},seed={seed}"
            found.append(evaluate(folder, model, "both", output=out / str(seed), **COIN)["results"])
    paths = {str(seed): out / str(seed) for seed in (3, 4)}
    (both, one, two) = (
        compare({name: opened(path, task) for name, path in paths.items()}).rows[0]
        for task in ("both", "one", "two")
    )
    told = [results["both"]["exact_match,none"] for results in found]
    assert both.difference == pytest.approx(told[0] - told[1], abs=1e-12)
    error = math.hypot(20 * one.standard_error, 12 * two.standard_error) / 32
    assert both.standard_error == pytest.approx(error, abs=1e-12)


def opened(path: Path, task: str) -> RecordedScores:
    recorded = open_scores(path, task=task)
    assert recorded is not None
    return recorded


@pytest.mark.parametrize("strata", [None, "kind"])
def test_a_sample_of_a_group(tmp_path: Path, strata: str | None) -> None:
    folder, out = tmp_path / "tasks", tmp_path / "out"
    for name, n in (("one", 40), ("two", 24)):
        write_task(folder, name, n=n)
        kinds = (f'{{"number": {i}, "text": "{i}", "kind": "{"xxyzz"[i % 5]}"}}\n' for i in range(n))
        (folder / f"{name}.jsonl").write_text("".join(kinds))
    write_group(folder, "both", ["one", "two"])
    with budgeted(budget=30, strata=strata, seed=3):
        found = evaluate(folder, "model=coin,seed=3", "both", output=out, **COIN)
    rows, read = found["results"]["both"], evalbudget.read(out)
    told = [rows[f"exact_match{ending},none"] for ending in ("", "_stderr", "_lower", "_upper")]
    for one in (read, evalbudget.from_frame(read.readings())):
        (row,) = one.estimate().rows
        assert [row.estimate, row.standard_error, row.low, row.high] == pytest.approx(told, abs=1e-12)


def test_a_sample_of_the_documents(tmp_path: Path) -> None:
    folder, out = write_task(tmp_path / "tasks", n=60), tmp_path / "out"
    with budgeted(budget=24, seed=3):
        found = evaluate(folder, "model=coin,seed=3", "numbers", output=out, **COIN)
    check_rows(out, found, "numbers", "exact_match,none", drawn=True)


def test_a_sample_by_strata(tmp_path: Path) -> None:
    folder, out = write_task(tmp_path / "tasks"), tmp_path / "out"
    texts = "".join(f'{{"number": {i}, "text": "{i}", "kind": "{"xxyz"[i % 4]}"}}\n' for i in range(40))
    (folder / "numbers.jsonl").write_text(texts)
    with budgeted(budget=18, strata="kind", seed=3):
        found = evaluate(folder, "model=coin,seed=3", "numbers", output=out, **COIN)
    rows = found["results"]["numbers"]
    (row,) = evalbudget.read(out).estimate().rows
    told = [row.estimate, row.standard_error, row.low, row.high]
    names = [f"exact_match{ending},none" for ending in ("", "_stderr", "_lower", "_upper")]
    assert told == pytest.approx([rows[name] for name in names], abs=1e-12)
    evalbudget.read(out).recorded.save(tmp_path / "saved.npz")
    for one in (
        evalbudget.from_frame(evalbudget.read(out).readings()),
        evalbudget.read(tmp_path / "saved.npz"),
    ):
        (again,) = one.estimate().rows
        assert [again.estimate, again.standard_error, again.low, again.high] == pytest.approx(told, abs=1e-12)
    assert row.estimate != pytest.approx(np.nanmean(evalbudget.read(out).recorded.scores), abs=1e-6)


@pytest.mark.parametrize("sampler", [variant("uniform"), "eb-bernstein"])
def test_a_budget_in_money(
    paid: PaidServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)
    folder, out = write_task(tmp_path / "tasks", n=12, generation_kwargs=GENERATION), tmp_path / "out"
    with budgeted(sampler=sampler, budget="$0.6", prices="prices.yaml", seed=3):
        found = evaluate(folder, paid.chat_args("m"), "numbers", output=out)
    check_rows(out, found, "numbers", "exact_match,none")
    recorded = open_scores(out)
    assert recorded is not None
    assert recorded.costs is not None


def test_two_runs_of_one_task_in_a_group(tmp_path: Path) -> None:
    """Phases of the second run come after all of the first one's, also those in which a task got nothing."""
    folder, out = tmp_path / "tasks", tmp_path / "out"
    write_task(folder, "one", n=20)
    write_task(folder, "two", n=12)
    write_group(folder, "both", ["one", "two"])
    for seed in (3, 4):
        with budgeted(sampler="eb-bernstein", budget=200, seed=seed):
            evaluate(folder, f"model=coin,seed={seed}", "both", output=out, **COIN)
    recorded = open_scores(out, task="both")
    assert recorded is not None
    assert recorded.purchases is not None
    sizes = recorded.purchases[0].phase_sizes
    assert len(sizes) == 6
    assert len(recorded.items) * sum(sizes) == 400
    one = open_scores(out, task="one")
    assert one is not None
    assert Study(one).item_means(0) == pytest.approx(Study(recorded).item_means(0)[of(recorded, "one")])


@pytest.mark.parametrize("budget", [12, 75], ids=["a sample", "all"])
def test_a_document_that_failed_always_is_missing_and_no_part_of_the_mean(
    tmp_path: Path, budget: int
) -> None:
    code = "(results[0] > '4') / (doc['number'] != 5)"
    folder, out = write_scored(tmp_path / "tasks", "exact_match", code), tmp_path / "out"
    with budgeted(budget=budget, seed=3):
        found = evaluate(folder, "model=coin,seed=3", "numbers", output=out, **COIN)
    recorded = open_scores(out)
    assert recorded is not None
    assert recorded.declared is not None
    (note,) = recorded.declared.notes
    assert note.startswith(
        "1 document of numbers has no score of coin: every call failed (its round failed: "
    )
    (row,) = evalbudget.read(out).estimate().rows
    assert row.estimate == pytest.approx(found["results"]["numbers"]["exact_match,none"], abs=1e-12)
    worst = found["evalbudget"]["summary"]["at_worst"]
    (spent,) = report(recorded)["spent"].models
    assert 0 < found["evalbudget"]["failed"] == spent.failed
    assert (row.low, row.high) == pytest.approx(worst, abs=1e-12)
    assert worst[0] < found["results"]["numbers"]["exact_match_lower,none"]


@pytest.mark.parametrize("said", ["{}", "{'exact_match': float('nan')}"])
def test_documents_that_the_task_gives_no_score(tmp_path: Path, said: str) -> None:
    own = f"""
def process(doc, results):
    return {said} if doc["number"] in (2, 7) else {{"exact_match": float(results[0] > "4")}}
"""
    folder, out = write_task(tmp_path / "tasks", own=own), tmp_path / "out"
    with budgeted(budget=60, seed=3):
        found = evaluate(folder, "model=coin,seed=3", "numbers", output=out, **COIN)
    scores, ours = evalbudget.read(out), found["evalbudget"]
    (row,) = scores.estimate().rows
    (spent,) = report(scores.recorded)["spent"].models
    assert np.flatnonzero(scores.recorded.counts.sum(axis=(0, 2)) == 0).size == 2
    assert spent.failed == ours["failed"] > 2
    assert row.estimate == pytest.approx(found["results"]["numbers"]["exact_match,none"], abs=1e-12)
    assert (row.low, row.high) == pytest.approx(ours["summary"]["at_worst"], abs=1e-12)


def test_scores_that_are_gone_are_said(tmp_path: Path) -> None:
    folder, out = write_task(tmp_path / "tasks"), tmp_path / "out"
    with budgeted(sampler="eb-bernstein", budget=75, seed=3):
        evaluate(folder, "model=coin,seed=3", "numbers", output=out, **COIN)
    (path,) = out.rglob("samples_*.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-5]))
    recorded = open_scores(out)
    assert recorded is not None
    assert recorded.declared is not None
    (note,) = recorded.declared.notes
    assert note.startswith("5 of the 75 scores of coin are not in out/coin/samples_numbers_")
    assert recorded.declared.complete == (False,)


@pytest.mark.parametrize(("metric", "has_interval"), [("points", False), ("exact_match", True)])
def test_scores_that_are_all_1(tmp_path: Path, metric: str, has_interval: bool) -> None:
    """Of a metric of unknown range they leave no interval, in a run as in what is read of its log."""
    folder, out = write_scored(tmp_path / "tasks", metric, "1.0"), tmp_path / "out"
    with budgeted(budget=75, seed=3):
        found = evaluate(folder, "model=coin,seed=3", "numbers", output=out, **COIN)
    rows, scores = found["results"]["numbers"], evalbudget.read(out)
    told = [rows.get(f"{metric}_{end},none", math.nan) for end in ("lower", "upper")]
    assert math.isfinite(told[0]) is has_interval
    (row,) = scores.estimate().rows
    (frame,) = scores.models().to_dict("records")
    again = evalbudget.from_frame(scores.readings()).models().to_dict("records")[0]
    for low, high in (
        (row.low, row.high),
        (frame["lower"], frame["upper"]),
        (again["lower"], again["upper"]),
    ):
        assert [low, high] == pytest.approx(told, abs=1e-12, nan_ok=True)
