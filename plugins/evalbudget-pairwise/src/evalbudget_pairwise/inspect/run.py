"""Runs inspect with the judge as the model, and says which answers it prefers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evalbudget.cli import say
from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import ExitCode
from evalbudget_inspect.host.private import host_cli as host
from evalbudget_inspect.host.rewrite import argument, parse, without_tasks
from evalbudget_inspect.host.run_host import run_ours
from evalbudget_pairwise import Comparisons, PairwiseConfig
from evalbudget_pairwise.cli import show_pairwise
from evalbudget_pairwise.inspect.answers import read_answers
from evalbudget_pairwise.inspect.task import take_purchases

ENTRY = "evalbudget_pairwise/pairwise"
_REFUSED = ("limit", "sample_id", "epochs", "detach")


def run_pairwise(
    args: Sequence[str],
    judge: str | None,
    ours: Mapping[str, Any],
    outputs: Mapping[str, str | None],
    *,
    dry_run: bool = False,
) -> int:
    """Run the host with our entry in the task's place, and print what was found.

    Args:
        args: what the user typed after the command, without our flags: logs, and inspect's own flags.
        judge: the model that compares.
        ours: our arguments, those that were given.
        outputs: files to write the preferences and the reading to.
        dry_run: only say what would be bought.

    Returns:
        0 with verdicts to read; 4 without one; the host's own if it failed.
    """
    command = host.commands["eval"]
    command.make_parser(click.Context(command)).parse_args(list(args))  # refuses what inspect does not know
    rest, logs = without_tasks(command, list(args))
    parsed = parse(command, rest)
    if parsed.get("model"):
        raise InvalidInputError("--model: the models are those of the logs; name who compares by --judge")
    for name in _REFUSED:
        if parsed.get(name):
            raise InvalidInputError(
                f"--{name.replace('_', '-')}: which items are compared, and how often, decides the sampler; "
                "drop it"
            )
    if not logs:
        raise InvalidInputError("which answers? Give the logs of two models or more: a.eval b.eval")
    if not judge:
        raise InvalidInputError("who compares? Name a model: --judge openai/gpt-5")
    given = dict(ours)
    record = given.pop("record", None)
    asked = Comparisons(PairwiseConfig.of(**given), read_answers(logs), judge)
    if dry_run:
        say(asked.foreseen(asked.record_beside(logs[0]) if record is None else Path(record)))
        return 0
    if record is not None:
        given["record"] = str(Path(record).resolve())
    if "template" in given:
        given["template"] = str(Path(given["template"]).resolve())
    given["logs"] = [log if "://" in log else str(Path(log).resolve()) for log in logs]
    rewritten = ["eval", ENTRY, "-T", argument(given), "--model", judge, *rest]
    take_purchases()
    code = run_ours(rewritten, quiet="-" in outputs.values())
    bought = take_purchases()
    return show_pairwise(bought[0], **outputs) if bought else code or ExitCode.FAILED
