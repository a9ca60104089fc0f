"""Whatever is typed of our flags beside a host's ends with a message, or reaches the host; no traceback."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile.damage import always_the_same
from tests.hostile.test_commands import VALUES

from evalbudget.cli.main import cli
from evalbudget.flags import Flag

MORE = {"budget": ("3", "2x", "10000x"), "sampler": ("uniform", "pulse", "race", "pp-lucb", "unifrom")}
TASK = """\
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes

@task
def tiny(part: str = "all"):
    return Task(dataset=[Sample(input="a", target="a"), Sample(input="b", target="b")], scorer=includes())
"""
RUNS = always_the_same(60, seconds=60.0)  # the first one imports the host


def words(flags: Sequence[Flag]) -> st.SearchStrategy[list[str]]:
    def of(flag: Flag) -> st.SearchStrategy[list[str]]:
        if flag.switch:
            return st.just([flag.option])
        values = st.sampled_from([*MORE.get(flag.name, ()), *VALUES])
        return values.map(lambda value: [flag.option, value])

    some = st.lists(st.sampled_from(flags).flatmap(of), max_size=3)
    budget = st.sampled_from([[], ["--budget", "2x"], ["--budget", "4"]])
    return st.builds(lambda first, more: [*first, *itertools.chain(*more)], budget, some)


def ends(command: Sequence[str]) -> None:
    done = CliRunner().invoke(cli, list(command), input="")
    assert done.exception is None or isinstance(done.exception, SystemExit), (command, repr(done.exception))
    assert done.exit_code in (0, 1, 2), command
    if done.exit_code == 2:
        assert "Traceback" not in done.output, command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["eval", "eval-set", "race", "audit"])
def test_inspect(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai")
    repeats, races, audits = (
        importlib.import_module(module).FLAGS
        for module in (
            "evalbudget_inspect.repeats.flags",
            "evalbudget.races.flags",
            "evalbudget.audits.flags",
        )
    )
    (here / "tiny.py").write_text(TASK)
    monkeypatch.setattr("evalbudget_inspect.host.run_host.host_main", lambda: None)
    store = ["audit.sqlite"] if name == "audit" else []
    flags = {"race": races, "audit": audits}.get(name, repeats)
    models = st.sampled_from([["--model", "mockllm/a,mockllm/b"], ["--model", "mockllm/a"], ["--model"], []])

    @RUNS
    @given(st.one_of(words(flags), words([*repeats, *races, *audits])), models)
    def each(ours: list[str], model: list[str]) -> None:
        ends(["inspect", name, *store, "tiny.py", *ours, *model])

    each()


@pytest.mark.parametrize("name", ["run", "race"])
def test_lm_eval(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lm_eval")
    repeats = importlib.import_module("evalbudget_lm_eval.repeats.flags").FLAGS
    races = importlib.import_module("evalbudget.races.flags").FLAGS
    host = importlib.import_module("evalbudget_lm_eval.host.private").HarnessCLI
    monkeypatch.setattr(host, "execute", lambda self, args: None)
    arms = st.sampled_from(
        [["--arm", "a=dummy"], ["--arm", "a=dummy", "--arm=b=dummy:x"], ["--arm", "="], []]
    )
    fixed = ["--tasks", "no-such-task"] if name == "race" else ["--model", "dummy", "--tasks", "no-such-task"]

    @RUNS
    @given(st.one_of(words(races if name == "race" else repeats), words([*repeats, *races])), arms)
    def each(ours: list[str], arm: list[str]) -> None:
        ends(["lm-eval", name, *fixed, *ours, *(arm if name == "race" else [])])

    each()
