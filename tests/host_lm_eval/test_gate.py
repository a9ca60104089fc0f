"""Gates on lm-eval: the candidate is asked until it is decided, the baseline costs nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lm_eval.evaluator import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from tests.host_lm_eval.race_worlds import KIND, Racer, fresh_racers, is_right, manager, racer
from tests.host_lm_eval.worlds import choice, write_task

import warm
from evalbudget.cli.main import cli
from evalbudget.comparisons import Baseline, Verdict, as_csv, read_baseline
from evalbudget.comparisons.flags import FLAGS
from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.flags import names_of
from evalbudget.hooks._plugins import plugins
from evalbudget.missing import Missing
from evalbudget.report import report
from evalbudget_lm_eval import gate
from evalbudget_lm_eval.races.output import RaceResult
from loopback import Asked, Server

N = 80
EVALBUDGET = """
import sys
from lm_eval.tasks import TaskManager
init = TaskManager.__init__
TaskManager.__init__ = lambda self, *args, **more: init(self, *args, **more | {"include_defaults": False})
from evalbudget.cli.main import main
sys.argv[0] = "evalbudget"
main()
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host's own output for a model that is right on nearly everything."""
    folder = tmp_path_factory.mktemp("old")
    tracker = EvaluationTracker(output_path=str(folder))
    kind, args = racer(0.95, 1)
    results = simple_evaluate(
        kind,
        model_args=args,
        tasks=["numbers"],
        task_manager=manager(folder / "tasks", n=N),
        log_samples=True,
    )
    samples = results.pop("samples")
    tracker.general_config_tracker.model_name = tracker.general_config_tracker.model_name_sanitized = "old"
    tracker.save_results_aggregated(results=results, samples=samples)
    for task, own in samples.items():
        tracker.save_results_samples(task_name=task, samples=own)
    return folder


def judged(
    baseline: Path | None, candidate: tuple[str, dict[str, Any]], folder: Path, *, n: int = N, **asked: Any
) -> RaceResult:
    """A gate through Python."""
    with fresh_racers():
        return gate(
            candidate,
            "numbers",
            baseline=baseline,
            name="new",
            output_path=folder / "out",
            task_manager=manager(folder / "tasks", n=n),
            **{"seed": 0, **asked},
        )


def test_a_candidate_that_is_worse_is_found_out_soon(old: Path, tmp_path: Path) -> None:
    result = judged(old, racer(0.3, 2), tmp_path, margin=0.1)
    found = result.gate
    assert found is not None
    assert found.exit_code == 1
    assert found.sentence.startswith("Worse: new is worse than baseline evalbudget-test-racer")
    assert len(Racer.asked) == found.evidence.items < 50
    assert len({number for _, number in Racer.asked}) == len(Racer.asked)
    told = result.results["new"]["evalbudget"]["gate"]
    assert (told["verdict"], told["spent"]) == (
        "worse",
        f"{found.evidence.items} evaluations bought; the baseline cost nothing.",
    )
    read = plugins().open_scores(tmp_path / "out")
    shown = " ".join(str(report(read).table()).split())
    assert found.sentence in shown
    assert f"Difference {found.difference:+.3g} (" in shown
    assert read.race is not None
    row = next(row for row in read.race.rows if row.model == read.models[0])
    assert (row.status, row.read) == ("worse", found.items)
    assert row.estimate == pytest.approx(result.leaderboard.of("new").estimate)


def test_the_same_decision_as_on_the_other_host_and_without_one(old: Path, tmp_path: Path) -> None:
    from evalbudget import Design
    from evalbudget.comparisons import GateSampler

    found = judged(old, racer(0.9, 3), tmp_path, margin=0.1, seed=4).gate
    assert found is not None
    sampler = GateSampler(Design(items=tuple(map(str, range(N))), models=("old", "new")), margin=0.1, seed=4)
    table = [[is_right(1, 0.95, i) for i in range(N)], [is_right(3, 0.9, i) for i in range(N)]]
    import numpy as np

    scores = np.array(table, dtype=float)
    while (cells := sampler.next_cells()) is not None:
        sampler.learn(cells, scores[cells.model, cells.item])
    assert sampler.evidence(1).verdict is found.verdict
    assert sampler.evidence(1).draws.total.tolist() == found.evidence.draws.total.tolist()


