"""``evalbudget lm-eval ...``: lm-eval's own command line, with a sampler in front of the tasks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise

import click

from evalbudget.cli import PluginsGroup
from evalbudget.exit_codes import codes_for_help

EXAMPLES = """\b
Examples:
  evalbudget lm-eval run --model local-chat-completions \\
      --model_args model=m,base_url=... --tasks gsm8k --apply_chat_template \\
      --gen_kwargs temperature=1.0 --budget 20x \\
      --output_path results --log_samples
  evalbudget lm-eval run --model hf --model_args pretrained=gpt2 --tasks gsm8k \\
      --gen_kwargs do_sample=True,temperature=0.7 --budget 2000 \\
      --score exact_match,flexible-extract
  evalbudget lm-eval race --arm a=hf:pretrained=gpt2 --arm b=hf:pretrained=gpt2-medium \\
      --tasks hellaswag --budget 5000
  evalbudget lm-eval gate --tasks gsm8k --baseline results/main --margin 0.02 \\
      --model hf --model_args pretrained=my-model
  evalbudget lm-eval audit audit.sqlite --arm a=... --arm b=... --tasks essays \\
      --score_range 1..5
  evalbudget lm-eval score results/my-model --judges judges.yaml --output_path judged
  evalbudget lm-eval ls tasks

All else is lm-eval's own: see lm-eval run --help, or evalbudget lm-eval run --help for both.

""" + codes_for_help()

_HOST = {
    "run": "lm-eval run, under a budget if --budget is given.",
    "ls": "lm-eval ls, unchanged.",
    "validate": "lm-eval validate, unchanged.",
}
_OURS = {
    "race": "races.command:race_command",
    "gate": "races.gate_command:gate_command",
    "audit": "audits.command:audit_command",
    "score": "repeats.score_command:score_command",
}
"""Where each command is; they are imported when they are asked for."""


class _HostGroup(PluginsGroup):
    """Our commands first, then those of plugins; every other one is the host's."""

    known_as = "lm-eval"
    unknown = "lm-eval has no command"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_HOST, *_OURS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _OURS:
            module, _, name = _OURS[cmd_name].partition(":")
            command: click.Command = getattr(import_module(f"evalbudget_lm_eval.{module}"), name)
            return command
        return _pass_through(cmd_name) if cmd_name in _HOST else super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # as the host has it: flags alone are those of run
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(
    name="lm-eval",
    cls=_HostGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
def lm_eval_command() -> None:
    """Run lm-eval with a sampler deciding what is asked.

    Which document again, which model next, whether a model got worse, or which answer a person should label.

    ``run`` takes --budget and --sampler on top of lm-eval's own flags; all else is passed on unchanged.
    """


def _pass_through(name: str) -> click.Command:
    @click.command(
        name=name,
        help=_HOST[name],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def command(ctx: click.Context, args: tuple[str, ...]) -> None:
        what = _what_arms_do(args) if name == "run" else None
        if name == "run" and _until_means_are_known(args):
            what = "races"
        if what == "races":
            from evalbudget_lm_eval.races.command import race_command

            sys.exit(race_command.main(list(args), prog_name=ctx.command_path, standalone_mode=False))
        if what == "audits":
            from evalbudget_lm_eval.audits.command import audit_command, beside_results

            arguments = beside_results(args)
            sys.exit(audit_command.main(arguments, prog_name=ctx.command_path, standalone_mode=False))
        from evalbudget_lm_eval.repeats.host_cli import run_host

        sys.exit(run_host([name, *args]))

    return command


def _until_means_are_known(arguments: Sequence[str]) -> bool:
    """Whether ``--until`` is about means, which are known by documents and not by repeats."""
    from evalbudget.until import parse_until

    following = [value for flag, value in pairwise(arguments) if flag == "--until"]
    told = following + [a.partition("=")[2] for a in arguments if a.startswith("--until=")]
    return bool(told) and not parse_until(told[-1]).of_items


def _what_arms_do(arguments: Sequence[str]) -> str | None:
    """``races`` or ``audits``, where arms are given and a sampler that is for it; else None."""
    from evalbudget.hooks import plugins

    following = [value for flag, value in pairwise(arguments) if flag == "--sampler"]
    samplers = following + [a.partition("=")[2] for a in arguments if a.startswith("--sampler=")]
    has_arms = any(a == "--arm" or a.startswith("--arm=") for a in arguments)
    whats = {plugins().question(name) for name in samplers} & {"races", "audits"} if has_arms else set()
    return min(whats, default=None)
