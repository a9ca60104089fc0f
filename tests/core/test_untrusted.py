"""Files of other people cost no more than their size: archives that lie, deep brackets, what is no file."""

from __future__ import annotations

import os
import socket
import zipfile
from pathlib import Path

import pytest

from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import VARIABLE, check_archive, is_plain_file, largest, parsed_json

LIMIT = 0.01  # GiB


def archive(path: Path, size: int, kind: int = zipfile.ZIP_DEFLATED, declares: int | None = None) -> Path:
    """One member of so many bytes, of which the lists of the archive may say something else."""
    with zipfile.ZipFile(path, "w", kind) as pack:
        pack.writestr("small.json", b"{}")
        pack.writestr("large.json", bytes(size))
        if declares is not None:
            pack.getinfo("large.json").file_size = declares
    return path


@pytest.mark.parametrize(
    "kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_an_archive_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    monkeypatch.setenv(VARIABLE, f"{LIMIT}")
    honest = archive(tmp_path / "honest.eval", 12 << 20, kind)
    lying = archive(tmp_path / "lying.eval", 12 << 20, kind, declares=10)
    for path in (honest, lying):
        with pytest.raises(InvalidInputError, match=rf"{path.name} unpacks to 0\.0 GiB or more.* {VARIABLE}"):
            check_archive(path)
        check_archive(path, "small.json".__eq__)
    check_archive(archive(tmp_path / "fits.eval", 9 << 20, kind))
    monkeypatch.setenv(VARIABLE, "0.1")
    check_archive(honest)


def test_many_members_are_too_much_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"{LIMIT}")
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for i in range(4):
            pack.writestr(f"{i}.json", bytes(4 << 20))
            pack.getinfo(f"{i}.json").file_size = 10
    with pytest.raises(InvalidInputError, match="unpacks to"):
        check_archive(path)
    check_archive(path, lambda name: name < "2")


@pytest.mark.parametrize("told", ["x", "0", "-1", "nan", "inf", "1e400"])
def test_a_limit_that_is_none(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setenv(VARIABLE, told)
    with pytest.raises(InvalidInputError, match=f"{VARIABLE} is '{told}'; give a number of GiB"):
        largest()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "{", b"\xff", "[1,]"])
def test_json_that_is_none(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (whatever the reader of JSON says)
        parsed_json(text)


def test_only_plain_files_are_read_to_their_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert is_plain_file(tmp_path / "file")
    assert is_plain_file(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        for name in ("pipe", "circle", "folder", "socket", "nothing", "9" * 300, "a\0b"):
            assert not is_plain_file(tmp_path / name), name
    assert not is_plain_file(Path("/dev/null"))
