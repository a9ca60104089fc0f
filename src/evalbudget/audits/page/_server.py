"""The page over HTTP, for browsers on this machine that know the token."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from evalbudget.audits.page._api import PageApi
from evalbudget.errors import EvalbudgetError, InvalidInputError, StoreDownError
from evalbudget.shown import shown_logger

log = shown_logger(__name__)

HOST = "127.0.0.1"
PORT = 8765
_LARGEST_REQUEST = 1 << 16
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
}
_STATIC = {
    "": ("index.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
}


class _Answer(NamedTuple):
    status: HTTPStatus
    kind: str
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


class PageServer(ThreadingHTTPServer):
    """Serves the page on the loopback interface, under an address that cannot be guessed.

    Args:
        api: answers the page's questions.
        port: 0 for any that is free.

    Raises:
        InvalidInputError: the port is taken or not allowed.
    """

    daemon_threads = True
    # on Windows it would let a second server take the port over
    allow_reuse_address = os.name == "posix"

    def __init__(self, api: PageApi, port: int = PORT) -> None:
        self.api = api
        self.token = secrets.token_urlsafe(18)
        try:
            super().__init__((HOST, port), _Handler)
        except PermissionError as ex:
            raise InvalidInputError(
                f"port {port} may not be used: {ex.strerror}; take one above 1023, or --port 0 for any"
            ) from ex
        except OSError as ex:
            raise InvalidInputError(
                f"port {port} is taken, perhaps by another evalbudget audit serve; "
                f"{_near(port)}--port 0 takes any free one"
            ) from ex

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that is gone is nothing to tell anybody of."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            log.exception("a request of %s", client_address)

    @property
    def url(self) -> str:
        """The address of the page; whoever knows it can label."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


def _near(port: int) -> str:
    """The next free port, as a hint."""
    for other in range(port + 1, min(port + 20, 65536)):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, other))
            except OSError:
                continue
            return f"--port {other} is free, "
    return ""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "evalbudget"
    sys_version = ""
    timeout = 60  # a browser that is gone must not keep its thread

    def do_GET(self) -> None:
        self._send(self._refused() or self._page())

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > _LARGEST_REQUEST:
            self.close_connection = True  # what it sends cannot be told from the next request
            self._send(_problem(HTTPStatus.BAD_REQUEST, "a request of unknown or absurd length"))
            return
        body = self.rfile.read(int(length))
        self._send(self._refused() or self._call(body))

    def _refused(self) -> _Answer | None:
        token = self.path.lstrip("/").partition("/")[0]
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return _problem(
                HTTPStatus.FORBIDDEN,
                "Wrong or missing token. Open the address that evalbudget audit serve printed.",
            )
        # a name that somebody else's server has pointed to this machine is not ours
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in (HOST, "localhost"):
            return _problem(HTTPStatus.FORBIDDEN, f"This page is for {HOST} and localhost only.")
        return None

    def _page(self) -> _Answer:
        path = self._below()
        if not path and not self.path.partition("?")[0].endswith("/"):
            return _Answer(
                HTTPStatus.PERMANENT_REDIRECT, "text/plain", b"", {"Location": f"/{self.server.token}/"}
            )
        if path not in _STATIC:
            return _problem(HTTPStatus.NOT_FOUND, "There is no such page.")
        name, kind = _STATIC[path]
        return _Answer(HTTPStatus.OK, kind, _static(name))

    def _call(self, body: bytes) -> _Answer:
        call = self.server.api.calls.get(self._below().removeprefix("api/"))
        if call is None or not self._below().startswith("api/"):
            return _problem(HTTPStatus.NOT_FOUND, "There is no such call.")
        try:
            asked = json.loads(body or b"{}")
            if not isinstance(asked, dict):
                raise InvalidInputError("not a JSON object")
            return _json(HTTPStatus.OK, call(asked))
        except StoreDownError as ex:
            told = f"{ex}. What was saved is safe; please try again."
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, told)
        except EvalbudgetError as ex:
            return _problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(ex))
        except (ValueError, RecursionError) as ex:
            return _problem(HTTPStatus.BAD_REQUEST, f"not JSON: {ex}")
        except Exception as ex:
            log.exception("the page asked for %s", self._below())
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"evalbudget failed: {ex!r}")

    def _below(self) -> str:
        return self.path.partition("?")[0].lstrip("/").partition("/")[2]

    def _send(self, answer: _Answer) -> None:
        try:
            self.send_response(answer.status)
            for name, value in {**_HEADERS, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
        except ConnectionError:  # the browser is gone; its draw goes to somebody else soon
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Addresses hold the token; they go nowhere."""


@cache
def _static(name: str) -> bytes:
    return files("evalbudget.audits.page").joinpath("static", name).read_bytes()


def _json(status: HTTPStatus, value: dict[str, Any]) -> _Answer:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _Answer(status, "application/json; charset=utf-8", text.encode(errors="replace"))


def _problem(status: HTTPStatus, text: str) -> _Answer:
    return _json(status, {"error": text})
