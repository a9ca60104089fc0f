"""Plugins that end with anything disable themselves by name, with one line, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import pytest
from tests.claims import variant

import warm
from evalbudget import hookimpl
from evalbudget.backtest import RecordedScores
from evalbudget.doctor import Check, diagnose
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import DISABLE, Plugins
from evalbudget.repeats.samplers import Uniform
from evalbudget.report import SECTIONS, Section, report


class OddError(BaseException):
    pass


class SilentError(Exception):
    def __str__(self) -> str:
        raise SystemExit(5)


RAISED = {
    "SystemExit: 3": SystemExit(3),
    "SystemExit": SystemExit(),
    "GeneratorExit": GeneratorExit(),
    "OddError: of two lines": OddError("of two\nlines"),
    "SilentError": SilentError(),
    "StopIteration": StopIteration(),
}
raised = pytest.mark.parametrize("reason", RAISED)


def raising(error: BaseException) -> Callable[[], Any]:
    def raises() -> Any:
        raise error

    return raises


def plugin(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> Any:
    module = ModuleType(f"hostile_{name}")
    for attribute, function in functions.items():
        setattr(module, attribute, hookimpl(function))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return SimpleNamespace(name=f"dist-{name}", version="1"), EntryPoint(name, module.__name__, "evalbudget")


def good(monkeypatch: pytest.MonkeyPatch) -> Any:
    mine = type("Mine", (Uniform,), {"name": "mine"})
    return plugin(monkeypatch, "good", evalbudget_register_samplers=lambda: [mine])


def check_left_out(found: Plugins, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    (bad,) = [info for info in found.found if info.name == "bad"]
    assert bad.error is not None
    assert reason in bad.error
    assert bad.provides == {}
    assert "mine" in found.samplers
    (told,) = caplog.messages
    assert told == f"plugin 'bad' is left out: {bad.error}. To leave it out from now on: {DISABLE}=bad"
    assert "\n" not in told


@raised
def test_at_import(reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    package, entry_point = plugin(monkeypatch, "bad")
    bad = SimpleNamespace(name="bad", value=entry_point.value, load=raising(RAISED[reason]))
    check_left_out(Plugins([(package, bad), good(monkeypatch)]), reason, caplog)


@raised
def test_while_it_says_what_it_brings(
    reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad = plugin(
        monkeypatch,
        "bad",
        evalbudget_register_samplers=lambda: [type("Half", (Uniform,), {"name": "half"})],
        evalbudget_register_checks=raising(RAISED[reason]),
    )
    found = Plugins([bad, good(monkeypatch)])
    assert "half" not in found.samplers
    check_left_out(found, reason, caplog)


@raised
def test_while_it_adds_commands(
    reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(cli: click.Group) -> None:
        raise RAISED[reason]

    found = Plugins([plugin(monkeypatch, "bad", evalbudget_add_commands=fails), good(monkeypatch)])
    found.add_commands(click.Group())
    check_left_out(found, reason, caplog)


@raised
def test_while_it_looks_at_a_price(
    reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(model: str) -> None:
        raise RAISED[reason]

    cheap = object()
    entry_points = [
        plugin(monkeypatch, "prices", evalbudget_price_of=lambda model: cheap),
        plugin(monkeypatch, "bad", evalbudget_price_of=fails),  # the last one is asked first
        good(monkeypatch),
    ]
    found = Plugins(entry_points)
    assert found.price_of("m") is cheap
    assert found.price_of("m") is cheap
    check_left_out(found, reason, caplog)


def test_while_it_reads_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(path: Path) -> None:
        raise SystemExit(3)

    found = Plugins([plugin(monkeypatch, "bad", evalbudget_open_scores=fails), good(monkeypatch)])
    file = tmp_path / "scores.csv"
    file.write_text("item,score\na,1\nb,2\n")
    assert found.open_scores(file).items == ("a", "b")
    check_left_out(found, "SystemExit: 3", caplog)


def test_what_it_reads_and_is_no_scores_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def junk(path: Path) -> int:
        return 5

    found = Plugins([plugin(monkeypatch, "bad", evalbudget_open_scores=junk), good(monkeypatch)])
    file = tmp_path / "scores.csv"
    file.write_text("item,score\na,1\nb,2\n")
    assert found.open_scores(file).items == ("a", "b")
    assert "plugin 'bad' failed to look at" in caplog.text
    assert "returned int, and not RecordedScores or None" in caplog.text


def test_what_a_plugin_refuses_about_a_price_is_still_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(model: str) -> None:
        raise InvalidInputError(f"{model} has two prices")

    found = Plugins([plugin(monkeypatch, "bad", evalbudget_price_of=refuses)])
    with pytest.raises(InvalidInputError, match="m has two prices"):
        found.price_of("m")


def test_ctrl_c_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = plugin(monkeypatch, "bad", evalbudget_register_samplers=raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        _ = Plugins([bad]).samplers


@pytest.mark.parametrize("error", [SystemExit(3), OddError("odd"), ValueError("odd")])
def test_sections_and_checks_of_others(
    error: BaseException, caplog: pytest.LogCaptureFixture, small: RecordedScores
) -> None:
    class Bad(Section):
        name = "bad"

        @classmethod
        def of(cls, study: Any) -> Any:
            raise error

    class BadCheck(Check):
        name = "bad"

        def examine(self, case: Any) -> Any:
            raise error

    assert [section.name for section in report(small, sections=[Bad, SECTIONS[0]]).sections] == [
        "leaderboard"
    ]
    ((name, why),) = diagnose(small, [BadCheck]).silent
    assert (name, type(error).__name__ in why) == ("bad", True)
    (told,) = caplog.messages
    assert told.startswith("section 'bad' failed and is left out of the report: ")


@pytest.mark.host
@pytest.mark.parametrize("words", [variant(["inspect", "eval"]), ["lm-eval", "run"]])
def test_commands_of_both_hosts_go_on(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit('gone')\n")
    metadata = tmp_path / "leaving-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: leaving\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[evalbudget]\nleaving = leaving\n")
    done = warm.run(
        [sys.executable, "-m", "evalbudget", *words, "--help"],
        host=words[0],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0
    assert "--budget" in done.stdout
    told = f"plugin 'leaving' is left out: SystemExit: gone. To leave it out from now on: {DISABLE}=leaving"
    assert done.stderr.strip() == told


def test_a_key_in_what_it_raises_is_masked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "given-to-0thers")
    package, entry_point = plugin(monkeypatch, "bad")
    load = raising(RuntimeError("401 for given-to-0thers"))
    bad = SimpleNamespace(name="bad", value=entry_point.value, load=load)
    check_left_out(Plugins([(package, bad), good(monkeypatch)]), "401 for ***", caplog)
