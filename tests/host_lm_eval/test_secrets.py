"""Marked secrets, given in every way there is, occur in nothing that we write or print, killed or not."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from click.testing import Result
from lm_eval.tasks import TaskManager
from tests import keys
from tests.host_lm_eval.log_worlds import averages, write_log
from tests.host_lm_eval.worlds import EVALBUDGET, environment, simple_evaluate, write_task
from tests.keys import found_in, leaks, read_by_every_command, terminal

import warm
from evalbudget import secrets
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.arms.arm import arms_of
from evalbudget_lm_eval.judges.judge_models import read_judges
from loopback import Server

VARIABLES = {
    name: f"marked-variable-{name.lower()}"
    for name in ("OPENAI_API_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD", "GITHUB_TOKEN")
}
ARMS = {name: f"marked-arm-{name}-0" for name in ("api_key", "auth_token", "password", "header")}
OTHERS = {name: f"marked-{name}-0" for name in ("judge", "store", "model-args", "address")}


@pytest.fixture
def server(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Repeats in its replies what asks it was given."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(secrets, "_given", set())
    given = [*VARIABLES.values(), *ARMS.values()]
    server.answer = lambda asked: f"{asked.luck * 9:.0f} {' '.join(given)} RATING: 3 [[A]]"
    return server


def command(*words: object) -> Result:
    return keys.command("lm-eval", *words)


def shared(tmp_path: Path) -> list[object]:
    tasks = write_task(tmp_path / "tasks", n=6)
    return ["--tasks", "numbers", "--include_path", tasks, "--apply_chat_template"]


def arms(server: Server) -> Iterable[str]:
    address = server.chat.replace("://", f"://me:{ARMS['password']}@")
    header = {"Authorization": f"Bearer {ARMS['header']}", "x-api-key": ARMS["header"]}
    given = {"base_url": address, "max_retries": 1}
    yield json.dumps({"model": "a", **given, "api_key": ARMS["api_key"], "auth_token": ARMS["auth_token"]})
    yield json.dumps({"model": "b", **given, "header": header})


@pytest.mark.usefixtures("own_tasks_only")
def test_no_way_in_leaks(server: Server, tmp_path: Path) -> None:
    task, out = shared(tmp_path), tmp_path / "out"
    models = [f"--arm=a{i}=local-chat-completions:{arm}" for i, arm in enumerate(arms(server))]
    server.fail(401, times=1, after=3)
    raced = command("race", *models, *task, "--budget", 24, "--output_path", out, "--log_samples")
    assert raced.exit_code in (0, 3)
    served = len(server.served)
    assert served >= 12
    again = [model.replace(ARMS["api_key"], "another-key") for model in models]
    command("race", *again, *task, "--budget", 24, "--output_path", out, "--log_samples")
    assert len(server.served) == served  # a run goes on with another key
    report = keys.command("report", out, "--html", tmp_path / "page.html", "--json", tmp_path / "read.json")
    assert report.exit_code == 0, report.output
    audited = ["audit", tmp_path / "audit.sqlite", *models, *task, "--score_range", "0..1"]
    assert command(*audited, "--sampler_option", "items=4").exit_code == 3
    judge = f"local-chat-completions:model=j,base_url={server.chat}"
    compared = command("pairwise", out / "a", out / "b", "--budget", 4, "--judge", judge)
    assert compared.exit_code in (0, 3), compared.output
    plain = ["--model", "local-chat-completions", "--model_args", f"model=m,base_url={server.chat}"]
    judges = f"{judge},{judge.replace('=j', '=k')}"
    judged = ["--budget", 12, "--judges", judges, "--output_path", tmp_path / "judged"]
    done = command("run", *plain, *task, *judged)
    assert done.exit_code == 0, done.output
    include = [*task[2:4], "--output_path", tmp_path / "again", "--log_samples"]
    done = command("score", out / "a", *include, "--judges", judges)
    assert done.exit_code == 0, done.output
    prices = tmp_path / "prices.yaml"
    paid = ["--gen_kwargs", "max_gen_toks=20", "--output_path", tmp_path / "paid"]
    prices.write_text("m: {input: 100, output: 1000}\n")
    done = command("run", *plain, *task, "--budget", "$0.3", "--prices", prices, *paid)
    assert done.exit_code == 0, done.output
    assert "of $0.30" in done.output
    known = tmp_path / "known.yaml"
    known.write_text("".join(f"numbers:{i}: 0.25\n" for i in range(6)))
    robin = ["--sampler", "robin", "--variances", known, "--output_path", tmp_path / "robin"]
    done = command("run", *plain, *task, "--budget", 12, *robin)
    assert done.exit_code == 0, done.output
    others = [model.replace('"model": "', '"model": "other-') for model in models]
    earlier = ["--history", out, "--output_path", tmp_path / "others"]
    done = command("race", *others, *task, "--budget", 24, *earlier, "--log_samples")
    assert done.exit_code in (0, 3), done.output
    files = [word for kind in ("json", "markdown", "junit") for word in (f"--{kind}", tmp_path / kind)]
    gate = [
        "gate",
        *plain,
        *task,
        "--baseline_model",
        judge,
        "--margin",
        0.9,
        "--output_path",
        tmp_path / "new",
    ]
    done = command(*gate, *files)
    assert done.exit_code in (0, 1, 3), done.output
    assert not leaks(tmp_path, but="samples_")


@pytest.mark.usefixtures("own_tasks_only")
def test_where_a_key_would_be_written_it_is_refused(server: Server, tmp_path: Path) -> None:
    task, out = [*shared(tmp_path), "--budget", 12, "--output_path", tmp_path / "out"], tmp_path / "out"
    given = f"model=m,base_url={server.chat}"
    model = ["--model", "local-chat-completions", "--model_args"]
    judge = f"local-chat-completions:model=j,base_url={server.chat},api_key={OTHERS['judge']}"
    address = {"base_url": f"{server.chat}?key={OTHERS['address']}"}
    keyed = json.dumps([{"model": "local-chat-completions:model=j", "model_args": address}])
    store = f"postgresql://me:{OTHERS['store']}@localhost/evals"
    for more, remedy in (
        ([*model, f"{given},api_key={OTHERS['model-args']}"], "set the variable that is read in its place"),
        (
            [*model, given.replace("://", f"://me:{OTHERS['address']}@")],
            "--model_args has a secret in base_url",
        ),
        (
            [*model, given, "--gen_kwargs", f"api_key={OTHERS['model-args']}"],
            "--gen_kwargs has a secret in api_key",
        ),
        ([*model, given, "--judges", judge], "set the variable that is read in its place"),
        ([*model, given, "--judges", keyed], "judge 'j' has a secret in base_url"),
        ([*model, given, "--store", store], "put it into the variable PGPASSWORD"),
    ):
        done = command("run", *more, *task)
        assert (done.exit_code, remedy in " ".join(done.output.split())) == (2, True), done.output
    assert not server.served
    assert not out.exists()


@pytest.mark.parametrize(
    ("verb", "flags"),
    [
        ("run", {"model_args": {"auth_token": OTHERS["model-args"]}}),
        ("run", {"model_args": f"model=m, api_key={OTHERS['model-args']}"}),
        ("run", {"hf_hub_log_args": {"token": OTHERS["model-args"]}}),
        ("race", {"model_args": {"api_key": OTHERS["model-args"]}}),
    ],
)
def test_a_key_in_a_file_of_flags_is_refused(
    verb: str, flags: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    given, out = tmp_path / "flags.yaml", tmp_path / "out"
    given.write_text(json.dumps({"model": "local-chat-completions", **flags}))
    models = [] if verb == "run" else [f"--arm={a}=local-chat-completions:model={a}" for a in "ab"]
    done = command(verb, *models, "--config", given, *shared(tmp_path), "--budget", 12, "--output_path", out)
    assert (done.exit_code, "flags.yaml has a secret in" in " ".join(done.output.split())) == (2, True), (
        done.output
    )
    assert not out.exists()


def test_a_key_of_a_model_that_was_made_in_python(server: Server, tmp_path: Path) -> None:
    from lm_eval.models.openai_completions import LocalChatCompletion

    lm = LocalChatCompletion(model="m", base_url=server.chat, auth_token=ARMS["auth_token"])
    lm.header = {"x-api-key": ARMS["header"]}
    server.answer = lambda asked: f"7 {ARMS['auth_token']} {ARMS['header']}"
    write_task(tmp_path, n=6)
    with budgeted(budget=6):
        simple_evaluate(tmp_path, lm, apply_chat_template=True)
    assert len(server.served) == 6
    assert not leaks(tmp_path, but="samples_")


@pytest.mark.parametrize("what", ["gen_kwargs", "model_args"])
def test_a_key_that_python_gives_to_the_host_is_refused(what: str, server: Server, tmp_path: Path) -> None:
    args, key = {"model": "m", "base_url": server.chat}, {"auth_token": OTHERS["model-args"]}
    tasks = write_task(tmp_path, n=6)
    given: dict[str, Any] = {"model_args": args | key} if what == "model_args" else {"gen_kwargs": key}
    manager = TaskManager(include_path=str(tasks), include_defaults=False, metadata=given.get("model_args"))
    with budgeted(budget=6), pytest.raises(InvalidInputError, match="of task 'numbers' has a secret in auth"):
        lm_eval.simple_evaluate(
            "local-chat-completions", tasks=["numbers"], task_manager=manager, **{"model_args": args, **given}
        )
    assert not server.served
    assert not leaks(tmp_path)


@pytest.mark.parametrize(
    "judges",
    [
        {"api_key": ARMS["api_key"]},
        [{"modle": "a", "api_key": ARMS["api_key"]}],
        [f"a=b:api_key={ARMS['api_key']}"],
    ],
)
def test_judges_that_cannot_be_read_are_quoted_without_their_keys(judges: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"\*\*\*") as refused:
        read_judges(judges)
    assert not found_in(str(refused.value))


def test_arms_are_quoted_without_their_keys() -> None:
    (arm,) = arms_of({"a": ("m", {"api_key": ARMS["api_key"]})})
    assert not found_in(repr(arm))
    with pytest.raises(InvalidInputError, match=r"arm 'b' is \('m', {'api_key': \*\*\*}, 1\)") as refused:
        arms_of({"b": ("m", {"api_key": ARMS["api_key"]}, 1)})
    assert not found_in(str(refused.value))


def test_killed(server: Server, tmp_path: Path) -> None:
    server.latency = 0.05
    models = [f"--arm=a{i}=local-chat-completions:{arm}" for i, arm in enumerate(arms(server))]
    words = ["lm-eval", "race", *models, *shared(tmp_path), "--budget", 24, "--output_path", tmp_path / "out"]
    with terminal() as (screen, said):
        process = warm.Popen(
            [sys.executable, "-c", EVALBUDGET, *map(str, words)],
            host="lm-eval",
            stdout=screen,
            stderr=screen,
            cwd=tmp_path,
            env=environment(),
        )
        while process.poll() is None and (len(server.served) < 4 or b"still possible" not in said):
            time.sleep(0.02)
        assert process.poll() is None, said
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert not found_in(said)
    assert not leaks(tmp_path, but="samples_")


def test_keys_in_output_of_the_host(tmp_path: Path) -> None:
    """Of others, who gave them to a plain run; a system prompt is data of the task, and stays."""
    for n, name in enumerate(("old", "new")):
        login = f"http://me:marked-login-{n}@host/v1?key=marked-query-{n}"
        inside = {"judge": {"password": f"marked-inner-{n}"}, "url": login, "api_key": f"marked-key-{n}"}
        write_log(
            tmp_path / name,
            [float((i + n) % 2) for i in range(6)],
            args=f"pretrained=org/m,base_url={login},auth_token=marked-token-{n}",
            task_config={
                "generation_kwargs": inside,
                "metadata": inside,
                "filter_list": [{"filter": [inside]}],
            },
            metrics=[averages("acc")[0] | inside],
            config={"gen_kwargs": f"auth_token=marked-generation-{n}"},
        )
    read_by_every_command(tmp_path / "old", tmp_path / "new", tmp_path / "out")


@pytest.mark.parametrize(
    "text", ["m: {input: 1, output: 2, api_key: marked-file}", "api_key: marked-file: {a: 1"]
)
@pytest.mark.parametrize("flag", ["--prices", "--judges", "--variances"])
def test_keys_in_files_that_cannot_be_read(text: str, flag: str, server: Server, tmp_path: Path) -> None:
    (file := tmp_path / "file.yaml").write_text(text)
    model = ["--model", "local-chat-completions", "--model_args", server.chat_args()]
    more = ["--budget", "$1"] if flag != "--variances" else ["--budget", 12, "--sampler", "robin"]
    done = command("run", *model, *shared(tmp_path), *more, flag, file)
    assert done.exit_code == 2, done.output
    assert not server.served