def test_a_budget_ends_it_and_these_items_do_not(old: Path, tmp_path: Path) -> None:
    ended = judged(old, racer(0.9, 3), tmp_path / "a", margin=0.02, budget=20).gate
    assert ended is not None
    assert (ended.exit_code, len(Racer.asked)) == (3, 20)
    whole = judged(old, racer(0.93, 4), tmp_path / "b", margin=0.05, these_items=True).gate
    assert whole is not None
    assert whole.verdict is not None


def test_a_baseline_is_asked_where_its_log_lacks_documents(old: Path, tmp_path: Path) -> None:
    whole = judged(old, racer(0.9, 3), tmp_path / "whole", margin=0.02)
    found = read_baseline(old)
    few = {item: found.scores[item] for item in list(found.scores)[:40:2]}
    part = tmp_path / "part.csv"
    part.write_text(as_csv(Baseline(found.name, found.score, few, found.task)))
    bought = judged(part, racer(0.9, 3), tmp_path / "part", margin=0.02, baseline_model=racer(0.95, 1))
    assert whole.gate is not None
    assert bought.gate is not None
    assert len(Racer.asked) == 2 * N - 20
    assert bought.gate.evidence.difference == whole.gate.evidence.difference  # the same answers
    assert f"{2 * N - 20} evaluations bought; {N - 20} evaluations were of the baseline." in str(bought.gate)
    assert set(bought.results) == {"baseline", "new"}


def test_a_gate_of_two_models_without_any_log(tmp_path: Path) -> None:
    result = judged(None, racer(0.3, 2), tmp_path, margin=0.1, budget=60, baseline_model=racer(0.95, 1))
    assert result.gate is not None
    assert (result.gate.exit_code, result.gate.baseline) == (1, "baseline")
    assert len(Racer.asked) == 2 * result.gate.evidence.items <= 60


def test_a_baseline_model_that_need_not_be_asked_is_not_loaded(old: Path, tmp_path: Path) -> None:
    result = judged(old, racer(0.3, 2), tmp_path, margin=0.1, baseline_model=racer(0.95, 1))
    assert result.loads["baseline"] == 0
    assert list(result.results) == ["new"]


def test_the_command_asks_both(server: Server, tmp_path: Path) -> None:
    server.answers = {"new": skilled, "old": lambda asked: asked.prompt.rsplit("say ", 1)[1].split()[0]}
    tasks = write_task(tmp_path / "tasks", n=N)
    base = [word for word in command(server, tmp_path, tasks, tmp_path / "out") if word != str(tmp_path)]
    base.remove("--baseline")
    asked = f"local-chat-completions:{server.chat_args('old')}"
    done = warm.run([*base, "--baseline-model", asked], host="lm-eval", env=environment())
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("Worse: new is worse than baseline")
    count = server.count()
    assert count["old"] == count["new"]


def test_a_budget_in_money_is_for_the_candidate_alone(server: Server, old: Path, tmp_path: Path) -> None:
    server.answer = skilled
    prices = tmp_path / "prices.yaml"
    prices.write_text("new: {call: 0.001, input: 0, output: 0, max_output: 100}\n")
    tasks, money = write_task(tmp_path / "tasks", n=N), ("--budget", "$0.012", "--prices", str(prices))
    run = command(server, old, tasks, tmp_path / "out", *money)
    done = warm.run(run, host="lm-eval", env=environment())
    assert done.returncode == 3, done.stdout + done.stderr
    assert "$0.012 of $0.012 spent; the baseline cost nothing." in done.stdout
    assert len([s for s in server.served if s.status == 200]) == 12


def test_only_documents_of_the_baseline_are_asked(old: Path, tmp_path: Path) -> None:
    part = read_baseline(old)
    few = {item: part.scores[item] for item in list(part.scores)[:30]}
    path = tmp_path / "few.csv"
    path.write_text(as_csv(Baseline(part.name, part.score, few, part.task)))
    found = judged(path, racer(0.95, 5), tmp_path, margin=0.01).gate
    assert found is not None
    assert found.n_items == 30
    assert {str(number) for _, number in Racer.asked} == set(few)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"cluster": "document"}, "has no 'document'"),
        ({"score_range": "2..3"}, "outside of 2 to 3"),
    ],
)
def test_a_baseline_that_does_not_fit_is_refused(
    old: Path, tmp_path: Path, asked: dict[str, Any], told: str
) -> None:
    with pytest.raises(EvalbudgetError, match=told):
        judged(old, racer(0.9, 3), tmp_path, margin=0.1, **asked)
    assert not Racer.asked


