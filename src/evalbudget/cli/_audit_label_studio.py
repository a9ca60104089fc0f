"""``evalbudget audit sync``: labelling by a team on a Label Studio server."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from evalbudget.cli._audit_files import say_conflicts, wanted_of
from evalbudget.cli._output import TEXT_OR_JSON, json_option, write_json
from evalbudget.cli._shared_options import STORE
from evalbudget.errors import InvalidInputError

EXAMPLES = """\b
Examples:
  export LABEL_STUDIO_API_KEY=...
  evalbudget audit sync audit.sqlite --url http://localhost:8080
  evalbudget audit sync audit.sqlite --url http://localhost:8080 --project 7
"""


@click.command(name="sync", epilog=EXAMPLES)
@STORE
@click.option(
    "--url", metavar="URL", envvar="LABEL_STUDIO_URL", show_envvar=True, required=True, help="Of the server."
)
@click.option(
    "--project", type=click.IntRange(min=1), help="Its number.  [default: last time's, or a new one]"
)
@json_option(TEXT_OR_JSON, alone=True)
def sync_command(where: str, url: str, project: int | None, json_path: Path | None) -> None:
    """Take labels in from a Label Studio project, and give it what is to be labelled next.

    Nothing there tells the labeller which system answered or what the judge says. Run it again whenever
    you like: nothing is pushed or counted twice. The key of an account is read from the variable
    LABEL_STUDIO_API_KEY, or asked for at a terminal.
    """
    api_key = os.environ.get("LABEL_STUDIO_API_KEY", "")
    if not api_key and sys.stdin.isatty():
        api_key = click.prompt("Key of an account (Account & Settings)", hide_input=True, err=True)
    if not api_key:
        raise InvalidInputError(
            "there is no key of a Label Studio account; set LABEL_STUDIO_API_KEY to a token of one "
            "(Account & Settings)"
        )
    from evalbudget.audits.store import AuditStore
    from evalbudget.audits.store.exchange import LabelStudio, sync

    with AuditStore.open(where) as store:
        address = store.address
        found = sync(store, LabelStudio(url, api_key), project, wanted_of)
        outstanding = len(wanted_of(store))
    if json_path is not None:
        write_json(asdict(found) | {"outstanding": outstanding}, json_path)
        return
    new = found.labels.new
    click.echo(
        f"Project {found.project}: {new} new label{'s' * (new != 1)} in, {found.pushed} "
        f"task{'s' * (found.pushed != 1)} out; {outstanding} still wanted"
    )
    say_conflicts(found.labels.conflicts, address)
