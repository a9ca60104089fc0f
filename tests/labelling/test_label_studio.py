from __future__ import annotations

import io
import json
import traceback
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.audits.store.audits import Clock, Told, audit, by_hand
from tests.cli.commands import typed
from tests.labelling.label_studio import LEGACY, PERSONAL, FakeLabelStudio

from evalbudget.audits.store import AuditStore, Imported, still_wanted
from evalbudget.cli.main import cli
from evalbudget.errors import AuditStoreError, InvalidInputError
from evalbudget_labelling import LabelStudio, sync
from evalbudget_labelling._label_studio import _content

run = typed("audit")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AuditStore]:
    with audit(tmp_path / "a.audit") as store:
        yield store


@pytest.fixture
def server() -> Iterator[FakeLabelStudio]:
    with FakeLabelStudio() as running:
        yield running


@pytest.mark.parametrize("key", [LEGACY, PERSONAL])
def test_tasks_go_out_once_and_labels_come_in_once(
    store: AuditStore, server: FakeLabelStudio, key: str
) -> None:
    there = LabelStudio(server.url, key)
    first = sync(store, there, None)
    assert (first.project, first.created, first.pushed) == (7, True, 6)
    assert '<Choices name="score"' in server.configs[7]
    text = json.dumps(server.projects[7])
    assert "alpha" not in text
    assert "Reason" not in text  # whoever labels must not be led
    server.annotate(7, 8, "ann@example.org", task=0)
    server.annotate(7, 3, "bob@example.org", task=0)
    server.annotate(7, 5, "bob@example.org", task=2)
    again = sync(store, there, 7)
    assert again.labels == Imported(new=2, known=0, agrees=0, conflicts=1, empty=4)
    assert again.pushed == 0
    assert {draw: (x.score, x.by) for draw, x in store.labels.counting().items()} == {
        0: (8, "ann@example.org"),
        6: (5, "bob@example.org"),
    }
    once_more = sync(store, there, 7)
    assert once_more.labels == Imported(new=0, known=3, agrees=0, conflicts=0, empty=4)
    assert len(server.projects[7]) == 6


def test_what_was_labelled_elsewhere_is_not_pushed(store: AuditStore, server: FakeLabelStudio) -> None:
    store.labels.add(0, 7, "ann")
    assert sync(store, LabelStudio(server.url, LEGACY), None).pushed == 5


def test_many_tasks_go_in_several_requests(tmp_path: Path, server: FakeLabelStudio) -> None:
    items = tuple(f"story {i}" for i in range(900))
    with audit(tmp_path / "b.audit", contexts=900, items=items, clock=Clock()) as store:
        assert sync(store, LabelStudio(server.url, LEGACY), None).pushed == 600
    assert [path for _, path in server.requests].count("/api/projects/7/import") == 3
    assert len(server.projects[7]) == 600


@pytest.mark.parametrize(
    ("url", "key", "project", "told"),
    [
        (None, "wrong", None, "401 .*set LABEL_STUDIO_API_KEY to a token"),
        (None, "x.y.z", None, "401"),
        (None, LEGACY, 99, "404 .*check --project"),
        ("http://127.0.0.1:9", LEGACY, None, r"cannot be reached \(.*check --url"),
        ("localhost:8080", LEGACY, None, "no address of a server"),
        ("http://[::1", LEGACY, None, "no address of a server"),
        ("me:word@localhost:8080", LEGACY, None, "--url has a password or a key in it"),
        ("http://me:word@localhost:8080", LEGACY, None, "--url has a password or a key in it"),
    ],
)
def test_servers_that_refuse(
    store: AuditStore, server: FakeLabelStudio, url: str | None, key: str, project: int | None, told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told) as raised:
        sync(store, LabelStudio(url or server.url, key), project)
    assert key not in str(raised.value)
    assert store.labels.counting() == {}


@pytest.mark.parametrize("said", ["<html>", '{"detail": "?"}'])
def test_something_that_is_no_label_studio(store: AuditStore, server: FakeLabelStudio, said: str) -> None:
    server.broken = said
    with pytest.raises(InvalidInputError, match="is it Label Studio"):
        sync(store, LabelStudio(server.url, LEGACY), 7)


def test_a_limit_that_is_no_number_is_not_the_servers_fault(
    store: AuditStore, server: FakeLabelStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.broken = "{}"
    monkeypatch.setenv("EVALBUDGET_LARGEST_GIB", "abc")
    with pytest.raises(InvalidInputError, match="EVALBUDGET_LARGEST_GIB") as raised:
        sync(store, LabelStudio(server.url, LEGACY), 7)
    assert "is it Label Studio" not in str(raised.value)


def test_tasks_of_somebody_else_are_left_alone(store: AuditStore, server: FakeLabelStudio) -> None:
    server.projects[3] = [{"data": {"text": "?"}}]
    found = sync(store, LabelStudio(server.url, LEGACY), 3)
    assert (found.pushed, len(server.projects[3])) == (6, 7)
    assert sync(store, LabelStudio(server.url, LEGACY), None).project == 3  # remembered


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((f"label studio {number}", "[]") for number in (0, 7)),
        *(("label studio 0", value) for value in ('{"url": 1}', '{"project": "x"}', "9" * 5000, "[" * 9000)),
        ("label studio 4", '{"url": "http://elsewhere", "project": 3}'),
    ],
)
def test_a_note_that_names_no_project_here_is_followed_by_one_that_does(
    store: AuditStore, server: FakeLabelStudio, key: str, value: str
) -> None:
    by_hand(store.address, f"INSERT INTO meta VALUES ('{key}', '{value}')")
    there = LabelStudio(server.url, LEGACY)
    assert [sync(store, there, None).created for _ in range(2)] == [True, False]


