"""The page in a real browser, by keyboard alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.audits.store.audits import Told, audit
from tests.labelling import chromium
from tests.labelling.serving import serving

from evalbudget.audits.store import Scale
from evalbudget.errors import StoreDownError

ITEM = "!document.getElementById('item').hidden"
IDLE = "!document.getElementById('idle').hidden"
SCORE = "score()"
STATUS = "document.getElementById('status').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    with chromium.Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def test_a_labeller_works_by_keyboard_alone(tmp_path: Path, browser: chromium.Chromium) -> None:
    told = Told(pilot=8, labels_per_batch=8)
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
        with serving(store) as server:
            page = browser.open(server.url)
            page.wait("document.getElementById('name').open")
            page.press(*"ann", "Enter")
            page.wait(ITEM)
            first = store.draws.tasks()[0]
            assert page.text("title") == first.item
            assert page.text("response") == first.response
            assert "Reason" not in page.run("document.body.innerText")
            page.press("?")
            assert page.run("document.getElementById('keys').open")
            page.press("Escape")
            assert not page.run("document.getElementById('keys').open")

            page.press("Enter")
            assert "Choose a score first" in page.text("status")
            for keys, score in ((("1", "0"), 10), (("ArrowLeft", "ArrowLeft"), 8), (("0",), 10), (("7",), 7)):
                page.press(*keys)
                assert page.run(SCORE) == score, keys
            page.press("Enter")
            page.wait("document.getElementById('status').textContent.startsWith('Saved 7')")
            saved = store.labels.counting()[first.draw]
            assert (saved.score, saved.by) == (7, "ann")
            page.wait("!busy && task")
            assert page.run(SCORE) is None

            page.press("u")
            assert "You gave 7" in page.text("correcting")
            assert page.text("response") == first.response
            page.press("8", "Enter")
            page.wait("document.getElementById('status').textContent.startsWith('Corrected 7 to 8')")
            assert store.labels.counting()[first.draw].score == 8
            page.wait("!busy")
            page.press("j")
            page.wait("document.getElementById('judge').textContent.includes('Reason')")
            page.press("u")
            assert page.run("fixing") is None

            put_off = page.run("task.draw")
            page.press("s")
            page.wait(f"task && task.draw !== {put_off}")
            order = []
            while True:
                page.wait(f"(!busy && task && {ITEM}) || {IDLE}")
                if page.run(IDLE):
                    break
                order.append(page.run("task.draw"))
                digit = str(int(told.score(store, order[-1])) % 10)
                page.press(digit, "Enter")
                page.wait(f"!busy && (task === null || task.draw !== {order[-1]})")
            assert order[-1] == put_off
            page.wait("document.getElementById('idle-text').textContent.includes('for the next batch')")
            assert "run evalbudget inspect eval t.py" in page.text("idle-text")
            page.wait("document.getElementById('models').textContent.includes('[')")
            assert "alpha" in page.text("models")
            assert store.progress().outstanding == 0

            told.draw(store)
            page.run("look()")  # as it does every few seconds
            page.wait(ITEM)
            page.close()
    assert browser.logged == []


def test_two_tabs_never_show_the_same_item_and_numbers_are_typed(
    tmp_path: Path, browser: chromium.Chromium
) -> None:
    with audit(tmp_path / "a.sqlite", scale=Scale(0, 100)) as store, serving(store, by="bob") as server:
        one, two = browser.open(server.url), browser.open(server.url)
        draws = [tab.wait("task && String(task.draw)") for tab in (one, two)]
        assert sorted(draws) == ["0", "1"]
        for key in "12.5":
            one.press(key)
        assert one.run(SCORE) == 12.5
        one.press("Enter")
        one.wait("document.getElementById('status').textContent.startsWith('Saved 12.5')")
        store.labels.add(int(draws[1]), 99, "eve")
        two.press("5", "Enter")
        two.wait("document.getElementById('status').textContent.includes('eve had labelled this with 99')")
        one.wait("!busy && task")
        one.press(*"500", "Enter")
        assert "not on the scale: 0 to 100" in one.text("status")
        one.offline()
        one.run("setScore(50)")
        one.press("Enter")
        one.wait("document.getElementById('status').textContent.startsWith('Not saved')")
        assert one.run(SCORE) == 50  # kept, to be saved when the server is back
        one.close()
        two.close()


def test_a_database_that_is_away_for_a_while_loses_no_score(
    tmp_path: Path, browser: chromium.Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreDownError("the database cannot be reached")

    told = Told(pilot=8, labels_per_batch=8)
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
        first = store.draws.tasks()[0]
        with serving(store, "ann") as server:
            page = browser.open(server.url)
            page.wait(ITEM)
            with monkeypatch.context() as during:
                during.setattr(store.labels, "add", away)
                page.press("7", "Enter")
                page.wait(
                    "document.getElementById('status').textContent.startsWith('Not saved: the database')"
                )
                assert "please try again" in page.text("status")
                assert page.run(SCORE) == 7
                page.wait("!busy")
            with monkeypatch.context() as during:
                during.setattr(store.leases, "next", away)
                page.press("Enter")
                page.wait(f"{STATUS}.startsWith('Saved 7') && {STATUS}.includes('please try again')")
                assert store.labels.counting()[first.draw].score == 7
                page.wait(IDLE)
            page.run("look()")
            page.wait(ITEM)
            assert page.run("task.draw") != first.draw


def test_a_page_that_is_left_gives_its_item_back(tmp_path: Path, browser: chromium.Chromium) -> None:
    with audit(tmp_path / "a.sqlite") as store, serving(store, "ann") as server:
        page = browser.open(server.url)
        page.wait(ITEM)
        assert store.leases.count() == 1
        page.send("Page.navigate", url="about:blank")
        end = time.monotonic() + 30
        while store.leases.count():
            assert time.monotonic() < end, "the item was never given back"
            time.sleep(0.02)
        page.close()
