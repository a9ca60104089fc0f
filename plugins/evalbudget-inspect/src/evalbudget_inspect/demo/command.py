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
import numpy as np
from inspect_ai.log import read_eval_log
from rich.console import Console
from rich.table import Table

from evalbudget.errors import EvalbudgetError
from evalbudget.repeats import DEFAULT_SAMPLER
from evalbudget.repeats.backtest import Outcome, against_truth
from evalbudget.repeats.estimates import ItemReadings
from evalbudget_inspect.host.readings import PHASE, phase_of
from evalbudget_inspect.host.scoring import METADATA

TASK = Path(__file__).with_name("story_rating.py")
REPEATS = 20
ITEMS = 40
_NOTE = (
    "The judge is simulated, so the true score of every item is known. Intervals hold for 95%\n"
    "of the items on average. 'Would need': calls at which plain epochs expect the budgeted\n"
    "run's mean worst-item error. The benchmark mean is the 'estimate' that inspect's table leads\n"
    "with: items that are asked more do not move it. Samples run one at a time (--max-samples 1)\n"
    "only to make the figures the same every time."
)
HOST = [
    *("--model", "simulated/writer", "--model-role", "grader=simulated/judge"),
    # what is asked next depends on what came back: one at a time, so that every run gives the same figures
    *("--max-samples", "1"),
    # nobody watches these samples: quicker
    *("--display", "none", "--no-log-realtime", "--no-score-display"),
]


@click.command(epilog="\b\nExamples:\n  evalbudget demo\n  evalbudget demo --keep demo-logs --json")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the logs in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def demo(keep: Path | None, as_json: bool) -> None:
    """Run a real evaluation offline, with plain epochs and with a budget, and compare.

    The judge is simulated, so the true score of every item is known. Takes about half a minute on two cores.
    """
    console = Console(stderr=as_json)
    with tempfile.TemporaryDirectory(prefix="evalbudget-demo-") as scratch:
        logs = keep if keep is not None else Path(scratch)
        calls = ITEMS * REPEATS
        plain, budgeted = _run(
            console,
            {
                logs / "plain-epochs": ["inspect", "eval", TASK.name, "--epochs", str(REPEATS), *HOST],
                logs / "budgeted": [
                    *("evalbudget", "inspect", "eval", TASK.name, "--budget", str(calls), *HOST),
                ],
            },
            Path(scratch),
        )
        rows = [
            outcome_of("uniform", plain),
            outcome_of(DEFAULT_SAMPLER, budgeted),
        ]
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        console.print(_table(rows))
        console.print(f"\n{_NOTE}", soft_wrap=True, highlight=False)
        if keep is not None:
            console.print(f"Logs: {keep} (inspect view --log-dir {keep})", highlight=False)


def _run(console: Console, commands: dict[Path, list[str]], scratch: Path) -> list[Path]:
    """Run host commands on the demo task, all at the same time; the folders with their logs.

    Args:
        console: where the commands are shown, before the first of them starts.
        commands: by the folder of its log.
        scratch: a folder for what they print.

    Raises:
        EvalbudgetError: one of them failed; it says what that one printed.
    """
    for command in commands.values():
        console.print(f"[bold]$[/] {shlex.join(command)}", highlight=False, soft_wrap=True)
    outputs = [scratch / f"output-{number}.txt" for number in range(len(commands))]
    running: list[subprocess.Popen[bytes]] = []
    try:
        with console.status("evaluating"):
            for (logs, command), output in zip(commands.items(), outputs, strict=True):
                running.append(_start(command, logs, output))
            for process in running:
                process.wait()
    finally:
        for process in running:
            process.kill()  # does nothing to one that has ended
            process.wait()
    for process, command, output in zip(running, commands.values(), outputs, strict=True):
        if process.returncode != 0:
            said = output.read_text(errors="replace")
            raise EvalbudgetError(f"{shlex.join(command)} failed:\n{said}")
    return list(commands)


def _start(command: list[str], logs: Path, output: Path) -> subprocess.Popen[bytes]:
    """Start a host command on the demo task; what it prints goes to the file ``output``."""
    module = {"inspect": "inspect_ai._cli.main", "evalbudget": "evalbudget"}[command[0]]
    with output.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", module, *command[1:], "--log-dir", str(logs.resolve())],
            cwd=TASK.parent,
            stdout=file,
            stderr=subprocess.STDOUT,
        )


def _table(rows: list[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("", "plain epochs", "budgeted"):
        table.add_column(column, justify="right" if column else "left")
    for label, cells in (
        ("judge calls", [f"{row.calls:,}" for row in rows]),
        ("worst-item error, this run", [f"{row.worst_item_error:.2f}" for row in rows]),
        ("  mean of 100 simulated runs", [f"{row.expected_worst_item_error:.2f}" for row in rows]),
        ("  plain epochs would need", ["", f"{rows[-1].uniform_calls_for_same_error:,} calls"]),
        ("benchmark mean's error, this run", [f"{row.mean_error:.3f}" for row in rows]),
        ("  mean of 100 simulated runs", [f"{row.expected_mean_error:.3f}" for row in rows]),
        ("widest item interval, 95%", [f"± {row.widest_half_width:.2f}" for row in rows]),
        ("true score inside", [f"{row.items_covered} of {row.items} items" for row in rows]),
    ):
        table.add_row(label, *cells)
    return table


def outcome_of(sampler: str, logs: Path) -> Outcome:
    """Read the one log in the folder and compare it with the truth."""
    (file,) = sorted(logs.rglob("*.eval"))[-1:]
    log = read_eval_log(str(file))
    samples = log.samples or []
    ids = sorted({str(s.id) for s in samples})
    index = {item: i for i, item in enumerate(ids)}
    truth, sd = np.zeros(len(ids)), np.zeros(len(ids))
    columns: tuple[list[int], list[int], list[float]] = ([], [], [])
    phases: list[float] = []
    budgeted = False
    for sample in samples:
        item = index[str(sample.id)]
        truth[item] = sample.metadata["simulated_mean"]
        sd[item] = sample.metadata["simulated_sd"]
        for score in (sample.scores or {}).values():
            columns[0].append(item)
            columns[1].append(sample.epoch - 1)
            columns[2].append(score.as_float())
            entry = (score.metadata or {}).get(METADATA) or {}
            budgeted |= PHASE in entry
            phases.append(phase_of(entry))
    readings = ItemReadings.of(*columns, n_items=len(ids), phase=phases if budgeted else None)
    return against_truth(sampler, readings, truth=truth, sd=sd)
