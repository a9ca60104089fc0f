"""Flags, inspect's ``-T`` and Python know the same names."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalbudget.audits.flags import FLAGS as AUDITS
from evalbudget.audits.store import AuditSettings
from evalbudget.comparisons.flags import FLAGS as GATES
from evalbudget.errors import InvalidInputError
from evalbudget.flags import names_of, sampler_options
from evalbudget.races.flags import FLAGS as RACES
from evalbudget_inspect import budgeted, gate, race
from evalbudget_inspect.cli import inspect_command
from evalbudget_inspect.host.entries import whole_paths
from evalbudget_inspect.races.task import race as race_of_tasks
from evalbudget_inspect.repeats.flags import FLAGS as REPEATS


def test_python_takes_what_flags_say() -> None:
    assert set(names_of(REPEATS)) == set(signature(budgeted).parameters) - {"task", "options"}
    # batch and margin are options of samplers, which Python takes by name
    assert set(names_of(RACES)) - {"batch", "margin"} == set(signature(race).parameters) - {"task", "options"}
    assert set(names_of(GATES)) == set(signature(gate).parameters) - {"task"}
    assert race is race_of_tasks
    given = {**dict.fromkeys(names_of(AUDITS)), "labels_per_batch": 7, "label_price": 3.0}
    settings = AuditSettings.of(store="a.sqlite", models=["a", "b"], **given)
    config = settings.start(10).config
    assert (config.to_json()["labels_per_batch"], config.label_price) == (7, 3.0)


def test_the_help_of_eval_shows_repeats_and_judges_alone() -> None:
    shown = {param.name for param in inspect_command.commands["eval"].params}
    assert shown == {*names_of(REPEATS), "dry_run", "sampler_options", "args"}
    assert len(REPEATS) <= 20
    shown_help = CliRunner().invoke(inspect_command, ["eval", "--help"], terminal_width=80).output
    ours = shown_help.partition("Options:")[2].partition("Examples:")[0]
    assert len(ours.splitlines()) <= 44  # with its examples a screen


def test_options_of_samplers() -> None:
    assert sampler_options(["bonus=2.0", "n-first=3", "shared=true", "name=x=y"], ()) == {
        "bonus": 2.0,
        "n_first": 3,
        "shared": True,
        "name": "x=y",
    }
    for text, message in (
        ("bonus", "is not NAME=VALUE"),
        ("=3", "is not NAME=VALUE"),
        ("seed=3", "give it by --sampler-seed"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            sampler_options([text], REPEATS)
    with pytest.raises(InvalidInputError, match="given twice"):
        sampler_options(["a=1", "a=2"], ())


def test_paths_are_the_same_in_a_tasks_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"store": "s.sqlite", "prices": Path("p.yaml"), "baseline": None, "variances": "", "budget": 5}
    paths = {"store": str(tmp_path / "s.sqlite"), "prices": str(tmp_path / "p.yaml")}
    assert whole_paths(given) == given | paths
    shared = {"store": "postgresql://me@host/db#name"}
    assert whole_paths(shared) == shared
