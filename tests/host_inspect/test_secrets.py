"""Marked secrets, given in every way there is, occur in nothing that we write or print, killed or not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.model._model_config import ModelConfig
from tests import keys
from tests.host_inspect.log_worlds import logged, number, questions, quiz, rewritten
from tests.host_inspect.race_tasks import written
from tests.host_inspect.worlds import COMMAND, UNWATCHED
from tests.keys import found_in, leaks, read_by_every_command, terminal

import warm
from evalbudget import secrets
from evalbudget.errors import InvalidInputError
from evalbudget.secrets import without_known
from evalbudget_inspect import budgeted
from evalbudget_inspect.judges.judge_names import JudgeModel, read_judges
from loopback import Server

QUIZ = Path(__file__).parents[2] / "examples" / "race_quiz.py"
AUDITED = Path(__file__).with_name("audited_tasks.py")
VARIABLES = {
    name: f"marked-variable-{name.lower()}"
    for name in ("SIMULATED_API_KEY", "HERE_API_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD", "GITHUB_TOKEN")
}
ARGUMENT = "marked-argument-0"
OTHERS = {name: f"marked-{name}-0" for name in ("key", "header", "headers", "address", "query", "store")}
LOGIN = f"https://me:{OTHERS['address']}@host/v1"

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


def command(*words: object) -> Result:
    return keys.command("inspect", *words, "--display", "none", env=UNWATCHED)


def test_no_way_in_leaks(task_file: Path, tmp_path: Path) -> None:
    key, logs = ["-M", f"api_key={ARGUMENT}"], ["--log-dir", tmp_path / "logs"]
    model = ["--model", "simulated/writer", "--model-role", "grader=simulated/judge"]
    assert command("eval", f"{task_file}@rating", "--budget", 18, *model, *key, *logs).exit_code == 0
    (tmp_path / "known.yaml").write_text("".join(f"story-0{i}: 0.25\n" for i in range(1, 7)))
    known = ["--sampler", "robin", "--variances", tmp_path / "known.yaml"]
    for verb in ("eval", "eval-set"):
        again = ["--log-dir", tmp_path / verb, "--budget", 18]
        assert command(verb, f"{task_file}@rating", *model, *key, *known, *again).exit_code == 0
    raced = ["--model", "simulated/alder,simulated/elm", "-M", "bernoulli=true", "--limit", 4, "--budget", 8]
    board = ["--json", tmp_path / "board.json", "--log-dir", tmp_path / "raced"]
    assert command("race", QUIZ, *raced, *key, *board).exit_code in (0, 3)
    others = ["--model", "simulated/ginkgo,simulated/hazel", "-M", "bernoulli=true", *raced[4:]]
    earlier = ["--history", tmp_path / "raced", "--log-dir", tmp_path / "others"]
    assert command("race", QUIZ, *others, *key, *earlier).exit_code in (0, 3)
    assert keys.command("report", tmp_path / "raced", "--html", tmp_path / "raced.html").exit_code == 0
    again = keys.command("inspect", "leaderboard", tmp_path / "raced", "--json", tmp_path / "again.json")
    assert again.exit_code == 0, again.output
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
        ["eval", "keyed.py", "--budget", 4],  # a sample is drawn
        ["eval", "keyed.py", "--budget", 40],
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


@pytest.mark.parametrize(
    ("verb", "more", "where"),
    [
        ("race", ["-M", f"default_headers={{x-api-key: {ARGUMENT}}}"], "-M has a secret in x-api-key"),
        ("eval", ["--model-config", "model.yaml"], "-M has a secret in auth_token"),
        (
            "eval",
            ["--model-role", f"grader={{model: m, model_args: {{token: {ARGUMENT}}}}}"],
            "--model-role has",
        ),
        ("eval", ["--model-spec", f"{{model: m, model_args: {{token: {ARGUMENT}}}}}"], "--model-spec has"),
        ("eval", ["--run-config", "run.yaml"], "--run-config has a secret in X-Auth-Token"),
        ("audit", ["--model-base-url", f"https://me:{ARGUMENT}@host/v1"], "--model-base-url has"),
        ("eval", ["--metadata", f"note=Bearer {ARGUMENT}"], "--metadata has a secret in note"),
        ("eval", ["--extra-headers", json.dumps({"Authorization": ARGUMENT})], "--extra-headers has"),
        ("race", ["--extra-body", json.dumps({"api_key": ARGUMENT})], "--extra-body has a secret in api_key"),
        ("eval", ["--generate-config", "generate.yaml"], "--generate-config has a secret in X-Auth-Token"),
    ],
)
def test_a_key_that_the_host_would_write_is_refused(
    verb: str, more: list[str], where: str, task_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "model.yaml").write_text(f"api_key: {ARGUMENT}\nauth_token: {ARGUMENT}\n")
    (tmp_path / "generate.yaml").write_text(f"extra_headers: {{X-Auth-Token: {ARGUMENT}}}\n")
    (tmp_path / "run.yaml").write_text(f"generate_config: {{extra_headers: {{X-Auth-Token: {ARGUMENT}}}}}\n")
    begin = ["audit", "a.sqlite"] if verb == "audit" else [verb, "--budget", 18]
    models = "simulated/a" if verb == "eval" else "simulated/a,simulated/b"
    done = command(*begin, f"{task_file}@rating", "--model", models, *more)
    assert (done.exit_code, where in " ".join(done.output.split())) == (2, True), done.output
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


@pytest.mark.parametrize("told", ["Authorization", "base_url"])
def test_a_judge_of_python_with_a_secret_that_the_host_would_write_is_refused(
    make_task: Any, told: str
) -> None:
    header = GenerateConfig(extra_headers={"Authorization": f"Bearer {OTHERS['header']}"})
    given: dict[str, Any] = {"Authorization": {"config": header}, "base_url": {"base_url": LOGIN}}
    judge = get_model("simulated/judge", api_key=ARGUMENT, memoize=False, **given[told])
    for judges in (judge, {"name": "j", "model": judge}):
        with pytest.raises(
            InvalidInputError, match=f"has a secret in {told}.*leave it out, and set"
        ) as refused:
            budgeted(make_task(3), budget=9, judges=[judges])
        assert not found_in(str(refused.value))


def test_the_login_of_a_judge_of_python_is_masked() -> None:
    JudgeModel("j", get_model("simulated/judge", base_url=LOGIN, memoize=False)).instance("grader")
    assert not found_in(without_known(f"refused: {OTHERS['address']}"))


def test_a_key_of_a_judge_of_python_is_in_no_log(make_task: Any, run: Any, tmp_path: Path) -> None:
    judge = get_model("simulated/judge", api_key=ARGUMENT, secret=OTHERS["key"], memoize=False)
    assert run(budgeted(make_task(3), budget=9, judges=[judge, "simulated/other"])).status == "success"
    assert list(tmp_path.rglob("*.eval"))
    assert not leaks(tmp_path)


@pytest.mark.parametrize(
    "judges",
    [
        f"[{{api_key: {OTHERS['key']}, ",
        f"j={{api_key: {OTHERS['key']}, ",
        {"j": {"model": "a", "model_args": f"api_key={OTHERS['key']}"}},
        {"j": [f"api_key={OTHERS['key']}"]},
        [[f"api_key={OTHERS['key']}"]],
    ],
)
def test_judges_that_cannot_be_read_are_quoted_without_their_keys(judges: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"\*\*\*") as refused:
        read_judges(judges)
    assert not found_in(str(refused.value))


def test_killed(task_file: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    judge = json.dumps({"model": "simulated/judge", "model_args": {"latency": 0.1}})
    words = ["eval", f"{task_file}@rating", "--budget", "90", "--log-buffer", "1", "--log-dir", str(logs)]
    more = ["--model", "simulated/writer", "--model-role", f"grader={judge}", "-M", f"api_key={ARGUMENT}"]
    with terminal() as (screen, said):
        process = warm.Popen(
            [*COMMAND, *words, *more, "--display", "rich"],
            host="inspect",
            stdout=screen,
            stderr=screen,
            cwd=tmp_path,
        )
        while process.poll() is None and not any(written(log) >= 4 for log in logs.glob("*.eval")):
            time.sleep(0.05)
        assert process.poll() is None, said
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert b"\x1b[" in said  # it was drawn
    assert not found_in(said)
    assert not leaks(tmp_path)


def test_keys_in_logs(tmp_path: Path) -> None:
    """Of others, who gave them to the host, and of variables in the names of items."""
    key = VARIABLES["GITHUB_TOKEN"]
    data = questions(range(4), metadata={"category": f"of {key}"})
    for sample in data:
        sample.id = f"item {sample.id} {key}"
    log = logged(quiz(4, lambda state: number(state) % 2 == 0, dataset=data), tmp_path)

    def given(n: int) -> dict[str, Any]:
        login = f"http://me:marked-login-{n}@host"
        return {
            "api_key": f"marked-key-{n}",
            "base_url": login,
            "headers": {"x-api-key": f"marked-header-{n}"},
        }

    for n, name in enumerate(("old", "new")):
        whole = read_eval_log(log.location)
        for scorer in whole.eval.scorers or []:
            scorer.options = given(n)
        for step in whole.plan.steps:
            step.params = given(n)
        config = GenerateConfig(extra_headers={"x": f"marked-header-{n}"}, extra_body=given(n))
        judge = ModelConfig(model="mockllm/j", args=given(n), base_url=given(n)["base_url"], config=config)
        told = {
            "model_args": given(n),
            "model_base_url": given(n)["base_url"],
            "model_roles": {"grader": judge},
        }
        told |= {"model_generate_config": config, "task_args": given(n) | {"judge": given(n)}}
        rewritten(log, tmp_path / f"{name}.eval", eval=whole.eval.model_copy(update=told), plan=whole.plan)
    read_by_every_command(tmp_path / "old.eval", tmp_path / "new.eval", tmp_path / "out")


def test_gates_pairwise_and_judges_of_finished_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [*VARIABLES.values(), ARGUMENT]
    key, out = ["-M", f"api_key={ARGUMENT}"], tmp_path / "out"
    out.mkdir()
    run = [QUIZ, "-M", "bernoulli=true", *key, "--budget", 4, "--limit", 4]
    for name in ("alder", "elm"):
        done = command("eval", *run, "--model", f"simulated/{name}", "--log-dir", tmp_path / name)
        assert done.exit_code == 0, done.output
    gate = ["gate", *run, "--model", "simulated/elm", "--baseline", tmp_path / "alder", "--margin", 0.5]
    files = [word for kind in ("json", "markdown", "junit") for word in (f"--{kind}", out / kind)]
    assert command(*gate, *files, "--log-dir", tmp_path / "gated").exit_code in (0, 1, 3)
    assert not leaks(tmp_path)
    with Server(answer=lambda asked: f"{' '.join(given)} [[A]] RATING: 5") as server:
        monkeypatch.setenv("HERE_BASE_URL", f"{server.url}/v1")
        logs = [path for name in ("alder", "elm") for path in (tmp_path / name).glob("*.eval")]
        asked = ["--judge", "openai-api/here/j", "--budget", 4, "--log-dir", tmp_path / "judged", *key]
        record = ["--record", out / "record.jsonl", "--save", out / "saved.csv", "--json", out / "read.json"]
        done = command("pairwise", *logs, *asked, *record)
        assert done.exit_code in (0, 3), done.output
        assert len(server.served) == 4
        judges = [
            "--scorer",
            "evalbudget_inspect/cyclic_judge",
            "-S",
            "judges=openai-api/here/j,openai-api/here/k",
        ]
        done = command(
            "score", logs[0], *judges, "--action", "append", "--output-file", tmp_path / "scored.eval"
        )
        assert done.exit_code == 0, done.output
    assert not leaks(out)
    log = read_eval_log(str(tmp_path / "scored.eval"))
    scores = [score for sample in log.samples or [] for score in (sample.scores or {}).values()]
    assert any("*** [[A]] RATING: 5" in (score.explanation or "") for score in scores)
    assert not found_in("".join(score.model_dump_json() for score in scores))


@pytest.mark.parametrize(
    "text",
    [
        "simulated/writer: {input: 1, output: 2, api_key: marked-price}\n",
        "api_key: marked-price: {input: 1\n",
    ],
)
def test_keys_in_files_that_cannot_be_read(text: str, task_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(text)
    words = ["eval", f"{task_file}@rating", "--model", "simulated/writer"]
    for more in (
        ["--budget", "$1", "--prices", "file.yaml"],
        ["--budget", 18, "--judges", "file.yaml"],
        ["--budget", 18, "--sampler", "robin", "--variances", "file.yaml"],
    ):
        done = command(*words, *more)
        assert done.exit_code == 2
