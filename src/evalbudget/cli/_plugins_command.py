"""``evalbudget plugins``: what is registered, from where, versions, failures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from evalbudget.cli._output import json_option, write_json
from evalbudget.exit_codes import ExitCode
from evalbudget.hooks._plugins import plugins
from evalbudget.tables import PrintableTable


@click.command(name="plugins", epilog="\b\nExamples:\n  evalbudget plugins\n  evalbudget plugins --json")
@json_option("list as JSON; to standard output instead of the table without a PATH", alone=True)
@click.pass_context
def plugins_command(ctx: click.Context, json_path: Path | None) -> None:
    """Show installed plugins, what they register, and which failed to load; exit code 1 if one did."""
    found = plugins()
    root = ctx.find_root().command
    if isinstance(root, click.Group):
        root.list_commands(ctx)  # a plugin that fails to add its commands shows here too
    if json_path is not None:
        write_json([asdict(info) for info in found.found], json_path)
    else:
        table = PrintableTable(box=None, pad_edge=False)
        for column in ("plugin", "distribution", "version", "provides"):
            table.add_column(column, overflow="fold")
        for info in found.found:
            if info.error is not None:
                provides = Text(f"failed: {info.error}", style="red")
            elif info.disabled:
                provides = Text("disabled", style="yellow")
            else:
                provides = Text("; ".join(f"{kind}: {', '.join(x)}" for kind, x in info.provides.items()))
            table.add_row(info.name, info.distribution, info.version, provides)
        Console().print(table)
    if any(info.error is not None for info in found.found):
        ctx.exit(ExitCode.NO)
