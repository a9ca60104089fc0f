"""Every answer counts once, as it was scored last: copies, retries, invalid samples, caches, JSON logs."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inspect_ai import Task, eval_retry, score, task
from inspect_ai import eval as host_eval
from inspect_ai.log import (
    EvalLog,
    EvalSampleSummary,
    ProvenanceData,
    invalidate_samples,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.model import CachePolicy, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import accuracy, includes, match
from inspect_ai.solver import generate
from tests.host_inspect.log_worlds import (
    NOW,
    logged,
    means,
    notes,
    number,
    path_of,
    questions,
    quiz,
    read,
    rewritten,
)
from tests.host_inspect.race_tasks import QUIET
from tests.host_inspect.worlds import entry_of, scoring

from evalbudget import Allocation
from evalbudget.hooks._plugins import plugins
from evalbudget.report import report
from evalbudget_inspect import budgeted, race
from evalbudget_inspect.host.not_run import NOT_BEGUN, refuse
from evalbudget_inspect.reading import counted
from evalbudget_inspect.reading.logs import Log


def scored_again(log: EvalLog, name: str, *scorers: Any, action: Any = "append") -> Path:
    """A log that the host scored again, in the file that it would write."""
    path = path_of(log).with_name(path_of(log).name.replace(".eval", name))
    write_eval_log(score(log, list(scorers), action=action, display="none"), str(path))
    return path


# scored again


def test_the_last_scoring_of_a_log_counts(tmp_path: Path) -> None:
    odd = quiz(20, lambda state: number(state) % 4 == 1)
    log = logged(odd, tmp_path, score=False)
    scored_again(log, "-scored.eval", match())
    assert means(read(tmp_path)) == {"match": 0.25}
    always = scoring("always", lambda state: "C", [accuracy()])
    scored_again(log, "-scored-1.eval", always(), action="overwrite")
    found = read(tmp_path)
    assert means(found) == {"always": 1.0}
    assert found.counts.sum() == 20
    assert "40 samples" in notes(found)
    assert "of a retry or a later scoring: they count once" in notes(found)


def test_a_later_scorer_that_was_added_stands_beside_the_first(tmp_path: Path) -> None:
    log = logged(quiz(20, lambda state: number(state) % 4 == 1), tmp_path)
    scored_again(log, "-scored.eval", includes())
    assert means(read(tmp_path)) == {"match": 0.25, "includes": 0.25}


def test_how_samples_were_bought_outlives_another_scoring(tmp_path: Path) -> None:
    """Scores that are overwritten take our entries in the results with them."""

    def right(state: Any) -> bool:
        return random.Random(f"{state.sample_id}-{state.epoch}").random() < number(state) / 15

    log = logged(budgeted(quiz(15, right), budget=60), tmp_path)
    before = read(tmp_path)
    again = scoring("again", lambda s: "C" if s.output.completion == "yes" else "I", [accuracy()])
    after = read(scored_again(log, "-scored.eval", again(), action="overwrite"))
    assert after.raters == ("again",)
    assert before.purchases[0].allocation is Allocation.PHASED
    assert after.purchases == before.purchases
    (old,), (new,) = (report(one)["leaderboard"].rows for one in (before, after))
    assert (new.estimate, new.standard_error) == pytest.approx((old.estimate, old.standard_error), abs=1e-12)
    # an older log says only that a sampler chose
    log.plan.steps[0].params.clear()
    for sample in log.samples:
        del sample.metadata["evalbudget_share"]
    older = read(scored_again(log, "-older.eval", again(), action="overwrite"))
    assert (older.purchases[0].allocation, older.purchases[0].fixed_repeats) == (Allocation.ADAPTIVE, 1)


def test_a_race_is_one_after_another_scoring(tmp_path: Path) -> None:
    models = [
        get_model(f"simulated/{name}", bernoulli=True, mean=mean) for name, mean in (("a", 0.2), ("b", 0.9))
    ]

    made = race(Task(dataset=questions(range(8)), solver=generate(), scorer=match(), name="q"), budget=10)
    log = host_eval(made, model=models, log_dir=str(tmp_path), **QUIET)[0]
    path = scored_again(log, "-scored.eval", includes(), action="overwrite")
    assert read(path).purchases[0].allocation is Allocation.ADAPTIVE


# run again


@task
def changing() -> Task:
    """The host reads this file again when it retries a log."""
    return quiz(30, lambda state: NOW["right"](number(state)), name="changing")


def test_invalid_samples_are_left_out_until_a_retry_has_them(tmp_path: Path) -> None:
    NOW["right"] = lambda n: n % 2 == 1
    log = logged(changing(), tmp_path)
    wrong = [sample.uuid for sample in log.samples if int(str(sample.id)) < 10]
    write_eval_log(invalidate_samples(log, wrong, ProvenanceData(author="me", reason="leaked")), log.location)
    found = read(tmp_path)
    assert means(found) == {"match": 0.5}
    assert len(found.items) == 20
    assert "10 of 30 samples of" in notes(found)
    assert "were marked invalid, and are left out" in notes(found)
    NOW["right"] = lambda n: n % 2 == 1 and n >= 10
    (again,) = eval_retry(read_eval_log(log.location), log_dir=str(tmp_path), **QUIET)
    assert again.status == "success"
    found = read(tmp_path)
    assert means(found) == pytest.approx({"match": 1 / 3})
    assert found.counts.sum() == 30


def _failed_and_retried(folder: Path) -> list[EvalLog]:
    def right(n: int) -> bool:
        if n >= 20:
            raise RuntimeError("server down")
        return n % 3 == 0

    NOW["right"] = right
    failed = logged(changing(), folder, max_samples=1, fail_on_error=True)
    NOW["right"] = lambda n: n % 3 == 0
    (again,) = eval_retry(failed, log_dir=str(folder), **QUIET)
    assert (failed.status, again.status) == ("error", "success")
    return [failed, again]


def test_a_retry_counts_once_with_and_without_ids_of_samples(tmp_path: Path) -> None:
    logs = _failed_and_retried(tmp_path / "new")
    for log in logs:
        old = [sample.model_copy(update={"uuid": None}) for sample in log.samples]
        (tmp_path / "old").mkdir(exist_ok=True)
        rewritten(log, tmp_path / "old" / path_of(log).name, samples=old)
    for folder in ("new", "old"):
        found = read(tmp_path / folder)
        assert found.counts.sum() == 30
        assert means(found) == pytest.approx({"match": 1 / 3})
        assert not found.failed.any()
        assert found.declared.complete == (True,)
        assert "ended with an error" not in notes(found)
        assert found.purchases is not None
        assert found.purchases[0].cost == 31  # one of them twice


def test_only_logs_that_repeat_others_are_searched_for_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def content(log: Log) -> frozenset[str]:
        searched.append(log.name)
        return content_of(log)

    content_of = counted._content
    monkeypatch.setattr(counted, "_content", content)
    logs = [logged(quiz(3, bool), tmp_path) for _ in range(3)]
    assert read(tmp_path).counts.sum() == 9
    assert not searched
    shutil.copy(path_of(logs[1]), tmp_path / "copy.eval")
    assert read(tmp_path).counts.sum() == 9
    assert sorted(searched) == sorted({path_of(logs[1]).name, "copy.eval"})


def test_a_copy_of_a_log_counts_once(tmp_path: Path) -> None:
    log = logged(quiz(5, bool), tmp_path)
    shutil.copy(path_of(log), tmp_path / "copy.eval")
    write_eval_log(read_eval_log(log.location), str(tmp_path / "again.json"))
    found = read(tmp_path)
    assert found.counts.sum() == 5
    assert notes(found).count("is a copy of another log: its samples count once.") == 2
    assert "later scoring" not in notes(found)


# JSON


def test_logs_in_json_are_read_beside_others(tmp_path: Path) -> None:
    first = logged(budgeted(quiz(10, bool), budget=30, sampler="uniform"), tmp_path, log_format="json")
    assert path_of(first).suffix == ".json"
    assert read(path_of(first)).counts.sum() == 30
    logged(quiz(10, bool), tmp_path)
    for name, content in (
        ("logs.json", {path_of(first).name: {"version": 2, "status": "success", "eval": {}}}),
        ("results.json", {"results": {}}),
        ("list.json", [1, 2]),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    found = plugins().open_scores(tmp_path)
    assert found.counts.sum() == 40
    assert means(found) == {"match": 1.0}


def test_samples_of_a_json_log_that_are_invalid_are_left_out(tmp_path: Path) -> None:
    log = logged(quiz(4, bool), tmp_path, log_format="json")
    wrong = [log.samples[0].uuid]
    write_eval_log(invalidate_samples(log, wrong, ProvenanceData(author="me", reason="leaked")), log.location)
    assert read(tmp_path).counts.sum() == 3


# caches


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))


def _answering(cache: bool | CachePolicy) -> Task:
    return Task(dataset=questions(range(4)), solver=generate(cache=cache), scorer=match(), name="q")


def _provider() -> Any:
    outputs = [ModelOutput.from_content("mockllm/model", "yes" if n % 3 else "no") for n in range(40)]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return get_model("mockllm/model", custom_outputs=outputs, memoize=False)


@pytest.mark.usefixtures("cache")
def test_answers_out_of_a_cache_are_no_new_readings(tmp_path: Path) -> None:
    runs = [
        logged(
            budgeted(_answering(cache=True), budget=12, sampler="uniform"),
            tmp_path / "logs",
            model=_provider(),
        )
        for _ in range(2)
    ]
    assert runs[1].stats.model_usage == {}
    said = [entry_of(log)["summary"]["text"] for log in runs]
    assert "Cached" not in said[0]
    assert "Cached    12 answers out of the cache: given before, and no new readings" in said[1]
    found = read(tmp_path / "logs")
    assert found.models == ("mockllm/model",)
    assert found.counts.sum() == 12
    assert "12 answers of mockllm/model came out of a cache and are answers that are here" in notes(found)
    alone = read(path_of(runs[1]))
    assert alone.counts.sum() == 12
    assert "12 answers of mockllm/model came out of a cache: a run before asked for them" in notes(alone)


@pytest.mark.usefixtures("cache")
def test_epochs_that_share_an_answer_are_one_reading(tmp_path: Path) -> None:
    logged(_answering(CachePolicy(per_epoch=False)), tmp_path / "logs", model=_provider(), epochs=3)
    found = read(tmp_path / "logs")
    assert found.counts.max() == 1
    assert "8 answers of mockllm/model came out of a cache" in notes(found)


def test_answers_of_nobody_are_no_copies(tmp_path: Path) -> None:
    """The host counts no usage where a solver answers by itself."""
    logged(quiz(4, bool, epochs=3), tmp_path)
    assert read(tmp_path).counts.sum() == 12


# attempts


def attempt(name: str, status: str, **sample: Any) -> Log:
    """An attempt at a task with one sample."""
    summary = EvalSampleSummary(id="a", epoch=1, input="?", target="!", **sample)
    header: Any = SimpleNamespace(eval=SimpleNamespace(task_id="t"), status=status, invalidated=False)
    return Log(Path(name), header, [], [], [summary])


@pytest.mark.parametrize("same", [{"uuid": "u"}, {"uuid": "v"}])
@pytest.mark.parametrize("waited", [True, False])
def test_a_try_that_waited_leaves_the_one_before_it_paid(same: dict[str, str], waited: bool) -> None:
    metadata: dict[str, Any] = {}
    if waited:
        refuse(metadata, NOT_BEGUN)
    first = attempt("1.eval", "error", uuid="u", error="boom")
    second = attempt("2.eval", "error", error="CancelledError()", retries=1, metadata=metadata, **same)
    found, _ = counted.count_once([first, second])
    assert [(each.file.name, len(each.paid)) for each in found] == [("1.eval" if waited else "2.eval", 1)]
