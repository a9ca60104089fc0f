"""Marked keys in names, answers and replies are in nothing that commands without a host say or write."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.audits.store.audits import Told, audit
from tests.keys import command, found_in, leaks, read_by_every_command
from tests.labelling.label_studio import LEGACY, PERSONAL, SHORT, FakeLabelStudio
from tests.labelling.serving import call, request, serving

from evalbudget.audits.store import Answer, AuditRun, weigh
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded._files import open_scores
from evalbudget_pairwise import Answers, ModelAnswers, as_text
from evalbudget_pairwise._preferences import Preference

KEY = "marked-variable-0"


@pytest.fixture(autouse=True)
def _marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", KEY)


def rows(*models: str) -> list[dict[str, Any]]:
    """Two scores of each item, the key in every name."""
    named = {"rater": f"judge {KEY}", "category": f"part {KEY}"}
    return [
        {"item": f"item {i} {KEY}", "model": f"{m} {KEY}", "repeat": k, "score": (i * i + k + len(m)) % 3 / 2}
        | named
        for m in models
        for i in range(6)
        for k in range(2)
    ]


def as_csv(rows: list[dict[str, Any]], path: Path) -> None:
    separator = "\t" if path.suffix == ".tsv" else ","
    lines = [list(rows[0]), *(row.values() for row in rows)]
    path.write_text("\n".join(separator.join(map(str, line)) for line in lines))


def as_npz(rows: list[dict[str, Any]], path: Path) -> None:
    as_csv(rows, table := path.with_suffix(".csv"))
    found = open_scores(table)
    assert found is not None
    found.save(path)


def as_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)


WRITERS: dict[str, Callable[[list[dict[str, Any]], Path], None]] = {
    ".csv": as_csv,
    ".tsv": as_csv,
    ".json": lambda rows, path: void(path.write_text(json.dumps(rows))),
    ".jsonl": lambda rows, path: void(path.write_text("\n".join(map(json.dumps, rows)))),
    ".npz": as_npz,
    ".parquet": as_parquet,
}


def void(_: object) -> None: ...


@pytest.mark.parametrize("suffix", list(WRITERS))
def test_a_key_in_the_names_of_a_table(tmp_path: Path, suffix: str) -> None:
    WRITERS[suffix](rows("m"), table := tmp_path / f"table{suffix}")
    found = plugins().open_scores(table)
    assert found.items[0] == "item 0 ***"
    assert not found_in(repr(found))


def test_a_key_in_what_every_command_reads(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    as_csv(rows("m"), old)
    as_csv(rows("other"), new)
    read_by_every_command(old, new, tmp_path / "out")
    assert "item 0 ***" in (tmp_path / "out" / "baseline.csv").read_text()


def test_a_key_in_what_is_replayed(tmp_path: Path) -> None:
    table, earlier, out = tmp_path / "table.csv", tmp_path / "earlier.csv", tmp_path / "out"
    as_csv(rows("a", "bb"), table)
    as_csv(rows("ccc", "dddd", "eeeee"), earlier)
    both = [row | {"rater": f"judge {KEY} {n}"} for row in rows("a", "bb") for n in range(2)]
    as_csv(both, judged := tmp_path / "judged.csv")
    found = open_scores(judged)
    assert found is not None
    labelled = tmp_path / "labelled.npz"
    replace(found, reference=found.scores[..., 0]).save(labelled)
    out.mkdir()
    for words in (
        ["repeats", table, "--budget", "1.5x", "--model", "a ***"],
        ["races", table, "--budget", "100%", "--history", earlier],
        ["judges", judged, "--budget", 24, "--rotation", "cyclic"],
        ["audits", labelled, "--sampler", "human-only"],
    ):
        done = command("backtest", *words, "--seeds", 1, "--json", out / f"{words[0]}.json")
        assert done.exit_code == 0, done.output
    assert not leaks(out)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_key_in_preferences(tmp_path: Path, suffix: str) -> None:
    table = tmp_path / f"preferences{suffix}"
    rows = [Preference(f"x {KEY} {i}", f"a {KEY}", f"b {KEY}", i % 2, f"j {KEY}") for i in range(4)]
    table.write_text(as_text(rows, suffix))
    (tmp_path / "out").mkdir()
    done = command("pairwise", table, "--json", tmp_path / "out" / "found.json")
    assert done.exit_code in (0, 3), done.output
    assert not leaks(tmp_path / "out")


def test_a_key_in_the_names_of_answers_to_compare() -> None:
    said = {f"item {KEY}": "asked", "other": "asked"}
    runs = [ModelAnswers(f"{model} {KEY}", model, said, said) for model in "ab"]
    found = Answers.of(runs)
    assert (found.models, found.items) == (("a ***", "b ***"), ("item ***", "other"))
    again = {**said, "item ***": "asked"}
    told = r"2 names in the logs differ by a key alone, and are 'item \*\*\*' without it"
    with pytest.raises(InvalidInputError, match=told):
        Answers.of([replace(run, requests=again, answers=again) for run in runs])


def test_a_key_in_an_audit(tmp_path: Path) -> None:
    path, told = tmp_path / "a.sqlite", Told(n_items=30, pilot=8, labels_per_batch=8)
    told.design = replace(
        told.design,
        items=tuple(f"{KEY} {i}" for i in range(30)),
        models=(f"alpha {KEY}", f"beta {KEY}"),
    )
    with told.create(path) as store:
        run = AuditRun(store)
        for context in run.contexts:
            answers = [Answer(f"Write {KEY}", f"Said {KEY}", f"Because {KEY}") for _ in context.models]
            run.record(context, answers, [5.0 for _ in answers] if context.judged else None)
        first, second, *_ = weigh(store).wanted
        store.labels.add(first, 3.0, f"ann {KEY}")
        with serving(store, "ann") as server:
            told_by = {"session": "s", "by": "ann", "draw": second, "score": 4}
            said = [
                call(server, name, **told_by).body for name in ("audit", "state", "next", "label", "opinion")
            ]
            said.append(request(server, f"/{server.token}/").body)
        assert b"Said ***" in said[2]
        assert not any(map(found_in, said))
    for verb in ("status", "next", "verdict"):
        command("audit", verb, path)
    for kind in ("csv", "jsonl", "label-studio", "label-studio-config"):
        done = command("audit", "export", path, "--format", kind, "-o", tmp_path / f"exported.{kind}")
        assert done.exit_code == 0, done.output
    done = command("audit", "import", path, tmp_path / "exported.csv", "--by", KEY, "--format", "csv")
    assert not leaks(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_a_key_in_what_the_page_and_its_server_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with audit(tmp_path / "a.sqlite"):
        pass
    heard: list[bytes] = []

    def browse(url: str) -> None:
        def asks() -> None:
            for name, where in (("state", "weigh"), ("next", "next"), ("label", "label"), (KEY, "")):
                asked = Request(f"{url}api/{name}", b'{"session": "s", "by": "ann", "draw": 1, "score": 4}')
                with pytest.raises(HTTPError) if where != "weigh" else nullcontext() as refused:
                    heard.append(urlopen(asked, timeout=60).read())
                heard.append(refused.value.read() if refused else b"")
            os.kill(os.getpid(), signal.SIGINT)

        Thread(target=asks).start()

    def breaks(kind: type[Exception]) -> Callable[..., Any]:
        def broken(*_: object, **__: object) -> None:
            raise kind(f"no answer to {KEY}")

        return broken

    monkeypatch.setattr("webbrowser.open", browse)
    monkeypatch.setattr("evalbudget.audits.store.go_on", breaks(InvalidInputError))
    monkeypatch.setattr("evalbudget.audits.store._leases.Leases.next", breaks(InvalidInputError))
    monkeypatch.setattr("evalbudget.audits.store._labels.Labels.add", breaks(RuntimeError))
    said = io.StringIO()
    monkeypatch.setattr(
        logging.getLogger("evalbudget_labelling.page._server"), "handlers", [logging.StreamHandler(said)]
    )
    done = command("audit", "serve", tmp_path / "a.sqlite", "--port", 0, "--open")
    assert done.exit_code == 0, done.output
    assert "RuntimeError: no answer to ***" in said.getvalue()
    assert [b"no answer to ***" in each for each in heard if each] == [True, True, True, False]
    assert not any(map(found_in, [said.getvalue(), *heard]))


@pytest.mark.parametrize("key", [LEGACY, PERSONAL])
def test_a_label_studio_server_that_repeats_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", key)
    with audit(tmp_path / "a.sqlite"):
        pass
    given = SHORT if key == PERSONAL else key
    said = f"{KEY} {key} {given} not allowed"
    with FakeLabelStudio() as server:
        sync = ["audit", "sync", tmp_path / "a.sqlite", "--url", server.url]
        assert command(*sync).exit_code == 0
        server.annotate(7, 99, f"ann {said}")
        assert command(*sync, "--json").exit_code == 2  # no such score on the scale
        server.projects[7] = []
        server.refuses = said
        assert "*** not allowed" in command(*sync).output
        server.moved = f"http://elsewhere/?token={given}"
        assert "to http://elsewhere/?token=***" in command(*sync).output
    assert command(*sync).exit_code == 2  # cannot be reached
    for url in ("http://me:marked-pw@localhost", "http://localhost/?api_key=marked-query"):
        assert "--url has a password or a key in it" in command(*sync[:3], "--url", url).output
    assert not leaks(tmp_path)


def test_processes_are_started_by_the_demo_alone() -> None:
    """Its commands are constants: no list of processes shows a key that we put there."""
    starting = re.compile(
        r"\bsubprocess\b|\bmultiprocessing\b|\bos\.(exec|spawn|posix_spawn|popen|system)|\bpty\b"
    )
    root = Path(__file__).parents[2]
    files = [
        path
        for top in ("src", "plugins")
        for path in (root / top).rglob("src/**/*.py" if top == "plugins" else "*.py")
    ]
    assert [path.parent.name for path in files if starting.search(path.read_text())] == ["demo"]
