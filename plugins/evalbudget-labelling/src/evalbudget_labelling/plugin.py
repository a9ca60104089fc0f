"""evalbudget's hooks: ``evalbudget audit serve``, ``export`` and ``sync``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalbudget import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def evalbudget_add_commands_to(name: str, group: click.Group) -> None:
    """Those of ``evalbudget audit`` that are for who labels."""
    if name == "audit":
        from evalbudget_labelling.cli import export_command, serve, sync_command

        for command in (serve, export_command, sync_command):
            group.add_command(command)
