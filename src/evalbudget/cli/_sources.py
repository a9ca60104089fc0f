"""What every command that reads scores asks and reads alike: which task, which way is better, which items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalbudget.cli._output import say
from evalbudget.cli._shared_options import TASK
from evalbudget.hooks._plugins import plugins
from evalbudget.shown import shown

if TYPE_CHECKING:
    from evalbudget.backtest import RecordedScores

Reader = Callable[..., "RecordedScores"]
"""Reads the scores of paths, as the options of the command say."""
ACROSS_TASKS = click.option(
    "--across-tasks",
    is_flag=True,
    help="Logs of tasks of other names or versions have the same items under the same ids.",
)
_OPTIONS = (
    TASK,
    ACROSS_TASKS,
    click.option(
        "--lower-is-better",
        is_flag=True,
        help="Lower scores are better, where the source does not say so itself.",
    ),
)


def sources(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how scores are read; the command is given ``read``, :func:`opened` with these."""

    @wraps(command)
    def given(*, task: str | None, across_tasks: bool, lower_is_better: bool, **others: Any) -> Any:
        read = partial(opened, task=task, across_tasks=across_tasks, lower_is_better=lower_is_better)
        return command(read=read, **others)

    found: Callable[..., Any] = given
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def opened(
    paths: Iterable[Path],
    *,
    task: str | None,
    across_tasks: bool,
    lower_is_better: bool,
    category: str | None = None,
    may_be_empty: bool = False,
    rater: str | None = None,
) -> RecordedScores:
    """The scores of all paths, side by side; some of them may have no score, and all if that is allowed.

    ``lower_is_better`` is of the ``rater`` that will be chosen, if one will.

    Raises:
        EvalbudgetError: one of them cannot be read, they do not go together, or there is no score.
    """
    from evalbudget.backtest import side_by_side
    from evalbudget.recorded._direction import with_lower_better
    from evalbudget.recorded._missing import require_scores

    found: Mapping[str, RecordedScores] = {
        str(path): plugins().open_scores(path, task, category=category, may_be_empty=True)
        for path in dict.fromkeys(paths)
    }
    recorded = side_by_side(found, across_tasks=across_tasks)
    if not may_be_empty:
        require_scores(recorded, ", ".join(found))
    return with_lower_better(recorded, rater) if lower_is_better else recorded


def tell(recorded: RecordedScores) -> None:
    """Notes of the sources on stderr, for commands whose result has no place for them."""
    from evalbudget.recorded._direction import notes_of

    verdict = (
        ()
        if recorded.race is None
        else (f"these are the scores of a {recorded.race.kind}: {recorded.race.sentence}",)
    )
    for note in (*verdict, *notes_of(recorded)):
        say(f"Note: {shown(note)}", err=True)
