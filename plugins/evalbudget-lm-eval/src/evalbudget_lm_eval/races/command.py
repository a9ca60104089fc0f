"""``evalbudget lm-eval race``: which of several models is best on a task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.console import Console

from evalbudget.cli import check_target, say, write_json
from evalbudget.comparisons.flags import FLAGS as GATES
from evalbudget.comparisons.flags import LEVEL, NOT_OF_A_RACE
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN, LOWER_IS_BETTER, SAMPLER_OPTION, refuse_elsewhere
from evalbudget.flags import sampler_options as read_options
from evalbudget.races.flags import FLAGS as OF_RACES
from evalbudget.races.flags import SCORE
from evalbudget_lm_eval.arms.flags import ARM, DEVICES, KEEP
from evalbudget_lm_eval.arms.spelled_command import host_command
from evalbudget_lm_eval.host.flag_spelling import refuse_misspelled_flags, spelled
from evalbudget_lm_eval.repeats.flags import FLAGS as OF_REPEATS
from evalbudget_lm_eval.repeats.flags import JOURNAL

EXAMPLES = """\b
Examples:
  evalbudget lm-eval race --tasks gsm8k --budget 2000 --output_path out \\
      --arm a=local-chat-completions:model=a,base_url=http://localhost:8000/v1/chat/completions \\
      --arm b=local-chat-completions:model=b,base_url=http://localhost:8000/v1/chat/completions \\
      --apply_chat_template --score exact_match,strict-match
  evalbudget lm-eval race --tasks arc_easy --score acc --budget 20% --batch 256 \\
      --arm small=hf:pretrained=gpt2 --arm large=hf:pretrained=gpt2-large --device cuda:0
  evalbudget lm-eval race --tasks arc_easy --score acc --budget 20% --batch 256 --devices cuda:0,cuda:1 \\
      --arm small=hf:pretrained=gpt2 --arm large=hf:pretrained=gpt2-large
  evalbudget lm-eval race --tasks arc_easy --score acc --until_proved --arm ... --arm ...
  evalbudget lm-eval race --tasks gsm8k --budget 2000 --model hf --model_args pretrained=gpt2 \\
      --arm num_fewshot=0 --arm num_fewshot=5 --arm num_fewshot=5,gen_kwargs.temperature=0.7
  evalbudget lm-eval race --budget 2000 --model hf --model_args pretrained=gpt2 \\
      --arm tasks=gsm8k --arm tasks=gsm8k_cot
  evalbudget lm-eval race --tasks arc_easy --score acc --budget 5x --history earlier/ \\
      --sampler pulse --arm ... --arm ...

Settings race on the model of --model, or with each arm that names one: tasks (prompts of the same
documents), num_fewshot, system_instruction, apply_chat_template, fewshot_as_multiturn, gen_kwargs.X; as JSON
in --arm 'NAME={"system_instruction": "Be brief."}'.
Every other flag is lm-eval's own and holds for all arms: see lm-eval run --help.

The same command again, with the same --output_path or --journal, goes on where it was stopped: what was
answered is not asked again.


""" + codes_for_help(no="", undecided="not known yet, with --until or --until_proved")


_SCORE = replace(SCORE, help="Score that decides; needed if the task has several.", metavar="METRIC[,FILTER]")
_ARM = replace(
    ARM,
    help="A model: lm-eval's --model and --model_args; or settings, as in num_fewshot=5. Give it several "
    "times: every model races with every setting.",
    metavar="NAME=MODEL:ARGS|KEY=VALUE",
)
_LOWER = replace(LOWER_IS_BETTER, help="Lower scores are better, where the task does not say so itself.")
_OF_HOST = {ARM.name: _ARM, SCORE.name: _SCORE, LOWER_IS_BETTER.name: _LOWER}
FLAGS = (*(_OF_HOST.get(flag.name, flag) for flag in OF_RACES), DEVICES, KEEP, JOURNAL, DRY_RUN)


@host_command("race", FLAGS, EXAMPLES)
def race_command(ctx: click.Context, /, **given: Any) -> None:
    """Race models of lm-eval, or settings, on one task: which is best, found with part of all evaluations.

    Each arm (a model, or a setting of it) is asked each document once at most; the sampler decides who is
    asked next, and the leaderboard says what that proves. Models are loaded when they are first asked; an arm
    that cannot be loaded or keeps failing leaves the race.
    """
    ctx.exit(_run(**given))


def _run(
    *,
    arms: tuple[str, ...],
    keep: int | None,
    devices: str | None,
    json_path: str | None,
    journal: str | None,
    sampler_options: tuple[str, ...],
    args: tuple[str, ...],
    dry_run: bool = False,
    **given: Any,
) -> int:
    if json_path is not None:
        check_target(Path(json_path))
    names = {flag.name for flag in FLAGS}
    refuse_elsewhere(args, [LEVEL], NOT_OF_A_RACE)
    of_gates = [flag for flag in GATES if flag.name not in names]
    refuse_elsewhere(args, of_gates, "is of evalbudget lm-eval gate; drop it, or use that command")
    of_repeats = [flag for flag in OF_REPEATS if flag.name not in names]
    refuse_elsewhere(args, of_repeats, "is of evalbudget lm-eval run; drop it, or use that command")
    refuse_misspelled_flags(args, FLAGS)
    from evalbudget.races import RaceConfig, RaceProgress

    options = read_options(sampler_options, FLAGS, spelled(SAMPLER_OPTION))
    config = RaceConfig.of(**given, **options)
    from evalbudget_lm_eval.arms.arm import check_arms, parse_arm
    from evalbudget_lm_eval.arms.host_flags import read_flags
    from evalbudget_lm_eval.arms.paid_arms import name_of
    from evalbudget_lm_eval.arms.settings import is_setting, parse_setting
    from evalbudget_lm_eval.races.api import Order
    from evalbudget_lm_eval.races.at_the_prompt import run_at_the_prompt

    models = [parse_arm(text) for text in arms if not is_setting(text)]
    settings = [parse_setting(text) for text in arms if is_setting(text)]
    least = 1 if config.takes_one else 2
    alone = config.takes_one and not models and not settings
    if not settings and not alone:
        check_arms(models, least)
    flags = read_flags(args, models, settings, one_model=alone)
    racing = [replace(arm, name=name_of(arm)) for arm in flags.arms] if alone else flags.arms
    check_arms(racing, least)
    order = Order(
        *(racing, flags.task, config, keep, journal, flags.options, flags.tracker, bool(dry_run)),
        devices=devices,
    )
    progress = RaceProgress(Console(stderr=True), monotonic)
    result = run_at_the_prompt(order, flags.manager, progress, quiet=json_path == "-")
    if isinstance(result, int):
        return result
    if json_path != "-":
        say(f"\n{result.leaderboard.table()}")
    if json_path is not None:
        write_json(result.leaderboard.as_json, json_path)
    return result.leaderboard.exit_code
