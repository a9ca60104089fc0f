"""Logs of the host that broke or that something else wrote: a result, or our own error naming the log."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai.log import EvalSample
from tests.claims import replications, variant
from tests.host_inspect.race_tasks import quiz, three
from tests.host_inspect.race_tasks import run as run_race
from tests.hostile.damage import FULL, always_the_same, check_damage, check_linear, refusal

from evalbudget.cli.main import cli
from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.untrusted import check_archive
from evalbudget_inspect import Leaderboard, budgeted, leaderboard, race
from evalbudget_inspect.host.how_bought import entries_of
from evalbudget_inspect.host.log_files import check_log
from evalbudget_inspect.judges.judge_names import JudgeModel, read_judges
from evalbudget_inspect.reading.logs import read_headers, read_samples
from evalbudget_inspect.reading.open_logs import open_scores
from evalbudget_pairwise.inspect.answers import read_answers

VALUES = (None, -1, 1e400, "x", "", [], {}, [[1]], 10**400, True, "C", {"x": {"y": []}})
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Of everything inside a JSON value; of lists, in the first entry."""
    yield place
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*place, key))
    elif isinstance(value, list):
        for inner in value[:1]:
            yield from places(inner, (*place, 0))


def changed(value: Any, place: Place, new: object) -> Any:
    result = inner = copy.deepcopy(value)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = new
    return result


@pytest.mark.claim
def test_a_log_after_any_damage(run: Any, make_task: Any, tmp_path: Path) -> None:
    whole = Path(run(budgeted(make_task(3), budget=9)).location.removeprefix("file://"))
    with zipfile.ZipFile(whole) as log:
        members = {name: log.read(name) for name in log.namelist() if not name.startswith("_journal/")}
    path = tmp_path / "damaged.eval"

    def read(members: dict[str, bytes]) -> None:
        with zipfile.ZipFile(path, "w") as log:
            for name, data in members.items():
                log.writestr(name, data)
        open_scores(path)

    read(members)

    def broken(data: bytes) -> None:
        path.write_bytes(data)
        open_scores(path)

    check_damage(whole.read_bytes(), broken, path, examples=15)
    loaded = {name: json.loads(members[name]) for name in ("header.json", "summaries.json")}
    where = [("header.json", ("results", *p)) for p in places(loaded["header.json"]["results"]) if p]
    where += [("summaries.json", (0, *p)) for p in places(loaded["summaries.json"][0]) if p]

    @always_the_same(replications(30, FULL))
    @given(st.sampled_from(where), st.sampled_from(VALUES))
    def altered(at: tuple[str, Place], value: object) -> None:
        name, place = at
        text = json.dumps(changed(loaded[name], place, value))
        refusal(lambda: read({**members, name: text.encode()}), path)

    altered()
    header = loaded["header.json"]
    for key, value, told in (
        ("allocation", "by dice", "'by dice' is not a valid Allocation"),
        ("fixed_repeats", "x", "invalid literal"),
        ("fixed_repeats", 1e400, "cannot convert float infinity"),
    ):
        place = next(p for p in places(header) if p[-2:] == ("evalbudget", key))
        damaged = {**members, "header.json": json.dumps(changed(header, place, value)).encode()}
        assert told in refusal(lambda damaged=damaged: read(damaged), path)  # type: ignore[misc]


@pytest.mark.claim
def test_a_leaderboard_after_any_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logs = run_race(race(quiz(4), budget=8), three()[:2], tmp_path / "logs")
    folder, path = tmp_path / "logs", tmp_path / "damaged.eval"
    with zipfile.ZipFile(logs[0].location.removeprefix("file://")) as log:
        header = json.loads(log.read("header.json"))

    def board(source: Path) -> str:
        return str(leaderboard(read_headers(source)).table())

    assert "simulated/b" in board(folder)
    where = [p for p in places(header["results"]) if "race" in p or p[-1:] == ("evalbudget",)]

    @always_the_same(replications(24, FULL))
    @given(st.sampled_from(where), st.sampled_from(VALUES))
    def altered(at: Place, value: object) -> None:
        results = changed(header["results"], at, value)
        with zipfile.ZipFile(path, "w") as log:
            log.writestr("header.json", json.dumps(header | {"results": results}))
        with suppress(EvalbudgetError):  # it may be of no race any more
            board(path)

    altered()
    os.mkfifo(folder / "pipe.eval")
    (folder / "damaged.eval").write_bytes(b"PK")
    assert "simulated/b" in board(folder)
    assert caplog.text.count("left out: ") == 2


