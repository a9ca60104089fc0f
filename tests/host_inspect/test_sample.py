"""A budget below a reading of every item: a random sample of them, once each."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import mean
from inspect_ai.solver import TaskState
from tests.claims import variant
from tests.host_inspect.race_tasks import written
from tests.host_inspect.worlds import COMMAND, UNWATCHED, entry_of, retried, rows_of, scoring, solving

import warm
from evalbudget.cli.main import cli
from evalbudget.errors import EvalbudgetError
from evalbudget.repeats.estimates import ItemReadings, Strata, mean_of_full_run
from evalbudget_inspect import budgeted

KINDS = ("easy", "easy", "easy", "hard")


def value(number: int) -> float:
    """What item ``number`` scores, whoever asks."""
    return float(number % 4 == 3) * 5.0 + (number * 7919 % 13) / 4.0


graded = scoring("graded", lambda state: value(int(str(state.sample_id))), [mean()])


def numbers(n_items: int = 100, **options: Any) -> Task:
    """Items of two kinds, three to one; hard ones score 5 more."""
    samples = [Sample(id=i, input=f"item {i}", metadata={"kind": KINDS[i % 4]}) for i in range(n_items)]
    options = {"solver": solving(lambda state: None), **options}
    return Task(dataset=MemoryDataset(samples, name="numbers"), scorer=graded(), name="numbers", **options)


def asked(log: EvalLog) -> dict[int, int]:
    """How often each item that was asked was."""
    found: dict[int, int] = {}
    for sample in log.samples or []:
        found[int(sample.id)] = found.get(int(sample.id), 0) + 1
    return found


@pytest.mark.parametrize("max_samples", [variant(1), variant(7), None])
def test_a_budget_below_the_items_reads_a_sample_in_proportion(run: Any, max_samples: int | None) -> None:
    log = run(budgeted(numbers(), budget=40, strata="kind"), max_samples=max_samples)
    assert log.status == "success"
    items = asked(log)
    assert len(items) == sum(items.values()) == 40
    assert sum(i % 4 == 3 for i in items) == 10
    ours = entry_of(log)
    assert (ours["sampler"], ours["strata"], ours["spent"]) == ("sample", "kind", 40)
    text = ours["summary"]["text"]
    assert "40 of 100 items, once each in proportion to kind: a further item tells more than" in text
    assert "one score of each of the 100 items would have averaged" in " ".join(text.split())


def test_the_metrics_are_those_of_the_core(run: Any) -> None:
    log = run(budgeted(numbers(), budget=40, strata="kind"))
    items = sorted(asked(log))
    rows = rows_of(log, "graded")
    table = ItemReadings.of(items, [0] * 40, [value(i) for i in items], n_items=100)
    strata = Strata.of([KINDS[i % 4] for i in range(100)], 100)
    full = mean_of_full_run(table, strata)
    interval = full.confidence_interval()
    assert rows["estimate"] == pytest.approx(full.value, abs=1e-12)
    assert (rows["full_lower"], rows["full_upper"]) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert rows["lower"] < rows["full_lower"] < rows["full_upper"] < rows["upper"]
    assert rows["full_lower"] < sum(map(value, range(100))) / 100 < rows["full_upper"]


def test_between_one_reading_of_each_and_the_default_every_item_is_read(run: Any) -> None:
    items = asked(run(budgeted(numbers(20), budget=25)))
    assert sorted(items.values()) == [1] * 15 + [2] * 5
    assert len(items) == 20


def test_where_the_budget_pays_the_default_decides(run: Any) -> None:
    """Also where that is known only once the host's limit is."""
    log = run(budgeted(numbers(), budget=60), limit=10)
    assert entry_of(log)["sampler"] == "auto"
    assert len(asked(log)) == 10
    assert sum(asked(log).values()) == 60
    assert min(asked(log).values()) >= 2
    assert "full_lower" not in rows_of(log, "graded")


def test_limits_and_named_items_are_the_benchmark(run: Any) -> None:
    log = run(budgeted(numbers(), budget=20), limit=30)
    assert len(asked(log)) == 20
    assert max(asked(log)) < 30
    chosen = [str(i) for i in range(50, 90)]
    log = run(budgeted(numbers(), budget=20), sample_id=chosen)
    assert len(asked(log)) == 20
    assert set(asked(log)) <= set(map(int, chosen))


def test_items_that_fail_are_replaced_by_others_of_their_kind(run: Any) -> None:
    def attempt(state: TaskState) -> None:
        if int(str(state.sample_id)) % 5 == 0:
            raise RuntimeError("never")

    log = run(
        budgeted(numbers(solver=solving(attempt)), budget=90, strata="kind", seed=3), fail_on_error=False
    )
    ours = entry_of(log)
    assert ours["spent"] == 90
    read = [int(s.id) for s in log.samples or [] if s.scores]
    assert len(set(read)) == len(read) == ours["readings"]
    assert not any(i % 5 == 0 for i in read)
    assert abs(sum(i % 4 == 3 for i in read) - len(read) / 4) <= 2
    assert ours["failed"] == 90 - len(read)


