"""Entry point of ``evalbudget``: built-in commands, then those of the plugins."""

from __future__ import annotations

import errno
import logging
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import click

from evalbudget._version import __version__
from evalbudget.cli._groups import LazyCommand, PluginsGroup
from evalbudget.errors import EvalbudgetError, innermost, reason
from evalbudget.exit_codes import ExitCode, codes_for_help
from evalbudget.secrets import keep_out, without_known, without_secrets
from evalbudget.shown import shown_lines

EXAMPLES = """\b
Examples:
  evalbudget inspect eval my_task.py --model openai/gpt-5 --budget 2000
  evalbudget backtest logs/ --sampler uniform,auto --budget 10x,20x
  evalbudget compare before.eval after.eval --margin 0.01
  evalbudget doctor logs/
  evalbudget gate --baseline main.eval --candidate branch.eval --margin 0.02
  evalbudget plan pilot.npz --half-width 0.1
  evalbudget report logs/ --picture leaderboard.png
  evalbudget audit status audit.sqlite
  evalbudget plugins

""" + codes_for_help()

_STDLIB = sysconfig.get_path("stdlib")


class _Group(PluginsGroup):
    """Loads plugins' commands when one is asked for; suggests near names; prints our errors plainly."""

    extras = MappingProxyType({"inspect": "inspect", "lm-eval": "lm-eval", **PluginsGroup.extras})

    def extend(self) -> None:
        try:
            super().extend()
        except EvalbudgetError as ex:  # --help comes here before invoke() could turn it into a refusal
            raise Refusal(str(ex)) from ex

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # what a task is given is its data: a question may be about a password
        of_tasks = {at + 1 for at, word in enumerate(args) if word in ("-T", "--task-config")}
        keep_out([word for at, word in enumerate(args) if at not in of_tasks and not word.startswith("-T")])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _no_secrets_in_logs():
                return super().invoke(ctx)
        except EvalbudgetError as ex:
            raise Refusal(without_secrets(str(ex))) from ex
        except OSError as ex:
            if ex.errno == errno.EPIPE:  # click's own affair
                raise
            if isinstance(ex, PermissionError) and ex.filename is not None and not _is_in_a_task(ex):
                raise Refusal(f"{ex.filename} cannot be used: {reason(ex)}") from ex
            if ex.errno != errno.ENAMETOOLONG:
                raise _failed() from ex
            raise Refusal(f"{str(ex.filename)[:60]}... is too long for the name of a file") from ex
        except ImportError as ex:
            if not _is_ours(ex):  # a task's own, say: its author wants to see where
                raise _failed() from ex
            raise Refusal(
                f"{ex}: another version is installed than evalbudget works with. See evalbudget plugins; "
                "pip install --upgrade 'evalbudget[inspect]', 'evalbudget[lm-eval]', 'evalbudget[pairwise]' "
                "or 'evalbudget[labelling]' gets one that fits"
            ) from ex
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
        except click.UsageError as ex:
            raise click.UsageError(shown_lines(without_secrets(ex.format_message())), ex.ctx) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as ex:
            raise _failed() from ex


@contextmanager
def _no_secrets_in_logs() -> Iterator[None]:
    """Hosts and clients of theirs log the arguments of models, headers and addresses."""
    made = logging.getLogRecordFactory()

    def masked(*given: Any, **named: Any) -> logging.LogRecord:
        record = made(*given, **named)
        with suppress(TypeError, ValueError):  # arguments that do not fit, says the handler
            said = record.getMessage()
            if (left := without_known(said)) != said:
                record.msg, record.args = left, None
        if record.exc_info:
            record.exc_text = without_known(logging.Formatter().formatException(record.exc_info))
        return record

    logging.setLogRecordFactory(masked)
    try:
        yield
    finally:
        logging.setLogRecordFactory(made)


def _failed() -> click.exceptions.Exit:
    """Show where; the exit code is not Python's own, 1, which has a meaning here."""
    click.echo(shown_lines(without_known(traceback.format_exc())), nl=False, err=True)
    return click.exceptions.Exit(ExitCode.FAILED)


def _is_in_a_task(error: OSError) -> bool:
    """Whether code raised it, or called what did, that is not installed: its author wants to see where."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(
        not str(frame.f_globals.get("__name__", "")).startswith("evalbudget")
        and not frame.f_code.co_filename.startswith(("<", _STDLIB))
        and not re.search("(site|dist)-packages", frame.f_code.co_filename)
        for frame in frames
    )


def _is_ours(error: ImportError) -> bool:
    """Whether the import that failed stands in evalbudget or in a plugin of it."""
    frame = innermost(error)
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("evalbudget")


class Refusal(click.ClickException):
    """Bad input: the message, and exit code 2."""

    exit_code = ExitCode.BAD_INPUT


@click.group(cls=_Group, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalbudget")
def cli() -> None:
    """Decides which evaluation score to buy next, and says what the bought scores prove."""


_COMMANDS = {
    "audit": ("evalbudget.cli._audit:audit", "Label what audits want, and say what the labels prove."),
    "backtest": ("evalbudget.cli.backtest:backtest", "Replay recorded scores: what would have been saved?"),
    "compare": ("evalbudget.cli._compare:compare", "Are the differences between models, or versions, real?"),
    "doctor": ("evalbudget.cli._doctor:doctor", "What can and cannot be concluded from scores, and saved."),
    "gate": ("evalbudget.cli._gate:gate", "Did it get worse? For builds: the exit code is the verdict."),
    "plan": ("evalbudget.cli._plan:plan", "How many items, repeats and judges you need, from a pilot."),
    "plugins": (
        "evalbudget.cli._plugins_command:plugins_command",
        "Which plugins there are, and what they register.",
    ),
    "report": (
        "evalbudget.cli._report:report",
        "A leaderboard with intervals, from logs or recordings.",
    ),
}


def _loader(place: str) -> Callable[[], click.Command]:
    module, _, name = place.partition(":")
    return lambda: cast("click.Command", getattr(import_module(module), name))


for _name, (_place, _told) in _COMMANDS.items():
    cli.add_command(LazyCommand(_name, _loader(_place), _told))


def main() -> None:
    """Run the command line."""
    cli.main(args=sys.argv[1:], prog_name="evalbudget")
