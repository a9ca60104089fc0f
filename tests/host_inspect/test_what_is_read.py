"""What a person reads of a budgeted run: on the terminal, in the log's headline, in the viewer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog, HeadlineMetric, headline_metric, read_eval_log
from inspect_ai.scorer import Scorer, accuracy, mean, stderr
from inspect_ai.solver import TaskState
from inspect_ai.viewer import TaskSamplesView, ViewerConfig
from tests.host_inspect.worlds import COMMAND, entry_of, rows_of, scoring

import warm
from evalbudget.cli.main import cli
from evalbudget_inspect import budgeted
from evalbudget_inspect.reading.open_logs import open_scores

MODELS = ["--model", "simulated/writer", "--model-role", "grader=simulated/judge"]


def _eval(task: Path | str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "INSPECT_DISPLAY"} | {"COLUMNS": "80"}
    flags = ["--log-dir", str(folder), "--no-log-realtime"]
    command = [*COMMAND, "eval", str(task), *MODELS, *flags, *arguments]
    return warm.run(command, host="inspect", env=environment)


def always(value: Any = "C") -> Scorer:
    return scoring("always", lambda state: value, [accuracy(), stderr()])()


def _rubric(state: TaskState) -> dict[str, int]:
    n = len(str(state.sample_id)) + int(str(state.sample_id)[-1])
    return {"depth": (n * state.epoch) % 5, "style": (n + state.epoch) % 4}


rubric = scoring("rubric", _rubric, {"depth": [mean(), stderr()], "style": [mean()]})
ones = scoring("ones", lambda state: 1.0)


def _ours(log: EvalLog) -> dict[str, Any]:
    return entry_of(log, "summary")


def test_the_terminal_of_a_run(task_file: Path, tmp_path: Path) -> None:
    """True progress, and a summary after the host's own table; the log holds the same words."""
    done = _eval(task_file, tmp_path / "logs", "--budget", "24", "--display", "plain")
    assert done.returncode == 0, done.stderr
    steps = [(int(n), int(of)) for n, of in re.findall(r"Steps: +(\d+)/(\d+)", done.stdout)]
    samples = [(int(n), int(of)) for n, of in re.findall(r"Samples: +(\d+)/ *(\d+)", done.stdout)]
    assert steps
    assert steps[-1] == (24, 24)  # samples are shown every few seconds only
    assert {of for _, of in steps} == {of for _, of in samples} == {24}
    assert " estimate: " in done.stdout
    log = read_eval_log(str(next((tmp_path / "logs").glob("*.eval"))))
    told = _ours(log)["summary"]
    assert done.stdout.rstrip().endswith(told["text"])
    assert max(map(len, told["text"].splitlines())) <= 80
    rows = rows_of(log, "judge_rating")
    text = " ".join(told["text"].split())
    ends = f"{rows['lower']:.2f} to {rows['upper']:.2f}"
    assert f"Estimate {rows['estimate']:.2f}, 95% interval {ends}: items and repeats both random." in text
    assert "Spent 24 of 24 scores" in text
    assert "Readings 24 of 6 items" in text
    assert "a second judge (--judges)" in text or "a larger budget" in text
    assert json.loads(json.dumps(told))["rows"]["readings"] == 24
    table = done.stdout[done.stdout.index("total time") : done.stdout.index("Log:")]
    assert "24.000" not in table
    assert "6.000" not in table


def test_progress_of_a_run_in_money_is_that_of_its_money(task_file: Path, tmp_path: Path) -> None:
    prices = tmp_path / "p.yaml"
    prices.write_text("simulated/*: {call: 0.001, max_output: 60}\n")
    paid = ["--budget", "$0.05", "--prices", str(prices), "--sampler", "uniform"]
    done = _eval(task_file, tmp_path / "logs", *paid, "--display", "plain")
    assert done.returncode == 0, done.stderr
    steps = [(int(n), int(of)) for n, of in re.findall(r"Steps: +(\d+)/(\d+)", done.stdout)]
    assert steps
    assert steps[-1] == (25, 25)  # of two calls each
    assert all(n <= of for n, of in steps)


def test_no_summary_where_no_display_is_wanted(task_file: Path, tmp_path: Path) -> None:
    folder = ["--log-dir", str(tmp_path / "logs"), "--no-log-realtime"]
    command = ["inspect", "eval", str(task_file), *MODELS, *folder, "--budget", "30", "--display", "none"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert "+ inspect eval" in done.output
    assert "Estimate" not in done.output
    assert (
        "Estimate" in _ours(read_eval_log(str(next((tmp_path / "logs").glob("*.eval")))))["summary"]["text"]
    )


def test_the_estimate_is_the_headline(make_task: Any, run: Any, tmp_path: Path) -> None:
    from inspect_ai.analysis import evals_df  # takes a while, and only here

    log = run(budgeted(make_task(6), budget=40))
    told = rows_of(log, "judge_rating")
    found = headline_metric(log)
    assert found is not None
    assert (found.score.scorer, found.name) == ("judge_rating", "estimate")
    assert found.metric.value == told["estimate"]
    table = evals_df(str(tmp_path / "logs"))
    assert table["score_headline_value"].tolist() == [pytest.approx(told["estimate"])]
    assert table["score_headline_metric"].tolist() == ["estimate"]


def test_a_headline_and_a_view_of_the_users_own_stay(make_task: Any, run: Any) -> None:
    view = ViewerConfig(task_samples_view=TaskSamplesView(name="mine"))
    task = make_task(4, headline_metric=HeadlineMetric(metric="mean"), viewer=view)
    log = run(budgeted(task, budget=20))
    assert log.results.headline.metric == "mean"
    assert log.eval.viewer.task_samples_view.name == "mine"


def test_the_viewer_shows_epochs_and_says_what_was_budgeted(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(4), budget=20), tags=["mine"])
    assert log.eval.tags == ["mine", "budgeted: 4 items, up to 20 samples"]
    assert "epoch" in [c.id for c in log.eval.viewer.task_samples_view.columns if c.visible]


