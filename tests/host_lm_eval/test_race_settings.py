"""Races of settings on lm-eval: other prompts, shots and generation options, of one model or of several."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.host_lm_eval.race_worlds import KIND, Racer
from tests.host_lm_eval.worlds import write_task

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval import race
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.settings import every_pair, is_setting, parse_setting, with_setting
from evalbudget_lm_eval.cli import lm_eval_command
from loopback import Asked, Server

N = 40


def test_settings_are_read() -> None:
    assert parse_setting("num_fewshot=5,gen_kwargs.temperature=0.7, apply_chat_template=True") == (
        "num_fewshot=5,gen_kwargs.temperature=0.7, apply_chat_template=True",
        {"num_fewshot": 5, "gen_kwargs": {"temperature": 0.7}, "apply_chat_template": True},
    )
    assert parse_setting('polite={"system_instruction": "Please, be brief."}') == (
        "polite",
        {"system_instruction": "Please, be brief."},
    )
    assert [is_setting(text) for text in ("tasks=a", "gen_kwargs.x=1", 'a={"tasks": "b"}')] == [True] * 3
    assert not any(map(is_setting, ("a=hf:pretrained=x", "a=dummy", 'a=hf:{"pretrained": "x"}')))
    host = {"gen_kwargs": "temperature=1,top_p=0.5", "num_fewshot": 2, "limit": 3}
    assert with_setting(host, {"tasks": "b", "gen_kwargs": {"temperature": 0}}) == {
        "gen_kwargs": {"temperature": 0, "top_p": 0.5},
        "num_fewshot": 2,
        "limit": 3,
    }
    models, settings = (
        [Arm("a", "hf"), Arm("b", "hf")],
        [("x", {"num_fewshot": 1}), ("y", {"num_fewshot": 2})],
    )
    assert [arm.name for arm in every_pair(models, settings)] == ["a x", "a y", "b x", "b y"]
    assert [arm.name for arm in every_pair(models[:1], settings)] == ["a x", "a y"]
    assert [arm.name for arm in every_pair(models[:1], settings, named=False)] == ["x", "y"]
    assert every_pair(models, []) == models


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("num_fewshot", InvalidInputError, "not KEY=VALUE"),
        ("num_fewshot=1,limit=3", UnknownNameError, "'limit'"),
        ("a={}", InvalidInputError, "has no settings"),
        ("a={x", InvalidInputError, "no JSON object"),
        ("gen_kwargs=3", InvalidInputError, "write gen_kwargs.temperature"),
        ("gen_kwargs=3,gen_kwargs.x=1", InvalidInputError, "twice"),
        ("num_fewshot=1,num_fewshot=2", InvalidInputError, "num_fewshot twice"),
        ("num_fewshot=-1", InvalidInputError, "0 or more"),
        ("num_fewshot=many", InvalidInputError, "0 or more"),
        ('a={"tasks": ["b"]}', InvalidInputError, "name one task"),
    ],
)
def test_settings_that_cannot_be_read(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_setting(text)


def exact(asked: Asked) -> str:
    """Right where the prompt asks for exactness, or at temperature 0; two in three otherwise."""
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    careful = "exact" in asked.prompt or asked.body.get("temperature") == 0
    return f"{number}" if careful or number % 3 else "?"


def flags(server: Server, tasks: Path, *more: str) -> list[str]:
    return [
        *(
            "race",
            "--model",
            "local-chat-completions",
            "--model_args",
            server.chat_args("m", num_concurrent=2),
        ),
        *("--tasks", "numbers", "--include_path", str(tasks), "--apply_chat_template", "--batch", "8", *more),
    ]


def test_settings_of_one_model_race(server: Server, tmp_path: Path, own_tasks_only: None) -> None:
    server.answer = exact
    tasks, out = write_task(tmp_path / "tasks", n=N), tmp_path / "out"
    arms = ["--arm", "num_fewshot=0", "--arm", 'exact={"system_instruction": "Be exact, please."}']
    cold = ["--arm", "gen_kwargs.temperature=0"]
    command = flags(server, tasks, *arms, "--until_proved", "--output_path", str(out), "--log_samples")
    result = CliRunner().invoke(lm_eval_command, command)
    assert result.exit_code == 0, result.output
    assert "exact" in result.output.split("status")[1].splitlines()[2]
    calls = server.calls()
    assert calls <= 2 * N
    blocks = {}
    for path in out.rglob("results_*.json"):
        found = json.loads(path.read_text())
        blocks[found["evalbudget"]["arm"]] = found
    assert set(blocks) == {"num_fewshot=0", "exact"}
    assert blocks["exact"]["evalbudget"]["settings"] == {"system_instruction": "Be exact, please."}
    assert blocks["exact"]["results"]["numbers"]["exact_match,none"] == 1.0
    assert blocks["exact"]["config"]["model"] == "local-chat-completions"
    assert blocks["exact"]["system_instruction"] == "Be exact, please."
    systems = Counter(one.body["messages"][0]["role"] for one in server.served)
    assert set(systems) == {"system", "user"}

    # the same command is told again; a further setting joins what is known
    assert CliRunner().invoke(lm_eval_command, command).exit_code == 0
    assert server.calls() == calls
    result = CliRunner().invoke(lm_eval_command, [*command, *cold])
    assert result.exit_code == 0, result.output
    assert server.calls() > calls
    assert 0 in {one.body["temperature"] for one in server.served[calls:]}
    assert all(one.body["temperature"] == 1.0 for one in server.served[:calls])


def test_tasks_with_other_prompts_race_on_the_same_documents(
    server: Server, tmp_path: Path, own_tasks_only: None
) -> None:
    server.answer = exact
    tasks = write_task(tmp_path / "tasks", n=N)
    write_task(tasks, "exactly", N, doc_to_text="be exact and say {{number}} please")
    write_task(tasks, "fewer", N - 1)
    write_task(tasks, "others", N, doc_to_target="{{number + 1}}")
    data = (tasks / "others.jsonl").read_text().replace('"text": "', '"text": "n')
    (tasks / "others.jsonl").write_text(data)
    command = flags(server, tasks, "--budget", "100%")
    del command[command.index("--tasks") : command.index("--tasks") + 2]
    result = CliRunner().invoke(
        lm_eval_command, [*command, "--arm", "tasks=numbers", "--arm", "tasks=exactly"]
    )
    assert result.exit_code == 0, result.output
    assert "tasks=exactly" in result.output.split("status")[1].splitlines()[2]
    calls = server.calls()
    assert calls <= 2 * N
    for other, message in [
        ("fewer", f"'fewer' has {N - 1} documents and task 'numbers' {N}"),
        ("others", "document 0 of task 'others' is another one"),
        ("exactli", "exactly"),
    ]:
        arms = ["--arm", "tasks=numbers", "--arm", f"tasks={other}"]
        result = CliRunner().invoke(lm_eval_command, [*command, *arms])
        assert result.exit_code != 0
        assert message in str(result.exception), result.exception
    assert server.calls() == calls


def test_every_model_has_every_setting_and_is_loaded_once(tmp_path: Path, own_tasks_only: None) -> None:
    tasks = write_task(tmp_path / "tasks", n=N, num_fewshot=1)
    found = race(
        {"a": f"{KIND}:skill=0.9,seed=0", "b": f"{KIND}:skill=0.2,seed=1"},
        "numbers",
        settings={"zero": {"num_fewshot": 0}, "two": {"num_fewshot": 2}},
        budget="100%",
        include_path=tasks,
        keep=1,
        batch=N,
    )
    assert set(found.results) == {"a zero", "a two", "b zero", "b two"}
    assert Racer.most_alive == 1
    seeds = [seed for seed, _ in Racer.asked]
    turns = 1 + sum(one != other for one, other in pairwise(seeds))
    assert Racer.loads.total() == turns  # never for another setting of the model that is loaded
    assert sum(found.loads.values()) == Racer.loads.total()
    shots = {name: prompt(results).count("say ") for name, results in found.results.items()}
    assert shots == {"a zero": 1, "b zero": 1, "a two": 3, "b two": 3}
    assert found.results["a two"]["config"]["model"] == KIND
    assert found.results["a zero"]["config"]["model"] == KIND


def prompt(results: dict[str, Any]) -> str:
    return str(results["samples"]["numbers"][0]["arguments"][0][0])


def test_a_setting_that_the_host_refuses_is_lost_alone(tmp_path: Path, own_tasks_only: None) -> None:
    tasks = write_task(tmp_path / "tasks", n=N)
    found = race(
        {"m": f"{KIND}:skill=0.9,seed=0"},
        "numbers",
        settings={
            "plain": {"gen_kwargs": {"temperature": 0}},
            "chat": {"apply_chat_template": True},  # they have none
            "warm": {"gen_kwargs": {"temperature": 0.5}},
        },
        budget="60%",
        include_path=tasks,
        keep=1,
    )
    assert Racer.most_alive == 1
    assert set(found.results) == {"m plain", "m warm"}
    (lost,) = [one.name for one in found.leaderboard.standings if one.status.value == "lost"]
    assert lost == "m chat"


def test_settings_need_a_model_of_theirs(tmp_path: Path, own_tasks_only: None) -> None:
    tasks = write_task(tmp_path / "tasks", n=N)
    shared = ["race", "--tasks", "numbers", "--include_path", str(tasks), "--budget", "50%"]
    for more, message in [
        (["--arm", "num_fewshot=0", "--arm", "num_fewshot=1"], "settings race on a model"),
        (["--model", "dummy", "--arm", "num_fewshot=0"], "a race needs two arms or more"),
        (["--model", "dummy", "--arm", "num_fewshot=0", "--arm", "num_fewshot=0"], "two arms are named"),
        (
            ["--model", "dummy", "--arm", "num_fewshot=0", "--arm", "gen_kwargs.x=1", "--arm", "a=dummy"],
            "--model is not for several models",
        ),
        (
            ["--model", "dummy", "--arm", "num_fewshot=0", "--arm", "num_fewshot=2"],
            "ask the same in the same way",
        ),
    ]:
        result = CliRunner().invoke(lm_eval_command, [*shared, *more])
        assert message in str(result.exception), (more, result.output, result.exception)
