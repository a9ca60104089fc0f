"""What comes over HTTP: replies of Label Studio, and requests to the labelling page."""

from __future__ import annotations

import io
import json
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.audits.store.audits import audit
from tests.hostile.damage import check_damage, refusal
from tests.labelling.serving import serving

from evalbudget.audits.store import AuditStore
from evalbudget_labelling import LabelStudio, export, sync

HOST = "label-studio.example"


def reply(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nServer: x\r\n\r\n%s" % (len(body), body)


class Line:
    """A connection on which one reply is there, whatever is asked."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def makefile(self, *_: object, **__: object) -> io.BytesIO:
        return io.BytesIO(self._said)

    def sendall(self, data: bytes) -> None: ...

    def setsockopt(self, *_: int) -> None: ...

    def close(self) -> None: ...


def annotated(store: AuditStore) -> list[Any]:
    tasks: list[Any] = json.loads(export(store, "label-studio"))[:2]
    result = {"from_name": "score", "to_name": "response", "type": "choices", "value": {"choices": ["4"]}}
    for task in tasks:
        task["annotations"] = [{"result": [result], "completed_by": {"email": "ann"}, "lead_time": 3.0}]
    return tasks


REFUSED = b'HTTP/1.1 403 no\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{"detail": 1}\r\n0\r\n\r\n'


@pytest.mark.claim
@pytest.mark.parametrize("which", ["token", "project", "tasks", "import", "refusal"])
def test_label_studio_may_answer_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    with audit(tmp_path / "a.sqlite") as store:
        draws = [task.draw for task in store.draws.tasks()]
        replies = {"token": reply({"access": "x"}), "project": reply({"id": 7})}
        replies |= {"tasks": reply(annotated(store)), "import": reply({"task_count": len(draws) - 2})}
        place = "project" if which == "refusal" else which

        def read(damaged: bytes) -> None:
            monkeypatch.setattr(store.projects, "all", dict)  # none is remembered
            lines = iter((replies | {place: damaged}).values())
            monkeypatch.setattr(socket, "create_connection", lambda *_, **__: Line(next(lines)))
            sync(store, LabelStudio(f"http://{HOST}", "a.b.c"), None)

        read(replies[place])
        for size in (b"9223372036854775808", b"999999999999999"):
            huge = b"HTTP/1.1 200 OK\r\nContent-Length: " + size + b"\r\n\r\n{"
            assert "no JSON" in refusal(partial(read, huge), Path(HOST))
        for cut_off in (REFUSED[:-15], replies[place][:-2], b"SSH-2.0\r\n"):
            assert refusal(partial(read, cut_off), Path(HOST))
        check_damage(REFUSED if which == "refusal" else replies[which], read, Path(HOST), examples=20)


BODY = b'{"session": "s", "by": "ann", "draw": 1, "score": 4, "skip": [1]}'
CALLS = ("audit", "state", "next", "label", "correct", "opinion", "alive", "release")


@pytest.mark.claim
def test_the_page_may_be_asked_anything(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with audit(tmp_path / "a.sqlite") as store, serving(store) as server:

        def ask(said: bytes) -> None:
            with socket.create_connection(("127.0.0.1", server.server_port), 60) as client:
                client.sendall(said.replace(b"KEY", server.token.encode()))
                answer = b""
                with suppress(OSError):  # it is gone already: what it was sent is too long
                    client.shutdown(socket.SHUT_WR)
                    answer = client.makefile("rb").read()
            status = answer[9:12] or b"400"  # nothing, to what is no request
            assert b"200" <= status < b"500" or status == b"505", answer  # of no version that is known

        def call(name: str, body: bytes) -> bytes:
            head = f"POST /KEY/api/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            return head.encode() + body

        ask(call("state", BODY))
        check_damage(call("label", BODY), ask, tmp_path, examples=40)
        for name in CALLS:
            check_damage(BODY, lambda body, name=name: ask(call(name, body)), tmp_path, examples=8)  # type: ignore[misc]
    assert caplog.records == []
