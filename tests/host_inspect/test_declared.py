"""What a task declares is what is estimated: clusters; its reducers are another quantity."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai import Epochs, Task
from inspect_ai import eval as host_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.scorer import (
    Score,
    Scorer,
    ScoreReducer,
    accuracy,
    at_least,
    ci,
    match,
    mean,
    score_reducer,
    stderr,
)
from inspect_ai.solver import TaskState
from tests.claims import variant
from tests.host_inspect.log_worlds import read
from tests.host_inspect.race_tasks import QUIET
from tests.host_inspect.worlds import COMMAND, entry_of, rows_of, scoring, solving

import warm
from evalbudget import Allocation
from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import cluster_numbers, describe_mean
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.report import report
from evalbudget.statistics._exact_share import exact_share
from evalbudget_inspect import budgeted
from evalbudget_inspect.host.readings import phase_of
from evalbudget_inspect.host.reducers import said_of_rows

_random = random.Random(7)


def _chance(state: TaskState) -> float:
    return float(_random.random() < state.metadata["p"])


coin = scoring("coin", _chance, [mean(), stderr(cluster="passage")])
plain_coin = scoring("plain_coin", _chance, [mean(), stderr()])
by_ci = scoring("by_ci", _chance, [accuracy(), ci(cluster="passage")])
both = scoring(
    "both",
    lambda state: {"read": _chance(state), "style": _chance(state)},
    {"read": [mean(), stderr(cluster="passage")], "style": [mean(), stderr()]},
)
graded = scoring("graded", lambda state: "C" if _chance(state) else "I", [accuracy(), stderr()])
count = scoring("count", lambda state: 1.0, [mean(), stderr(cluster="source")])

asked: list[Any] = []


def passages(scorer: Callable[[], Scorer] | list[Scorer] = coin, n: int = 36, **task: Any) -> Task:
    """Passages with six questions each, which are answered alike."""
    samples = [
        Sample(
            input="q",
            id=i,
            metadata={"passage": i // 6, "p": (0.1, 0.95)[i // 6 % 2], "own": f"own {i}"},
        )
        for i in range(n)
    ]
    note = solving(lambda state: asked.append(state.sample_id))
    scored = scorer if isinstance(scorer, list) else scorer()
    return Task(dataset=samples, solver=note, scorer=scored, name="passages", **task)


def run(task: Task, folder: Path, **options: Any) -> EvalLog:
    (log,) = host_eval(task, model="mockllm/model", log_dir=str(folder), **{**QUIET, **options})
    assert log.status == "success", log.error
    return log


def core_rows(log: EvalLog, name: str, *, key: str | None = None, cluster: str | None) -> dict[str, float]:
    """Rows of a run as the core computes them from the readings in its log."""
    entry = entry_of(log, "allocation")
    ids: list[Any] = []
    read: list[tuple[int, int, float, float]] = []
    for sample in log.samples or []:
        score = (sample.scores or {})[name]
        if sample.id not in ids:
            ids.append(sample.id)
        given = score.value if key is None else score.value[key]  # type: ignore[index,call-overload]
        value = {"C": 1.0, "I": 0.0}.get(given, given)  # type: ignore[arg-type]
        phase = phase_of((score.metadata or {})["evalbudget"])
        read.append((ids.index(sample.id), sample.epoch - 1, value, phase))
    item, epoch, values, phases = zip(*read, strict=True)
    fields = {sample.id: sample.metadata for sample in log.samples or []}
    rows = describe_mean(
        ItemReadings.of(item, epoch, values, phase=phases),
        allocation=Allocation(entry["allocation"]),
        fixed_repeats=entry["fixed_repeats"],
        bounds=(0.0, 1.0),
        clusters=None if cluster is None else cluster_numbers([fields[i][cluster] for i in ids]),
    ).rows
    return {row: value for row, value in rows.items() if row not in ("items", "readings")}


# clusters


@pytest.mark.parametrize(("scorer", "options"), [(coin, {}), variant(by_ci, {"sampler": "uniform"})])
def test_the_clusters_that_metrics_declare_decide_the_interval(
    scorer: Callable[[], Scorer], options: dict[str, Any], tmp_path: Path
) -> None:
    log = run(budgeted(passages(scorer), budget="3x", **options), tmp_path)
    name = scorer().__registry_info__.name  # type: ignore[attr-defined]
    plain, expected = (core_rows(log, name, cluster=cluster) for cluster in (None, "passage"))
    rows = {row: value for row, value in rows_of(log, name).items() if row in expected}
    assert rows == pytest.approx(expected, abs=1e-12)
    assert rows["estimate"] == plain["estimate"]
    assert rows["upper"] - rows["lower"] > 2.0 * (plain["upper"] - plain["lower"])
    told = entry_of(log, "summary")["summary"]
    assert (told["cluster"], told["clusters"]) == ("passage", 6)
    assert told["rows"]["lower"] == pytest.approx(rows["lower"], abs=1e-12)
    assert "in 6 clusters by 'passage'" in " ".join(told["text"].split())
    assert "items of more clusters" in " ".join(told["text"].split())


def test_each_key_of_a_score_has_the_clusters_of_its_own_metrics(tmp_path: Path) -> None:
    log = run(budgeted(passages(both), budget="2x", sampler="uniform", score="both.style"), tmp_path)
    assert log.results is not None
    scores = {score.name: score.metrics for score in log.results.scores if "eb/estimate" in score.metrics}
    for key, cluster in {"read": "passage", "style": None}.items():
        expected = core_rows(log, "both", key=key, cluster=cluster)
        assert scores[key]["eb/stderr"].value == pytest.approx(expected["stderr"], abs=1e-12)
    assert entry_of(log, "summary")["summary"]["cluster"] is None


def _keyed(metrics: dict[str, list[Any]]) -> Callable[[], Scorer]:
    return scoring("keyed", lambda state: {"read": _chance(state), "style": _chance(state)}, metrics)


@pytest.mark.parametrize(
    ("metrics", "clusters"),
    [
        ({"*": [mean()], "read": [mean(), stderr(cluster="passage")]}, {"read": "passage", "style": None}),
        ({"*": [mean()], "r*": [stderr(cluster="passage")]}, {"read": "passage", "style": None}),
        ({"*": [stderr(cluster="passage")], "read": [mean()]}, {"read": "passage", "style": "passage"}),
        ({"*": [stderr()], "read": [stderr(cluster="passage")]}, {"read": None, "style": None}),
        ({"read": [stderr(cluster="passage")], "*": [stderr()]}, {"read": "passage", "style": None}),
    ],
)
def test_keys_have_the_clusters_of_the_metrics_that_the_host_takes_for_them(
    metrics: dict[str, list[Any]], clusters: dict[str, str | None], tmp_path: Path
) -> None:
    plain = run(passages(_keyed(metrics)), tmp_path / "plain", epochs=2)
    task = budgeted(passages(_keyed(metrics)), budget="2x", sampler="uniform", score="keyed.read")
    log = run(task, tmp_path / "ours")
    assert plain.results is not None
    assert log.results is not None
    ours = {score.name: score.metrics for score in log.results.scores if "eb/estimate" in score.metrics}
    for key, cluster in clusters.items():
        expected = core_rows(log, "keyed", key=key, cluster=cluster)
        assert ours[key]["eb/stderr"].value == pytest.approx(expected["stderr"], abs=1e-12)
    told = {
        score.name: {name: metric.params for name, metric in score.metrics.items()}
        for score in plain.results.scores
    }
    own = {
        score.name: {name: metric.params for name, metric in score.metrics.items()}
        for score in log.results.scores
        if "eb/estimate" not in score.metrics
    }
    assert own == told
    assert {key: own[key].get("stderr", {}).get("cluster") for key in clusters} == clusters
    assert entry_of(log, "summary")["summary"]["cluster"] == clusters["read"]
    for folder in ("plain", "ours"):
        found = read(tmp_path / folder).declared
        assert found is not None
        by = found.clustered or (found.cluster is not None,) * 2
        assert list(by) == [cluster is not None for cluster in clusters.values()]


def test_the_range_is_of_the_entry_that_decides_alone(tmp_path: Path) -> None:
    rating = scoring("rated", lambda state: {"read": 7, "style": 0.5}, {"*": [mean()], "read": [mean()]})
    log = run(
        budgeted(passages(rating), budget="1x", sampler="uniform", score="rated.read", score_range="1..10"),
        tmp_path,
    )
    assert log.results is not None
    ours = {s.name: s.metrics["eb/estimate"] for s in log.results.scores if "eb/estimate" in s.metrics}
    assert {name: (row.value, row.params["low"]) for name, row in ours.items()} == {
        "read": (7.0, 1.0),
        "style": (0.5, None),
    }


def test_the_rows_of_each_key_come_back(tmp_path: Path) -> None:
    log = run(budgeted(passages(both), budget="4x", score="both.style"), tmp_path)
    assert log.results is not None
    ours = {s.name: s.metrics for s in log.results.scores if "eb/estimate" in s.metrics}
    for name, (row,) in report(read(tmp_path)).sections[0].boards:
        told = [ours[name.removeprefix("both.")][f"eb/{of}"].value for of in ("stderr", "lower", "upper")]
        assert [row.standard_error, row.low, row.high] == pytest.approx(told, abs=1e-12)


def test_the_rows_of_a_run_with_other_clusters_than_the_task_come_back(tmp_path: Path) -> None:
    log = run(budgeted(passages(coin), budget="2x", sampler="uniform", cluster="own"), tmp_path)
    rows = rows_of(log, "coin")
    found = read(tmp_path)
    assert found.declared is not None
    assert found.declared.cluster == "own"
    (row,) = report(found).sections[0].rows
    told = [rows["stderr"], rows["lower"], rows["upper"]]
    assert [row.standard_error, row.low, row.high] == pytest.approx(told, abs=1e-12)


def test_a_flag_declares_clusters_for_a_task_that_does_not(tmp_path: Path) -> None:
    log = run(budgeted(passages(plain_coin), budget="1x", sampler="uniform", cluster="passage"), tmp_path)
    rows = rows_of(log, "plain_coin")
    assert rows["lower"] == pytest.approx(core_rows(log, "plain_coin", cluster="passage")["lower"], abs=1e-12)
    assert entry_of(log, "cluster")["cluster"] == "passage"
    # and comes before what the task declares
    log = run(budgeted(passages(coin), budget="1x", sampler="uniform", cluster="own"), tmp_path)
    assert rows_of(log, "coin")["stderr"] == pytest.approx(core_rows(log, "coin", cluster=None)["stderr"])


def test_a_sample_of_the_items_has_clusters_too(tmp_path: Path) -> None:
    log = run(budgeted(passages(coin), budget=24), tmp_path)
    told = entry_of(log, "summary")["summary"]
    assert told["clusters"] == 6
    assert "full_lower" in told["rows"]
    rows = rows_of(log, "coin")
    assert rows["upper"] - rows["lower"] > 1.5 * (rows["full_upper"] - rows["full_lower"])


def test_clusters_that_samples_lack_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    def refused(task: Task, **options: Any) -> str:
        asked.clear()
        (log,) = host_eval(
            budgeted(task, budget="3x", **options), model="mockllm/model", log_dir=str(tmp_path), **QUIET
        )
        assert log.status == "error"
        assert log.error is not None
        assert not asked
        return log.error.message

    task = passages()
    for sample in list(task.dataset)[4:6]:
        assert sample.metadata is not None
        del sample.metadata["passage"]
    said = refused(task)
    assert (
        "stderr(cluster='passage') of scorer 'coin': 2 of the 36 samples have no field 'passage' (4, 5)"
        in said
    )
    assert "take cluster='passage' out of the metric" in said
    # what --limit leaves out is not asked for its field
    run(budgeted(passages(), budget="3x"), tmp_path, limit=4)
    # of another scorer, the host would raise when all is paid
    assert "stderr(cluster='source') of scorer 'count': no sample has a field" in refused(
        passages([plain_coin(), count()])
    )
    assert "--cluster topic: no sample has a field 'topic': they have own, p, passage" in refused(
        passages(plain_coin), cluster="topic"
    )


_FILE = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import solver

@solver
def right():
    async def solve(state, generate):
        state.output.completion = "yes"
        return state
    return solve

@task
def quiz():
    samples = [Sample(input=f"q{i}", target="yes", id=i, metadata={"unit": i // 2}) for i in range(12)]
    del samples[3].metadata["unit"]
    return Task(dataset=samples, solver=right(), scorer=match())
"""


