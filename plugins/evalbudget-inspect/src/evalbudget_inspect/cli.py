"""``evalbudget inspect ...``: inspect's own command line, with a sampler in front of the task."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from evalbudget.errors import BudgetError, InvalidInputError, did_you_mean
from evalbudget.races.config import is_racer
from evalbudget.repeats.options import parse_option
from evalbudget_inspect.audits.settings import needs_audit
from evalbudget_inspect.host.private import PrerequisiteError, host_main, init_dotenv
from evalbudget_inspect.host.private import host_cli as host
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.host.rewrite import host_arguments
from evalbudget_inspect.judges.judges import judges_text, read_judges
from evalbudget_inspect.races.command import leaderboard_command, race_verb, run_race
from evalbudget_inspect.repeats.closing import noting, show
from evalbudget_inspect.repeats.config import DEFAULT_SAMPLER_OF_PANELS, Config, Repeat
from evalbudget_inspect.repeats.entry import PREFIX

EXAMPLES = """\b
Examples:
  evalbudget inspect eval my_task.py --model openai/gpt-5 --budget 2000
  evalbudget inspect eval my_task.py@one --model a,b --sampler uniform --budget 20x
  evalbudget inspect eval my_task.py --model m --budget 500 --repeat judge \\
      --score model_graded_qa --max-samples 20 -T difficulty=hard
  evalbudget inspect eval my_task.py --model m \\
      --judges openai/gpt-5,anthropic/claude-opus-4,google/gemini-3-pro
  evalbudget inspect eval my_task.py --model openai/a,openai/b,openai/c --race --budget 5000
  evalbudget inspect eval my_task.py --model m --race --budget 800 \\
      --arm prompt=short.txt --arm prompt=long.txt
  evalbudget inspect eval my_task.py --model a,b --audit audit.sqlite --score-range 1..10
  evalbudget inspect eval-retry logs/2026-01-01_my-task.eval
  evalbudget inspect view

Every other flag and subcommand is inspect's own: see inspect eval --help.
"""


class _HostGroup(click.Group):
    """Our commands first; every other subcommand is the host's, unchanged."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *host.list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        ours = super().get_command(ctx, cmd_name)
        theirs = host.get_command(ctx, cmd_name)
        if ours is not None or theirs is None:
            return ours
        return _pass_through(cmd_name, theirs)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"inspect has no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


_RAW: dict[str, Any] = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