def test_a_leaderboard_is_laid_out_once_and_odd_ones_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = run_race(race(quiz(4), budget=8), three()[:2], tmp_path)
    laid_out: list[Leaderboard] = []
    table = Leaderboard.table
    monkeypatch.setattr(Leaderboard, "table", lambda self, **k: laid_out.append(self) or table(self, **k))
    assert leaderboard(logs).spent == 8
    assert len(laid_out) == 1
    for log in logs:
        for entry in entries_of(log):
            entry["race"] = replace(laid_out[0], standings=(None,))  # type: ignore[arg-type]
    named = "|".join(re.escape(log.location) for log in logs)
    with pytest.raises(InvalidInputError, match=rf"({named}) is damaged: .*NoneType.*; leave it out"):
        leaderboard(logs)


def test_phases_that_are_none(run: Any, make_task: Any, tmp_path: Path) -> None:
    whole = Path(run(budgeted(make_task(3), budget=9)).location.removeprefix("file://"))
    with zipfile.ZipFile(whole) as log:
        members = {name: log.read(name) for name in log.namelist() if not name.startswith("_journal/")}
    path = tmp_path / "damaged.eval"

    def told(value: object, samples: int) -> str:
        summaries = json.loads(members["summaries.json"])
        for sample in summaries[:samples]:
            for place in [p for p in places(sample) if p[-1:] == ("phase",)]:
                sample |= changed(sample, place, value)
        with zipfile.ZipFile(path, "w") as log:
            for name, data in members.items():
                log.writestr(name, json.dumps(summaries) if name == "summaries.json" else data)
        return refusal(lambda: open_scores(path), path)

    for value in (-1, 0.5, 10_000, 10**400, 1e400, "x", "", [], {}):
        assert 0 < len(told(value, samples=1)) < len(str(path)) + 300
    for value, samples in ((True, 9), (math.nan, 9), (None, 9), (None, 1)):
        assert not told(value, samples)
    assert CliRunner().invoke(cli, ["report", str(path)]).exit_code == 0


def test_what_is_no_file_in_a_folder_of_logs_is_left_out_and_named(
    run: Any, make_task: Any, tmp_path: Path
) -> None:
    folder = Path(run(budgeted(make_task(3), budget=9)).location.removeprefix("file://")).parent
    os.mkfifo(folder / "pipe.eval")
    os.mkfifo(folder / "pipe.json")
    (folder / "device.eval").symlink_to("/dev/zero")
    (folder / "circle.eval").symlink_to("circle.eval")
    (folder / "up").symlink_to("..")
    (folder / "folder.eval").mkdir()
    (folder / "folder.json").mkdir()
    (folder / "damaged.eval").write_bytes(b"PK")
    found = open_scores(folder)
    assert found is not None
    assert found.declared is not None
    damaged, told = [note for note in found.declared.notes if "could not be read" in note]
    assert f"1 log could not be read: {folder / 'damaged.eval'}; left out. If the run was killed" in damaged
    assert "left out. Only files are read, no pipes" in told
    assert "5 logs could not be read" in told
    assert "circle.eval" in told
    assert "device.eval" in told
    for path in (folder / "pipe.eval", folder / "device.eval"):
        assert "is no file, but a pipe, a device, a socket" in refusal(partial(open_scores, path), path)


