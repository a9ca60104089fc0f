"""``evalbudget audit serve``, ``export`` and ``sync``: the page, files, and a Label Studio server."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from evalbudget.cli import (
    TEXT_OR_JSON,
    check_target,
    json_option,
    say,
    store_argument,
    write_json,
    write_text,
)
from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_json

if TYPE_CHECKING:
    from evalbudget_labelling import PageServer

SERVE_EXAMPLES = """\b
Examples:
  evalbudget audit serve audit.sqlite
  evalbudget audit serve audit.sqlite --by ann --port 0
  ssh -L 8765:127.0.0.1:8765 HOST evalbudget audit serve audit.sqlite --no-open
"""

_PATIENCE = 5.0
"""Seconds that a page waits for a database that cannot be reached, before it says so."""


@click.command(epilog=SERVE_EXAMPLES)
@store_argument
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Of the page; 0 for any that is free.",
)
@click.option("--by", metavar="NAME", default="", help="Who labels; otherwise the page asks.")
@click.option(
    "--open/--no-open", "browse", default=None, help="Open a browser.  [default: if there is a screen]"
)
def serve(where: str, port: int, by: str, browse: bool | None) -> None:
    """Open the page on which humans label STORE.

    Only this machine reaches it, and only who knows the address: it holds a token that is new each time. The
    page needs no network. Several people can label at once, each on a page of their own; nobody is given what
    somebody else is reading. Ctrl-C ends it; every label is saved the moment it is given.
    """
    from evalbudget.audits.store import AuditStore, go_on, labeller, still_wanted
    from evalbudget_labelling import PageApi, PageServer

    with AuditStore.open(where) as store:
        before = store.progress().labelled
        store.be_patient(_PATIENCE)
        server = PageServer(PageApi(store, go_on, labeller(by) if by else ""), port)
        with server, _ends_on_signals(server):
            print(f"Labelling {store.address} at\n  {server.url}\nCtrl-C ends it.", flush=True)
            if _has_screen() if browse is None else browse:
                webbrowser.open(server.url)
            server.serve_forever(poll_interval=0.2)
        new = store.progress().labelled - before
        print(f"\nEnded: {new} new label{'s' * (new != 1)}, {len(still_wanted(store))} still wanted.")


@contextmanager
def _ends_on_signals(server: PageServer) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the server once it has answered what it was asked."""

    def end(number: int, frame: FrameType | None) -> None:
        # shutdown waits for the loop that this handler interrupts
        threading.Thread(target=server.shutdown, daemon=True).start()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_screen() -> bool:
    """Whether a browser would come up in a window, rather than in this terminal or nowhere."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


_FORMATS = ("csv", "jsonl", "label-studio", "label-studio-config", "inspect-scores")
_IN_JSON = ("jsonl", "label-studio", "inspect-scores")

EXPORT_EXAMPLES = """\b
Examples:
  evalbudget audit export audit.sqlite --format csv -o labels.csv
  evalbudget audit export audit.sqlite --format label-studio -o tasks.json
  evalbudget audit export audit.sqlite --format label-studio-config -o labelling.xml
  evalbudget audit export audit.sqlite --format inspect-scores --model openai/gpt-5 -o ratings.json
  evalbudget audit export audit.sqlite --format jsonl --only labelled --with-judge -o - | jq .
"""


@click.command(name="export", epilog=EXPORT_EXAMPLES)
@store_argument
@click.option("--format", "kind", type=click.Choice(_FORMATS), required=True, help="Of the file.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    required=True,
    help="Where to; - for stdout.",
)
@click.option(
    "--only",
    type=click.Choice(("wanted", "labelled")),
    help="Only what has no label yet, or only what has one.  [default: both]",
)
@click.option(
    "--with-judge", is_flag=True, help="Add the system, the judge's score and reason, of what is labelled."
)
@click.option(
    "--model",
    metavar="NAME",
    help="With inspect-scores: the system whose labels inspect's precomputed_scores takes.",
)
def export_command(
    where: str, kind: str, output: Path, only: str | None, with_judge: bool, model: str | None
) -> None:
    """Write what is to be labelled, and the labels there are.

    Nothing tells the labeller which system answered or what the judge says. Fill in the columns score and by,
    then evalbudget audit import the file; a file that is filled in by part is fine.
    """
    if (model is None) == (kind == "inspect-scores"):
        raise InvalidInputError(
            "--format inspect-scores is of one system's answers: name it with --model"
            if model is None
            else "--model is for --format inspect-scores; drop it (the others name no system, since whoever "
            "labels should not know whose answer it is)"
        )
    to_stdout = output == Path("-")
    if not to_stdout:
        check_target(output, "--output")
    from evalbudget.audits.store import AuditStore, still_wanted
    from evalbudget_labelling import export

    with AuditStore.open(where) as store:
        file = store.address.path
        if not to_stdout and file is not None and output.exists() and output.samefile(file):
            raise InvalidInputError(f"--output {output} is the audit store itself; choose another file")
        wanted = frozenset(still_wanted(store))
        which = None if only is None else only == "labelled"
        text = export(store, kind, labelled=which, judge=with_judge, among=wanted, model=model)
        labelled = store.progress().labelled
    if to_stdout:
        click.echo(shown_json(text) if kind in _IN_JSON else text, nl=False)
        return
    write_text(output, text, "--output")
    told = f"Wrote {output}"
    if kind != "label-studio-config":
        told += f": {len(wanted)} still wanted, {labelled} labelled"
    if kind == "label-studio":
        told += "; the labelling interface for it: --format label-studio-config"
    say(told, err=True)


SYNC_EXAMPLES = """\b
Examples:
  export LABEL_STUDIO_API_KEY=...
  evalbudget audit sync audit.sqlite --url http://localhost:8080
  evalbudget audit sync audit.sqlite --url http://localhost:8080 --project 7
"""


@click.command(name="sync", epilog=SYNC_EXAMPLES)
@store_argument
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
    from evalbudget.audits.store import AuditStore, still_wanted
    from evalbudget_labelling import LabelStudio, sync

    with AuditStore.open(where) as store:
        address = store.address
        found = sync(store, LabelStudio(url, api_key), project)
        outstanding = len(still_wanted(store))
    if json_path is not None:
        write_json(asdict(found) | {"outstanding": outstanding}, json_path)
        return
    new = found.labels.new
    click.echo(
        f"Project {found.project}: {new} new label{'s' * (new != 1)} in, {found.pushed} "
        f"task{'s' * (found.pushed != 1)} out; {outstanding} still wanted"
    )
    if told := found.labels.warning(address):
        say(told, err=True)