def test_the_command_has_the_flag_and_a_dry_run_refuses_too(tmp_path: Path) -> None:
    file = tmp_path / "quiz.py"
    file.write_text(_FILE)
    command = [*COMMAND, "eval", str(file), "--model", "mockllm/model", "--log-dir", str(tmp_path / "logs")]
    environment = {k: v for k, v in os.environ.items() if k != "INSPECT_DISPLAY"} | {"COLUMNS": "80"}
    flags = ["--budget", "1x", "--sampler", "uniform", "--cluster", "unit"]
    for more in (["--dry-run"], []):
        refused = CliRunner().invoke(cli, [*command[3:], *flags, *more])
        assert refused.exit_code != 0
        said = " ".join(refused.stderr.split())
        assert "--cluster unit: 1 of the 12 samples have no field 'unit' (3)" in said
    done = warm.run([*command, *flags, "--sample-id", "0,1,2,4,5,6,7,8,9"], host="inspect", env=environment)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    low = exact_share(5, 5, 0.95)[0]  # five clusters, all right
    assert f"95% interval {low:.3f} to 1.000: items and repeats both random, in 5 clusters by 'unit'" in said


# equal scores


def test_five_right_answers_leave_room_for_wrong_ones(tmp_path: Path) -> None:
    samples = [Sample(input=f"question {i}", target="yes", id=i) for i in range(5)]
    right = solving(lambda state: setattr(state.output, "completion", "yes"))
    task = Task(dataset=samples, solver=right, scorer=match())
    log = run(budgeted(task, budget="5x", sampler="uniform"), tmp_path)
    rows = rows_of(log, "match")
    assert rows["estimate"] == 1.0
    assert "stderr" not in rows
    assert (rows["lower"], rows["upper"]) == exact_share(5, 5, 0.95)
    assert (rows["repeats_lower"], rows["repeats_upper"]) == exact_share(25, 25, 0.95)
    said = " ".join(entry_of(log, "summary")["summary"]["text"].split())
    assert "Estimate 1.000, 95% interval 0.478 to 1.000" in said


