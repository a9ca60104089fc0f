"""A page that is served, and what a browser would ask it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evalbudget.audits.store import AuditStore
from evalbudget.audits.store._store_verdict import weigh
from evalbudget_labelling.page import PageApi, PageServer


@contextmanager
def serving(store: AuditStore, by: str = "", **limits: Any) -> Iterator[PageServer]:
    with PageServer(PageApi(store, weigh, by), 0, **limits) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)


class Answered:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = dict(response.getheaders())
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    server: PageServer, path: str, what: object = None, *, raw: bytes | None = None, **headers: str
) -> Answered:
    """GET, or POST of ``what``; ``path`` from the root of the server."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=300)
    try:
        body = raw if raw is not None else None if what is None else json.dumps(what).encode()
        connection.request("GET" if body is None else "POST", path, body, headers)
        return Answered(connection.getresponse())
    finally:
        connection.close()


def call(server: PageServer, name: str, **what: object) -> Answered:
    return request(server, f"/{server.token}/api/{name}", what)
