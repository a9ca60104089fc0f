"""Wrapper, registry entry and flag: one allocation, one result; and logs read back as recorded scores."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import read_eval_log
from inspect_ai.model import get_model
from tests.host_inspect.worlds import COMMAND, UNWATCHED

import warm
from evalbudget import Design
from evalbudget.backtest import RecordedScores, backtest
from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget_inspect import budgeted
from evalbudget_inspect.demo.story_rating import story_rating
from evalbudget_inspect.repeats.config import Config


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The same command in a process that need not import the host first."""
    return warm.run([*COMMAND, *arguments], host="inspect")


def _here(*arguments: str) -> Result:
    """The same command without the seconds that a process of its own takes to start."""
    return CliRunner(env=UNWATCHED).invoke(cli, arguments)


def test_three_ways_in_give_the_same_run(
    task_file: Path, run: Any, tmp_path: Path, readings: Any, metrics: Any
) -> None:
    wrapped = run(budgeted(story_rating(6), budget=24), max_samples=1)
    entry = run(
        "evalbudget_inspect/budgeted",
        task_args={"task": str(task_file), "budget": 24, "sampler": "eb-bernstein"},
        max_samples=1,
    )
    models = ["--model", "simulated/writer", "--model-role", "grader=simulated/judge"]
    folder = tmp_path / "flag"
    options = ["--max-samples", "1", "--log-dir", str(folder), "--display", "none", "--no-log-realtime"]
    done = _command("eval", str(task_file), "--budget", "24", *models, *options)
    assert done.returncode == 0, done.stderr
    assert "+ inspect eval evalbudget_inspect/budgeted" in done.stderr
    flag = read_eval_log(str(next(folder.glob("*.eval"))))
    assert sorted(readings(wrapped)) == sorted(readings(entry)) == sorted(readings(flag))
    assert metrics(wrapped) == metrics(entry) == metrics(flag)
    assert entry.eval.task == flag.eval.task == "rating"
    assert entry.eval.dataset.name == flag.eval.dataset.name == wrapped.eval.dataset.name == "stories"


def test_bad_input_exits_with_2_and_leaves_nothing(task_file: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "none")
    refused = _command("eval", str(task_file), "--budget", "-3", "--log-dir", folder)
    assert refused.returncode == 2
    assert "above zero" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not Path(folder).exists()


