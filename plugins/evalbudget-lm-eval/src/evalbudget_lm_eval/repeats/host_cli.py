"""lm-eval's own parser with our group of arguments in ``run``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats.config import DEFAULT_SAMPLER
from evalbudget.repeats.options import parse_option
from evalbudget.repeats.summary import Summary
from evalbudget_lm_eval.host.identity import telling_args
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.repeats.wrapping import evaluate_replaced

_PREFIX = "evalbudget_"

_FLAGS: dict[str, dict[str, Any]] = {
    "budget": {
        "metavar": "<n>",
        "help": "Calls of the model to buy: 2000, or 20x for 20 answers per document. Never exceeded.",
    },
    "sampler": {
        "metavar": "<name>",
        "help": f"Registered sampler (default: {DEFAULT_SAMPLER}, which is rating-kernel or eb-bernstein by "
        "what the warm-up shows); see evalbudget plugins.",
    },
    "score": {
        "metavar": "<metric>",
        "help": "Metric that drives the sampler, metric or metric,filter (default: each task's first).",
    },
    "score_range": {
        "metavar": "<low..high>",
        "help": "Smallest and largest possible score, 0..1: gives every document a guaranteed interval.",
    },
    "objective": {"metavar": "<name>", "help": "worst-item (default), mse or mean."},
    "sampler_seed": {"type": int, "metavar": "<n>", "help": "Seed of the sampler (default: 0)."},
    "sampler_option": {
        "action": "append",
        "metavar": "<name=value>",
        "help": "Further option of the sampler; may be given several times.",
    },
    "journal": {
        "metavar": "<path>",
        "help": "File that keeps what was paid for; continued if it exists, also with a higher budget "
        "(default: one below evalbudget-journals, in --output_path; none for none).",
    },
    "round_size": {
        "type": int,
        "metavar": "<n>",
        "help": "Documents given to the model at a time (default: 32, or num_concurrent or batch_size).",
    },
    "vary_seed": {
        "action": "store_true",
        "help": "Have every repeat send its own seed: API models send the same one with every request.",
    },
}


def execute(arguments: Sequence[str]) -> None:
    """Run the host's command line on these arguments, which are in ``sys.argv`` too."""
    asks_help = arguments[:1] == ["run"] and any(a in ("-h", "--help") for a in arguments)
    if not asks_help and not any(_is_ours(argument) for argument in arguments):
        from lm_eval.__main__ import cli_evaluate

        cli_evaluate()
        return

    from lm_eval._cli import HarnessCLI
    from lm_eval.utils import setup_logging

    setup_logging()
    cli = HarnessCLI()
    _add_flags(cli._subparsers.choices["run"])
    parsed = cli.parse_args()
    config = _take(parsed)
    told: list[Summary] = []
    with evaluate_replaced(
        lambda _tasks: config, folder=_folder(parsed), about=_about(parsed), told=told.append
    ):
        cli.execute(parsed)
    for summary in told:  # below the host's table
        click.echo(f"{summary}\n")


def _names(flag: str) -> list[str]:
    spellings = [f"--{flag}"]
    if "_" in flag:
        spellings.append(f"--{flag.replace('_', '-')}")
    return spellings


def _is_ours(argument: str) -> bool:
    name = argument.split("=", 1)[0]
    return any(name in _names(flag) for flag in _FLAGS)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "evalbudget", "buy repeats where they teach most, within a budget; needs --budget"
    )
    for flag, settings in _FLAGS.items():
        group.add_argument(*_names(flag), dest=_PREFIX + flag, default=None, **settings)


def _take(parsed: argparse.Namespace) -> Config:
    """Our flags, taken off the host's namespace.

    Raises:
        BudgetError: flags of ours without a budget.
        EvalbudgetError: a flag's value is no good.
    """
    given = {flag: vars(parsed).pop(_PREFIX + flag, None) for flag in _FLAGS}
    used = [flag for flag, value in given.items() if value is not None]
    if given["budget"] is None:
        raise BudgetError(
            f"--{used[0] if used else 'sampler'} needs a --budget; write a number of scores (2000) or scores "
            "per item (20x)"
        )
    options: dict[str, Any] = {}
    for text in given.pop("sampler_option") or ():
        name, value = parse_option(text, "--sampler_option")
        if name in options:
            raise InvalidInputError(f"--sampler_option {name} is given twice")
        options[name] = value
    if given["objective"] is not None:
        options["objective"] = given["objective"]
    del given["objective"]
    seed = given.pop("sampler_seed")
    return Config.of(seed=seed, **given, **options)


def _folder(parsed: argparse.Namespace) -> Path:
    output = getattr(parsed, "output_path", None)
    if not output:
        return Path()
    return Path(output).parent if Path(output).suffix == ".json" else Path(output)


def _about(parsed: argparse.Namespace) -> dict[str, Any]:
    """The model as the user named it: not every class of the host remembers its arguments."""
    args = getattr(parsed, "model_args", None)
    return {"model_args": telling_args(args)} if isinstance(args, Mapping) else {}
