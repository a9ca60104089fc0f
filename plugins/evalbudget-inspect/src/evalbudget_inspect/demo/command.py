"""``evalbudget demo``: runs inspect twice on an unmodified task and compares what the calls bought."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from evalbudget.errors import EvalbudgetError
from evalbudget_inspect.demo.compare import Outcome, outcome_of

TASK = Path(__file__).with_name("story_rating.py")
REPEATS = 20
ITEMS = 40
_NOTE = (
    "One run of each. Errors are against the simulated judge's true means; intervals are at\n"
    "95%, average coverage over the items. Last row: calls at which plain epochs expect the\n"
    "worst-item error of the budgeted run."
)
HOST = ["--model", "simulated/writer", "--model-role", "grader=simulated/judge", "--display", "none"]


@click.command(epilog="\b\nExamples:\n  evalbudget demo\n  evalbudget demo --keep demo-logs --json")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the logs in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def demo(keep: Path | None, as_json: bool) -> None:
    """Run a real evaluation offline, with plain epochs and with a budget, and compare.

    The judge is simulated, so the true score of every item is known. Takes about half a minute.
    """
    console = Console(stderr=as_json)
    with tempfile.TemporaryDirectory(prefix="evalbudget-demo-") as scratch:
        logs = keep if keep is not None else Path(scratch)
        calls = ITEMS * REPEATS
        plain = _run(
            console,
            ["inspect", "eval", TASK.name, "--epochs", str(REPEATS), *HOST],
            logs / "plain-epochs",
        )
        budgeted = _run(
            console,
            ["evalbudget", "inspect", "eval", TASK.name, "--budget", str(calls), *HOST],
            logs / "budgeted",
        )
        rows = [
            outcome_of("plain epochs", plain),
            outcome_of("budgeted", budgeted),
        ]
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        console.print(_table(rows), _NOTE, sep="\n\n")
        if keep is not None:
            console.print(f"Logs: {keep} (inspect view --log-dir {keep})", highlight=False)


def _run(console: Console, command: list[str], logs: Path) -> Path:
    """Run a host command on the demo task; the folder with its log."""
    module = {"inspect": "inspect_ai._cli.main", "evalbudget": "evalbudget"}[command[0]]
    console.print(f"[bold]$[/] {shlex.join(command)}", highlight=False, soft_wrap=True)
    with console.status("evaluating"):
        done = subprocess.run(
            [sys.executable, "-m", module, *command[1:], "--log-dir", str(logs.resolve())],
            cwd=TASK.parent,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise EvalbudgetError(f"{shlex.join(command)} failed:\n{done.stdout}{done.stderr}")
    return logs


def _table(rows: list[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    for row in rows:
        table.add_column(row.name, justify="right")
    for label, cells in (
        ("judge calls", [f"{row.calls:,}" for row in rows]),
        ("worst-item error", [f"{row.worst_item_error:.2f}" for row in rows]),
        ("widest item interval", [f"± {row.widest_half_width:.2f}" for row in rows]),
        ("true score inside", [f"{row.items_covered} of {row.items} items" for row in rows]),
        ("plain epochs would need", ["", f"{rows[-1].uniform_calls_for_same_error:,} calls"]),
    ):
        table.add_row(label, *cells)
    return table
