"""evalbudget's hooks: the ``evalbudget lm-eval`` command and the reader of ``samples_*.jsonl``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalbudget import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from evalbudget.backtest import RecordedScores


@hookimpl
def evalbudget_add_commands(cli: click.Group) -> None:
    """``evalbudget lm-eval ...``."""
    from evalbudget_lm_eval.cli import lm_eval_command

    cli.add_command(lm_eval_command)


@hookimpl
def evalbudget_open_scores(path: Path, task: str | None, category: str | None) -> RecordedScores | None:
    """Read a folder with ``samples_*.jsonl``."""
    from evalbudget_lm_eval.log_folder import open_scores

    return open_scores(path, task=task, category=category)