def test_a_candidate_that_cannot_be_loaded_is_no_verdict(old: Path, tmp_path: Path) -> None:
    found = judged(old, racer(0.9, 3, breaks="load"), tmp_path, margin=0.1).gate
    assert found is not None
    assert found.exit_code == 4
    assert found.sentence == (
        "Not evaluated: new was given up (it could not be loaded (RuntimeError: no such weights))."
    )


def test_another_version_of_the_task_is_refused(old: Path, tmp_path: Path) -> None:
    part = read_baseline(old)
    assert part.task is not None
    path = tmp_path / "other.csv"
    path.write_text(as_csv(replace(part, task=replace(part.task, version="99"))))
    with pytest.raises(EvalbudgetError, match=r"numbers \(version 99\) and the candidate of numbers"):
        judged(path, racer(0.9, 3), tmp_path, margin=0.1)


def test_logs_say_their_task(old: Path) -> None:
    recorded = plugins().open_scores(old)
    assert recorded.task is not None
    assert recorded.task.name == "numbers"


def skilled(asked: Asked) -> str:
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    return f"{number}" if is_right(2, 0.4, number) else "?"


def command(server: Server, old: Path, tasks: Path, out: Path, *more: str) -> list[str]:
    chat = server.chat_args("new", max_retries=1, num_concurrent=2)
    return [
        *(sys.executable, "-c", EVALBUDGET, "gate", "--baseline", str(old), "--task", "numbers"),
        *("--candidate", f"local-chat-completions:{chat}", "--margin", "0.05", "--include_path", str(tasks)),
        *("--sampler-seed", "0"),
        *("--apply_chat_template", "--output_path", str(out), "--log_samples", *more),
    ]


def environment() -> dict[str, str]:
    return {**os.environ, "EVALBUDGET_DISABLE_PLUGINS": "inspect", "COLUMNS": "80"}


