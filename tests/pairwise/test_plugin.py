"""The package beside: what it brings to evalbudget, and what is said where it is missing."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.commands import typed

from evalbudget.cli import _groups
from evalbudget.errors import InvalidInputError
from evalbudget.hooks import plugins

run = typed()


def test_it_is_found_as_any_plugin() -> None:
    (info,) = [info for info in plugins().found if info.distribution == "evalbudget-pairwise"]
    assert (info.name, info.error, info.provides) == (
        "pairwise",
        None,
        {"samplers of pairs": ("duel", "uniform")},
    )
    with pytest.raises(InvalidInputError, match="'duel' decides which answers a judge compares two by two"):
        plugins().sampler("duel")


@pytest.mark.parametrize("host", ["inspect", "lm-eval"])
def test_hosts_without_it_say_what_brings_it(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = pytest.importorskip(f"evalbudget_{host.replace('-', '_')}.cli")
    group = getattr(module, f"{host.replace('-', '_')}_command")
    assert "pairwise" in run(host, "--help").output
    monkeypatch.delitem(group.commands, "pairwise")
    said = run(host, "pairwise", "a.eval", "b.eval")
    assert said.exit_code == 2
    assert "'pairwise' is installed and left out; evalbudget plugins says why." in said.output
    monkeypatch.setattr(_groups, "plugins", lambda: SimpleNamespace(found=()))
    said = run(host, "pairwise", "a.eval", "b.eval")
    assert "The command 'pairwise' comes with its plugin: pip install 'evalbudget[pairwise]'." in said.output


def test_tables_are_read_where_there_is_no_host(tmp_path: Any) -> None:
    table = tmp_path / "preferences.csv"
    table.write_text("item,first,second,winner\n1,a,b,a\n1,b,a,a\n2,b,a,a\n")
    hosts = ("inspect_ai", "lm_eval", "evalbudget_inspect", "evalbudget_lm_eval")
    code = f"import sys\nfor name in {hosts}: sys.modules[name] = None\n"
    code += "from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "pairwise", str(table)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "win rate" in done.stdout


def test_what_inspect_loads_in_every_run_is_next_to_nothing() -> None:
    pytest.importorskip("inspect_ai")
    code = (
        "import inspect_ai, sys\n"
        "before = set(sys.modules)\n"
        "import evalbudget_pairwise.inspect._registry\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    ours = ["evalbudget_pairwise", "evalbudget_pairwise.inspect", "evalbudget_pairwise.inspect._registry"]
    assert [name for name in done.stdout.split() if not name.startswith("lazy_loader")] == ours
