"""What the errors of a database mean, in our words."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from evalbudget.store._address import Address
from evalbudget.store._layout import Layout

_REFUSALS = ("does not exist", "authentication failed", "pg_hba.conf", "no password")
"""Of a server that is there: waiting does not help."""
_OUTAGES = (
    *("connection", "failed to resolve", "server closed", "terminating", "starting up", "shutting down"),
    "recovery mode",
)

_DAMAGE = ("not a database", "malformed", "no such table", "no such column", "has no column named")


def told(where: Address, layout: Layout, said: str, patience: float) -> str:
    """What the database says, with a remedy where there is one.

    Args:
        where: it is.
        layout: of the store.
        said: by the database.
        patience: seconds that were waited for others.
    """
    if "locked" in said or "lock timeout" in said:
        return f"{where} has been kept locked by another process for {patience:g} s; end it, then try again"
    if where.url is not None:
        hidden = "permission denied" in said or ("relation" in said and "does not exist" in said)
        remedy = ". Ask whoever owns the schema to GRANT this user what is needed" if hidden else ""
        return f"{where}: {first_line(said)}{remedy}"
    if any(sign in said for sign in _DAMAGE):
        return f"{where} is no {layout.kind}, or damaged: {said}{layout.advice}"
    if "unable to open" in said:
        return (
            f"{layout.kind} {where} cannot be opened: {said}. Have its owner let you read it and write into "
            "its folder, or work on a copy"
        )
    if "readonly" in said:
        return f"{where} cannot be written; copy it to where it can"
    if "full" in said or "disk I/O" in said:
        return f"{where} cannot be written: {said}. Make room, then go on: what was recorded before is in it"
    return f"{where}: {said}"


def cut_off_by(ex: BaseException) -> BaseException:
    """Ctrl-C, if it came first; itself if nothing of the kind did."""
    first = ex
    while isinstance(first, AssertionError) and first.__context__ is not None:
        first = first.__context__
    return ex if isinstance(first, Exception) else first


def is_gone(ex: DBAPIError) -> bool:
    """Whether it is the server that is away, or about to be, or has let this connection go."""
    said = first_line(str(ex.orig))
    if any(sign in said for sign in _REFUSALS):
        return False
    if ex.connection_invalidated:  # also as who was silent for too long, which is an error of another kind
        return True
    return isinstance(ex, OperationalError | InterfaceError) and any(sign in said for sign in _OUTAGES)


def first_line(message: str) -> str:
    """Of what a database says."""
    return message.strip().splitlines()[0] if message.strip() else "no reason given"
