"""``evalbudget lm-eval gate``: did it get worse?"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import Any

import click
from rich.console import Console

from evalbudget.cli import check_targets, show_gate
from evalbudget.comparisons.flags import CANDIDATE, NOT_HERE, OUTPUT
from evalbudget.comparisons.flags import FLAGS as OF_GATES
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN, refuse_elsewhere
from evalbudget.races.flags import FLAGS as OF_RACES
from evalbudget.races.flags import SCORE
from evalbudget_lm_eval.arms.flags import DEVICES
from evalbudget_lm_eval.arms.spelled_command import host_command
from evalbudget_lm_eval.host.flag_spelling import refuse_misspelled_flags, spelled
from evalbudget_lm_eval.repeats.flags import FLAGS as OF_REPEATS
from evalbudget_lm_eval.repeats.flags import JOURNAL

EXAMPLES = """\b
Examples:
  evalbudget lm-eval gate --tasks gsm8k --baseline results/main --margin 0.02 \\
      --model local-chat-completions --apply_chat_template --score exact_match,strict-match \\
      --model_args model=new,base_url=http://localhost:8000/v1/chat/completions
  evalbudget lm-eval gate --tasks arc_easy --score acc --baseline baseline.csv --margin 0.02 \\
      --model hf --model_args pretrained=my-model --markdown comment.md

Every other flag is lm-eval's own: see lm-eval run --help. The same command again, with the same
--output_path or --journal, goes on where it was stopped.

""" + codes_for_help(done="not worse", no="worse")

_SCORE = replace(SCORE, help="Score that decides; needed if the task has several.", metavar="METRIC[,FILTER]")
FLAGS = (*(_SCORE if flag.name == SCORE.name else flag for flag in OF_GATES), DEVICES, JOURNAL, DRY_RUN)


@host_command("gate", FLAGS, EXAMPLES)
def gate_command(ctx: click.Context, /, **given: Any) -> None:
    """Evaluate a model on a task until it is decided whether it is worse than a baseline.

    The baseline's scores cost nothing; the candidate is asked its documents in random order. A verdict is
    wrong with a probability of at most 5%, however often you look.
    """
    ctx.exit(_run(**given))


def _run(
    *,
    journal: str | None,
    args: tuple[str, ...],
    devices: str | None,
    dry_run: bool = False,
    **given: Any,
) -> int:
    outputs = {flag.name: given.pop(flag.name) for flag in OUTPUT}
    quiet = check_targets((spelled(flag), outputs[flag.name]) for flag in OUTPUT)
    names = {flag.name for flag in FLAGS}
    of_races = [flag for flag in OF_RACES if flag.name not in names]
    of_repeats = [flag for flag in OF_REPEATS if flag.name not in names]
    refuse_elsewhere(args, [CANDIDATE], NOT_HERE)
    refuse_elsewhere(args, of_races, "is for races of several models; a gate compares one: drop it")
    refuse_elsewhere(args, of_repeats, "is of evalbudget lm-eval run; drop it, or use that command")
    refuse_misspelled_flags(args, FLAGS)
    from evalbudget.comparisons import GateConfig, GateProgress

    config = GateConfig.of(**given)
    from evalbudget_lm_eval.arms.arm import arms_of, check_arms
    from evalbudget_lm_eval.arms.host_flags import read_flags
    from evalbudget_lm_eval.arms.paid_arms import name_of
    from evalbudget_lm_eval.races.api import BASELINE, Order
    from evalbudget_lm_eval.races.at_the_prompt import run_at_the_prompt

    asked = [] if config.baseline_model is None else arms_of({BASELINE: config.baseline_model})
    asked = [replace(arm, name=f"{BASELINE} {name_of(arm)}") for arm in asked]
    flags = read_flags(args, asked, one_model=True)
    arms = [*flags.arms[:-1], replace(flags.arms[-1], name=name_of(flags.arms[-1]))]
    check_arms(arms, 1)
    order = Order(
        *(arms, flags.task, config, None, journal, flags.options, flags.tracker, bool(dry_run)),
        devices=devices,
    )
    progress = GateProgress(Console(stderr=True), monotonic)
    result = run_at_the_prompt(order, flags.manager, progress, quiet=quiet)
    if isinstance(result, int):
        return result
    assert result.gate is not None
    return show_gate(result.gate, **outputs)
