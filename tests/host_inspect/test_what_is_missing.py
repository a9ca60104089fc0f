"""Answers without a score are counted, and logs that are not whole say so."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai import eval as host_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import get_model
from inspect_ai.scorer import Metric, SampleScore, Score, accuracy, grouped, mean, metric, stderr
from tests.claims import variant
from tests.host_inspect.log_worlds import (
    logged,
    means,
    notes,
    number,
    path_of,
    quiz,
    read,
    rewritten,
)
from tests.host_inspect.race_tasks import QUIET, board
from tests.host_inspect.worlds import entry_of, rows_of, scoring

from evalbudget.backtest import RecordedScores
from evalbudget.cli.main import cli
from evalbudget.comparisons import Outcome, compare
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.report import report
from evalbudget_inspect import budgeted, race
from evalbudget_inspect.demo.story_rating import story_rating


def failing(*numbers: int) -> Any:
    """Right where the number is even; of these, the server is away."""

    def right(state: Any) -> bool:
        if number(state) in numbers:
            raise RuntimeError("the server went away")
        return number(state) % 2 == 0

    return right


def missing(recorded: RecordedScores) -> int:
    """Readings without a score."""
    assert recorded.failed is not None
    return int(recorded.failed.sum())


def test_a_sample_with_an_error_and_a_score_counts_as_the_host_counts_it(tmp_path: Path) -> None:
    made = quiz(20, failing(*range(0, 20, 5), *range(1, 20, 5)))
    log = logged(made, tmp_path, fail_on_error=False, score_on_error=True)
    found = read(tmp_path)
    assert means(found)["match"] == log.results.scores[0].metrics["accuracy"].value
    assert found.counts.sum() == 20
    assert missing(found) == 0


def test_a_budgeted_run_counts_it_too(tmp_path: Path) -> None:
    made = budgeted(quiz(20, failing(*range(0, 20, 5), *range(1, 20, 5))), budget=60)
    log = logged(made, tmp_path, fail_on_error=False, score_on_error=True)
    told = rows_of(log, "match")["estimate"]
    assert told == pytest.approx(log.results.scores[0].metrics["accuracy"].value) == pytest.approx(0.3)
    summary = entry_of(log, "summary")["summary"]
    assert summary["rows"]["estimate"] == pytest.approx(told)
    (row,) = report(read(tmp_path))["leaderboard"].rows
    assert row.estimate == pytest.approx(told)


def test_a_race_counts_it_too(tmp_path: Path) -> None:
    models = [get_model("mockllm/a"), get_model("mockllm/b")]
    made = race(quiz(6, failing(0, 1)), budget=12)
    logs = host_eval(
        made, model=models, log_dir=str(tmp_path), fail_on_error=False, score_on_error=True, **QUIET
    )
    told = {standing.name: standing for standing in board(logs).standings}
    assert {standing.readings for standing in told.values()} == {6}
    assert {standing.failed for standing in told.values()} == {0}


def test_samples_that_ended_in_an_error_are_missing(tmp_path: Path) -> None:
    logged(quiz(40, failing(*range(1, 40, 4))), tmp_path, fail_on_error=False)
    found = read(tmp_path)
    assert means(found) == pytest.approx({"match": 2 / 3})
    assert missing(found) == 10
    assert len(found.items) == 40
    assert "10 of 40 answers of mockllm/model ended in an error: missing." in notes(found)


@pytest.mark.parametrize(
    ("made", "options", "said", "not_said"),
    [
        (
            {"scorer": scoring("several", lambda state: [1, 0], [mean()])()},
            {},
            ("scorer of numbers", "'several' gives lists and no numbers"),
            ("--no-score", "without a score"),
        ),
        (
            {"scorer": scoring("graded", lambda state: "quite good", [])()},
            {},
            ("scorer of numbers", "'graded' gives words and no numbers"),
            ("--no-score", "without a score"),
        ),
        (
            {},
            {"score": False},
            ("--no-score?", "inspect score LOG", "without a score"),
            ("--no-log-samples",),
        ),
        ({}, {"log_samples": False}, ("without --no-log-samples",), ("--no-score?",)),
    ],
    ids=["lists", "words", "not scored", "no samples"],
)
def test_logs_without_a_score_are_refused_for_what_they_lack(
    made: dict[str, Any],
    options: dict[str, Any],
    said: tuple[str, ...],
    not_said: tuple[str, ...],
    tmp_path: Path,
) -> None:
    logged(quiz(20, **{"right": bool, **made}), tmp_path, **options)
    with pytest.raises(InvalidInputError, match="holds no numeric score") as refused:
        read(tmp_path)
    for word in said:
        assert word in str(refused.value)
    for word in not_said:
        assert word not in str(refused.value)


@pytest.mark.parametrize("unscored", [None, Score.unscored(explanation="unreadable").value])
def test_answers_without_a_score_are_missing(tmp_path: Path, unscored: Any) -> None:
    grader = scoring(
        "grader",
        lambda state: unscored if number(state) % 4 == 1 else "C" if number(state) % 2 == 0 else "I",
        [accuracy()],
    )
    logged(quiz(20, bool, scorer=grader()), tmp_path)
    found = read(tmp_path)
    assert means(found) == pytest.approx({"grader": 2 / 3})
    assert missing(found) == 5
    assert "5 of 20 answers of mockllm/model came back without a score: missing." in notes(found)


def test_what_a_judge_did_not_score_and_another_did_is_not_missing(tmp_path: Path) -> None:
    judges = [
        get_model(f"simulated/{n}", unparsed=lost, memoize=False) for n, lost in (("x", 0.5), ("y", 0.0))
    ]
    made = budgeted(story_rating(6), budget=48, sampler="uniform", judges=judges)
    log = logged(made, tmp_path, model=get_model("simulated/writer", memoize=False))
    found = read(tmp_path)
    assert set(found.raters) == {"simulated/x", "simulated/y"}
    lost = dict(zip(found.raters, found.failed.sum(axis=(0, 1)).tolist(), strict=True))
    assert lost == {"simulated/x": 0, "simulated/y": 0}
    assert entry_of(log)["failed"] > 0
    assert f"{entry_of(log)['failed']} of 48 answers of simulated/writer failed and were" in notes(found)


def test_all_answers_of_one_model_missing(tmp_path: Path) -> None:
    for name in ("a", "b"):
        made = quiz(4, failing(*(range(4) if name == "b" else ())))
        logged(made, tmp_path, model=get_model(f"mockllm/{name}"), fail_on_error=False)
    found = read(tmp_path)
    lost = dict(zip(found.models, found.failed.sum(axis=(1, 2)).tolist(), strict=True))
    assert lost == {"mockllm/a": 0, "mockllm/b": 4}
    a, b = sorted(tmp_path.glob("*.eval"), key=lambda f: read_eval_log(str(f)).eval.model)
    alone = read(b)
    assert (alone.raters, missing(alone)) == (("match",), 4)
    assert "4 of 4 answers of mockllm/b ended in an error" in notes(alone)
    for old, new in ((a, b), (b, a)):
        found = CliRunner().invoke(
            cli, ["gate", "--baseline", f"{old}", "--candidate", f"{new}", "--margin=.1"]
        )
        assert found.exit_code == 3
        assert "Undecided: 4 of mockllm/b's answers are missing" in found.output
    refused = CliRunner().invoke(cli, ["report", f"{b}"])
    assert refused.exit_code == 2
    said = " ".join(refused.output.split())
    assert "all 4 answers of mockllm/b are missing. 4 of 4 answers of mockllm/b ended in an error" in said


def test_which_of_several_scores_is_missing_is_said(tmp_path: Path) -> None:
    scorer = scoring(
        "pair",
        lambda state: {"ok": number(state) % 2 == 0, "words": None if number(state) < 3 else 12.5},
        {"*": [mean()]},
    )
    logged(quiz(8, bool, scorer=scorer()), tmp_path)
    found = read(tmp_path)
    assert notes(found) == "3 of 8 answers of mockllm/model came back without a score by pair.words: missing."
    said = " ".join(str(report(found).table()).split())
    assert "missing: of what they would have been the others, which are all 12.5, say nothing." in said


@pytest.mark.parametrize("value", [math.nan, None])
def test_scores_of_several_keys_that_are_all_no_numbers_are_missing(tmp_path: Path, value: Any) -> None:
    scorer = scoring("two", lambda state: {"x": value, "y": value}, {"*": [mean()]})
    logged(quiz(4, bool, scorer=scorer()), tmp_path)
    found = read(tmp_path)
    assert (found.raters, missing(found)) == (("two.x", "two.y"), 8)


def test_scores_of_several_keys_of_answers_that_all_failed_go_by_the_metrics(tmp_path: Path) -> None:
    scorer = scoring("two", lambda state: {"x": 1, "y": 1}, {"x": [mean()], "y": [mean()], "*": [mean()]})
    logged(quiz(4, failing(*range(4)), scorer=scorer()), tmp_path, fail_on_error=False)
    found = read(tmp_path)
    assert (found.raters, missing(found)) == (("two.x", "two.y"), 8)


# logs that are not whole


def _cut(log: EvalLog, path: Path, n: int, **changes: Any) -> Path:
    return rewritten(log, path, samples=log.samples[:n], **changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    return logged(quiz(40, lambda state: number(state) < 10), tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    ("status", "how"),
    [
        ("cancelled", "was cancelled"),
        ("error", "ended with an error"),
        ("started", "was killed, or is still"),
    ],
)
def test_a_log_that_was_cut_short_says_so(tmp_path: Path, whole: EvalLog, status: str, how: str) -> None:
    found = read(_cut(whole, tmp_path / "cut.eval", 20, status=status, results=None))
    assert means(found) == {"match": 0.5}
    assert missing(found) == 20
    assert found.declared.complete == (True,)
    assert how in notes(found)
    assert "after 20 of 40 samples, in the order of the dataset. What it says is not of all" in notes(found)
    assert "20 of its 40 items have no answer: missing." in notes(found)


def test_results_that_contradict_the_samples_are_said(tmp_path: Path, whole: EvalLog) -> None:
    assert not read(path_of(whole)).declared.notes
    results = whole.results.model_copy(deep=True)
    results.scores[0].metrics["accuracy"].value = 0.9
    found = read(rewritten(whole, tmp_path / "told.eval", results=results))
    assert means(found) == {"match": 0.25}
    assert "told.eval say accuracy 0.9 by match, and its samples average 0.25: the samples" in notes(found)


@metric
def fail_rate() -> Metric:
    def share(scores: list[SampleScore]) -> float:
        return 1.0 - sum(each.score.as_float() for each in scores) / len(scores)

    return share


@metric
def pass_rate() -> Metric:
    def share(scores: list[SampleScore]) -> float:
        return sum(each.score.as_float() for each in scores) / len(scores)

    return share


def _of_metrics(tmp_path: Path, metrics: Sequence[Metric], **task: Any) -> str:
    found = read(path_of(logged(quiz(40, lambda s: number(s) % 4 == 0, metrics=metrics, **task), tmp_path)))
    assert means(found) == {"match": 0.25}
    return notes(found)


def test_results_of_metrics_of_the_tasks_own_are_said_to_be_another_quantity(tmp_path: Path) -> None:
    assert "say fail_rate 0.75 by match: another quantity than the mean of its samples, 0.25," in _of_metrics(
        tmp_path / "failing", [fail_rate(), stderr()]
    )
    assert not _of_metrics(tmp_path / "passing", [pass_rate(), stderr()])
    assert not _of_metrics(tmp_path / "both", [accuracy(), fail_rate()])
    samples = [
        Sample(input=f"question {n}", target="yes", id=n, metadata={"part": "a" if n % 8 == 0 else "b"})
        for n in range(40)
    ]
    grouping = {"dataset": MemoryDataset(samples)}
    assert not _of_metrics(tmp_path / "samples", [grouped(accuracy(), "part")], **grouping)
    told = _of_metrics(tmp_path / "groups", [grouped(accuracy(), "part", all="groups")], **grouping)
    assert "say all 0.571429 by match: another quantity" in told
    bought = logged(budgeted(quiz(8, bool, metrics=[fail_rate()]), budget=16), tmp_path / "bought")
    assert "say fail_rate 0 by match: another quantity than the mean of its samples, 1," in notes(
        read(path_of(bought))
    )
    (beside,) = entry_of(bought, "summary")["summary"]["beside"]
    assert beside == (
        "Inspect's own row of match (fail_rate) is a metric of the task's own; the estimate is of the mean "
        "score."
    )


def test_many_logs_that_were_cut_short_are_said_in_few_sentences(tmp_path: Path, whole: EvalLog) -> None:
    for n in range(20):
        spec = whole.eval.model_copy(update={"task_id": f"task {n}", "model": f"mockllm/{n}"})
        own = [s.model_copy(update={"uuid": f"{n} {s.id}"}) for s in whole.samples[:5]]
        rewritten(whole, tmp_path / f"{n}.eval", samples=own, status="cancelled", results=None, eval=spec)
    found = read(tmp_path)
    assert len(found.models) == 20
    assert len(found.declared.notes) == 4
    assert found.declared.notes[-1] == "17 more logs are not whole."


def test_samples_that_the_header_has_and_the_file_lacks_are_missing(tmp_path: Path, whole: EvalLog) -> None:
    found = read(_cut(whole, tmp_path / "lacking.eval", 30))
    assert len(found.items) == 40
    assert missing(found) == 10
    assert found.declared.complete == (True,)
    assert "says that 40 samples ran, and 10 of them are not in it" in notes(found)
    spec = whole.eval.model_copy(deep=True)
    spec.dataset.sample_ids = list(range(35))
    found = read(rewritten(whole, tmp_path / "strange.eval", eval=spec))
    assert "has 5 samples that its header does not list" in notes(found)
    spec.dataset.sample_ids = None
    found = read(_cut(whole, tmp_path / "unnamed.eval", 30, eval=spec))
    assert missing(found) == 0
    assert found.declared.complete == (False,)
    assert "says that 40 samples ran, and has 30; nothing says which are missing" in notes(found)


def test_what_a_sampler_chose_is_not_missing(tmp_path: Path) -> None:
    logged(budgeted(quiz(10, bool), budget=25), tmp_path)
    found = read(tmp_path)
    assert missing(found) == 0
    assert found.declared.complete == (True,)
    assert found.declared.notes == ()


@pytest.mark.parametrize(
    ("options", "limit", "n"),
    [
        variant({"budget": 40}, None, 6),
        ({"budget": 40}, 12, 8),
        ({"budget": 30}, 12, 8),
        ({"budget": 12}, None, 0),
    ],
    ids=["auto", "limit", "held back, all read", "sample"],
)
def test_items_that_a_killed_run_never_asked_are_missing_but_not_those_it_did_not_draw(
    options: dict[str, Any], limit: int | None, n: int, tmp_path: Path
) -> None:
    log = logged(budgeted(quiz(20, bool), **options), tmp_path / "whole", limit=limit)
    asked = sorted({sample.id for sample in log.samples})[: 4 if limit else 14]
    kept = [sample for sample in log.samples if sample.id in asked]
    killed = rewritten(log, tmp_path / "killed.eval", samples=kept, status="started", results=None)
    found = read(killed)
    assert missing(found) == n
    assert len(found.items) == len(asked) + n
    assert found.declared.complete == (True,)
    assert (f"{n} of its {limit or 20} items have no answer: missing." in notes(found)) == (n > 0)


@pytest.mark.parametrize("sampler", ["auto", variant("uniform")])
def test_processes_that_shared_a_budget_and_were_all_killed_are_one_run(sampler: str, tmp_path: Path) -> None:
    made = budgeted(quiz(10, bool), budget=20, sampler=sampler, store=tmp_path / "store.db")
    log = logged(made, tmp_path / "whole")
    for name, kept in (("a", range(5)), ("b", range(3, 7))):
        spec = log.eval.model_copy(update={"task_id": name, "eval_id": name})
        own = [s.model_copy(update={"uuid": f"{name} {s.id} {s.epoch}"}) for s in log.samples if s.id in kept]
        changes = {"samples": own, "eval": spec, "status": "started", "results": None}
        rewritten(log, tmp_path / "logs" / f"{name}.eval", **changes)
    found = read(tmp_path / "logs")
    assert found.counts.sum() == 14
    assert missing(found) == 3
    assert "3 of its 10 items have no answer: missing." in notes(found)


# logs that cannot be read


def test_one_log_of_many_that_was_cut_off_is_left_out_and_named(tmp_path: Path, whole: EvalLog) -> None:
    text = path_of(whole).read_bytes()
    for _ in range(3):
        logged(quiz(4, bool), tmp_path / "logs")
    (tmp_path / "logs" / "cut.eval").write_bytes(text[: len(text) // 2])
    found = plugins().open_scores(tmp_path / "logs")
    assert found.counts.sum() == 12
    assert "1 log could not be read" in notes(found)
    assert "cut.eval; left out" in notes(found)
    with pytest.raises(InvalidInputError, match=r"cut\.eval is not a readable inspect log"):
        plugins().open_scores(tmp_path / "logs" / "cut.eval")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("file:///data/logs", "give the path alone: /data/logs"),
        (
            "s3://bucket/logs",
            "s3://bucket/logs is an address, and scores are read from files here",
        ),
    ],
)
def test_addresses_are_refused_with_what_to_do(address: str, why: str) -> None:
    done = CliRunner().invoke(cli, ["report", address])
    assert done.exit_code == 2
    assert why in " ".join(done.output.split())


def test_reading_many_logs_takes_time_in_proportion(tmp_path: Path, whole: EvalLog) -> None:
    """Header and samples of each are read once, and nothing is done for each pair of logs."""
    small = read_eval_log(whole.location)
    small.samples = small.samples[:2]

    def took(n: int) -> float:
        folder = tmp_path / str(n)
        folder.mkdir()
        for k in range(n):
            own = [s.model_copy(update={"uuid": f"{n}-{k}-{s.id}"}) for s in small.samples]
            spec = small.eval.model_copy(update={"task_id": f"{n}-{k}", "model": f"m{k % 10}"})
            log = small.model_copy(update={"samples": own, "eval": spec, "status": "cancelled"})
            write_eval_log(log, str(folder / f"{k:04}.eval"))
        start = time.process_time()
        assert read(folder).counts.sum() == 2 * n
        return time.process_time() - start

    few, many = took(5), took(50)
    assert many < 20 * few


def test_a_log_without_scores_leaves_the_others_their_report(tmp_path: Path) -> None:
    logged(quiz(6, failing()), tmp_path)
    logged(quiz(6, failing()), tmp_path, model=get_model("mockllm/unscored"), score=False)
    logged(quiz(6, failing(*range(6))), tmp_path, model=get_model("mockllm/down"), fail_on_error=False)
    found = report(read(tmp_path))
    assert found.models == ("mockllm/model",)
    told = " ".join(str(found.table()).split())
    for name in ("unscored", "down"):
        assert f"mockllm/{name} has no score: all 6 of its answers are missing." in told
    assert "mockllm/unscored has no score since its log is not scored; score it: inspect score LOG." in told
    assert "6 of 6 answers of mockllm/down ended in an error: missing." in told
    assert told.count("its log is not scored") == 1


AT_ONCE: list[tuple[dict[str, Any], int | None]] = [
    ({"max_samples": 4}, 4),
    ({"max_samples": 4, "max_connections": 30}, 4),
    ({"max_connections": 5}, 5),
    ({"adaptive_connections": 12}, 17),
    ({}, None),  # 105 by themselves
    ({"adaptive_connections": False}, None),
    ({"max_samples": 4, "retry_on_error": 1}, None),
    ({"max_samples": 4, "sample_shuffle": 3}, 4),
]


@pytest.mark.parametrize(("there", "status"), [(0, "error"), (20, "cancelled")])
@pytest.mark.parametrize(("options", "at_once"), AT_ONCE)
def test_what_a_dead_run_cannot_have_begun_is_not_missing_beside_a_whole_one(
    options: dict[str, Any], at_once: int | None, there: int, status: str, tmp_path: Path
) -> None:
    whole = logged(quiz(40, failing()), tmp_path, **options)
    dead = died(whole, tmp_path / "dead.eval", there, status)
    found = read(tmp_path)
    lacking = 40 - there if at_once is None else min(at_once, 40 - there)
    assert missing(found) == lacking
    assert found.counts.sum() == 40 + there
    assert f"after {there} of 40 samples" in notes(found)
    rest = 40 - there - lacking
    assert f"{lacking} of its 40 items have no answer: missing." in notes(found)
    told = f"{rest} item{'s' * (rest != 1)} that it cannot have begun"
    assert (told in notes(found)) == ("cannot have begun" in notes(found)) == (rest > 0)
    alone = tmp_path / "alone"
    alone.mkdir()
    dead.rename(alone / "dead.eval")
    if there:  # a run that has none beside it lacks what it never asked
        assert missing(read(alone)) == 40 - there


def died(whole: EvalLog, path: Path, there: int, status: str, **changes: Any) -> Path:
    """A log of the same task and settings that ended, as that says, after the first samples."""
    samples = list(read_eval_log(whole.location).samples or [])
    ids = list(whole.eval.dataset.sample_ids or [])[:there]
    samples = sorted((s for s in samples if s.id in ids), key=lambda s: ids.index(s.id))
    for sample in samples:
        sample.uuid = f"dead {sample.id}"
    told = {"task_id": "dead", "created": "2020-01-01T00:00:00+00:00", **changes}
    header = whole.eval.model_copy(update=told)
    return rewritten(whole, path, eval=header, status=status, samples=samples, results=None)


@pytest.mark.parametrize("why", ["killed", "other order", "other version", "goes on"])
def test_whatever_is_unknown_of_a_dead_run_it_may_have_begun_all(why: str, tmp_path: Path) -> None:
    options = {"adaptive_connections": 1} if why == "other version" else {"max_samples": 2}
    whole = logged(quiz(40, failing()), tmp_path, **options)
    changes: dict[str, Any] = {}
    if why == "other version":
        changes = {"packages": {"inspect_ai": "0.3.100"}}
    if why == "goes on":
        changes = {"created": "2100-01-01T00:00:00+00:00"}
    if why == "other order":
        ids = list(whole.eval.dataset.sample_ids or [])
        dataset = whole.eval.dataset.model_copy(update={"sample_ids": [*ids[10:], *ids[:10]]})
        changes = {"dataset": dataset}
    died(whole, tmp_path / "dead.eval", 10, "started" if why == "killed" else "error", **changes)
    found = read(tmp_path)
    assert missing(found) == 30
    assert "cannot have begun" not in notes(found)


@pytest.mark.parametrize("seed", range(4))
def test_slow_answers_of_a_dead_run_prove_no_difference(seed: int, tmp_path: Path) -> None:
    """All items were under way when the provider went down, and the wrong answers were slower."""
    n = 60
    draw = np.random.default_rng(seed).random((4, n)) < 0.5
    first = logged(quiz(n, lambda state: bool(draw[0][number(state)])), tmp_path / "died", max_samples=n)
    quick = [s for s in read_eval_log(first.location).samples or [] if draw[0][int(s.id)]]
    rewritten(first, tmp_path / "dead.eval", status="error", samples=quick, results=None)
    path_of(first).unlink()
    logged(quiz(n, lambda state: bool(draw[1][number(state)])), tmp_path, max_samples=n)
    equal = get_model("mockllm/equal")
    logged(quiz(n, lambda state: bool(draw[1 + state.epoch][number(state)])), tmp_path, model=equal, epochs=2)
    found = read(tmp_path)
    assert missing(found) == n - len(quick)
    assert [row.outcome for row in compare(found).rows] == [Outcome.UNDECIDED]


def test_what_a_dead_run_asked_in_vain_is_missing_beside_a_whole_one(tmp_path: Path) -> None:
    logged(quiz(40, failing(*range(25))), tmp_path, fail_on_error=0.5, continue_on_fail=False, max_samples=1)
    logged(quiz(40, failing()), tmp_path)
    found = read(tmp_path)
    in_vain = missing(found)
    assert 20 <= in_vain <= 25
    assert f"{40 - in_vain} items that it cannot have begun" in notes(found)


def test_a_dead_run_of_other_settings_lacks_what_it_never_asked(tmp_path: Path) -> None:
    whole = logged(quiz(40, failing()), tmp_path)
    config = whole.eval.model_generate_config.model_copy(update={"temperature": 0.5})
    header = whole.eval.model_copy(update={"task_id": "dead", "model_generate_config": config})
    rewritten(whole, tmp_path / "dead.eval", eval=header, status="error", samples=[], results=None)
    assert missing(read(tmp_path)) == 40
