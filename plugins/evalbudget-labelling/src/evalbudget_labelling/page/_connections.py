"""How long, and how many at once, whoever connects may keep the server of the page waiting."""

from __future__ import annotations

import io
import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class RequestReader(io.RawIOBase):
    """What one request says, as long as it comes in time and is not too long.

    Args:
        connection: on which it comes.
        patience: seconds from now that it may take as a whole, however it is split.
        most: bytes to read before ``allow`` is called.
    """

    def __init__(self, connection: socket.socket, patience: float, most: int) -> None:
        self._connection = connection
        self._until = time.monotonic() + patience
        self._left = most

    def allow(self, more: int) -> None:
        """From here on, as many bytes may be read and no more."""
        self._left = more

    def readable(self) -> bool:
        """It is for nothing else."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """As of any raw stream.

        Raises:
            TimeoutError: the time is over.
            HTTPException: it is longer than allowed.
        """
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the request takes too long")
        if self._left <= 0:
            raise HTTPException("the request is too long")
        self._connection.settimeout(seconds)
        read = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= read
        return read


class Connections:
    """The connections that are open: a limited number.

    One too many ends the oldest that has not shown the token, so nobody who only holds connections keeps a
    labeller out.

    Args:
        most: how many may be open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: dict[socket.socket, bool] = {}  # whether its token is still to come; oldest first

    def admit(self, connection: socket.socket) -> bool:
        """Whether there is room for one more; if not, it is not counted."""
        with self._lock:
            if len(self._waiting) >= self._most:
                oldest = next((each for each, waiting in self._waiting.items() if waiting), None)
                if oldest is None:
                    return False
                del self._waiting[oldest]
                with suppress(OSError):  # its other end is gone
                    oldest.shutdown(socket.SHUT_RDWR)
            self._waiting[connection] = True
            return True

    def has_shown_token(self, connection: socket.socket) -> None:
        """From here on it is not ended for another.

        Raises:
            ConnectionAbortedError: it was, a moment ago.
        """
        with self._lock:
            if connection not in self._waiting:
                raise ConnectionAbortedError("ended for a newer connection")
            self._waiting[connection] = False

    def leave(self, connection: socket.socket) -> None:
        """It is over."""
        with self._lock:
            self._waiting.pop(connection, None)
