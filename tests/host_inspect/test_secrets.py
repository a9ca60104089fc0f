"""A key that a model is given occurs in nothing that we write into logs, notes or the terminal."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalbudget.cli.main import cli

SECRETS = ("recognisable-argument", "recognisable-variable")


def test_keys_stay_out(task_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argument, variable = SECRETS
    monkeypatch.setenv("SIMULATED_API_KEY", variable)
    logs = tmp_path / "logs"
    told = CliRunner().invoke(
        cli,
        [
            *("inspect", "eval", f"{task_file}@rating", "--budget", "18", "--log-dir", str(logs)),
            *("--model", "simulated/writer", "-M", f"api_key={argument}", "--display", "none"),
            *("--model-role", "grader=simulated/judge", "--no-log-realtime"),
        ],
    )
    assert told.exit_code == 0, told.output
    assert not any(secret in told.output for secret in SECRETS)
    (log,) = logs.glob("*.eval")
    with zipfile.ZipFile(log) as members:
        found = {
            name: [s for s in SECRETS if s.encode() in members.read(name)] for name in members.namelist()
        }
    assert not any(found.values()), found
    assert not list(logs.glob(".evalbudget*"))