# reducers


@score_reducer(name="broken_reducer")
def broken() -> ScoreReducer:
    def reduce(scores: list[Score]) -> Score:
        raise ValueError(f"one score wanted, {len(scores)} came")

    return reduce


def twenty(reducer: Any, epochs: int = 3) -> Task:
    samples = [Sample(input="q", id=i, metadata={"p": 0.2}) for i in range(20)]
    return Task(
        dataset=samples, solver=solving(lambda state: None), scorer=graded(), epochs=Epochs(epochs, reducer)
    )


@pytest.mark.parametrize(("reducer", "name"), [variant("max", "max"), (at_least(2), "at_least_2")])
def test_a_reducer_is_named_as_another_quantity(
    reducer: Any, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = run(budgeted(twenty(reducer), budget="4x"), tmp_path)
    assert f"the task reduces epochs by {name}; the budget is spent by the mean" in caplog.text
    said = " ".join(entry_of(log, "summary")["summary"]["text"].split())
    assert (
        f"inspect's own rows of graded (accuracy, stderr) are by reducer {name}".casefold() in said.casefold()
    )
    assert "another quantity than the estimate, which is of their mean" in said
    counts = entry_of(log, "per_item")["per_item"]["readings"]
    assert ("depends on how often an item was asked" in said) == (min(counts) < max(counts))
    rows = rows_of(log, "graded")
    expected = core_rows(log, "graded", cluster=None)
    assert {row: rows[row] for row in expected} == pytest.approx(expected, abs=1e-12)


def test_the_mean_of_even_readings_needs_no_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = run(budgeted(twenty("mean", 1), budget="2x", sampler="uniform"), tmp_path)
    assert not entry_of(log, "summary")["summary"]["beside"]
    assert "another quantity" not in caplog.text
    log = run(budgeted(twenty("mean", 1), budget=48), tmp_path)
    summary, counts = (entry_of(log, key)[key] for key in ("summary", "per_item"))
    assert (min(counts["readings"]), max(counts["readings"])) == (2, 3)
    assert "Readings 48 of 20 items, 2 to 3 each, as the budget goes;" in " ".join(summary["text"].split())
    assert not summary["beside"]


def test_counts_that_follow_scores_make_plain_means_biased() -> None:
    given = "graded", ["accuracy"], [], Allocation.PHASED
    items, first = np.repeat(np.arange(3), 2), np.zeros(6)
    for more, said in (([0], False), ([0, 0, 1, 2], True)):
        item, phase = np.r_[items, more], np.r_[first, np.ones(len(more))]
        epoch = [int((item[:k] == item[k]).sum()) for k in range(item.size)]
        table = ItemReadings.of(item, epoch, np.arange(item.size) % 2.0, phase=phase)
        found = said_of_rows(*given, table)
        assert [text.partition(" (")[0] for text in found] == ["Inspect's own row of graded"] * said
        assert all("biased where counts (3 to 4 per item) depend on scores" in text for text in found)


@pytest.mark.parametrize("wanted", ["max", "graded/max", "graded[max]", "graded.at_least_2", "pass_at"])
def test_a_reducer_does_not_decide(wanted: str) -> None:
    with pytest.raises(
        InvalidInputError, match="is a reducer, which makes one score of all readings"
    ) as refused:
        budgeted(twenty([at_least(2), *Epochs(1, "max").reducer]), budget="10x", score=wanted)  # type: ignore[misc]
    assert "Name a scorer (graded)" in str(refused.value)


def test_a_reducer_that_raises_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = run(budgeted(twenty(broken()), budget="3x", sampler="uniform"), tmp_path)
    assert (
        "reducer 'broken_reducer' failed on 3 readings of an item (ValueError: one score wanted"
        in caplog.text
    )
    rows = rows_of(log, "graded")
    expected = core_rows(log, "graded", cluster=None)
    assert {row: rows[row] for row in expected} == pytest.approx(expected, abs=1e-12)
    assert len(log.samples or []) == 60
    assert log.eval.config.epochs_reducer == ["broken_reducer"]
