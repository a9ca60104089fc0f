"""argv of ``evalbudget inspect eval`` as inspect gets it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai._cli.main import inspect as host

from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.private import parse_cli_args
from evalbudget_inspect.host.rewrite import ENTRY, NAME, arguments_of, host_arguments

for room in ("audits", "races"):  # before tests put something else in run_host's place, which would stay
    import_module(f"evalbudget_inspect.{room}.command")


def _rewrite(*args: str, **ours: Any) -> list[list[str]]:
    return host_arguments(host.commands["eval"], args, ours)


def _ours(rewritten: list[str]) -> dict[str, Any]:
    """Our arguments, read as the host and our entries read them."""
    return arguments_of(parse_cli_args([rewritten[2]])[NAME])


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the host was given to run."""
    given: list[list[str]] = []
    monkeypatch.setattr(
        "evalbudget_inspect.host.run_host.run_host", lambda argv, until=None: given.append(argv) or 0
    )
    return given


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    source = "from inspect_ai import Task, task\n\n@task\ndef {name}():\n    return Task()\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(source.format(name=name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_task_becomes_an_argument(folder: Path) -> None:
    assert _rewrite("one.py", "--model", "m", budget="50") == [
        [ENTRY, "-T", f'evalbudget={{"task": "{folder}/one.py@one", "budget": "50"}}', "--model", "m"]
    ]
    (named,) = _rewrite("--model", "m", "one.py@one", budget="50")
    assert _ours(named)["task"] == f"{folder}/one.py@one"
    (registered,) = _rewrite("some_package/some_task", budget="50")
    assert _ours(registered)["task"] == "some_package/some_task"


TEXTS = (
    "2,000",
    "no",
    "yes",
    "1e3",
    "0x10",
    "2026-01-01",
    "null",
    "~",
    " a: b ",
    "#1",
    "naïve 🧪",
    "a\tb\n",
    '"',
)
VALUES = (5, -1, 0.25, 1e-7, 1e22, True, None, [1, "a,b"], {"a": {"model": "m", "temperature": 0.5}}, [])


@pytest.mark.parametrize("value", [*TEXTS, *VALUES])
def test_what_was_typed_arrives_as_it_was_typed(folder: Path, value: Any) -> None:
    (rewritten,) = _rewrite("one.py", budget="50", value=value)
    found = _ours(rewritten)["value"]
    assert found == value
    assert type(found) is type(value)


def test_ours_must_be_a_mapping() -> None:
    with pytest.raises(InvalidInputError, match="is no mapping"):
        arguments_of("budget")


@pytest.mark.parametrize(
    "flags",
    [
        ("--model", "one.py"),
        ("--tags", "one.py", "-T", "file=one.py"),
        ("--model-role", 'grader={"model": "one.py", "temperature": 1}', "-T", "one.py=1"),
        ("--log-dir", "one.py", "-M", "path=one.py", "--limit", "5"),
    ],
)
def test_a_flag_that_reads_like_the_task_is_left_alone(folder: Path, flags: tuple[str, ...]) -> None:
    for args in ((*flags, "one.py"), ("one.py", *flags)):
        (rewritten,) = _rewrite(*args, budget="50")
        assert rewritten[3:] == list(flags)


def test_several_tasks_and_folders(folder: Path) -> None:
    by_name = _rewrite("one.py", "two.py", "--limit", "3", budget="50")
    assert [_ours(arguments)["task"].rpartition("@")[2] for arguments in by_name] == ["one", "two"]
    assert all(arguments[-2:] == ["--limit", "3"] for arguments in by_name)
    assert sorted(_rewrite(str(folder), budget="50")) == sorted(_rewrite(budget="50"))
    assert len(_rewrite(budget="50")) == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("one.py two.py --model a,b --budget 20x", "4 runs (2 tasks x 2 models) of 20x each"),
        ("one.py --model a,b,c --budget 20x", "3 runs (1 task x 3 models) of 20x each"),
        ("one.py --model a --budget 40", None),
    ],
)
def test_a_budget_by_item_is_not_split(
    sized: Path, args: str, said: str | None, ran: list[list[str]]
) -> None:
    done = CliRunner().invoke(cli, ["inspect", "eval", *args.split()])
    assert done.exit_code == 0, done.output
    assert (f"evalbudget: {said}" in done.stderr.splitlines()) is (said is not None)
    assert [_ours(argv[1:])["budget"] for argv in ran] == [args.split()[-1]] * args.count(".py")