def test_a_note_of_a_project_without_a_number_is_refused(store: AuditStore, server: FakeLabelStudio) -> None:
    by_hand(store.address, "INSERT INTO meta VALUES ('label studio x', '{}')")
    with pytest.raises(AuditStoreError, match=r"a\.audit is damaged.* 'label studio' .*meta.*Restore a copy"):
        sync(store, LabelStudio(server.url, LEGACY), None)
    assert server.requests == []


def test_one_label_that_cannot_be_used_does_not_stop_the_others(
    store: AuditStore, server: FakeLabelStudio
) -> None:
    there = LabelStudio(server.url, LEGACY)
    sync(store, there, None)
    server.annotate(7, 99, "ann", task=0)
    server.annotate(7, 5, "ann", task=1)
    with pytest.raises(InvalidInputError, match=r"project 7 of .*99.*all others are in"):
        sync(store, there, None)
    assert [label.score for label in store.labels.counting().values()] == [5]


def test_a_redirect_gets_no_key(store: AuditStore, server: FakeLabelStudio) -> None:
    with FakeLabelStudio() as elsewhere:
        server.moved = elsewhere.url
        with pytest.raises(InvalidInputError, match=f"sends elsewhere, to {elsewhere.url}"):
            sync(store, LabelStudio(server.url, LEGACY), None)
        assert elsewhere.requests == []


@pytest.mark.parametrize("key", ["one-half-of-it\nother-half", "one-half-of-it\x00", "one-half-of-it-\xe9"])
def test_a_key_that_no_header_holds_is_refused_and_not_quoted(server: FakeLabelStudio, key: str) -> None:
    with pytest.raises(InvalidInputError, match="set LABEL_STUDIO_API_KEY to a token") as refused:
        LabelStudio(server.url, key).create("a", "b")
    assert "one-half-of-it" not in "".join(traceback.format_exception(refused.value))
    assert not server.requests


def test_a_reply_is_held_once() -> None:
    size = 1 << 24
    tracemalloc.start()
    try:
        assert len(_content(io.BytesIO(bytes(size)))) == size
        assert tracemalloc.get_traced_memory()[1] < 2.6 * size  # with the reply that it is of
    finally:
        tracemalloc.stop()


def test_tasks_that_are_not_taken_are_missed(store: AuditStore, server: FakeLabelStudio) -> None:
    server.drops = 1
    with pytest.raises(InvalidInputError, match="took 5 of 6 tasks"):
        sync(store, LabelStudio(server.url, LEGACY), None)


def test_an_annotator_who_comes_back_to_the_first_score_agrees_with_that(store: AuditStore) -> None:
    for score, by in ((8, "ann"), (3, "ann"), (8, "ann"), (3, "bob")):
        store.labels.add(0, score, by)
    found = store.labels.agreement()
    assert found is not None
    assert (found.equal, found.difference) == (0.0, 5.0)


def test_the_command_and_how_labellers_agree(
    tmp_path: Path, server: FakeLabelStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, path = Told(pilot=8, labels_per_batch=8), tmp_path / "a.sqlite"
    with told.create(path) as store:
        told.draw(store)
        wanted = len(still_wanted(store))
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    assert "set LABEL_STUDIO_API_KEY" in run("sync", path, "--url", server.url).output
    refused = run("sync", path, "--url", server.url, "--api-key", LEGACY)
    assert (refused.exit_code, LEGACY in refused.output) == (2, False)  # every user sees command lines
    with monkeypatch.context() as patch:
        patch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
        asked = CliRunner().invoke(
            cli, ["audit", "sync", str(path), "--url", "http://127.0.0.1:9"], input=f"{LEGACY}\n"
        )
    assert "Key of an account (Account & Settings): " in asked.stderr
    assert "http://127.0.0.1:9 cannot be reached" in asked.stderr
    assert LEGACY not in asked.output
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", LEGACY)
    monkeypatch.setenv("LABEL_STUDIO_URL", server.url)
    done = run("sync", path)
    assert done.exit_code == 0, done.output
    assert f"Project 7: 0 new labels in, {wanted} tasks out; {wanted} still wanted\n" in done.output
    for task, scores in enumerate([(8, 8), (3, 5)]):
        for score, by in zip(scores, ("ann@x", "bob@x"), strict=True):
            server.annotate(7, score, by, task=task)
    found = json.loads(run("sync", path, "--json").stdout)
    assert (found["labels"]["new"], found["pushed"], found["outstanding"]) == (2, 0, wanted - 2)
    said = " ".join(run("status", path).output.split())
    assert "2 answers labelled twice or more: 50% of pairs equal, 1 apart on average" in said
    assert json.loads(run("status", path, "--json").stdout)["agreement"]["things"] == 2
