"""Marked secrets, given in every way there is, occur in nothing that we write or print, killed or not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import list_eval_logs, read_eval_log
from tests.host_inspect.race_tasks import written
from tests.host_inspect.worlds import COMMAND, UNWATCHED

import warm
from evalbudget import secrets
from evalbudget.cli.main import cli
from loopback import Server

QUIZ = Path(__file__).parents[2] / "examples" / "race_quiz.py"
AUDITED = Path(__file__).with_name("audited_tasks.py")
VARIABLES = {
    name: f"marked-variable-{name.lower()}"
    for name in ("SIMULATED_API_KEY", "HERE_API_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD", "GITHUB_TOKEN")
}
ARGUMENT = "marked-argument-0"
OTHERS = {name: f"marked-{name}-0" for name in ("key", "header", "headers", "address", "query", "store")}
MARKED = [*VARIABLES.values(), ARGUMENT, *OTHERS.values()]


KEYED = """\
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match

@task
def keyed() -> Task:
    return Task([Sample(id="first", input="?"), Sample(id="{item}", input="?")], scorer=match())
"""


@pytest.fixture(autouse=True)
def _marked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(secrets, "_given", set())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDITED_CALLS", str(tmp_path / "calls.txt"))


def found_in(text: bytes | str) -> list[str]:
    text = text if isinstance(text, str) else text.decode(errors="replace")
    return [secret for secret in MARKED if secret in text]


def leaks(folder: Path) -> dict[str, list[str]]:
    found = {}
    for path in folder.rglob("*"):
        if path.suffix == ".eval" and path.is_file():
            with zipfile.ZipFile(path) as members:
                found |= {f"{path} {name}": found_in(members.read(name)) for name in members.namelist()}
        elif path.is_file():
            found[str(path)] = found_in(path.read_bytes())
    return {name: those for name, those in found.items() if those}


def command(*words: object) -> Result:
    done = CliRunner(env=UNWATCHED).invoke(cli, ["inspect", *map(str, words), "--display", "none"])
    assert not found_in(done.output), done.output
    return done


def test_no_way_in_leaks(task_file: Path, tmp_path: Path) -> None:
    key, logs = ["-M", f"api_key={ARGUMENT}"], ["--log-dir", tmp_path / "logs"]
    model = ["--model", "simulated/writer", "--model-role", "grader=simulated/judge"]
    assert command("eval", f"{task_file}@rating", "--budget", 18, *model, *key, *logs).exit_code == 0
    raced = ["--model", "simulated/alder,simulated/elm", "-M", "bernoulli=true", "--limit", 4, "--budget", 8]
    board = ["--json", tmp_path / "board.json", "--log-dir", tmp_path / "raced"]
    assert command("race", QUIZ, *raced, *key, *board).exit_code in (0, 3)
    shutil.copy(AUDITED, tmp_path / "stories.py")
    compared = [
        "--model",
        "mockllm/good,mockllm/bad",
        "--score-range",
        "1..10",
        "--sampler-option",
        "pilot=12",
    ]
    audited = ["audit", "a.sqlite", "stories.py@stories", *compared, "--labels-per-batch", 25, *key]
    assert command(*audited).exit_code == 3
    assert len(list(tmp_path.rglob("*.eval"))) >= 4
    assert not leaks(tmp_path)
    assert b"api_key=***" in (tmp_path / "a.sqlite").read_bytes()  # the command that labellers are shown


def test_where_a_key_would_be_written_it_is_refused(task_file: Path, tmp_path: Path) -> None:
    words: list[object] = ["eval", f"{task_file}@rating", "--model", "simulated/writer", "--budget", 18]
    judge = {"name": "j", "model": "simulated/judge"}
    for more, where in (
        ({"model_args": {"api_key": OTHERS["key"]}}, "api_key"),
        ({"model_args": {"default_headers": {"x-api-key": OTHERS["header"]}}}, "x-api-key"),
        ({"extra_headers": {"Authorization": f"Basic {OTHERS['headers']}"}}, "Authorization"),
        ({"base_url": f"https://me:{OTHERS['address']}@host/v1"}, "base_url"),
        ({"base_url": f"https://host/v1?key={OTHERS['query']}"}, "base_url"),
    ):
        done = command(*words, "--judges", json.dumps([{**judge, **more}]))
        assert done.exit_code == 2
        assert f"judge 'j' has a secret in {where}" in " ".join(done.output.split())
    done = command(*words, "--store", f"postgresql://me:{OTHERS['store']}@localhost/evals")
    assert (done.exit_code, "variable PGPASSWORD" in " ".join(done.output.split())) == (2, True)
    assert not leaks(tmp_path)
    assert not list(tmp_path.rglob("*.eval"))


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "keyed.py", "--budget", 3],
        ["race", "keyed.py", "--budget", 4],
        ["audit", "a.sqlite", "keyed.py"],
    ],
)
def test_a_key_inside_an_id_is_refused(words: list[object], tmp_path: Path) -> None:
    item = f"item of {VARIABLES['GITHUB_TOKEN']}"
    (tmp_path / "keyed.py").write_text(KEYED.format(item=item))
    done = command(*words, "--model", "mockllm/a,mockllm/b" if words[0] != "eval" else "mockllm/a")
    assert done.exit_code == 2
    assert "the id of sample 2, 'item of ***', holds the value of a secret" in " ".join(done.output.split())
    assert not list(tmp_path.rglob("*.eval"))


def test_what_a_judge_repeats(task_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's transcript holds what was said, to the letter; the scores are ours."""
    given = [*VARIABLES.values(), ARGUMENT]
    with Server(answer=lambda asked: f"{' '.join(given)} RATING: 5") as server:
        monkeypatch.setenv("HERE_BASE_URL", f"{server.url}/v1")
        key, judges = ["-M", f"api_key={ARGUMENT}"], "openai-api/here/a,openai-api/here/b"
        logs = ["--log-dir", tmp_path / "logs", "--log-format", "json"]
        model = ["--model", "simulated/writer", "--limit", 2, "--budget", 8]
        done = command("eval", f"{task_file}@rating", *model, *key, *logs, "--judges", judges)
    assert done.exit_code == 0, done.output
    assert len(server.served) == 8
    (log,) = (read_eval_log(info) for info in list_eval_logs(str(tmp_path / "logs")))
    scores = [score for sample in log.samples or [] for score in (sample.scores or {}).values()]
    assert any("*** RATING: 5" in (score.explanation or "") for score in scores)
    assert not found_in("".join(score.model_dump_json() for score in scores))
    assert log.results is not None
    assert not found_in(log.results.model_dump_json() + log.eval.model_dump_json())


def test_killed(task_file: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    judge = json.dumps({"model": "simulated/judge", "model_args": {"latency": 0.1}})
    words = ["eval", f"{task_file}@rating", "--budget", "90", "--log-buffer", "1", "--log-dir", str(logs)]
    more = ["--model", "simulated/writer", "--model-role", f"grader={judge}", "-M", f"api_key={ARGUMENT}"]
    with (tmp_path / "said").open("wb") as said:
        process = warm.Popen(
            [*COMMAND, *words, *more, "--display", "plain"],
            host="inspect",
            stdout=said,
            stderr=said,
            cwd=tmp_path,
        )
        while process.poll() is None and not any(written(log) >= 4 for log in logs.glob("*.eval")):
            time.sleep(0.05)
        assert process.poll() is None, (tmp_path / "said").read_text()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert not leaks(tmp_path)
