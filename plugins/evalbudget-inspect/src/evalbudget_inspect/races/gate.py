"""Runs inspect with a gate in the place of its task, and says whether the candidate is worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from rich.console import Console

from evalbudget.cli import say, show_gate
from evalbudget.comparisons import GateConfig, GateProgress
from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import ExitCode
from evalbudget_inspect.host.entries import whole_paths
from evalbudget_inspect.host.private import host_cli as host
from evalbudget_inspect.host.rewrite import host_arguments, parse, tasks_among
from evalbudget_inspect.host.run_host import run_ours
from evalbudget_inspect.races.all_races import report_to, take_gates
from evalbudget_inspect.races.command import chose_display, models_among
from evalbudget_inspect.races.dry_run import foreseen

ENTRY = "evalbudget_inspect/gate"


def run_gate(
    args: Sequence[str], ours: Mapping[str, Any], outputs: Mapping[str, str | None], *, dry_run: bool = False
) -> int:
    """Run the host with our entry in the task's place, and print the verdict.

    Args:
        args: what the user typed after the command, without our flags.
        ours: our arguments, those that were given.
        outputs: files to write the verdict to.
        dry_run: only say what would be bought.

    Returns:
        0 not worse, 1 worse, 3 undecided, 4 the host could not evaluate it.
    """
    config = GateConfig.of(**ours)  # refuse bad values before inspect starts
    given = whole_paths(ours)
    command = host.commands["eval"]
    parsed = parse(command, args)
    models = models_among(parsed)
    if len(models) > 1:
        raise InvalidInputError(
            f"a gate judges one candidate, and --model names {len(models)}; run one gate for each"
        )
    if config.baseline_model is not None:
        models = [config.baseline_model, *models]
        if len(set(models)) < 2:
            raise InvalidInputError(
                f"--baseline-model {config.baseline_model}: name another one with --model, the candidate. "
                "(The same model with other settings is compared with a log of it: --baseline)"
            )
        args = [*args, f"--model={','.join(models)}"]
    if dry_run:
        specs = tasks_among(parsed["tasks"])
        say("\n\n".join(str(foreseen(config, spec, (), models or ["none"], parsed)) for spec in specs))
        say("\nNo call was made.")
        return 0
    shows_itself = not (chose_display(args) or parsed.get("detach"))
    extra = ["--display", "none"] if shows_itself else []
    take_gates()
    rewritten = host_arguments(command, [*args, *extra], given, [ENTRY])
    if len(rewritten) > 1:
        raise InvalidInputError(f"a gate is of one task, and there are {len(rewritten)}; name one")
    progress = GateProgress(Console(stderr=True), monotonic)
    report_to(progress if shows_itself else None)
    try:
        code = run_ours(["eval", *rewritten[0]], quiet="-" in outputs.values())
    finally:
        progress.close()
        report_to(None)
    gates = take_gates()
    if not gates:
        return code if "--help" in args else code or ExitCode.FAILED
    return show_gate(gates[0], **outputs)
