"""What a plain run of inspect takes with this package installed, against the same run without it.

Processes of either kind take turns; the ratio is of processor time, which other work on the machine changes
less than the clock:

    python benchmarks/startup.py --repetitions 20
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
    return Task([Sample(input="?", target="yes")], solver=yes(), scorer=match())
"""
RUN = """
import sys
from importlib import metadata
if sys.argv[1] == "without":
    found = metadata.entry_points
    metadata.entry_points = lambda **of: (
        [each for each in found(**of) if "evalbudget" not in each.value] if of else found()
    )
from inspect_ai._cli.main import main
sys.argv = ["inspect", "eval", "plain.py", "--model", "mockllm/model", "--display", "none"]
main()
"""


def seconds(which: str, folder: Path) -> float:
    """Processor time of one run, ``with`` us or ``without``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", RUN, which], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    repetitions = parser.parse_args().repetitions
    ratios, ours, theirs = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plain.py").write_text(TASK)
        for which in ("with", "without"):
            seconds(which, folder)  # compiles
        for repetition in range(repetitions):
            order = ("with", "without") if repetition % 2 else ("without", "with")
            took = {which: seconds(which, folder) for which in order}
            ours.append(took["with"])
            theirs.append(took["without"])
            ratios.append(took["with"] / took["without"])
    low, _, high = statistics.quantiles(ratios, n=4)
    print(
        f"with {statistics.median(ours):.2f} s, without {statistics.median(theirs):.2f} s of processor time; "
        f"ratio {statistics.median(ratios):.3f}, quartiles {low:.3f} to {high:.3f}, of {repetitions} pairs"
    )


if __name__ == "__main__":
    main()
