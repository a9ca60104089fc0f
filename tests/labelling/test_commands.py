"""``evalbudget audit serve`` and ``export``, as a person types them."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.audits.store.audits import Told
from tests.cli.commands import refused, typed

from evalbudget.audits.store import AuditStore, weigh

run = typed("audit")


@pytest.fixture(scope="module")
def told() -> Told:
    return Told(pilot=8, labels_per_batch=8)


@pytest.fixture
def path(tmp_path: Path, told: Told) -> Path:
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
    return tmp_path / "a.sqlite"


def test_a_table_goes_out_and_comes_back(path: Path, tmp_path: Path, told: Told) -> None:
    out = tmp_path / "labels.csv"
    done = run("export", path, "--format", "csv", "-o", out)
    assert done.exit_code == 0, done.output
    assert "labels.csv" in done.stderr
    rows = list(csv.DictReader(io.StringIO(out.read_text("utf-8-sig"), newline="")))
    for row in rows[:5]:
        row["score"] = "5"
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    refused(run("import", path, out), "labels.csv: nothing was imported", "line 2", "--by NAME")
    done = run("import", path, out, "--by", "ann")
    assert done.exit_code == 0, done.output
    assert (
        done.stdout == f"5 new labels, {len(rows) - 5} rows without a score; {len(rows) - 5} still wanted\n"
    )
    again = run("import", path, out, "--by", "ann", "--json")
    assert json.loads(again.stdout) == {
        "new": 0,
        "known": 5,
        "agrees": 0,
        "conflicts": 0,
        "empty": len(rows) - 5,
        "outstanding": len(rows) - 5,
    }
    out.write_text(out.read_text().replace(",5,", ",6,"))
    done = run("import", path, out, "--by", "bob")
    assert "5 contradict earlier labels, which count" in done.stderr


def test_what_the_verdict_needs_no_more_is_not_exported(tmp_path: Path) -> None:
    told, path, table = Told((9.0, 2.0), pilot=60), tmp_path / "a.sqlite", tmp_path / "l.csv"
    with told.create(path) as store:
        told.draw(store)
        while wanted := weigh(store).wanted:
            store.labels.add(wanted[0], told.score(store, wanted[0]), "ann")
        assert store.progress().outstanding > 0  # asked for by coins, before the batch told enough
        labelled = store.progress().labelled
    done = run("export", path, "--format", "csv", "-o", table)
    assert f"0 still wanted, {labelled} labelled" in done.stderr
    assert len(table.read_text().splitlines()) == labelled + 1
    assert "0 still wanted" in run("import", path, table).stdout


def test_labels_go_out_through_a_pipe(path: Path) -> None:
    by = "ann##[error]"
    with AuditStore.open(path) as store:
        for task in store.draws.tasks()[:2]:
            store.labels.add(task.draw, 4, by)
    done = run("export", path, "--format", "jsonl", "--only", "labelled", "-o", "-")
    labels = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(label["score"], label["by"]) for label in labels] == [(4, by), (4, by)]
    assert "##[" not in done.stdout
    done = run("export", path, "--format", "label-studio-config", "-o", "-")
    assert done.stdout.startswith("<View>")


def test_files_that_cannot_be_written_are_refused(path: Path, tmp_path: Path) -> None:
    refused(run("export", path, "--format", "xml", "-o", "x"), "'xml' is not one of", "csv")
    refused(run("export", path, "--format", "csv", "-o", tmp_path / "no" / "x.csv"), "create it first")
    refused(run("export", path, "--format", "csv", "-o", path), "is the audit store itself")


@pytest.mark.parametrize("command", ["serve", "export", "sync"])
def test_help_has_examples(command: str) -> None:
    assert f"evalbudget audit {command} audit.sqlite" in run(command, "--help").output


@pytest.fixture
def served(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "evalbudget", "audit", "serve", str(path), "--port", "0", "--by", "ann"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Labelling"), process.communicate()
        yield process, process.stdout.readline().strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_serve_labels_until_ctrl_c(served: tuple[subprocess.Popen[str], str], path: Path) -> None:
    process, url = served
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{24}/", url)
    with urllib.request.urlopen(url, timeout=300) as page:
        assert b"<title>Labelling" in page.read()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url.replace(url[-5:], "xxxx/"), timeout=300)
    with AuditStore.open(path) as store:  # another process uses the store meanwhile
        draw = store.draws.tasks()[0].draw
    body = json.dumps({"draw": draw, "score": 7, "by": "ann"}).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "api/label", body), timeout=300) as answer:
        assert json.load(answer)["kind"] == "first"
    with AuditStore.open(path) as store:
        assert store.labels.counting()[draw].score == 7
        outstanding = store.progress().outstanding
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert f"Ended: 1 new label, {outstanding} still wanted." in out
    assert err == ""


def test_serve_says_that_a_port_is_taken(path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(run("serve", path, "--port", str(port)), f"port {port} is taken", "--port 0")
    refused(run("serve", path, "--port", "70000"), "70000")
    refused(run("serve", path, "--by", "x" * 200), "no name for a labeller")
