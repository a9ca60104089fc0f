"""``evalbudget audit serve``: the page on which humans label."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import click

from evalbudget.cli._shared_options import store_argument

if TYPE_CHECKING:
    from evalbudget.audits.page import PageServer

EXAMPLES = """\b
Examples:
  evalbudget audit serve audit.sqlite
  evalbudget audit serve audit.sqlite --by ann --port 0
  ssh -L 8765:127.0.0.1:8765 HOST evalbudget audit serve audit.sqlite --no-open
"""

_PATIENCE = 5.0
"""Seconds that a page waits for a database that cannot be reached, before it says so."""


@click.command(epilog=EXAMPLES)
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
    from evalbudget.audits.page import PageApi, PageServer
    from evalbudget.audits.store import AuditStore, go_on, labeller, still_wanted

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
