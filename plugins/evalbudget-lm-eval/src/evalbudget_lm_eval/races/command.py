"""``evalbudget lm-eval race``: which of several models is best on a task."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.console import Console

from evalbudget.cli.output import check_target, write_text
from evalbudget.repeats.options import parse_option

EXAMPLES = """\b
Examples:
  evalbudget lm-eval race --tasks gsm8k --budget 2000 --output_path out \\
      --arm a=local-chat-completions:model=a,base_url=http://localhost:8000/v1/chat/completions \\
      --arm b=local-chat-completions:model=b,base_url=http://localhost:8000/v1/chat/completions \\
      --apply_chat_template --score exact_match,strict-match
  evalbudget lm-eval race --tasks arc_easy --score acc --budget 20% --batch 256 \\
      --arm small=hf:pretrained=gpt2 --arm large=hf:pretrained=gpt2-large --device cuda:0
  evalbudget lm-eval race --tasks arc_easy --score acc --until-proved --arm ... --arm ...
  evalbudget lm-eval race --tasks arc_easy --score acc --budget 5x --history earlier/ \\
      --sampler pulse --arm ... --arm ...

Every other flag is lm-eval's own and holds for all arms: see lm-eval run --help.

The same command again, with the same --output_path or --journal, goes on where it was stopped: what was
answered is not asked again.

Exit codes: 0 the race ran; 1 no arm could be evaluated; 2 bad input.
"""


@click.command(
    name="race",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
@click.option(
    "--arm",
    "arms",
    multiple=True,
    metavar="NAME=MODEL:ARGS",
    help="A model that races the others: lm-eval's --model and --model_args. Give it several times.",
)
@click.option("--budget", help="Evaluations of all arms together: 2000, 20x for 20 per document, or 5%.")
@click.option(
    "--until-proved",
    "--until_proved",
    is_flag=True,
    help="Go on until the best is proved; --budget is then a cap, by default the whole grid.",
)
@click.option("--sampler", help="Registered sampler of models; default race.")
@click.option(
    "--score", "--metric", "score", help="METRIC or METRIC,FILTER that decides; needed if there are several."
)
@click.option("--batch", type=int, help="Documents an arm is given at a time; large for local models.")
@click.option("--delta", type=float, help="Probability of a wrong answer; default 0.05.")
@click.option("--epsilon", type=float, help="With --sampler lucb: arms this close count as equivalent.")
@click.option(
    "--history", metavar="PATH", help="Earlier output of lm-eval, recorded scores or factors of other models."
)
@click.option(
    "--keep",
    type=int,
    help="Models loaded at once; default all where all are APIs, otherwise 1. Switching loads weights anew.",
)
@click.option(
    "--score-range",
    "--score_range",
    metavar="LOW..HIGH",
    help="Smallest and largest possible score; default 0..1.",
)
@click.option("--sampler-seed", "--sampler_seed", type=int, help="Seed of the sampler; default 0.")
@click.option(
    "--sampler-option",
    "--sampler_option",
    "sampler_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Further option of the sampler; may be given several times.",
)
@click.option("--json", "json_path", metavar="PATH", help="Write the leaderboard there.")
@click.option(
    "--journal",
    metavar="PATH",
    help="File that records every answer, by which a race goes on (default: one below "
    "evalbudget-journals, in --output_path; none for none).",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[LM-EVAL'S FLAGS]...")
@click.pass_context
def race_command(ctx: click.Context, /, **given: Any) -> None:
    """Race models of lm-eval on one task: which is best, for a part of all evaluations.

    Each arm is asked each document once at most; the sampler decides who is asked next, and the leaderboard
    says what that proves. Arms are loaded when they are first asked; one that cannot be loaded or keeps
    failing leaves the race.
    """
    ctx.exit(_run(**given))


def _run(
    *,
    arms: tuple[str, ...],
    budget: str | None,
    until_proved: bool,
    sampler: str | None,
    score: str | None,
    batch: int | None,
    delta: float | None,
    epsilon: float | None,
    history: str | None,
    keep: int | None,
    score_range: str | None,
    sampler_seed: int | None,
    sampler_options: tuple[str, ...],
    json_path: str | None,
    journal: str | None,
    args: tuple[str, ...],
) -> int:
    if json_path is not None:
        check_target(Path(json_path))
    from evalbudget.races.config import RaceConfig
    from evalbudget.races.progress import RaceProgress
    from evalbudget.races.verdict import Status

    config = RaceConfig.of(
        budget=budget,
        sampler=sampler,
        score=score,
        seed=sampler_seed,
        score_range=score_range,
        history=history,
        **{
            **dict(parse_option(text) for text in sampler_options),
            "batch": batch,
            "delta": delta,
            "epsilon": epsilon,
            "until_proved": until_proved or None,
        },
    )
    from evalbudget_lm_eval.races.api import Order, run_order
    from evalbudget_lm_eval.races.arms import check_arms, parse_arm
    from evalbudget_lm_eval.races.flags import read_flags
    from evalbudget_lm_eval.races.output import board_text

    racing = [parse_arm(text) for text in arms]
    check_arms(racing)
    flags = read_flags(args, racing)
    order = Order(flags.arms, flags.task, config, keep, journal, flags.options, flags.tracker)
    progress = RaceProgress(Console(stderr=True), monotonic)
    try:
        result = run_order(order, flags.manager, progress)
    except KeyboardInterrupt:
        progress.close()
        click.echo(f"interrupted{progress.so_far}; the same command goes on where it stopped", err=True)
        return 130
    finally:
        progress.close()
    click.echo(f"\n{result.leaderboard.table()}")
    if json_path is not None:
        write_text(Path(json_path), board_text(result.leaderboard))
    return int(all(standing.status is Status.LOST for standing in result.leaderboard.standings))