@click.group(
    name="inspect",
    cls=_HostGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
def inspect_command() -> None:
    """Run inspect-ai with a sampler deciding what is asked: which item again, or which model next.

    ``eval`` and ``eval-set`` take --budget and --sampler on top of inspect's own flags; all else is passed
    on to inspect unchanged.
    """


def _budget_options(command: Any) -> Any:
    for option in reversed(
        [
            click.option(
                "--budget",
                help="Scores to buy: 2000, or 20x for 20 per item. With --judges alone: inspect's --epochs.",
            ),
            click.option(
                "--sampler",
                help="Registered sampler; default auto (rating-kernel or eb-bernstein by what the warm-up "
                "shows), uniform with --judges, race with --race.",
            ),
            click.option(
                "--race",
                "racing",
                is_flag=True,
                help="Race the models of --model, or the settings of --arm: which is best? Samplers that can "
                "only race (race, pulse, lucb, ...) imply it; with uniform it makes the difference.",
            ),
            click.option(
                "--arm",
                "arms",
                multiple=True,
                metavar="NAME=VALUE,...",
                help="A setting of the task's arguments that races the others; give it several times.",
            ),
            click.option(
                "--until-proved",
                is_flag=True,
                help="Race: go on until the best is proved; --budget is then a cap, else the whole grid.",
            ),
            click.option("--batch", type=int, help="Race: items a model is given at a time."),
            click.option("--delta", type=float, help="Race: probability of a wrong answer, e.g. 0.05."),
            click.option("--epsilon", type=float, help="With lucb: models this close count as equivalent."),
            click.option(
                "--history",
                metavar="PATH",
                help="Race: earlier logs, recorded scores or factors of other models on these items.",
            ),
            click.option(
                "--audit",
                metavar="STORE|SCORER",
                help="Have humans label what a judge is checked by; STORE, a .sqlite file, keeps draws and "
                "labels (see evalbudget audit). The same command goes on when labels are in. Or a scorer of "
                "the task that labels in their place; the store is then audit.sqlite beside the logs.",
            ),
            click.option(
                "--judge",
                metavar="SCORER|ROLE",
                help="Audit: the scorer to check, or the model role that it asks; default the first.",
            ),
            click.option(
                "--auditor",
                metavar="SCORER",
                help="Audit: as --audit SCORER, for a store of your choice: --audit STORE --auditor SCORER.",
            ),
            click.option("--json", "json_path", metavar="PATH", help="Race: write the leaderboard there."),
            click.option("--objective", help="worst-item (default), mse or mean."),
            click.option(
                "--repeat",
                help="generation (default): a repeat is a fresh epoch; judge: the first generation is kept "
                "and scored again.",
            ),
            click.option("--score", help="Scorer whose scores drive the sampler; default the first."),
            click.option(
                "--score-range",
                metavar="LOW..HIGH",
                help="Smallest and largest possible score, 1..10: gives every item a guaranteed interval.",
            ),
            click.option(
                "--judges",
                metavar="A,B,...",
                help="Judge models that take turns in the role the task's scorers ask for: another one for "
                "each item and epoch. With arguments as for --model-role: "
                "'cold={model: a, temperature: 0},b'; or a .yaml file of them.",
            ),
            click.option(
                "--rotation", help="cyclic (default), random, priced, single; all with --repeat judge."
            ),
            click.option(
                "--judge-prices",
                metavar="A=1,B=5,...",
                help="Price of one call of each judge, for the rotation priced and for the log.",
            ),
            click.option("--judge-role", help="Role the scorers ask for; grader if not given."),
            click.option("--sampler-seed", type=int, help="Seed of the sampler; default 0."),
            click.option(
                "--sampler-option",
                "sampler_options",
                multiple=True,
                metavar="NAME=VALUE",
                help="Further option of the sampler; may be given several times.",
            ),
        ]
    ):
        command = option(command)
    return command


def _budgeted(name: str) -> click.Command:
    @click.command(
        name=name,
        context_settings=_RAW,
        epilog=EXAMPLES,
        help=f"inspect {name} under a budget: a sampler decides how often each item is asked, or, in a race, "
        "which model is asked next.",
    )
    @_budget_options
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    def command(
        budget: str | None,
        sampler: str | None,
        objective: str | None,
        repeat: str | None,
        score: str | None,
        score_range: str | None,
        judges: str | None,
        rotation: str | None,
        judge_prices: str | None,
        judge_role: str | None,
        sampler_seed: int | None,
        sampler_options: tuple[str, ...],
        racing: bool,
        arms: tuple[str, ...],
        until_proved: bool,
        batch: int | None,
        delta: float | None,
        epsilon: float | None,
        history: str | None,
        json_path: str | None,
        audit: str | None,
        judge: str | None,
        auditor: str | None,
        args: tuple[str, ...],
    ) -> None:
        init_dotenv()  # models and log folder may stand in .env: known to us as they will be to inspect
        options: dict[str, Any] = dict(parse_option(text) for text in sampler_options)
        if objective is not None:
            options["objective"] = objective
        ours = {
            "sampler": sampler,
            "budget": budget,
            "repeat": repeat,
            "score": score,
            "score_range": score_range,
            "judges": judges,
            "rotation": rotation,
            "judge_prices": judge_prices,
            "judge_role": judge_role,
            "seed": sampler_seed,
            **options,
        }
        if audit is not None:
            _exit(_audit(name, args, click.get_current_context().params, options))
        for flag, scorer in {"judge": judge, "auditor": auditor}.items():
            if scorer is not None:
                raise InvalidInputError(f"--{flag} names a scorer of an audit; add --audit STORE")
        if sampler is not None and needs_audit(sampler):
            raise InvalidInputError(
                f"--sampler {sampler} needs --audit: a file for draws and labels (audit.sqlite), or the "
                "scorer of the task that labels"
            )
        if judges is not None:
            ours["judges"] = judges_text(read_judges(judges))
        of_race = {"batch": batch, "delta": delta, "epsilon": epsilon, "history": history}
        of_race["until_proved"] = until_proved or None
        if racing or arms or (sampler is not None and is_racer(sampler)):
            of_repeats = {k: v for k, v in ours.items() if k in _REPEATS_ONLY and v is not None}
            if of_repeats:
                flag = next(iter(of_repeats)).replace("_", "-")
                raise InvalidInputError(
                    f"--{flag} is for repeats of one model's items, not for races; drop it"
                )
            kept = {k: v for k, v in ours.items() if k not in _REPEATS_ONLY}
            _exit(run_race(name, args, {**kept, **of_race}, arms, json_path, _run_host))
        for flag, value in {**of_race, "json": json_path}.items():
            if value is not None:
                raise InvalidInputError(f"--{flag.replace('_', '-')} is for races; add --race")
        given = {k: v for k, v in ours.items() if v is not None}
        if not given:
            _exit(_run_host([name, *args]))
        if budget is None and not (judges and sampler in (None, DEFAULT_SAMPLER_OF_PANELS)):
            flag = next(iter(given)).replace("_", "-")
            raise BudgetError(
                f"--{flag} needs a --budget; write a number of scores (2000) or scores per item (20x)"
            )
        Config.of(
            **{**ours, "repeat": repeat or Repeat.GENERATION}
        )  # refuse bad values before inspect starts
        codes = []
        for rewritten in host_arguments(host.commands[name], args, given, PREFIX):
            click.echo(f"+ inspect {shlex.join([name, *rewritten])}", err=True)
            codes.append(_run_host([name, *rewritten]))
        _exit(max(codes))

    return command


_AUDIT = {
    "audit": "audit",
    "judge": "judge",
    "auditor": "auditor",
    "sampler": "sampler",
    "score_range": "score_range",
    "sampler_seed": "seed",
    "batch": "batch",
    "delta": "delta",
    "epsilon": "epsilon",
}
"""Flags that an audit takes, and what they are called there."""


def _audit(name: str, args: Sequence[str], typed: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    from evalbudget_inspect.audits.again import shown
    from evalbudget_inspect.audits.command import run_audit

    if name != "eval":
        raise InvalidInputError(f"--audit works with inspect eval; {name} has retries of its own")
    again = ["evalbudget", "inspect", name]
    for flag, value in typed.items():
        if flag in ("args", "sampler_options") or value in (None, False, ()):
            continue
        if flag not in _AUDIT:
            remedy = "; the labels it may ask for: --sampler-option max_labels=N" if flag == "budget" else ""
            raise InvalidInputError(f"--{flag.replace('_', '-')} has no meaning in an audit{remedy}; drop it")
        again += [f"--{flag.replace('_', '-')}", str(value)]
    for option in typed["sampler_options"]:
        again += ["--sampler-option", option]
    given = {called: typed[flag] for flag, called in _AUDIT.items()}
    return run_audit(args, {**given, **options}, shown([*again, *args]), _run_host)


_REPEATS_ONLY = ("repeat", "objective", "judges", "rotation", "judge_prices", "judge_role")

inspect_command.add_command(_budgeted("eval"))
inspect_command.add_command(_budgeted("eval-set"))
inspect_command.add_command(race_verb(inspect_command.commands["eval"]))
inspect_command.add_command(leaderboard_command)


def _pass_through(name: str, command: click.Command) -> click.Command:
    @click.command(
        name=name,
        help=command.help,
        short_help=command.get_short_help_str(),
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    def run(args: tuple[str, ...]) -> None:
        _exit(_run_host([name, *args]))

    return run


def _run_host(arguments: list[str]) -> int:
    """Run inspect's command line in this process; 2 if evalbudget refused its input."""
    before = sys.argv
    sys.argv = ["inspect", *arguments]  # inspect reads it again for --detach
    take_refusals()
    code = 0
    try:
        with noting() as noted:
            host_main()
    except SystemExit as ex:
        code = ex.code if isinstance(ex.code, int) else int(ex.code is not None)
    except PrerequisiteError as ex:
        raise next(iter(take_refusals()), InvalidInputError(str(ex.message))) from None
    finally:
        sys.argv = before
    refusals = take_refusals()
    if refusals:
        raise refusals[0]
    show(noted)
    return code


def _exit(code: int) -> None:
    sys.exit(code)
