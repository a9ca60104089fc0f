"""Gates on inspect: the candidate is asked until it is decided, the baseline costs nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from tests.host_inspect.race_tasks import attempts, model, quiz, run, written
from tests.host_inspect.worlds import UNWATCHED

import warm
from evalbudget import Design
from evalbudget.cli.main import cli
from evalbudget.comparisons import Baseline, GateConfig, GateSampler, as_csv, read_baseline
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget_inspect import gate, leaderboard
from evalbudget_inspect.races.all_races import take_gates

EVALBUDGET = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
QUIZ = Path(__file__).parents[2] / "examples" / "race_quiz.py"
SIMULATED = ("-M", "bernoulli=true")


def here(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner(env=UNWATCHED).invoke(cli, arguments)


def logs_in(folder: Path) -> list[EvalLog]:
    return [read_eval_log(info) for info in list_eval_logs(str(folder))]


def judged(baseline: Path, candidate: Any, folder: Path, **asked: Any) -> tuple[Any, EvalLog]:
    """A gate through Python: what it found, and the candidate's log."""
    options = {name: asked.pop(name) for name in ("epochs", "max_samples", "retry_on_error") if name in asked}
    task, asked = asked.pop("task", None) or quiz(120), {"seed": 0, **asked}
    take_gates()
    (log,) = run(gate(task, baseline=baseline, **asked), candidate, folder, **options)
    found = take_gates()
    return (found[0] if found else None), log


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of plain epochs of a model that is right on nearly everything."""
    folder = tmp_path_factory.mktemp("old")
    (log,) = run(quiz(120), model("old", 0.95), folder)
    assert log.status == "success"
    return folder


@pytest.mark.parametrize("host", ["inspect", "lm-eval"])
def test_the_candidate_is_the_model(host: str) -> None:
    told = here(host, "gate", "--candidate", "x", "--margin", "0.1", "--baseline", str(QUIZ))
    assert (told.exit_code, "here the candidate is --model" in told.output) == (2, True)


def test_what_a_baseline_says_is_told(tmp_path: Path) -> None:
    part = tmp_path / "part.csv"
    part.write_text("item,model,score,extra\n" + "".join(f"item-{i},old,{i % 2},x\n" for i in range(120)))
    found, _ = judged(part, model("new", 0.3), tmp_path, margin=0.1, budget=8)
    assert found.notes == ("Baseline: Columns that were not read: extra.",)


def test_a_candidate_that_is_worse_is_found_out_soon(old: Path, tmp_path: Path) -> None:
    found, log = judged(old, model("new", 0.3), tmp_path, margin=0.1)
    assert found.exit_code == 1
    assert found.sentence == "Worse: simulated/new is worse than baseline simulated/old, with 95% confidence."
    assert attempts([log]) == found.evidence.items < 60
    assert f"{found.evidence.items} evaluations bought; the baseline cost nothing." in found.lines()
    assert log.results is not None
    told = (log.results.scores[0].metadata or {})["evalbudget"]["gate"]
    assert (told["verdict"], told["baseline"]) == ("worse", "baseline simulated/old")
    record = plugins().open_scores(tmp_path).race
    assert record is not None
    assert [row.read for row in record.rows] == [found.items] * 2  # not all of the baseline's, beside them
    assert (record.kind, record.sentence, record.items) == ("gate", found.sentence, 120)
    row = next(row for row in record.rows if row.model == "simulated/new")
    assert (row.status, row.read) == ("worse", found.items)
    assert row.estimate is not None
    assert row.lower < row.estimate < row.upper
    with pytest.raises(InvalidInputError, match="none of these logs is of a race"):
        leaderboard(log)


@pytest.mark.parametrize("at_once", [1, 7])
def test_the_same_model_is_not_worse_whatever_runs_at_once(old: Path, tmp_path: Path, at_once: int) -> None:
    found, log = judged(old, model("old", 0.95), tmp_path, margin=0.15, max_samples=at_once)
    assert found.exit_code == 0
    assert found.evidence.difference == 0.0
    # the same answers in the same order: what decides does not depend on who is faster
    assert attempts([log]) == found.evidence.items == 24


def test_a_budget_ends_it_and_says_so(old: Path, tmp_path: Path) -> None:
    found, log = judged(old, model("new", 0.9), tmp_path, margin=0.02, budget=30)
    assert (found.exit_code, attempts([log])) == (3, 30)
    assert "30 evaluations bought, of 30 scores at most; the baseline cost nothing." in str(found)
    assert "Stopped: budget used up." in str(found)


def test_a_budget_in_money_is_for_the_candidate_alone(old: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("simulated/*: {call: 0.001, input: 0, output: 0, max_output: 100}\n")
    found, log = judged(
        old, model("new", 0.9), tmp_path / "logs", margin=0.02, budget="$0.03", prices=str(prices)
    )
    assert (found.exit_code, attempts([log])) == (3, 30)
    assert "$0.030 of $0.030 spent; the baseline cost nothing. Stopped: budget used up." in str(found)


def test_these_items_are_all_read_if_need_be(old: Path, tmp_path: Path) -> None:
    found, log = judged(old, model("new", 0.93), tmp_path, margin=0.05, these_items=True)
    assert found.verdict is not None
    assert attempts([log]) <= 120


def test_failed_samples_are_asked_again_and_cost(old: Path, tmp_path: Path) -> None:
    found, log = judged(old, model("new", 0.3, fail=0.3), tmp_path, margin=0.1, budget=60)
    assert found.exit_code == 1
    assert found.evidence.items < attempts([log]) <= 60


def test_a_candidate_that_always_fails_is_no_verdict(old: Path, tmp_path: Path) -> None:
    found, log = judged(old, model("new", 0.9, fail=1.0), tmp_path, margin=0.1, these_items=True)
    assert found.exit_code == 4
    assert found.sentence.startswith(
        "Not evaluated: simulated/new was given up (it kept failing: RuntimeError"
    )
    assert attempts([log]) <= 24


def test_only_items_of_the_baseline_are_asked(old: Path, tmp_path: Path) -> None:
    part = read_baseline(old)
    few = {item: part.scores[item] for item in list(part.scores)[:40]}
    path = tmp_path / "few.csv"
    path.write_text(as_csv(Baseline(part.name, part.score, few, part.task)))
    found, log = judged(path, model("new", 0.95), tmp_path / "logs", margin=0.01)
    assert found.n_items == 40
    assert {str(sample.id) for sample in log.samples or []} == set(few)


def test_clusters_come_from_the_samples_metadata(tmp_path: Path) -> None:
    samples = [
        Sample(id=f"q{i}", input="?", target="C", metadata={"document": f"d{i // 4}"}) for i in range(80)
    ]
    task = quiz(80)
    task.dataset = MemoryDataset(samples, name="questions", location="q.csv")
    run(task, model("old", 0.9), tmp_path / "old")
    again = quiz(80)
    again.dataset = MemoryDataset(samples, name="questions", location="q.csv")
    found, _ = judged(
        tmp_path / "old", model("new", 0.1), tmp_path / "new", task=again, margin=0.2, cluster="document"
    )
    assert found.exit_code == 1
    assert set(found.evidence.draws.size.tolist()) == {4}
    assert "clusters (document)" in str(found)


@pytest.mark.parametrize(
    ("asked", "changed", "told"),
    [
        ({}, {"version": 2}, "is of quiz (version 0) and the candidate of quiz (version 2)"),
        ({}, {"name": "other"}, "is of quiz (version 0) and the candidate of other (version 0)"),
        ({"cluster": "document"}, {}, "no 'document' in the metadata of 120 items"),
        ({"score_range": "2..3"}, {}, "outside of 2 to 3"),
    ],
)
def test_a_baseline_that_does_not_fit_ends_the_run(
    old: Path, tmp_path: Path, asked: dict[str, Any], changed: dict[str, Any], told: str
) -> None:
    found, log = judged(old, model("new", 0.9), tmp_path, task=quiz(120, **changed), margin=0.1, **asked)
    assert found is None
    assert log.status == "error"
    assert log.error is not None
    assert told in log.error.message
    assert attempts([log]) == 0


def test_the_command_on_a_plain_log(tmp_path: Path) -> None:
    common = ["--limit", "24", "--display", "none", *SIMULATED]
    plain = here(
        *("inspect", "eval", str(QUIZ), "--model", "simulated/alder", "--log-dir", str(tmp_path / "old")),
        *("--budget", "2x", *common),
    )
    assert plain.exit_code == 0, plain.stderr
    baseline = tmp_path / "baseline.csv"
    saved = here("gate", "--baseline", str(tmp_path / "old"), "--save-baseline", str(baseline))
    assert saved.exit_code == 0, saved.stderr
    done = here(
        *("gate", "--baseline", str(baseline), "--candidate", "simulated/ginkgo", "--task", str(QUIZ)),
        *("--margin", "0.05", "--log-dir", str(tmp_path / "new"), "--json", str(tmp_path / "verdict.json")),
        *("--sampler-seed", "0"),
        *common,
    )
    assert done.exit_code in (1, 3), done.stderr
    assert "+ inspect eval evalbudget_inspect/gate -T" in done.stderr
    told = json.loads((tmp_path / "verdict.json").read_text())
    assert told["exit_code"] == done.exit_code
    assert told["sentence"] in done.stdout
    (log,) = logs_in(tmp_path / "new")
    assert attempts([log]) == told["items"]
    forecast = here(
        *("inspect", "gate", str(QUIZ), "--baseline", str(baseline), "--model", "simulated/elm", "--margin"),
        *("0.05", "--budget", "20", "--dry-run", "--log-dir", str(tmp_path / "none"), *common),
    )
    assert forecast.exit_code == 0, forecast.stderr
    assert "No call was made." in forecast.stdout
    assert not (tmp_path / "none").exists()
    nobody = here(
        *("inspect", "gate", str(QUIZ), "--baseline", str(baseline), "--margin", "0.05"),
        *("--model", "nosuch/model", "--log-dir", str(tmp_path / "nobody")),
    )
    assert nobody.exit_code == 2, nobody.stderr
    assert "Traceback" not in nobody.stderr
    two = here(
        *("inspect", "gate", str(QUIZ), "--baseline", str(baseline), "--margin", "0.05"),
        *("--model", "simulated/elm,simulated/fir"),
    )
    assert two.exit_code == 2
    assert "a gate judges one candidate, and --model names 2" in two.stderr


def test_logs_say_their_task_and_categories(old: Path) -> None:
    recorded = plugins().open_scores(old)
    assert str(recorded.task) == "quiz (version 0)"
    assert recorded.categories is None


def test_killed_and_retried_it_goes_on_in_the_same_order(tmp_path: Path) -> None:
    old_logs, logs = tmp_path / "old", tmp_path / "logs"
    given = ("-M", "bernoulli=true", "--limit", "45", "--display", "none")
    # the same model, answering the same: nothing can be proved on so few items, whatever their order
    made = importlib.util.spec_from_file_location("race_quiz", QUIZ)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    run(module.race_quiz(), "simulated/birch", old_logs, model_args={"bernoulli": True}, limit=45)
    run_it = [
        *(sys.executable, "-c", EVALBUDGET, "inspect", "gate", str(QUIZ), "--model", "simulated/birch"),
        *("--baseline", str(old_logs), "--margin", "0.02", "--log-dir", str(logs), "--max-samples", "2"),
        *("--log-buffer", "1", "-M", "latency=0.1", *given),
    ]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with warm.Popen(run_it, host="inspect", **quiet) as process:
        deadline = time.monotonic() + 120
        while sum(map(written, logs.glob("*.eval"))) < 12 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    (info,) = list_eval_logs(str(logs))
    killed = read_eval_log(info)
    before = [str(sample.id) for sample in killed.samples or []]
    assert 12 <= len(before) < 45
    done = here("inspect", "eval-retry", info.name.removeprefix("file://"), "--log-dir", str(logs))
    assert done.exit_code == 3, done.output
    assert "Undecided: whether simulated/birch is worse than baseline by 0.02 or more" in done.stdout
    retried = max(list_eval_logs(str(logs)), key=lambda each: each.name)
    items = [
        str(each.id) for each in read_eval_log(retried).samples or [] if each.error is None and each.scores
    ]
    assert len(items) == len(set(items)) == 45
    # what had been answered is the beginning of the order that the whole gate has
    asked = GateConfig.of(baseline=str(old_logs), margin=0.02).in_order_of(killed.eval.task_id)
    names = tuple(f"question-{i + 1:03d}" for i in range(45))
    sampler = asked.make_sampler(Design(items=names, models=("baseline", "new")))
    assert isinstance(sampler, GateSampler)
    first = {names[i] for i in sampler.order(0)[: len(before) + 16].tolist()}
    assert set(before) <= first


def part_of(old: Path, folder: Path, n: int) -> Path:
    """A table of the baseline's scores on every other of its first items."""
    found = read_baseline(old)
    few = {item: found.scores[item] for item in list(found.scores)[: 2 * n : 2]}
    path = folder / "part.csv"
    path.write_text(as_csv(Baseline(found.name, found.score, few, found.task)))
    return path


