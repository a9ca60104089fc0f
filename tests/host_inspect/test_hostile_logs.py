"""Logs of the host that broke or that something else wrote: a result, or our own error naming the log."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile.damage import always_the_same, check_damage, refusal

from evalbudget_inspect import budgeted
from evalbudget_inspect.host.attempt_notes import read_note
from evalbudget_inspect.reading.open_logs import open_scores

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

    @always_the_same(120)
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


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello"])
def test_foreign_logs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.eval"
    path.write_bytes(content)
    assert "is not a readable inspect log" in refusal(lambda: open_scores(path), path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"begun": 1}', '{"begun": {"a": 1}}', '{"else": 1}'])
def test_a_damaged_note_beside_the_logs(tmp_path: Path, content: str) -> None:
    path = tmp_path / ".evalbudget-task.json"
    path.write_text(content)
    assert "is damaged" in refusal(lambda: read_note(str(tmp_path), "task"), path)