@pytest.mark.parametrize("declares", [variant(None), 10])
@pytest.mark.parametrize("name", ["header.json", "summaries.json", "samples/item-0_epoch_1.json"])
def test_a_log_that_unpacks_to_more_than_the_memory_holds(
    run: Any, make_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, declares: int | None
) -> None:
    whole = Path(run(budgeted(make_task(3), budget=9)).location.removeprefix("file://"))
    monkeypatch.setenv("EVALBUDGET_LARGEST_GIB", "0.01")
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(whole) as log, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        for member in log.namelist():
            if not member.startswith("_journal/"):
                bomb.writestr(member, log.read(member) + (b" " * (12 << 20) if member == name else b""))
        if declares is not None:
            bomb.getinfo(name).file_size = declares
    told = refusal(lambda: check_log(path), path)
    assert "unpacks to 0.0 GiB or more, and at most 0.01 are read" in told
    if name.startswith("samples/"):  # a table of scores needs none of them
        assert open_scores(path) is not None
    else:
        assert refusal(lambda: open_scores(path), path) == told


def test_samples_that_fit_one_by_one_are_read_and_the_log_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALBUDGET_LARGEST_GIB", "0.01")
    path, keys = tmp_path / "log.eval", [(f"item-{i}", 1) for i in range(3)]
    looked: list[Path] = []

    def check(path: Path, *more: Any, **kw: Any) -> None:
        looked.append(path)
        check_archive(path, *more, **kw)

    monkeypatch.setattr("evalbudget_inspect.host.log_files.check_archive", check)
    for mib, fits in ((7, True), (12, False)):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
            for id_, epoch in keys:
                sample = EvalSample(id=id_, epoch=epoch, input="x", target="")
                log.writestr(f"samples/{id_}_epoch_1.json", sample.model_dump_json() + " " * (mib << 20))
        if fits:
            assert [sample.id for sample in read_samples(path, keys)] == [id_ for id_, _ in keys]
        else:
            assert "unpacks to" in refusal(lambda: next(read_samples(path, keys)), path)
    assert looked == [path, path]


@pytest.mark.claim
def test_a_log_in_json_after_any_damage(run: Any, make_task: Any, tmp_path: Path) -> None:
    whole = Path(run(make_task(2), log_format="json").location.removeprefix("file://"))
    path = tmp_path / "damaged.json"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        open_scores(path)

    read(whole.read_bytes())
    check_damage(whole.read_bytes(), read, path, examples=30)


@pytest.mark.claim
def test_answers_to_compare_after_any_damage(run: Any, make_task: Any, tmp_path: Path) -> None:
    whole, other = (
        Path(run(make_task(2), log_format="json").location.removeprefix("file://")) for _ in range(2)
    )
    path = tmp_path / "damaged.json"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        read_answers([str(other), str(path)])

    read(whole.read_bytes())
    check_damage(whole.read_bytes(), read, path, examples=15)


def test_an_endless_number_in_a_log_in_json(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text('{"version": 2, "eval": {"created": ' + "9" * 5000 + "}}")
    assert "has a number of more than 4,300 digits" in refusal(lambda: check_log(path), path)


JUDGES = b"- {name: cold, model: mockllm/a, temperature: 0}\n- mockllm/b\n- hot: {model: mockllm/c}\n"


@pytest.mark.claim
def test_a_file_of_judges_after_any_damage(tmp_path: Path) -> None:
    path = tmp_path / "judges.yaml"

    def read(data: bytes) -> tuple[JudgeModel, ...]:
        path.write_bytes(data)
        try:
            return read_judges(str(path))
        except EvalbudgetError as ex:  # of a judge, which is named
            raise InvalidInputError(f"{path}: {ex}") from ex

    assert len(read(JUDGES)) == 3
    check_damage(JUDGES, read, path)
    check_linear(read, (b"- a\n", b"[", b"{", b"a: ", b"- {model: a}\n", b"a,", b"'"), size=2_000)
    began = thread_time()
    assert len(read("".join(f"- a{i}\n" for i in range(20_000)).encode())) == 20_000
    assert thread_time() - began < 4.0


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello"])
def test_foreign_logs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.eval"
    path.write_bytes(content)
    assert "is not a readable inspect log" in refusal(lambda: open_scores(path), path)
