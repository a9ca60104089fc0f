"""Refusals of this process: lets a command that ran the host tell bad input from the host's own failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from inspect_ai import eval_retry_async
from inspect_ai.model import get_model
from rich.errors import MarkupError
from rich.text import Text

from evalbudget.errors import EvalbudgetError, InvalidInputError, innermost
from evalbudget_inspect.host.host_frames import held_by_caller
from evalbudget_inspect.host.private import PrerequisiteError, TaskDisplay, TaskError, TaskResult

_refusals: list[EvalbudgetError] = []
_told_at_the_end = False
_SEE_BELOW = "refused by evalbudget; the reason stands below"


def refused(error: EvalbudgetError) -> None:
    """Note a refusal."""
    _refusals.append(error)


@contextmanager
def refusing() -> Iterator[None]:
    """Have the host print what is refused within as what it is, and note it."""
    try:
        yield
    except EvalbudgetError as ex:
        refused(ex)
        raise PrerequisiteError(Text(f"evalbudget: {ex}")) from ex


@contextmanager
def told_at_the_end() -> Iterator[None]:
    """What is refused within is printed by the command that runs the host, and so not by the host."""
    global _told_at_the_end
    before, _told_at_the_end = _told_at_the_end, True
    try:
        yield
    finally:
        _told_at_the_end = before


def show_without_traceback() -> None:
    """Have the display of the task that is about to start show refusals by what they say, not where in us."""
    display: Any = held_by_caller(TaskDisplay)
    if display is None:
        return
    complete = display.complete

    def completed(result: TaskResult) -> None:
        if isinstance(result, TaskError) and isinstance(result.exc_value, EvalbudgetError):
            result.exc_value.__cause__ = result.exc_value.__context__ = None  # would be shown too
            told = InvalidInputError(_SEE_BELOW) if _told_at_the_end else result.exc_value
            result = replace(result, exc_value=told, traceback=None)
        complete(result)

    display.complete = completed


def _refusal_of(error: PrerequisiteError) -> InvalidInputError:
    """What the host refuses, in its words, without the markup that it prints them with."""
    message = error.message
    if isinstance(message, str):
        try:
            message = Text.from_markup(message)
        except MarkupError:  # what it quotes looks like markup
            return InvalidInputError(message)
    return InvalidInputError(str(message).removeprefix("ERROR: "))


@contextmanager
def refused_as_ours() -> Iterator[None]:
    """Have what the host refuses within be a refusal like ours, which is printed once."""
    try:
        yield
    except PrerequisiteError as ex:
        raise next(iter(take_refusals()), _refusal_of(ex)) from None
    except ValueError as ex:
        frame = innermost(ex)
        if frame is None or frame.f_code is not get_model.__code__:
            raise
        raise InvalidInputError(str(ex)) from None  # there is no such model
    except FileNotFoundError as ex:
        frame = innermost(ex)
        if frame is None or frame.f_code is not eval_retry_async.__code__:
            raise
        raise InvalidInputError(_no_task(str(ex), frame.f_locals.get("task_name"))) from None


def _no_task(told: str, name: object) -> str:
    """That the task of a log that goes on is not here, and what brings it here."""
    package, _, in_package = str(name).partition("/")
    if not in_package:
        return (
            f"{told.rstrip('.')}; the run goes on where its task is: in the same folder, with the same file"
        )
    extra = package.removeprefix("evalbudget_").replace("_", "-")
    wanted = package if extra == package else f"evalbudget[{extra}]"
    return (
        f"the log is of the task {name}, which no package here registers with inspect: pip install '{wanted}'"
    )


def take_refusals() -> list[EvalbudgetError]:
    """All refusals noted since the last call."""
    taken = list(_refusals)
    _refusals.clear()
    return taken
