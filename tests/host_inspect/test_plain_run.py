"""A run of inspect that has nothing to do with us: the same lines, and nothing of ours loaded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.host_inspect.worlds import UNWATCHED

import warm

TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import solver

@solver
def yes():
    async def solve(state, generate):
        state.output.completion = "yes"
        return state
    return solve

@task
def plain():
    return Task([Sample(input="?", target="yes", id=i) for i in range(3)], solver=yes(), scorer=match())
"""
RUN = """
import sys
from inspect_ai._cli.main import main
from inspect_ai._util import entrypoints
if sys.argv[1] == "without":
    found = entrypoints.entry_points
    entrypoints.entry_points = lambda **of: [each for each in found(**of) if "evalbudget" not in each.value]
sys.argv = ["inspect", *sys.argv[2:]]
try:
    main()
finally:
    print(sorted(name for name in sys.modules if name.startswith("evalbudget")), file=sys.stderr)
"""
REGISTERED = """
import json, sys
import inspect_ai._cli.main, inspect_ai._eval.eval
before = set(sys.modules)
import evalbudget_inspect._registry
loaded = sorted(set(sys.modules) - before)

from importlib import import_module
from inspect_ai._util.registry import _registry

def ours():
    names = {key: found for key, found in _registry.items() if "evalbudget_inspect/" in key or ":eb/" in key}
    return {key: found for key, found in names.items() if not key.startswith("solver:")}

stubs = ours()
for module in sorted(MODULES):
    import_module(f"evalbudget_inspect.{module}")
found = ours()
still_stubs = [key for key in stubs if stubs[key] is found[key]]
print(json.dumps([loaded, sorted(set(stubs) ^ set(found)), still_stubs]))
"""
MODULES = {
    *("audits.registry_entry", "races.registry_entry", "repeats.registry_entry"),
    *("judges.cyclic_judge", "judges.panel_metrics", "races.metrics", "repeats.metrics"),
    *("host.dict_scores", "providers.recorded", "providers.simulated"),
}


def _run(code: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    done = warm.run(command, host="inspect alone", cwd=folder, env=os.environ | UNWATCHED)
    assert done.returncode == 0, done.stderr
    return done


def _shape(text: str) -> str:
    """Without times and names of logs."""
    return re.sub(r"logs/\S+|\d+:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+", "...", text)


def test_it_prints_the_same_lines_with_and_without_us(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(TASK)
    command = ("eval", "plain.py", "--model", "mockllm/model", "--display", "rich")
    ours, theirs = (_run(RUN, which, *command, folder=tmp_path) for which in ("with", "without"))
    assert "accuracy" in ours.stdout
    assert _shape(ours.stdout) == _shape(theirs.stdout)
    assert "evalbudget_inspect._registry" in ours.stderr
    assert "[]" in theirs.stderr


def test_the_entry_point_loads_nothing_that_takes_time_and_has_a_stub_for_all_that_is_registered() -> None:
    told = _run(f"MODULES = {sorted(MODULES)}\n{REGISTERED}").stdout
    loaded, differ, still_stubs = json.loads(told)
    allowed = {"evalbudget_inspect", "lazy_loader"}
    assert {name.partition(".")[0] for name in loaded} <= allowed, loaded
    assert len(loaded) < 10, loaded
    assert not differ
    assert not still_stubs
