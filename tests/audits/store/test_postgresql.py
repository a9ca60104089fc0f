"""An audit in PostgreSQL: what only a server does, and what is said when it does not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.audits.store.audits import Clock, RefusedError, Told, audit, by_hand, design, drawn
from tests.cli.commands import typed
from tests.labelling.label_studio import LEGACY, FakeLabelStudio
from tests.labelling.serving import call, serving

from evalbudget.audits.store import AuditStore, LabelKind, weigh
from evalbudget.errors import AuditStoreError, InvalidInputError, StoreDownError
from evalbudget.store import Address, Database
from evalbudget_labelling import LabelStudio, sync
from postgresql_server import Server

run = typed("audit")
_NUMBERS = count()


@pytest.fixture
def address(postgresql: Server) -> Address:
    return Address.parse(f"{postgresql.url}#only_{next(_NUMBERS)}")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database, "patience", 0.0)


def test_commands_take_an_address(address: Address, tmp_path: Path) -> None:
    told = Told(pilot=8, labels_per_batch=8)
    with told.create(address) as store:
        told.draw(store)
        wanted = weigh(store).wanted
    labels = tmp_path / "labels.csv"
    assert run("export", address, "--format", "csv", "-o", labels).exit_code == 0
    shown = json.loads(run("next", address, "-n", "1", "--by", "ann", "--json").stdout)
    line = json.dumps({"task": shown[0]["task"], "score": 5})
    done = run("import", address, "-", "--format", "jsonl", "--by", "ann", stdin=line)
    assert done.output == f"1 new label; {len(wanted) - 1} still wanted\n"
    assert run("import", address, labels).output.endswith(f"{len(wanted) - 1} still wanted\n")
    assert f"1 of {len(wanted)} labels" in run("status", address).output
    found = run("verdict", address, "--json")
    assert (found.exit_code, json.loads(found.stdout)["stage"]) == (3, "labels wanted")


def test_leases_go_by_the_clock_that_all_share(address: Address) -> None:
    with audit(address, clock=Clock()) as one, AuditStore.open(address, clock=lambda: 9e9) as other:
        held = one.leases.next("one", "ann", seconds=600)
        taken = other.leases.next("other", "bob", seconds=600)
        assert held is not None
        assert taken is not None
        assert (held.draw, taken.draw) == (0, 1)
        assert one.leases.count() == other.leases.count() == 2
        assert one.leases.renew(0, "one", seconds=-1).held  # silent from now on
        assert not one.leases.renew(0, "one").held
        again = other.leases.next("third", "eve")
        assert again is not None
        assert again.draw == 0


def test_what_something_else_wrote_is_refused(address: Address) -> None:
    audit(address).close()
    for table, column in (("draws", "judge = 7"), ("draws", "propensity = 0"), ("labels", "kind = 'x'")):
        with pytest.raises(RefusedError):
            by_hand(
                address,
                f"ALTER TABLE {table} DISABLE TRIGGER USER",
                _label(0),
                f"UPDATE {table} SET {column}",
            )
    with pytest.raises(RefusedError, match="coin asked for none"):
        by_hand(address, _label(2))
    with pytest.raises(RefusedError, match="only ever added"):
        by_hand(address, "TRUNCATE opinions_seen")
    by_hand(
        address, "ALTER TABLE contexts DISABLE TRIGGER USER", "UPDATE contexts SET item = 99 WHERE item = 4"
    )
    with pytest.raises(AuditStoreError, match="row 4 of its table contexts holds what no version"):
        AuditStore.open(address)


def _free(table: str) -> str:
    return f"ALTER TABLE {table} DISABLE TRIGGER USER"


def _label(draw: int) -> str:
    return f"INSERT INTO labels (draw, score, \"by\", at, kind) VALUES ({draw}, 9, 'eve', 0, 'first')"


def test_who_only_labels_needs_what_the_guide_says(postgresql: Server, address: Address) -> None:
    audit(address).close()
    guide = (Path(__file__).parents[3] / "docs" / "audits" / "store.md").read_text()
    grants = guide.partition("```sql\n")[2].partition("```")[0].replace("essays", address.name)
    by_hand(address, "CREATE ROLE bob LOGIN")
    of_bob = f"{postgresql.url.replace('evalbudget@', 'bob@')}#{address.name}"
    with pytest.raises(AuditStoreError, match="Ask whoever owns the schema to GRANT"):
        AuditStore.open(of_bob)
    by_hand(address, *grants.strip().splitlines())
    with AuditStore.open(of_bob) as store:
        held = store.leases.next("s", "bob")
        assert held is not None
        assert store.leases.renew(held.draw, "s").held
        store.labels.add(held.draw, 5, "bob")
        store.labels.correct(held.draw, 6, "bob")
        store.labels.show_opinion(held.draw, "bob")
        assert store.progress().by == {"bob": 1}


def test_who_writes_for_too_long_is_not_waited_for(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    with audit(address) as store, AuditStore.open(address) as other, store._db.write():
        # not before: a writer that is silent for twice as long is ended, as anybody is on a busy machine
        monkeypatch.setattr("evalbudget.store._database._PATIENCE", 0.05)
        with pytest.raises(AuditStoreError, match=r"kept locked by another process for 0\.05 s; end it"):
            other.labels.add(0, 5, "ann")
        assert len(other.draws.all()) == 18  # who only reads waits for nobody


def test_who_was_ended_for_its_silence_goes_on_with_its_next_write(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    with audit(address) as store, AuditStore.open(address) as other:
        with monkeypatch.context() as patch:
            patch.setattr("evalbudget.store._database._PATIENCE", 0.05)
            with pytest.raises(StoreDownError, match="idle-in-transaction"):
                _fall_silent(store._db, other._db)
        assert store.labels.add(0, 5, "ann").kind == LabelKind.FIRST


def _fall_silent(own: Database, other: Database) -> None:
    with own.write() as connection:
        here = text("SELECT 1 FROM pg_stat_activity WHERE pid = :pid").bindparams(
            pid=connection.scalar(text("SELECT pg_backend_pid()"))
        )
        while other.rows(here):
            time.sleep(0.01)
        connection.scalar(text("SELECT 1"))


def test_two_that_begin_at_once_begin_one(address: Address) -> None:
    ended = []

    def begin() -> None:
        try:
            AuditStore.create(address, design()).close()
            ended.append("begun")
        except AuditStoreError as ex:
            ended.append(str(ex))

    threads = [threading.Thread(target=begin) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(told.partition("exists; continue it")[1] for told in ended) == [
        "",
        *["exists; continue it"] * 2,
    ]


def test_the_project_of_a_label_studio_server_is_remembered_in_the_store(address: Address) -> None:
    with FakeLabelStudio() as server, audit(address) as store:
        there = LabelStudio(server.url, LEGACY)
        assert sync(store, there, None).created
        server.annotate(7, 8, "ann@example.org", task=0)
        with AuditStore.open(address) as other:
            again = sync(other, there, None)
        assert (again.project, again.created, again.pushed, again.labels.new) == (7, False, 0, 1)
        server.projects[3] = []
        assert sync(store, there, 3).pushed == 5
        assert sync(store, there, None).project == 3


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda url: f"{url}#none", AuditStoreError, r"audit store .*#none does not exist"),
        (lambda url: f"{url}#public", AuditStoreError, "#public is there, but no audit store"),
        (lambda url: url.replace("/postgres?", "/nothing?"), AuditStoreError, '"nothing" does not exist'),
        (lambda url: url.replace("evalbudget@", "eve@"), AuditStoreError, 'role "eve" does not exist'),
        (lambda url: url.replace("host=", "host=/none"), StoreDownError, "cannot be reached: .*No such file"),
        (lambda url: f"{url}#Essays", InvalidInputError, "cannot be named 'Essays'"),
        (lambda url: "mysql://h/d", InvalidInputError, "stores of 'mysql' are not known; write the path"),
        (lambda url: "postgresql://h", InvalidInputError, "names no database; write"),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_addresses_of_no_audit(
    postgresql: Server, change: Callable[[str], str], error: type[Exception], message: str
) -> None:
    where = change(postgresql.url)
    with pytest.raises(error, match=message):
        AuditStore.open(where)
    told = run("status", where)
    assert (told.exit_code, "Traceback" in told.output) == (2, False)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:hush@host/evals#essays",
        "postgresql://ann:h/u@s@h/evals",
        "postgresql://ann:h%2Fush@host/evals",
        "postgres://ann:hush@host",
        "postgresql+psycopg://ann@host/evals?password=hush",
        "postgresql://ann@host/evals?sslpassword=hush#essays",
        "postgresql://ann@host/evals?pass%77ord=hush",
    ],
)
def test_a_password_in_an_address_is_refused(address: str) -> None:
    for ask in (Address.parse, AuditStore.open):
        with pytest.raises(InvalidInputError, match="variable PGPASSWORD") as caught:
            ask(address)
        assert "hush" not in str(caught.value)


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Address.parse("postgres://ann@host/evals?sslmode=require#essays")
    assert str(address) == "postgresql://ann@host/evals?sslmode=require#essays"
    monkeypatch.setattr("evalbudget.store._database.find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match=r"pip install 'evalbudget\[postgresql\]'"):
        AuditStore.open(address)


def test_a_server_that_is_away_for_a_while_loses_no_label(postgresql: Server, address: Address) -> None:
    told = Told(n_items=30)
    with told.create(address) as store, serving(store, "ann") as page:
        told.draw(store)
        first, second = (call(page, "next", session=s, by="ann").json["task"]["draw"] for s in "ab")
        assert call(page, "label", draw=first, score=7, by="ann").json["kind"] == "first"
        postgresql.stop()
        try:
            store.be_patient(0.0)
            for name, what in _calls(second):
                down = call(page, name, **what)
                assert down.status == 503, name
                assert "cannot be reached" in down.json["error"]
                assert "please try again" in down.json["error"]
        finally:
            postgresql.start()
        store.be_patient(60.0)
        assert call(page, "alive", draw=second, session="b").json == {"held": True, "labelled": False}
        assert call(page, "label", draw=second, score=5, by="ann").json["kind"] == "first"
        assert call(page, "label", draw=second, score=5, by="ann").json["kind"] == "known"  # sent once more
        assert {d: label.score for d, label in store.labels.counting().items()} == {first: 7, second: 5}
        assert "problem" not in call(page, "state").json


def _calls(draw: int) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("label", {"draw": draw, "score": 5, "by": "ann"}),
        ("next", {"session": "b", "by": "ann"}),
        ("state", {}),
        ("alive", {"draw": draw, "session": "b"}),
    ]


def test_a_write_waits_for_a_server_that_comes_back(
    postgresql: Server, address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    with audit(address) as store:
        postgresql.stop()
        starting = threading.Thread(target=postgresql.start)
        try:
            kinds: list[LabelKind] = []
            adding = threading.Thread(target=lambda: kinds.append(store.labels.add(0, 5, "ann").kind))
            adding.start()
        finally:
            starting.start()
            starting.join(300)
        adding.join(300)
        assert kinds == [LabelKind.FIRST]
        store.draws.append(drawn(range(9, 10), start=18))
    assert f"{address} cannot be reached" in caplog.text