def test_detached(task_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "detached"
    models = ["--model", "simulated/writer", "--model-role", "grader=simulated/judge"]
    options = ["--log-dir", str(folder), "--detach", "--no-log-realtime"]
    done = _command("eval", str(task_file), "--budget", "18", *models, *options)
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        for path in folder.glob("*.eval"):
            try:
                log = read_eval_log(str(path))
            except ValueError:
                continue  # being written at this moment
            if log.status == "success":
                assert len(log.samples or []) == 18
                return
        time.sleep(0.3)
    raise AssertionError(f"no finished log in {folder}: {done.stdout} {done.stderr}")


def test_judges_by_flag(task_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "judged"
    names = ["simulated/a", "simulated/b", "simulated/c"]
    prices = ["--judge-prices", "simulated/a=1,simulated/b=2,simulated/c=3"]
    options = ["--model", "simulated/writer", "--log-dir", str(folder), "--display", "none"]
    judges = ["--judges", ",".join(names), "--rotation", "cyclic"]
    done = _here("inspect", "eval", str(task_file), "--budget", "3x", *judges, *prices, *options)
    assert done.exit_code == 0, done.output
    log = read_eval_log(str(next(folder.glob("*.eval"))))
    assert log.results is not None
    ours = (log.results.scores[0].metadata or {})["evalbudget"]
    assert {name: entry["calls"] for name, entry in ours["panel"]["per_judge"].items()} == dict.fromkeys(
        names, 6
    )
    assert ours["panel"]["per_judge"]["simulated/c"]["price"] == 18
    planned = _here("plan", str(folder), "--half-width", "1.5")
    assert planned.exit_code == 0, planned.output
    assert "rotated" in planned.output
    refused = _here("inspect", "eval", str(task_file), "--budget", "3x", "--judges", "a/x,a/x")
    assert refused.exit_code == 2
    assert "listed more than once" in refused.output


# logs as recorded scores


def test_a_log_and_a_folder_can_be_backtested(run: Any, tmp_path: Path, readings: Any) -> None:
    folder = tmp_path / "logs"
    log = run(budgeted(story_rating(6), budget=30))
    scores = plugins().open_scores(Path(log.location.removeprefix("file://")))
    assert scores.models == ("simulated/writer",)
    assert scores.raters == ("judge_rating",)
    assert int(np.isfinite(scores.scores).sum()) == 30
    for item, name in enumerate(scores.items):
        recorded = np.sort(scores.scores[0, item, 0][np.isfinite(scores.scores[0, item, 0])])
        assert recorded == pytest.approx(sorted(v for i, _, v in readings(log) if i == name), abs=1e-5)
    run(budgeted(story_rating(6), budget=30))
    assert int(np.isfinite(plugins().open_scores(folder).scores).sum()) == 60
    rows = backtest(plugins().open_scores(folder), samplers=["uniform"], budgets=["5x"], seeds=2, workers=1)
    assert rows.rows[0].readings == 30


def test_logs_that_cannot_be_read_are_named(run: Any, make_task: Any, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    whole = Path(run(budgeted(story_rating(3), budget=30)).location.removeprefix("file://"))
    truncated = tmp_path / "truncated.eval"
    truncated.write_bytes(whole.read_bytes()[:900])
    with pytest.raises(InvalidInputError, match=r"truncated\.eval is not a readable inspect log"):
        plugins().open_scores(truncated)
    run(make_task(2))
    with pytest.raises(InvalidInputError, match="logs of 2 tasks"):
        plugins().open_scores(folder)
    bare = run(make_task(2), score=False, log_dir=str(tmp_path / "unscored"))
    with pytest.raises(InvalidInputError, match="holds no numeric score"):
        plugins().open_scores(Path(bare.location.removeprefix("file://")))


# the recorded judge


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, RecordedScores]:
    rng = np.random.default_rng(11)
    spread = np.where(np.arange(8) % 3 == 0, 4.0, 0.4)[:, None]
    scores = np.round(5.0 + rng.normal(size=(8, 12)) * spread, 2)[None, :, None, :]
    file = tmp_path / "scores.npz"
    made = RecordedScores(scores, ("m",), tuple(f"item-{i}" for i in range(8)), ("anna",))
    made.save(file)
    return file, RecordedScores.load(file)


def test_the_recorded_judge_against_the_backtest(
    make_task: Any, run: Any, readings: Any, diagnostics: Any, recorded: tuple[Path, RecordedScores]
) -> None:
    file, scores = recorded
    anna = get_model("recorded/anna", file=str(file), seed=3, template="RATING: {value}", memoize=False)
    log = run(budgeted(make_task(), budget=56, seed=3), model_roles={"grader": anna}, max_samples=1)
    assert log.status == "success"
    pool = Pool.of(scores, 0, 0, min_repeats=1)
    draws = Draws(pool, 3)
    told = readings(log)
    names, epochs, values = zip(*told, strict=True)
    recorded_ones = draws.of(np.array([pool.items.index(name) for name in names]), np.array(epochs) - 1)
    assert values == pytest.approx(recorded_ones)

    # the same sampler, but for the host's order of the first epoch: dataset order, where a backtest's sampler
    # starts in an order of its own. What is learned does not depend on it, so the counts agree.
    sampler = Config.of(budget=56, seed=3).make_sampler(Design(items=pool.items), budget=56)
    book = ArrayBook(sampler)
    while book.n < 56 and (asked := book.ask(56 - book.n)) is not None:
        book.tell(draws.of(*asked))
    assert diagnostics(log)["per_item"]["readings"] == book.bought().counts.tolist()
    means = [float(np.mean([v for i, _, v in told if i == name])) for name in pool.items]
    assert diagnostics(log)["per_item"]["estimate"] == pytest.approx(means, abs=1e-5)
