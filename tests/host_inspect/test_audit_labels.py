"""Labels that a scorer gives are kept with text and usage, bought once and limited; judges are told apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from tests.host_inspect.worlds import UNWATCHED

import warm
from evalbudget.audits.store import AuditStore
from evalbudget.cli.main import cli
from evalbudget_inspect.audits import labels_by_scorer
from evalbudget_inspect.reading.open_logs import open_scores

TASKS = Path(__file__).with_name("labelled_tasks.py")
JUROR = {"mockllm/juror": {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABELLED_CALLS", str(tmp_path / "calls.txt"))
    return tmp_path


def command(*options: str, task: str = "judged", score_range: str = "1..10 by 1") -> list[str]:
    models = ["--model", "mockllm/good,mockllm/bad", "--score-range", score_range]
    return ["inspect", "audit", "a.sqlite", f"{TASKS}@{task}", *models, *options]


def run(*options: str, task: str = "judged", score_range: str = "1..10 by 1") -> Result:
    return CliRunner(env=UNWATCHED).invoke(cli, command(*options, task=task, score_range=score_range))


BY_JUROR = ("--sampler", "human-only", "--labels-from", "juror")
"""All eight answers are labelled, by the scorer alone."""


def calls(folder: Path, of: str) -> Counter[str]:
    path = folder / "calls.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(line.partition(" ")[2] for line in lines if line.startswith(of))


def logs(folder: Path) -> list[EvalLog]:
    return [read_eval_log(info.name) for info in list_eval_logs(str(folder / "logs"))]


def labels_in_logs(folder: Path) -> Counter[str]:
    """How often each answer's label stands in the host's logs, each with its text and its usage."""
    found: Counter[str] = Counter()
    for log in logs(folder):
        for sample in log.samples or []:
            for name, score in (sample.scores or {}).items():
                if name.startswith("juror"):
                    found[f"{log.eval.model} {sample.id}"] += 1
                    assert score.explanation == f"I say {score.as_int()}"
                    assert score.answer == str(score.as_int())
                    assert (score.metadata or {})["evalbudget_label"]["usage"] == JUROR
                    assert sample.model_usage["mockllm/juror"].total_tokens == 34
        tokens = sum("juror" in (sample.scores or {}) for sample in log.samples or []) * 34
        assert log.stats.model_usage["mockllm/juror"].total_tokens == tokens
    return found


def refused(done: Result, *words: str) -> None:
    text = " ".join(done.stderr.split())
    assert done.exit_code == 2, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    for each in words:
        assert each in text


def test_labels_keep_text_model_and_usage_in_the_store_and_in_the_hosts_log(folder: Path) -> None:
    assert run(*BY_JUROR).exit_code in (0, 1)
    with AuditStore.open("a.sqlite") as store:
        attempts = store.attempts.all()
        labels = store.labels.counting()
        assert len(attempts) == len(labels) == 8
        for attempt in attempts:
            assert attempt.reply is not None
            assert attempt.reply.explanation == f"I say {labels[attempt.draw].score:g}"
            assert attempt.reply.answer == f"{labels[attempt.draw].score:g}"
            assert attempt.reply.usage == JUROR
    assert labels_in_logs(folder) == calls(folder, "juror")
    asked = [
        e.model for log in logs(folder) for s in log.samples or [] for e in s.events if e.event == "model"
    ]
    assert Counter(asked) == {"mockllm/juror": 8}
    assert not list((folder / "logs").glob(".*"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_auditor_asks_nothing_twice(folder: Path) -> None:
    hangs = "mockllm/bad story-2"
    process = warm.Popen(
        [sys.executable, "-m", "evalbudget", *command(*BY_JUROR)],
        host="inspect",
        env={**os.environ, "LABELLED_HANGS": hangs},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if hangs in calls(folder, "juror"):
            with AuditStore.open("a.sqlite") as store:
                if len(store.labels.counting()) == 7:  # all but the one that hangs
                    break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = calls(folder, "juror")
    with AuditStore.open("a.sqlite") as store:
        had, begun = len(store.labels.counting()), len(store.attempts.all())
    assert had == 7
    assert before[hangs] == 1
    assert labels_in_logs_total(folder) < had  # the batch under way was in the store alone

    assert run(*BY_JUROR).exit_code in (0, 1)
    again = calls(folder, "juror") - before
    assert again.total() == 8 - had  # what was cut off, and what was never asked
    assert again[hangs] == max(again.values()) == 1
    assert set(before | again) == set(calls(folder, "answer"))
    assert max(calls(folder, "answer").values()) == 1
    with AuditStore.open("a.sqlite") as store:
        attempts = store.attempts.all()
        assert len(attempts) == begun + again.total()
        assert [attempt.reply is None for attempt in attempts].count(True) == begun - had
        assert len(store.labels.counting()) == 8
    assert set(labels_in_logs(folder).values()) == {1}
    assert labels_in_logs(folder).total() == 8


def labels_in_logs_total(folder: Path) -> int:
    return sum("juror" in (s.scores or {}) for log in logs(folder) for s in log.samples or [])


def test_a_label_off_the_scale_is_the_first_and_the_last_of_its_audit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABELLED_OFF", "all")
    done = run(*BY_JUROR)
    (first,) = calls(folder, "juror").elements()
    model, item = first.split()
    answer = f"'juror' of --labels-from gave {model}'s answer to {item!r} 11"
    refused(
        done,
        answer,
        "the audit's scale is whole numbers 1 to 10",
        "for example --score-range 1..10 (any number) or '1..10 by 1'",
    )
    with AuditStore.open("a.sqlite") as store:
        (attempt,) = store.attempts.all()
        assert attempt.reply is not None
        assert (attempt.reply.score, attempt.reply.explanation) == (11, "I say 11")
        assert attempt.reply.usage == JUROR
    monkeypatch.delenv("LABELLED_OFF")
    assert run(*BY_JUROR).exit_code in (0, 1)
    assert calls(folder, "juror").total() == 9


def test_attempts_that_fail_count_for_max_labels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABELLED_RAISES", "mockllm/good story-1")
    limited = (*BY_JUROR, "--max-labels", "8")
    codes = []
    for _ in range(8):
        done = run(*limited)
        codes.append(done.exit_code)
        if done.exit_code != 2:
            break
        refused(done, "gave no score to 'story-1' (RuntimeError: the provider is down)")
    assert codes[-1] == 3, done.output
    assert "--max-labels 8 is used up" in done.output
    assert "evalbudget audit serve a.sqlite" in done.output
    asked = calls(folder, "juror")
    assert asked.total() == 8
    assert asked["mockllm/good story-1"] == len(codes) - 1
    monkeypatch.delenv("LABELLED_RAISES")
    assert run(*limited).exit_code == 3
    assert calls(folder, "juror") == asked
    assert label_people() > 0
    assert run(*limited).exit_code in (0, 1)


def label_people() -> int:
    with AuditStore.open("a.sqlite") as store:
        tasks = store.draws.tasks(labelled=False)
        for task in tasks:
            store.labels.add(task.draw, 5, "ann")
        return len(tasks)


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        (
            "LABELLED_RATING_OFF",
            ("'s answer to 'story-", "11, and the audit's scale is whole numbers 1 to 10"),
        ),
        ("LABELLED_RATING_WORDS", ("'rating' returned 'splendid', which is not a number", "with --judge")),
    ],
)
def test_a_judge_off_the_scale_is_found_at_the_first_score(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(variable, "all")
    refused(run("-T", "items=30", "--max-samples", "1"), *words)
    assert calls(folder, "rating").total() == 1
    assert calls(folder, "answer").total() <= 2  # one for each model


def test_another_judge_is_refused_and_both_are_named(folder: Path) -> None:
    role = ("--model-role", "grader=mockllm/strict", "-T", "items=16", "--sampler-option", "pilot=8")
    assert run(*role).exit_code == 3
    paid = calls(folder, "")
    for changed, words in (
        ((*role, "--judge", "other"), "judge's scorer: other here, rating there"),
        ((*role, "-T", "manner=harsh"), "judge's argument manner: harsh here, kind there"),
        (
            (*role[2:], "--model-role", "grader=mockllm/mild"),
            "judge's model of role grader: mockllm/mild here, mockllm/strict there",
        ),
    ):
        refused(run(*changed), words)
    assert run(*role).exit_code == 3
    assert label_people() > 0
    refused(run(*role[2:]), "judge's model of role grader: absent here, mockllm/strict there")
    assert calls(folder, "") == paid
    assert run(*role).exit_code in (0, 1, 3)


def test_dict_scores_and_unknown_scorers_are_refused_before_the_first_call(folder: Path) -> None:
    named = "scorer 'aspects' returns several values"
    for options, words in (
        ((), f"{named}; name the one to go by: --judge aspects.style or --judge aspects.plot"),
        (("--judge", "aspects.stlye"), f"{named} and 'stlye' is none of them"),
        (("--labels-from", "aspects", "--judge", "other"), "--labels-from aspects.style"),
        (("--judge", "asepcts"), "Did you mean 'aspects'"),
        (("--labels-from", "othr"), "no scorer of the task"),
    ):
        refused(run(*options, task="many_sided"), words)
    assert not calls(folder, "")
    assert not (folder / "a.sqlite").exists()
    assert run("--judge", "aspects.plot", "--labels-from", "other", task="many_sided").exit_code in (0, 1)


def test_labels_in_logs_are_no_scores_of_a_judge(folder: Path) -> None:
    assert run("--labels-from", "juror").exit_code in (0, 1)
    assert labels_in_logs(folder).total() > 0
    recorded = open_scores(folder / "logs")
    assert recorded is not None
    assert set(recorded.raters) == {"rating", "other"}


def test_what_a_kill_kept_from_the_log_is_put_there_though_nothing_more_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(labels_by_scorer, "keep_in_log", killed)
        assert run(*BY_JUROR).exit_code != 0
    assert labels_in_logs_total(folder) == 0
    assert label_people() == 4
    assert run(*BY_JUROR).exit_code in (0, 1)
    assert calls(folder, "juror").total() == 4
    assert labels_in_logs_total(folder) == 4
    (log,) = [log for log in logs(folder) if log.stats.model_usage]
    assert log.stats.model_usage["mockllm/juror"].total_tokens == 4 * 34
    for sample in log.samples or []:
        assert (sample.scores or {})["juror"].explanation in ("I say 8", "I say 4")
