"""lm-eval's own parser with our group of arguments in ``run``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbudget.cli import say
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError, innermost
from evalbudget.exit_codes import ExitCode, codes_for_help, most_urgent
from evalbudget.flags import SAMPLER_OPTION, refuse_elsewhere, sampler_options
from evalbudget.races.flags import FLAGS as OF_RACES
from evalbudget.repeats import Summary
from evalbudget.repeats.flags import SAMPLER
from evalbudget.secrets import refuse_secrets
from evalbudget_lm_eval.host.config_file import (
    WRITTEN,
    refuse_keys_of_file,
    typed_or_in_file,
    with_flags_of_file,
    without_keys,
)
from evalbudget_lm_eval.host.flag_spelling import as_spelled, is_one_of, refuse_misspelled_flags, spelled
from evalbudget_lm_eval.host.identity import run_args
from evalbudget_lm_eval.repeats.budgeted import check_typed, evaluate_replaced
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.repeats.flags import FLAGS
from evalbudget_lm_eval.repeats.kept_answers import Answers

_PREFIX = "evalbudget_"


def run_host(arguments: Sequence[str], answers: Answers | None = None) -> int:
    """The host's command line in this process, with ours in ``run``.

    Args:
        arguments: its command and flags, ours among them.
        answers: of a finished run, to be scored in place of asking the model.

    Returns:
        The exit code.

    Raises:
        EvalbudgetError: what was asked for cannot be budgeted.
    """
    before = sys.argv
    sys.argv = ["lm-eval", *arguments]
    code: Any = 0
    try:
        code = execute(arguments, answers)
    except SystemExit as ex:
        code = ex.code
    except KeyboardInterrupt:
        say("interrupted", err=True)
        return ExitCode.INTERRUPTED
    finally:
        sys.argv = before
    return code if isinstance(code, int) else int(code is not None)


def execute(arguments: Sequence[str], answers: Answers | None = None) -> int:
    """Run the host's command line on these arguments, which are in ``sys.argv`` too.

    Args:
        arguments: its command and flags, ours among them.
        answers: of a finished run, to be scored in place of asking the model.

    Returns:
        How it ended, if it was not the host that said so.
    """
    arguments, ours_in_file = with_flags_of_file(arguments, FLAGS)
    asks_help = arguments[:1] == ["run"] and any(a in ("-h", "--help") for a in arguments)
    if arguments[:1] == ["run"] and not asks_help:
        refuse_misspelled_flags([each for each in arguments if not is_one_of(each, OF_RACES)], FLAGS)
    if not asks_help and not any(is_one_of(a, FLAGS) for a in arguments):
        from lm_eval.__main__ import cli_evaluate

        with without_keys(ours_in_file):
            cli_evaluate()
        return ExitCode.DONE

    import lm_eval.models  # noqa: F401  (the host's models register themselves)
    from lm_eval.api.registry import model_registry
    from lm_eval.utils import setup_logging

    from evalbudget_lm_eval.host.private import HarnessCLI
    from evalbudget_lm_eval.repeats.forecast import Foreseen

    setup_logging()
    cli = HarnessCLI()
    run = cli._subparsers.choices["run"]
    names = {flag.name for flag in FLAGS}
    of_races = [flag for flag in OF_RACES if flag.name not in names]
    refuse_elsewhere(arguments, of_races, "is of evalbudget lm-eval race; drop it, or use that command")
    _add_flags(run)
    sys.argv[1:] = as_spelled(arguments, FLAGS)
    parsed = cli.parse_args()
    config = _take(parsed)
    check_typed(config)
    if parsed.model not in (None, *model_registry.keys()):
        raise UnknownNameError("model", parsed.model, model_registry.keys())
    refuse_keys_of_file(parsed, FLAGS)
    for name in WRITTEN:
        refuse_secrets(getattr(parsed, name, None), f"--{name}")
    told: list[Summary] = []
    output, model_args = (typed_or_in_file(parsed, name) for name in ("output_path", "model_args"))
    with evaluate_replaced(
        lambda _tasks: config,
        folder=_folder(output),
        about=_about(model_args),
        told=told.append,
        answers=answers,
    ):
        try:
            with without_keys(ours_in_file):
                cli.execute(parsed)
        except Foreseen as ex:
            say(f"{ex.forecast}\n\nNo call was made.")
            return ExitCode.DONE
        except ValueError as ex:
            frame = innermost(ex)
            if frame is None or frame.f_code.co_name != "process_tasks":
                raise
            raise InvalidInputError(f"lm-eval refuses --tasks: {ex}") from None
    for summary in told:  # below the host's table
        say(f"{summary}\n")
    return most_urgent(summary.exit_code(config.until) for summary in told)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "evalbudget",
        "buy repeats where they teach most, within a budget; needs --budget or --judges. "
        + codes_for_help(no="", undecided="not known yet, with --until"),
    )
    for flag in FLAGS:
        settings: dict[str, Any] = {"dest": _PREFIX + flag.name, "default": None, "help": flag.help}
        if flag.switch:
            settings["action"] = "store_true"
        else:
            settings |= {"type": flag.type, "metavar": flag.metavar}
            settings["action"] = "append" if flag.repeated else "store"
        group.add_argument(spelled(flag), **settings)


def _take(parsed: argparse.Namespace) -> Config:
    """Our flags, taken off the host's namespace.

    Raises:
        BudgetError: flags of ours without a budget.
        EvalbudgetError: a flag's value is no good.
    """
    given = {flag.name: vars(parsed).pop(_PREFIX + flag.name, None) for flag in FLAGS}
    used = [flag for flag in FLAGS if given[flag.name] is not None]
    if given["budget"] is None and given["judges"] is None:
        shown = spelled((used or [SAMPLER])[0])
        raise BudgetError(
            f"{shown} needs a --budget; write a number of scores (2000) or scores per item (20x)"
        )
    texts = given.pop(SAMPLER_OPTION.name) or ()
    return Config.of(**given, **sampler_options(texts, FLAGS, spelled(SAMPLER_OPTION)))


def _folder(output: Any) -> Path:
    if not output:
        return Path()
    return Path(output).parent if Path(output).suffix == ".json" else Path(output)


def _about(model_args: Any) -> dict[str, Any]:
    """The model as the user named it: not every class of the host remembers its arguments."""
    return {"model_args": run_args(model_args)} if isinstance(model_args, Mapping) else {}
