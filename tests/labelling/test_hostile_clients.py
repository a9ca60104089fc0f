"""What clients may send, or fail to send: nobody is kept out, and every reply has the headers."""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest
from tests.audits.store.audits import audit
from tests.labelling.serving import Answered, call, request, serving

from evalbudget.audits.store import AuditStore
from evalbudget_labelling.page import PageServer

HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditStore]:
    with audit(tmp_path_factory.mktemp("audit") / "a.sqlite") as store:
        yield store


@pytest.fixture(scope="module")
def server(store: AuditStore) -> Iterator[PageServer]:
    with serving(store) as server:
        yield server


def connect(server: PageServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), 60)


def send(server: PageServer, said: str, method: str = "GET") -> Answered:
    """What is answered to these bytes, of which nothing more comes; KEY stands for the token."""
    with connect(server) as client:
        client.sendall(said.replace("KEY", server.token).encode("latin-1"))
        response = HTTPResponse(client, method=method)
        response.begin()
        return Answered(response)


def few_left(threads: int) -> None:
    """Wait until there are no more than so many threads."""
    end = time.monotonic() + 60
    while threading.active_count() > threads:
        assert time.monotonic() < end, "threads stay"
        time.sleep(0.02)


def post(headers: str = "", body: str = "{}", token: str = "KEY") -> str:
    return f"POST /{token}/api/state HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n{body}"


def test_the_token_is_looked_at_before_the_body(server: PageServer) -> None:
    assert send(server, post("Content-Length: 60000\r\n", body="", token="wrong")).status == 403
    assert send(server, post("Expect: 100-continue\r\nContent-Length: 2\r\n", body="")).status == 417


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Origin": "null"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:1"},
    ],
)
def test_another_site_is_refused_even_with_the_token(server: PageServer, headers: dict[str, str]) -> None:
    for what in (None, {}):
        path = f"/{server.token}/" if what is None else f"/{server.token}/api/state"
        found = request(server, path, what, **headers)
        assert found.status == 403
        assert "Another site" in found.json["error"]


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_who_follows_a_link_opens_the_page_and_can_change_nothing(server: PageServer, site: str) -> None:
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert request(server, f"/{server.token}/", None, **link).status == 200
    assert request(server, "/wrong/", None, **link).status == 403
    assert request(server, f"/{server.token}/", None, **link, Origin="https://evil.example").status == 403
    for what in ({}, None):  # a form, and a link
        found = request(server, f"/{server.token}/api/state", what, **link)
        assert found.status == (404 if what is None else 403)


