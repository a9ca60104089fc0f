from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from tests.audits.store.audits import Told, audit
from tests.labelling.serving import call, request, serving

from evalbudget.audits.store import AuditStore
from evalbudget.audits.store._store_verdict import weigh
from evalbudget.errors import InvalidInputError
from evalbudget_labelling.page import PageApi, PageServer


@pytest.fixture(scope="module")
def told() -> Told:
    return Told(pilot=8, labels_per_batch=8)


@pytest.fixture
def store(tmp_path: Path, told: Told) -> Iterator[AuditStore]:
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
        yield store


@pytest.fixture
def server(store: AuditStore) -> Iterator[PageServer]:
    with serving(store, by="ann") as server:
        yield server


def test_only_this_machine_reaches_it_and_only_with_the_token(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 24
    assert server.url == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    for path in (
        "/",
        "/wrong/",
        f"/{server.token}x/",
        "/page.js",
        f"/?token={server.token}",
        "/%C3%A9",
    ):
        found = request(server, path)
        assert found.status == 403, path
        assert "evalbudget audit serve" in found.json["error"]
    assert request(server, "/wrong/api/state", {}).status == 403
    assert request(server, f"/{server.token}/", Host=f"evil.example:{server.server_port}").status == 403
    for host in ("localhost", f"localhost:{server.server_port}", "127.0.0.1:1"):  # a tunnel has another port
        assert request(server, f"/{server.token}/", Host=host).status == 200, host
        assert request(server, f"/{server.token}/", Host=host, Origin=f"http://{host}").status == 200, host
    redirect = request(server, f"/{server.token}")
    assert (redirect.status, redirect.headers["Location"]) == (308, f"/{server.token}/")


def test_each_server_has_a_token_of_its_own(store: AuditStore) -> None:
    with serving(store) as one, serving(store) as two:
        assert one.token != two.token


def test_the_page_needs_nothing_from_elsewhere(server: PageServer) -> None:
    for name in ("", "page.js", "page.css"):
        found = request(server, f"/{server.token}/{name}")
        assert found.status == 200
        assert found.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
        assert found.headers["Referrer-Policy"] == "no-referrer"
        assert found.headers["Cache-Control"] == "no-store"
        assert b"://" not in found.body
    page = request(server, f"/{server.token}/").body.decode()
    assert set(re.findall(r'(?:src|href)="([^"]+)"', page)) == {"page.js", "page.css", "data:,"}
    assert request(server, f"/{server.token}/../server.py").status == 404
    assert request(server, f"/{server.token}/api/nothing", {}).status == 404
    assert request(server, f"/{server.token}/api/state").status == 404


def test_every_control_has_a_name(server: PageServer) -> None:
    page = files("evalbudget_labelling.page").joinpath("static/index.html").read_text()
    assert '<html lang="en">' in page
    for label in re.findall(r'aria-labelledby="([^"]+)"', page):
        assert f'id="{label}"' in page
    assert '<label for="name-field">' in page
    script = files("evalbudget_labelling.page").joinpath("static/page.js").read_text()
    assert "innerHTML" not in script  # what models wrote is text
    assert set(re.findall(r'\$\("([^"]+)"\)', script)) - {"number", "slider"} <= set(
        re.findall(r'id="([^"]+)"', page)
    )


def test_labels_one_after_the_other_without_seeing_the_judge(
    server: PageServer, store: AuditStore, told: Told
) -> None:
    about = call(server, "audit").json
    assert about["by"] == "ann"
    assert about["scale"]["levels"] == list(range(1, 11))
    seen = []
    for _ in range(3):
        task = call(server, "next", session="s", by="ann", skip=[]).json["task"]
        assert set(task) == {"id", "draw", "item", "segment", "prompt", "response"}
        assert call(server, "opinion", draw=task["draw"], by="ann").status == 422
        saved = call(server, "label", draw=task["draw"], score=told.score(store, task["draw"]), by="ann").json
        assert saved["kind"] == "first"
        seen.append(task["draw"])
    assert seen == sorted(set(seen))
    opinion = call(server, "opinion", draw=seen[0], by="ann").json
    assert opinion["reason"].startswith("Reason")
    late = call(server, "correct", draw=seen[0], score=1, by="ann")
    assert late.status == 422
    assert "has seen what the judge says" in late.json["error"]
    assert call(server, "correct", draw=seen[1], score=1, by="ann").json == {
        "kind": "correction",
        "score": 1.0,
    }
    state = call(server, "state").json
    assert state["progress"]["labelled"] == 3
    assert state["progress"]["outstanding"] == state["progress"]["wanted"] - 3
    assert state["standing"]["stage"] == "labels wanted"
    assert [m["model"] for m in state["standing"]["models"]] == ["alpha", "beta"]


def test_the_verdict_comes_up_when_it_is_reached_and_nobody_is_asked_for_more(
    server: PageServer, store: AuditStore, told: Told
) -> None:
    for _ in range(200):
        task = call(server, "next", session="s", by="ann").json["task"]
        if task is None:
            if call(server, "state").json["standing"]["stage"] != "next batch":
                break
            told.draw(store)  # the run was started again, the page stays open
            continue
        call(server, "label", draw=task["draw"], score=told.score(store, task["draw"]), by="ann")
    state = call(server, "state").json
    assert state["standing"]["headline"] == "alpha is the best"
    assert state["standing"]["models"][0]["low"] < state["standing"]["models"][0]["high"]
    assert state["progress"]["outstanding"] == 0


SENSELESS: tuple[tuple[int, str, dict[str, object], str], ...] = (
    (422, "label", {"draw": 0, "score": 11, "by": "ann"}, "whole numbers 1 to 10"),
    (422, "label", {"draw": 10**6, "score": 5, "by": "ann"}, "never drawn"),
    (400, "label", {"draw": 0, "score": True, "by": "ann"}, "score is missing"),
    (400, "label", {"draw": 0, "score": None, "by": "ann"}, "score is missing"),
    (400, "label", {"draw": "0", "score": 5, "by": "ann"}, "draw is missing"),
    (400, "label", {"draw": -1, "score": 5, "by": "ann"}, "draw is missing"),
    (400, "label", {"draw": 0, "score": 5}, "by is missing"),
    (400, "next", {"session": "s"}, "by is missing"),
    (400, "next", {"by": "ann"}, "session is missing"),
    (400, "next", {"session": "s", "by": "ann", "skip": "x"}, "skip"),
    (400, "next", {"session": "s", "by": "ann", "skip": [2**63]}, "too large"),
    (400, "correct", {"draw": 10**30, "score": 5, "by": "ann"}, "too large"),
    (400, "label", {"draw": 0, "score": 10**400, "by": "ann"}, "too large"),
    (400, "label", {"draw": 0, "score": float("nan"), "by": "ann"}, "too large, or none"),
)


def test_calls_that_make_no_sense_are_refused(server: PageServer, store: AuditStore) -> None:
    first = store.draws.tasks()[0].draw
    for status, name, what, message in SENSELESS:
        given = what | ({"draw": first} if type(what.get("draw")) is int and what["draw"] == 0 else {})
        found = call(server, name, **given)
        assert found.status == status, what
        assert message in found.json["error"]
        assert store.labels.history() == []


def test_contradictions_between_pages_are_told_and_kept(server: PageServer, store: AuditStore) -> None:
    draw = store.draws.tasks()[0].draw
    call(server, "label", draw=draw, score=7, by="ann")
    found = call(server, "label", draw=draw, score=2, by="bob").json
    assert found == {"kind": "conflicts", "score": 2.0, "counts": {"score": 7.0, "by": "ann"}}
    assert call(server, "state").json["progress"]["conflicts"] == 1


def test_two_pages_never_have_the_same_item_and_a_closed_one_gives_its_back(server: PageServer) -> None:
    def at(session: str, **what: object) -> int:
        return int(call(server, "next", session=session, by="ann", **what).json["task"]["draw"])

    draws: list[int] = []
    threads = [threading.Thread(target=lambda n=n: draws.append(at(f"s{n}"))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(set(draws)) == 4
    assert at("s0") in draws
    mine = at("s0")
    assert call(server, "alive", draw=mine, session="s0").json == {"held": True, "labelled": False}
    assert (
        request(
            server, f"/{server.token}/api/release", raw=b'{"session": "s0"}', **{"Content-Type": "text/plain"}
        ).status
        == 200
    )
    assert call(server, "alive", draw=mine, session="s0").json == {"held": False, "labelled": False}
    assert at("new") == mine
    assert at("new", skip=[mine]) not in draws


def test_labelling_goes_on_where_no_verdict_can_be_given(tmp_path: Path) -> None:
    with audit(tmp_path / "a.sqlite", policy="gone") as store, serving(store) as server:
        state = call(server, "state").json
        assert state["standing"] is None
        assert "'gone'" in state["problem"]
        assert state["progress"]["wanted"] == 6
        assert call(server, "next", session="s", by="ann").json["task"]["draw"] == 0


def test_a_browser_that_is_gone_harms_nobody(server: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)) as gone:
        gone.sendall(f"POST /{server.token}/api/next HTTP/1.1\r\nContent-Length: 500\r\n\r\n{{".encode())
    with socket.create_connection(("127.0.0.1", server.server_port)) as gone:
        gone.sendall(f"GET /{server.token}/page.js HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert call(server, "state").status == 200


def test_a_port_that_is_taken_is_said_with_one_that_is_free(store: AuditStore) -> None:
    with serving(store) as server, pytest.raises(InvalidInputError) as refusal:
        PageServer(PageApi(store, weigh), server.server_port)
    message = str(refusal.value)
    assert f"port {server.server_port} is taken" in message
    assert "--port 0" in message
    free = re.search(r"--port (\d+) is free", message)
    assert free is not None
    PageServer(PageApi(store, weigh), int(free[1])).server_close()