def test_once_all_that_can_be_scored_was_read_no_larger_run_is_spoken_of(run: Any) -> None:
    def attempt(state: TaskState) -> None:
        if int(str(state.sample_id)) % 5 == 0:
            raise RuntimeError("never")

    log = run(budgeted(numbers(40, solver=solving(attempt)), budget=80), fail_on_error=False)
    text = " ".join(entry_of(log)["summary"]["text"].split())
    assert "full_lower" not in rows_of(log, "graded")
    assert "would have averaged" not in text
    assert "would halve that interval" not in text
    assert "8 items of 40 without a score" in text


TASK_FILE = """\
import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import solver

@solver
def slow(seconds):
    async def solve(state, generate):
        await anyio.sleep(seconds)
        if state.metadata["kind"] == "broken":
            raise RuntimeError("never")
        return state
    return solve

@scorer(metrics=[mean()])
def graded():
    async def score(state, target):
        return Score(value=float(state.sample_id) % 7)
    return score

@task
def numbers(seconds: float = 0.0):
    kinds = ["easy", "easy", "easy", "hard", "broken"]
    samples = [Sample(id=i, input=f"item {i}", metadata={"kind": kinds[i % 5]}) for i in range(100)]
    return Task(dataset=MemoryDataset(samples), solver=slow(seconds), scorer=graded(), name="numbers")
"""


def _command(file: Path, folder: Path, *arguments: str) -> list[str]:
    flags = ["--budget", "50", "--strata", "kind", "--model", "mockllm/model", "--no-fail-on-error"]
    quiet = ["--log-dir", str(folder), "--display", "none", "--log-buffer", "1", "--max-samples", "4"]
    return [*COMMAND, "eval", str(file), *flags, *arguments, *quiet]


@pytest.mark.variant
def test_a_killed_run_goes_on_with_the_same_sample_although_items_fail(tmp_path: Path) -> None:
    file = tmp_path / "numbers.py"
    file.write_text(TASK_FILE)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = CliRunner(env=UNWATCHED).invoke(cli, _command(file, whole)[3:])
    assert done.exit_code == 0, done.output
    process = warm.Popen(
        _command(file, killed, "-T", "seconds=0.1"), host="inspect", stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not any(written(log) >= 16 for log in killed.glob("*.eval")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    (log,) = killed.glob("*.eval")
    again = retried(read_eval_log(str(log)), log_dir=str(killed))
    (other,) = whole.glob("*.eval")
    before = read_eval_log(str(other))
    read = [{int(s.id) for s in found.samples or [] if s.scores} for found in (before, again)]
    # what the kill cut off is paid for, and eval-retry runs again what failed: so the last ones are not read
    assert read[1] <= read[0]
    assert len(read[1]) > 18
    text = " ".join(entry_of(before)["summary"]["text"].split())
    assert f"{len(read[0])} of 100 items, once each in proportion to kind" in text
    assert entry_of(before)["spent"] == entry_of(again)["spent"] == 50
    assert len(read[0]) > 22  # each item that never scores was asked three times, and they are a fifth
    assert abs(sum(i % 5 == 3 for i in read[0]) - len(read[0]) / 4) <= 2


def test_judging_may_be_what_is_sampled(make_task: Any, run: Any, cells: Any) -> None:
    log = run(budgeted(make_task(12), budget=7, repeat="judge"))
    assert len(set(cells(log))) == len({item for item, _ in cells(log)}) == 7


def test_a_budget_of_one_reads_one_item(run: Any) -> None:
    log = run(budgeted(numbers(), budget=1))
    assert log.status == "success"
    assert len(asked(log)) == 1
    assert set(rows_of(log, "graded")) & {"estimate", "lower", "full_lower"} == {"estimate"}
    assert "an interval needs at least 3 items" in " ".join(entry_of(log)["summary"]["text"].split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 20, "strata": "subject"}, "no item has a field 'subject': they have kind"),
        ({"budget": 20, "strata": "number"}, "each of the 100 items has a value of its own"),
        ({"budget": 2000, "strata": "kind", "sampler": "uniform"}, "--sampler sample, or drop --strata"),
        ({"budget": 20, "sampler": "sample", "judges": "simulated/a,simulated/b"}, "drop --judges"),
        ({"budget": 20, "sampler": "sample", "until": "item±1", "score_range": "0..9"}, "--until"),
    ],
)
def test_bad_input_names_the_remedy(options: dict[str, Any], said: str) -> None:
    task = numbers()
    for sample in task.dataset:
        sample.metadata = (
            {**(sample.metadata or {}), "number": sample.id} if "number" in str(options) else sample.metadata
        )
    with pytest.raises(EvalbudgetError, match=said):
        budgeted(task, **options)


@pytest.mark.parametrize("options", [{"sampler": "auto"}, {"sampler": "uniform"}, {"objective": "mean"}])
def test_a_sampler_that_was_named_stays_refused(run: Any, options: dict[str, Any]) -> None:
    log = run(budgeted(numbers(), budget=40, **options))
    assert log.status == "error"
    assert "--sampler sample" in log.error.message


def test_epochs_and_a_sample_are_refused_together(run: Any) -> None:
    log = run(budgeted(numbers(), budget=40), epochs=2)
    assert log.status == "error"
    assert "add --epochs 1" in log.error.message