def test_killed_it_goes_on_and_nothing_is_paid_for_twice(server: Server, old: Path, tmp_path: Path) -> None:
    server.answer = skilled
    server.hold(6)
    tasks, out = write_task(tmp_path / "tasks", n=N), tmp_path / "out"
    run = command(server, old, tasks, out, "--json", str(tmp_path / "verdict.json"))
    process = warm.Popen(
        run, host="lm-eval", env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not server.held and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    server.release()
    before = Counter(s.prompt for s in server.served if s.status == 200)
    done = warm.run(run, host="lm-eval", env=environment())
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("Worse: new is worse than baseline ")
    told = json.loads((tmp_path / "verdict.json").read_text())
    assert told["exit_code"] == 1
    after = Counter(s.prompt for s in server.served if s.status == 200)
    twice = [prompt for prompt, times in after.items() if times > 1]
    assert len(twice) <= 2, twice  # under way when it was killed
    assert set(before) <= set(after)


def test_a_dry_run_asks_nobody(server: Server, old: Path, tmp_path: Path) -> None:
    tasks = write_task(tmp_path / "tasks", n=N)
    done = warm.run(
        command(server, old, tasks, tmp_path / "out", "--budget", "30", "--dry_run"),
        host="lm-eval",
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    assert "At most   30 scores" in done.stdout
    assert not server.served


@pytest.mark.usefixtures("own_tasks_only")
def test_bad_input_ends_with_2(old: Path, tmp_path: Path) -> None:
    tasks = write_task(tmp_path / "tasks", n=N)
    base = ["lm-eval", "gate", "--tasks", "numbers", "--include_path", str(tasks)]
    for more, told in (
        (["--margin", "0.1", "--model", KIND], "a gate needs what the candidate is compared with"),
        (["--margin", "0.1", "--baseline", str(old)], "no model is named"),
        (
            ["--margin", "0.1", "--baseline", str(old), "--model", KIND, "--arm", "a=b"],
            "for races of several",
        ),
    ):
        done = CliRunner().invoke(cli, [*base, *more])
        assert done.exit_code == 2, done.output
        assert told in done.stderr


def test_what_an_earlier_gate_bought_of_the_baseline_is_free(tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", 2), ("b", 3), ("c", 4)):
        with fresh_racers():
            found.append(
                gate(
                    racer(0.9, seed),
                    "numbers",
                    baseline_model=racer(0.95, 1),
                    margin=0.01,
                    budget=40,
                    seed=0,
                    name=name,
                    output_path=tmp_path / "out",
                    task_manager=manager(tmp_path / "tasks", n=N),
                ).gate
            )
    assert [each.items for each in found if each is not None] == [20, 30, 35]  # 40 + 20 of the baseline, ...
    assert all(each is not None and "40 evaluations bought" in str(each) for each in found)


def test_documents_are_answered_several_times(old: Path, tmp_path: Path) -> None:
    result = judged(old, racer(0.3, 2), tmp_path, margin=0.1, repeats=3)
    assert result.gate is not None
    assert result.gate.exit_code == 1
    assert len(Racer.asked) == 3 * result.gate.items
    assert "each answered 3 times" in str(result.gate)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (choice("yes", "no"), "scores log-likelihoods (multiple_choice), which are the same every time"),
        ({"generation_kwargs": {"until": ["\n"]}}, "decodes greedily (temperature=0.0"),
    ],
)
def test_several_answers_that_cannot_differ_are_refused(
    task: dict[str, Any], message: str, tmp_path: Path
) -> None:
    baseline = tmp_path / "old.csv"
    baseline.write_text("item,model,score\n" + "".join(f"{i},old,{i % 2}\n" for i in range(N)))
    given = (racer(0.3, 2), "numbers")
    asked = {"task_manager": manager(tmp_path / "tasks", n=N, **task), "baseline": baseline, "margin": 0.1}
    with fresh_racers(), pytest.raises(InvalidInputError, match=re.escape(message)) as refused:
        gate(*given, **asked, repeats=3)
    assert "ask each document once: --repeats 1" in str(refused.value)
    assert not Racer.asked
    with fresh_racers():
        assert gate(*given, **asked).gate is not None


@pytest.mark.usefixtures("own_tasks_only")
def test_a_dry_run_refuses_several_log_likelihoods_too(old: Path, tmp_path: Path) -> None:
    tasks = write_task(tmp_path / "tasks", n=N, **choice("yes", "no", metrics=["exact_match"]))
    args = ["--baseline", str(old), "--model", KIND, "--tasks", "numbers", "--include_path", str(tasks)]
    args += ["--margin", "0.1", "--score", "exact_match", "--repeats", "3", "--dry_run"]
    done = CliRunner().invoke(cli, ["lm-eval", "gate", *args])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "ask each document once: --repeats 1" in done.stderr


def test_python_takes_what_the_command_takes(tmp_path: Path) -> None:
    assert set(names_of(FLAGS)) <= set(signature(gate).parameters)
    own = 'def process(doc, results):\n    return {"said": results[0] == doc["text"]}\n'
    entry = {"metric": "said", "aggregation": "mean"}  # the host knows none of this name
    tasks = manager(tmp_path / "tasks", n=N, metric_list=[entry], own=own)
    asked = {"margin": 0.1, "lower_is_better": True, "missing": "zero", "task_manager": tasks, "seed": 0}
    with fresh_racers():
        found = gate(racer(0.3, 2), "numbers", baseline_model=racer(0.9, 1), **asked).gate
    assert found is not None
    assert (found.handled, found.lower_is_better) == (Missing.ZERO, True)
    assert found.verdict is Verdict.NOT_WORSE  # fewer right answers, were these errors


def test_a_task_says_that_lower_is_better(tmp_path: Path) -> None:
    entry = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": False}
    tasks = manager(tmp_path / "tasks", n=N, metric_list=[entry])
    with fresh_racers():
        asked = {"margin": 0.1, "task_manager": tasks, "seed": 0}
        found = gate(racer(0.9, 2), "numbers", baseline_model=racer(0.3, 1), name="new", **asked).gate
    assert found is not None
    assert (found.verdict, found.lower_is_better) == (Verdict.WORSE, True)


def test_what_a_baseline_says_is_told(tmp_path: Path) -> None:
    part = tmp_path / "part.csv"
    part.write_text("item,model,score,extra\n" + "".join(f"{i},old,{i % 2},x\n" for i in range(N)))
    found = judged(part, racer(0.3, 2), tmp_path, margin=0.1, budget=8).gate
    assert found is not None
    assert found.notes == ("Baseline: Columns that were not read: extra.",)
    assert found.notes[0] in str(found)


def test_a_candidate_cannot_be_called_baseline(tmp_path: Path) -> None:
    with pytest.raises(EvalbudgetError, match="give the candidate another one"):
        gate(racer(0.3, 2), "numbers", baseline_model=racer(0.9, 1), margin=0.1, name="baseline")