def test_a_baseline_is_asked_where_its_log_lacks_items(old: Path, tmp_path: Path) -> None:
    whole, _ = judged(old, model("new", 0.9), tmp_path / "whole", task=quiz(48), margin=0.02)
    take_gates()
    part = part_of(old, tmp_path, 30)
    logs = run(
        gate(quiz(48), baseline=part, baseline_model="simulated/old", margin=0.02, seed=0),
        [model("old", 0.95), model("new", 0.9)],
        tmp_path / "part",
    )
    (found,) = take_gates()
    asked = {log.eval.model: attempts([log]) for log in logs}
    assert asked == {"simulated/old": 24, "simulated/new": 48}
    assert found.evidence.difference == whole.evidence.difference  # the same answers, known or bought
    assert "72 evaluations bought; 24 evaluations were of the baseline." in str(found)
    rows = {
        log.eval.model: {row for score in log.results.scores for row in score.metrics}
        for log in logs
        if log.results is not None
    }
    assert "estimate" in rows["simulated/old"]
    assert "difference" in rows["simulated/new"]
    assert "difference" not in rows["simulated/old"]


def test_a_gate_of_two_models_without_any_log(tmp_path: Path) -> None:
    take_gates()
    logs = run(
        gate(quiz(120), baseline_model="simulated/old", margin=0.1, budget=60, seed=0),
        [model("new", 0.3), model("old", 0.95)],
        tmp_path,
    )
    (found,) = take_gates()
    assert (found.exit_code, found.baseline, found.candidate) == (1, "simulated/old", "simulated/new")
    assert attempts(logs) == 2 * found.evidence.items <= 60