def test_the_page_itself_and_plain_clients_are_not(server: PageServer) -> None:
    here = f"http://127.0.0.1:{server.server_port}"
    for headers in (
        {},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": here},
        {"Origin": here},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    ):
        assert request(server, f"/{server.token}/api/state", {}, **headers).status == 200, headers


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("GET /KEY/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        ("GET /KEY/\r\nHost: localhost\r\n\r\n", 200),
        ("GET /KEY/ HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        ("GET /KEY/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 403),
        ("GET http://localhost/KEY/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 403),
        ("PUT /KEY/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("OPTIONS /KEY/api/label HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("__class__ /KEY/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("GET /KEY/ HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
        ("\xff\xfe\x00\r\n", 400),
        ("GET /KEY/ too many words HTTP/1.1\r\n\r\n", 400),
        (f"GET /{'x' * 70_000}", 414),
        ("GET /KEY/ HTTP/1.1\r\n" + "X: y\r\n" * 200, 431),
        (
            ("GET /KEY/ HTTP/1.1\r\n" + f"X: {'y' * 60_000}\r\n" * 3)[: (1 << 17) - 21],
            431,
        ),  # 21: of the token
        (post("Content-Length: 2\r\n"), 200),
        (post("Content-Length: 70000\r\n", body=""), 413),
        (post("Content-Length: " + "9" * 5000 + "\r\n", body=""), 413),
        (post("Content-Length: -1\r\n", body=""), 400),
        (post("Content-Length: +2\r\n", body=""), 400),
        (post("Content-Length: \xb2\r\n", body=""), 400),
        (post("Content-Length: 2\r\nContent-Length: 2\r\n", body=""), 400),
        (post(body=""), 411),
        (post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", body=""), 411),
        (post("Content-Length: 2\r\nContent-Type: application/json; charset=utf-16\r\n", body=""), 400),
    ],
)
def test_every_reply_has_the_headers(server: PageServer, said: str, status: int) -> None:
    found = send(server, said)
    assert found.status == status
    assert found.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert {name: found.headers.get(name) for name in HEADERS} == HEADERS
    if status != 200:
        assert found.json["error"]
    if status == 405:
        assert found.headers["Allow"] == "GET, HEAD, POST"


def test_a_failure_of_ours_has_them_too(
    server: PageServer, store: AuditStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(store.leases, "release", fails)
    found = call(server, "release", session="s")
    assert found.status == 500
    assert {name: found.headers.get(name) for name in HEADERS} == HEADERS


def test_asked_for_the_head_alone_it_sends_no_body(server: PageServer) -> None:
    found = send(server, "HEAD /KEY/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "HEAD")
    assert (found.status, found.body) == (200, b"")
    assert int(found.headers["Content-Length"]) > 0
    assert send(server, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HEAD").status == 403


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"1",
        b"\xff",
        '{"session": "s"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"session": "s"}',
        b'{"session": "s", "x": 1e999}',
        b'{"session": "s", "x": -1e999}',
        b'{"session": "s", "x": Infinity}',
        b'{"session": "s", "x": ' + b"9" * 5000 + b"}",
        b'{"session": "s", "x": 9223372036854775808}',
        b'{"session": "s", "x": ' + b"[" * 30_000,
        b'{"x":' * 10_000,
        b'{"session": 1}',
        b'{"session": ["s"]}',
    ],
)
def test_a_body_that_is_no_call_is_a_bad_request(
    server: PageServer, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert request(server, f"/{server.token}/api/release", raw=body).status == 400
    assert caplog.records == []


def test_a_body_that_ends_early_is_not_taken_for_a_call(server: PageServer) -> None:
    with connect(server) as client:
        client.sendall(post("Content-Length: 500\r\n").replace("KEY", server.token).encode())
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("begin", "drip"),
    [("", ""), ("GET /", "x"), ("GET / HTTP/1.1\r\n", "X: y\r\n"), (post("Content-Length: 60000\r\n"), " ")],
)
def test_who_sends_slowly_is_cut_off_after_a_time_in_all(store: AuditStore, begin: str, drip: str) -> None:
    with serving(store, patience=0.3) as server, connect(server) as client:
        client.sendall(begin.replace("KEY", server.token).encode())
        for _ in range(99):  # more often than a time for each byte would end it
            ended, _, _ = select.select([client], [], [], 0.1)
            if ended:
                break
            client.sendall(drip.encode())
        assert ended
        assert client.recv(1 << 16) == b""
        assert call(server, "state").status == 200


def test_who_reads_slowly_is_cut_off(store: AuditStore, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    with serving(store, patience=0.3) as server:
        large = {"x": "x" * 50_000_000}
        monkeypatch.setattr(server.api, "calls", {"state": lambda asked: answered.set() or large})
        before = threading.active_count()
        with connect(server) as client:
            client.sendall(post("Content-Length: 2\r\n").replace("KEY", server.token).encode())
            assert answered.wait(60)
            few_left(before)


def test_who_holds_connections_keeps_no_labeller_out(
    store: AuditStore, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(store, most_connections=8) as server:
        before = threading.active_count()
        idle = [connect(server) for _ in range(200)]
        assert call(server, "state").status == 200
        for client in idle[:190]:
            assert client.recv(1) == b""
        few_left(before + 8)
        for client in idle:
            client.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_one_more_than_are_answered_at_once_is_closed(
    store: AuditStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = threading.Barrier(3), threading.Event()

    def waits(asked: object) -> dict[str, object]:
        entered.wait(60)
        go_on.wait(60)
        return {}

    with serving(store, most_connections=2) as server:
        monkeypatch.setattr(server.api, "calls", {"state": waits})
        found: list[int] = []
        asking = [
            threading.Thread(target=lambda: found.append(call(server, "state").status)) for _ in range(2)
        ]
        for thread in asking:
            thread.start()
        entered.wait(60)
        with connect(server) as third:
            assert third.recv(1) == b""
        go_on.set()
        for thread in asking:
            thread.join(60)
        assert found == [200, 200]