ITEMS = """\
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match

@task
def {name}(items: int = {items}):
    return Task(dataset=[Sample(input="x")] * items, scorer=match())
"""


@pytest.fixture
def sized(folder: Path) -> Path:
    for name, items in (("one", 4), ("two", 8)):
        (folder / f"{name}.py").write_text(ITEMS.format(name=name, items=items))
    return folder


@pytest.mark.parametrize(
    ("args", "budgets", "said"),
    [
        ("one.py two.py --model a,b --budget 120", [20, 40], "one 20, two 40, for each of 2 models; 120"),
        # 21 and 43 for each model leave 3 of 131: one goes to either model of the first
        ("one.py two.py --model a,b --budget 131", [22, 43], "one 22, two 43, for each of 2 models; 130"),
        # fewer than items: a sample of them
        ("one.py two.py --model a,b --budget 12", [2, 4], "one 2, two 4, for each of 2 models; 12"),
        ("one.py two.py --budget 90 --limit 6", [36, 54], "one 36, two 54; 90"),
        ("one.py two.py --budget 90 -T items=5", [45, 45], "one 45, two 45; 90"),
        ("one.py --model-spec a --model-spec b --budget 90", [45], "one 45, for each of 2 models; 90"),
    ],
)
def test_a_total_is_shared_by_items(
    sized: Path, args: str, budgets: list[int], said: str, ran: list[list[str]]
) -> None:
    done = CliRunner().invoke(cli, ["inspect", "eval", *args.split()])
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[0] == f"evalbudget: one budget for all runs: {said} scores in all"
    assert [_ours(argv[1:])["budget"] for argv in ran] == budgets


def test_models_are_counted_as_the_host_takes_them(
    sized: Path, monkeypatch: pytest.MonkeyPatch, ran: list[list[str]]
) -> None:
    (sized / "run.yaml").write_text("eval_config:\n  temperature: 0.5\n")
    several = "eval one.py --model-spec a --model-spec b --budget 90 --run-config run.yaml"
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "e")
    done = CliRunner().invoke(cli, ["inspect", *several.split()])
    assert done.exit_code == 0, done.output
    assert [_ours(argv[1:])["budget"] for argv in ran] == [45]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            "eval one.py two.py --model a,b --budget 47 --sampler auto",
            "--budget 47 is one total for all 4 runs, in proportion to items, and leaves 15 scores to each "
            "run of 'two', which needs 16: ",
        ),
        ("eval one.py two.py --model a,b --budget 47 --sampler auto", "Raise it to 48 or more"),
        ("eval one.py two.py --budget 90 --epochs 9", "4 items x 9 epochs (--epochs)"),
        ("eval one.py two.py@three --budget 90", "Task named 'three' not found"),
        ("eval one.py two.py --budget 90 --limit many", "--limit many is no number"),
        ("eval one.py two.py --budget 90 --sample-id none", "No matches in dataset"),
    ],
)
def test_what_cannot_be_shared_is_refused_first(
    sized: Path, args: str, message: str, ran: list[list[str]]
) -> None:
    refused = CliRunner().invoke(cli, ["inspect", *args.split()])
    assert refused.exit_code == 2, refused.output
    assert message in refused.output
    assert ran == []


def test_a_missing_file_says_so(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'three\.py' does not exist"):
        _rewrite("three.py", budget="50")


def test_commands_of_the_host_pass_through() -> None:
    runner = CliRunner()
    shown = runner.invoke(cli, ["inspect", "--help"])
    assert shown.exit_code == 0
    assert {"eval", "eval-set", "eval-retry", "view", "score"} <= set(shown.output.split())
    ours = runner.invoke(cli, ["inspect", "eval", "--help"])
    assert ours.exit_code == 0
    assert "--budget" in ours.output
    assert "--repeat" in ours.output
    theirs = runner.invoke(cli, ["inspect", "list", "--help"])
    assert theirs.exit_code == 0
    assert "tasks" in theirs.output
    wrong = runner.invoke(cli, ["inspect", "evl"])
    assert wrong.exit_code == 2
    assert "Did you mean 'eval'" in wrong.output


def test_without_a_budget_the_command_is_stock(ran: list[list[str]]) -> None:
    result = CliRunner().invoke(cli, ["inspect", "eval", "a.py", "--model", "m", "-T", "budget=3"])
    assert result.exit_code == 0
    assert ran == [["eval", "a.py", "--model", "m", "-T", "budget=3"]]