def test_a_budget_in_money_is_for_both_where_both_are_asked(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("simulated/*: {call: 0.001, input: 0, output: 0, max_output: 100}\n")
    take_gates()
    task = gate(
        quiz(120), baseline_model="simulated/old", margin=0.02, budget="$0.03", prices=str(prices), seed=0
    )
    logs = run(task, [model("new", 0.9), model("old", 0.95)], tmp_path / "logs")
    (found,) = take_gates()
    assert (found.exit_code, attempts(logs)) == (3, 30)
    assert "$0.030 of $0.030 spent" in str(found)


def test_a_baseline_that_is_not_among_the_models(tmp_path: Path) -> None:
    (log,) = run(gate(quiz(9), baseline_model="simulated/old", margin=0.1), model("new", 0.9), tmp_path)
    assert log.status == "error"
    assert log.error is not None
    assert "name it with --model, beside the candidate" in log.error.message


def test_scores_of_another_model_are_not_mixed_in(old: Path, tmp_path: Path) -> None:
    task = gate(
        quiz(120), baseline=part_of(old, tmp_path, 30), baseline_model="simulated/other", margin=0.1, seed=0
    )
    logs = run(task, [model("other", 0.2), model("new", 0.5)], tmp_path / "logs")
    told = [log.error.message for log in logs if log.error is not None]
    assert any("of simulated/old and --baseline-model is simulated/other" in text for text in told), told


def test_a_scale_without_zero_and_no_log(tmp_path: Path) -> None:
    take_gates()
    task = gate(quiz(40), baseline_model="simulated/old", margin=0.5, score_range="1..10", seed=0, budget=20)
    run(task, [model("old", 1.0), model("new", 1.0)], tmp_path)
    (found,) = take_gates()
    assert "outside of 1 to 10" not in str(found)


def test_one_candidate_is_judged(tmp_path: Path) -> None:
    task = gate(quiz(40), baseline_model="simulated/old", margin=0.5, seed=0)
    logs = run(task, [model("old", 1.0), model("new", 1.0), model("newer", 1.0)], tmp_path)
    told = [log.error.message for log in logs if log.error is not None]
    assert any("a gate judges one candidate, and there are 2" in text for text in told), told


def test_a_baseline_that_always_fails_is_named(tmp_path: Path) -> None:
    take_gates()
    task = gate(quiz(40), baseline_model="simulated/old", margin=0.2, seed=0)
    run(task, [model("old", 1.0, fail=1.0), model("new", 1.0)], tmp_path)
    (found,) = take_gates()
    assert found.exit_code == 4
    assert found.sentence.startswith("Not evaluated: simulated/old was given up")


def test_answers_are_repeated_where_the_baselines_noise_asks_for_it(tmp_path: Path) -> None:
    (log,) = run(quiz(14), model("old", 0.6), tmp_path / "old", epochs=5)
    assert log.status == "success"
    noise = read_baseline(tmp_path / "old").noise
    assert 0.1 < noise < 0.3
    take_gates()
    logs = run(
        gate(quiz(14), baseline=tmp_path / "old", margin=0.3, seed=0), model("new", 0.6), tmp_path / "new"
    )
    (found,) = take_gates()
    assert found.repeats > 1
    assert attempts(logs) == found.evidence.items
    assert f"each answered {found.repeats} times" in str(found)
    (log,) = logs
    assert {sample.epoch for sample in log.samples or []} == set(range(1, found.repeats + 1))
    rows = {row for score in (log.results.scores if log.results else []) for row in score.metrics}
    assert "difference" in rows
    assert "lower" not in rows  # answers to one item belong together