def test_rows_of_dict_scores_have_short_names(make_task: Any, run: Any) -> None:
    """The host names them by metric; four tables of its terminal share 80 columns."""
    log = run(budgeted(make_task(6, scorer=rubric()), budget=40, score="rubric.depth"))
    for name in ("depth", "style"):
        assert rows_of(log, name).keys() == {"eb/estimate", "eb/stderr", "eb/lower", "eb/upper"}
    found = headline_metric(log)
    assert found is not None
    assert (found.score.name, found.name) == ("depth", "eb/estimate")
    assert found.metric.value == pytest.approx(_ours(log)["summary"]["rows"]["estimate"])


def test_a_process_that_knows_nothing_of_us_can_compute_them_again(
    make_task: Any, run: Any, tmp_path: Path
) -> None:
    log = run(budgeted(make_task(6, scorer=rubric()), budget=40, score="rubric.depth"))
    script = (
        "import sys; from inspect_ai.log import read_eval_log, recompute_metrics\n"
        "log = read_eval_log(sys.argv[1]); recompute_metrics(log)\n"
        "print([s.metrics['eb/upper'].value for s in log.results.scores if 'eb/upper' in s.metrics])"
    )
    done = warm.run([sys.executable, "-c", script, log.location], host="inspect alone")
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout.splitlines()[-1])
    assert again == pytest.approx([rows_of(log, name)["eb/upper"] for name in ("depth", "style")])


@pytest.mark.parametrize(
    ("items", "why"), [(1, "needs at least 3 items, and 1 item was"), (2, "items, and 2 items were scored")]
)
def test_one_and_two_items(make_task: Any, run: Any, items: int, why: str) -> None:
    log = run(budgeted(make_task(items), budget=20))
    assert log.status == "success"
    assert rows_of(log, "judge_rating").keys() == {"estimate", "repeats_stderr"}
    told = _ours(log)["summary"]
    assert why in told["no_interval"]
    assert why in " ".join(told["text"].split())


def test_all_scores_equal(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(5, scorer=ones()), budget=30))
    assert rows_of(log, "ones") == {"estimate": 1.0}
    assert "all items have the same score" in _ours(log)["summary"]["no_interval"]
    graded = rows_of(run(budgeted(make_task(5, scorer=always()), budget=30)), "always")
    assert graded["lower"] < graded["estimate"] == graded["upper"] == 1.0
    assert graded["repeats_lower"] < graded["repeats_upper"] == 1.0
    assert "stderr" not in graded


@pytest.mark.parametrize("value", ["C", True])
def test_scores_of_a_known_kind_give_every_item_a_guaranteed_interval(
    make_task: Any, run: Any, value: Any
) -> None:
    columns = _ours(run(budgeted(make_task(4, scorer=always(value)), budget=20)))["per_item"]
    ends = zip(columns["anytime_lower"], columns["anytime_upper"], strict=True)
    assert all(0.0 <= low < high == 1.0 for low, high in ends)


@pytest.mark.filterwarnings("ignore:overflow")  # of the host's own mean and its error
def test_scores_too_large_to_be_computed_with_are_failures(make_task: Any, run: Any) -> None:
    scorer = scoring("huge", lambda state: 1e308 if state.epoch == 2 else float(state.epoch % 2))()
    log = run(budgeted(make_task(4, scorer=scorer), budget=24))
    assert 0.0 <= rows_of(log, "huge")["lower"] < rows_of(log, "huge")["upper"] <= 1.0
    assert _ours(log)["failures"] == {"score beyond 1e+30": 4}
    found = open_scores(Path(log.location.removeprefix("file://")))
    assert found is not None
    assert np.nanmax(found.scores) == 1.0


def test_scores_that_leave_the_declared_range(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(6), budget=60, score_range="4..6"))
    rows = rows_of(log, "judge_rating")
    assert all(4.0 <= rows[end] <= 6.0 for end in ("lower", "upper", "repeats_lower", "repeats_upper"))
    told = _ours(log)
    outside = told["failures"]["score outside the declared range"]
    text = " ".join(told["summary"]["text"].split())
    assert f"Failed {outside} calls: score outside the declared range" in text
    assert f"{outside} of 60 calls gave no score; find out why first" in text


def test_nothing_scored(make_task: Any, run: Any) -> None:
    log = run(budgeted(make_task(3), budget=12), judge={"unparsed": 1.0})
    assert log.status == "success"
    assert _ours(log)["summary"]["text"].splitlines()[1] == "No estimate: nothing was scored."
