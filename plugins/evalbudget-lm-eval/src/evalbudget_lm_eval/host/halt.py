"""Whether nothing more is to be sent: of one round, or of all arms that are asked at once."""

from __future__ import annotations

from contextvars import ContextVar


class Halt:
    """A stop sign.

    Attributes:
        error: raised wherever something would be sent; None as long as things go on.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def check(self) -> None:
        """Raise it, if it is up."""
        if self.error is not None:
            raise self.error


halt_of_all: ContextVar[Halt | None] = ContextVar("halt_of_all", default=None)
"""In a thread that asks one of several arms: the sign that stops all of them."""
