"""``evalbudget lm-eval pairwise``: which answers does a judge prefer?"""

from __future__ import annotations

from typing import Any

import click

from evalbudget.cli import check_targets, say
from evalbudget.cli.flags import options_of
from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN, sampler_options
from evalbudget_lm_eval.arms.spelled_command import SpelledCommand
from evalbudget_lm_eval.host.flag_spelling import spelled
from evalbudget_pairwise.cli import show_pairwise
from evalbudget_pairwise.flags import FLAGS as OF_PAIRS
from evalbudget_pairwise.flags import JUDGE, OUTPUT

EXAMPLES = """\b
Examples:
  evalbudget lm-eval pairwise results/a results/b --budget 400 \\
      --judge local-chat-completions:model=gpt-5,base_url=http://localhost:8000/v1/chat/completions
  evalbudget lm-eval pairwise results --judge hf:pretrained=my-judge --until_proved --budget 2000
  evalbudget lm-eval pairwise results/a results/b --judge ... --budget 400 \\
      --template question.txt --save preferences.csv

\b
LOG is what lm-eval wrote with --log_samples: a folder, or one samples_*.jsonl.
The same command again goes on where it was stopped; what was bought is kept beside the first log.

""" + codes_for_help(done="there are verdicts to read", no="", undecided="no winner yet, with --until_proved")

FLAGS = (JUDGE, *OF_PAIRS, DRY_RUN)


@click.command(
    name="pairwise",
    cls=SpelledCommand,
    ours=FLAGS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
@options_of(FLAGS, spelled)
@click.argument("logs", nargs=-1, metavar="LOG LOG...")
@click.pass_context
def pairwise_command(
    ctx: click.Context, /, logs: tuple[str, ...], judge: str | None, dry_run: bool, **given: Any
) -> None:
    """Have a judge compare the answers of finished runs, two at a time: win rates, ranks, a winner.

    Which pair is compared next, and whose answer is shown first, decides the sampler. The judge's position
    bias cancels, and is reported.
    """
    outputs = {flag.name: given.pop(flag.name) for flag in OUTPUT}
    check_targets((spelled(flag), outputs[flag.name]) for flag in OUTPUT)
    if not logs:
        raise InvalidInputError("which answers? Give what lm-eval wrote of two models or more: out/a out/b")
    if not judge:
        raise InvalidInputError(
            "who compares? Name a model: --judge local-chat-completions:model=...,base_url=..."
        )
    from evalbudget_pairwise.lm_eval.api import asked

    options = sampler_options(given.pop("sampler_options"), FLAGS, "--sampler_option")
    found = asked(logs, judge=judge, **given, **options)
    if dry_run:
        say(found.comparisons.foreseen(found.record))
        return
    ctx.exit(show_pairwise(found.buy(), **outputs))
