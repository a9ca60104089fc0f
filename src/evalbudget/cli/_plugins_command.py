"""``evalbudget plugins``: what is registered, from where, versions, failures."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evalbudget.hooks._plugins import plugins


@click.command(name="plugins", epilog="\b\nExamples:\n  evalbudget plugins\n  evalbudget plugins --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
def plugins_command(ctx: click.Context, as_json: bool) -> None:
    """Show installed plugins, what they register, and which failed to load.

    Exit code 1 if one of them failed.
    """
    found = plugins()
    root = ctx.find_root().command
    if isinstance(root, click.Group):
        root.list_commands(ctx)  # a plugin that fails to add its commands shows here too
    if as_json:
        click.echo(json.dumps([asdict(info) for info in found.found], indent=2))
    else:
        table = Table(box=None, pad_edge=False)
        for column in ("plugin", "distribution", "version", "provides"):
            table.add_column(column, overflow="fold")
        for info in found.found:
            if info.error is not None:
                provides = f"[red]failed:[/] {escape(info.error)}"
            elif info.disabled:
                provides = "[yellow]disabled[/]"
            else:
                provides = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in info.provides.items())
            table.add_row(info.name, info.distribution, info.version, provides)
        Console().print(table)
    if any(info.error is not None for info in found.found):
        ctx.exit(1)
