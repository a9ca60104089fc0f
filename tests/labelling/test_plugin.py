"""The package beside: what it brings to evalbudget, and what is said and goes on where it is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.audits.store.audits import Told
from tests.cli.commands import typed

from evalbudget.cli import _groups
from evalbudget.cli._audit import audit
from evalbudget.hooks import plugins

run = typed("audit")


def test_it_is_found_as_any_plugin() -> None:
    (info,) = [info for info in plugins().found if info.distribution == "evalbudget-labelling"]
    assert (info.name, info.error, info.provides) == ("labelling", None, {})


@pytest.mark.parametrize("command", ["serve", "export", "sync"])
def test_a_command_without_it_says_what_brings_it(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command in run("--help").output
    monkeypatch.delitem(audit.commands, command)
    said = run(command, "a.sqlite")
    assert said.exit_code == 2
    assert f"{command!r} is installed and left out; evalbudget plugins says why." in said.output
    monkeypatch.setattr(_groups, "plugins", lambda: SimpleNamespace(found=()))
    said = run(command, "a.sqlite")
    remedy = f"The command {command!r} comes with its plugin: pip install 'evalbudget[labelling]'."
    assert remedy in said.output
    assert remedy in run(command, "--help").output


def _alone(without: tuple[str, ...], *words: Any) -> subprocess.CompletedProcess[str]:
    """``evalbudget audit`` where these packages are not installed."""
    code = f"import sys\nfor name in {without}: sys.modules[name] = None\n"
    code += "from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "audit", *map(str, words)], capture_output=True, text=True, timeout=120
    )


def test_labels_are_taken_in_without_it(tmp_path: Path) -> None:
    told, path = Told(pilot=8, labels_per_batch=8), tmp_path / "a.sqlite"
    with told.create(path) as store:
        told.draw(store)
    asked = _alone(("evalbudget_labelling",), "next", path, "--json")
    (task,) = json.loads(asked.stdout)
    (tmp_path / "labels.jsonl").write_text(json.dumps({"task": task["task"], "score": 4, "by": "ann"}))
    done = _alone(("evalbudget_labelling",), "import", path, tmp_path / "labels.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 new label; ")


def test_tables_go_out_where_there_is_no_host(tmp_path: Path) -> None:
    told, path = Told(pilot=8, labels_per_batch=8), tmp_path / "a.sqlite"
    with told.create(path) as store:
        told.draw(store)
    hosts = ("inspect_ai", "lm_eval", "evalbudget_inspect", "evalbudget_lm_eval", "evalbudget_pairwise")
    done = _alone(hosts, "export", path, "--format", "csv", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert done.stdout.lstrip("\ufeff").startswith("task,item,segment,prompt,response,score,by,at")
