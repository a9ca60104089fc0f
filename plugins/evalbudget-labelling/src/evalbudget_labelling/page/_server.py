"""The page over HTTP, for browsers on this machine that know the token."""

from __future__ import annotations

import hmac
import io
import json
import math
import os
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from evalbudget.errors import EvalbudgetError, InvalidInputError, StoreDownError
from evalbudget.secrets import without_secrets
from evalbudget.shown import shown_logger
from evalbudget_labelling.page._api import MalformedCallError, PageApi
from evalbudget_labelling.page._connections import Connections, RequestReader

log = shown_logger(__name__)

HOST = "127.0.0.1"
PORT = 8765
PATIENCE = 10.0
"""Seconds that a request, and then the reply, may take to pass."""
MOST_CONNECTIONS = 64
_LARGEST_BODY = 1 << 16
_LARGEST_HEAD = 1 << 17  # http.server itself refuses lines of more than half of it
_HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",  # one request each: nothing that follows it can be taken for another
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


class _RefusedError(Exception):
    """A request that is not answered.

    Attributes:
        status: that says why.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


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
        patience: seconds that a request, and then the reply, may take to pass.
        most_connections: open at once.

    Raises:
        InvalidInputError: the port is taken or not allowed.
    """

    daemon_threads = True
    request_queue_size = 256  # of a burst; who finds no room in it tries again only a second later
    # on Windows it would let a second server take the port over
    allow_reuse_address = os.name == "posix"

    def __init__(
        self,
        api: PageApi,
        port: int = PORT,
        *,
        patience: float = PATIENCE,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.api = api
        self.patience = patience
        self.connections = Connections(most_connections)
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

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, if there is room for it."""
        if self.connections.admit(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """It is over, however it ended."""
        self.connections.leave(request)
        super().shutdown_request(request)

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
    default_request_version = "HTTP/1.1"  # the one of old has no headers in replies
    server_version = "evalbudget"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._reader = RequestReader(self.connection, self.server.patience, _LARGEST_HEAD)
        self.rfile = io.BufferedReader(self._reader)

    def do_GET(self) -> None:
        self._answer(self._page)

    def do_HEAD(self) -> None:
        self._answer(self._page)

    def do_POST(self) -> None:
        self._answer(self._call)

    def handle_expect_100(self) -> bool:
        """Nobody is asked for a body before the token is looked at."""
        self.send_error(HTTPStatus.EXPECTATION_FAILED)
        return False

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself, with the headers of every reply."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            refused = _problem(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET, HEAD and POST are answered.")
            self._send(refused._replace(headers={"Allow": "GET, HEAD, POST"}))
        else:
            self._send(_problem(HTTPStatus(code), f"{HTTPStatus(code).phrase}."))

    def _answer(self, find: Callable[[], _Answer]) -> None:
        try:
            self._require_ours()
            answer = find()
        except _RefusedError as ex:
            answer = _problem(ex.status, str(ex))
        self._send(answer)

    def _require_ours(self) -> None:
        """Refuse who does not know the token, or is sent by another site; before any body is read."""
        token = self.path.lstrip("/").partition("/")[0]
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN,
                "Wrong or missing token. Open the address that evalbudget audit serve printed.",
            )
        # a name that somebody else's server has pointed to this machine is not ours
        host = self._header("Host") or ""
        if (host.rpartition(":")[0] or host) not in (HOST, "localhost"):
            raise _RefusedError(HTTPStatus.FORBIDDEN, f"This page is for {HOST} and localhost only.")
        site, origin = self._header("Sec-Fetch-Site"), self._header("Origin")
        ours = {None, f"http://{host}"} | ({"null"} if site == "same-origin" else set())  # null: of beacons
        # whoever follows a link to the page, wherever it stands, opens it; it then asks for all else itself
        follows = self.command == "GET" and self._header("Sec-Fetch-Mode") == "navigate"
        opens = follows and self._header("Sec-Fetch-Dest") == "document"
        if (site not in (None, "none", "same-origin") and not opens) or origin not in ours:
            raise _RefusedError(
                HTTPStatus.FORBIDDEN,
                "Another site sent this request. Paste the address that evalbudget audit serve printed.",
            )
        self.server.connections.has_shown_token(self.connection)

    def _header(self, name: str) -> str | None:
        """The only value of that name; None if there is none."""
        values: list[str] = self.headers.get_all(name, [])
        if len(values) > 1:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"{name} is given {len(values)} times.")
        return values[0].strip() if values else None

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

    def _call(self) -> _Answer:
        call = self.server.api.calls.get(self._below().removeprefix("api/"))
        if call is None or not self._below().startswith("api/"):
            return _problem(HTTPStatus.NOT_FOUND, "There is no such call.")
        asked = _asked(self._body())
        try:
            return _json(HTTPStatus.OK, call(asked))
        except StoreDownError as ex:
            told = f"{ex}. What was saved is safe; please try again."
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, told)
        except MalformedCallError as ex:
            return _problem(HTTPStatus.BAD_REQUEST, str(ex))
        except EvalbudgetError as ex:
            return _problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(ex))
        except Exception as ex:
            log.exception("the page asked for %s", self._below())
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"evalbudget failed: {ex!r}")

    def _body(self) -> bytes:
        if self.headers.get_content_charset("utf-8") != "utf-8":
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "The request is not in UTF-8.")
        length = self._header("Content-Length")
        if length is None or "Transfer-Encoding" in self.headers:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "The request does not say its length.")
        if not (length.isascii() and length.isdigit()):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "The length of the request is no number.")
        if len(length) > 9 or int(length) > _LARGEST_BODY:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request is longer than {_LARGEST_BODY} bytes."
            )
        self._reader.allow(int(length))
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "The request ends before its body does.")
        return body

    def _below(self) -> str:
        return self.path.partition("?")[0].lstrip("/").partition("/")[2]

    def _send(self, answer: _Answer) -> None:
        self.connection.settimeout(self.server.patience)
        try:
            self.send_response(answer.status)
            for name, value in {**_HEADERS, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
        except ConnectionError:  # the browser is gone; its draw goes to somebody else soon
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Addresses hold the token; they go nowhere."""


@cache
def _static(name: str) -> bytes:
    return files("evalbudget_labelling.page").joinpath("static", name).read_bytes()


def _json(status: HTTPStatus, value: dict[str, Any]) -> _Answer:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _Answer(status, "application/json; charset=utf-8", text.encode(errors="replace"))


def _problem(status: HTTPStatus, text: str) -> _Answer:
    return _json(status, {"error": without_secrets(text)})


def _asked(body: bytes) -> dict[str, Any]:
    """What a call is given.

    Raises:
        _RefusedError: it is not a JSON object, or has numbers that no database holds.
    """
    try:
        asked = json.loads(
            body.decode() or "{}", parse_int=_whole, parse_float=_finite, parse_constant=_finite
        )
    except (ValueError, RecursionError) as ex:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, f"not JSON: {ex}") from None
    if not isinstance(asked, dict):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "not a JSON object")
    return asked


def _whole(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError("a number is too large")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large, or none")
    return number
