"""Files of other people cost no more than their size: archives that lie, deep brackets, what is no file."""

from __future__ import annotations

import io
import os
import socket
import zipfile
from pathlib import Path

import pytest

from evalbudget._zstd import unpacks_to_at_most
from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import VARIABLE, check_archive, is_plain_file, largest, parsed_json

LIMIT = 0.01  # GiB
ZSTANDARD = 93  # of members of an archive


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
    monkeypatch.setenv(VARIABLE, f"{LIMIT / 4}")
    honest = archive(tmp_path / "honest.eval", 3 << 20, kind)
    lying = archive(tmp_path / "lying.eval", 3 << 20, kind, declares=10)
    for path in (honest, lying):
        with pytest.raises(InvalidInputError, match=rf"{path.name} unpacks to 0\.0 GiB or more.* {VARIABLE}"):
            check_archive(path)
        check_archive(path, "small.json".__eq__)
    check_archive(archive(tmp_path / "fits.eval", 2 << 20, kind))
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
    check_archive(path, together=False)


def frames(*kinds: str) -> bytes:
    """Of Zstandard: of many blocks, with its size and a checksum, of equal bytes, and one to skip."""
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    text = bytes(range(256)) * 4096  # 1 MiB
    streamed = zstandard.ZstdCompressor().compressobj()
    made = {
        "streamed": streamed.compress(text) + streamed.flush(),
        "told": zstandard.ZstdCompressor(write_checksum=True).compress(text),
        "small": zstandard.ZstdCompressor().compress(b"x" * 300),
        "raw": zstandard.ZstdCompressor().compress(os.urandom(300)),
        "skipped": b"\x50\x2a\x4d\x18\x03\0\0\0abc",
        # one byte repeated 100,000 times, in a frame of one segment that tells its size in 4 bytes
        "repeated": bytes.fromhex("28b52ffd a0 a0860100") + (100_000 << 3 | 3).to_bytes(3, "little") + b"x",
    }
    return b"".join(made[kind] for kind in kinds)


@pytest.mark.parametrize(
    ("kinds", "least", "most"),
    [
        (["streamed"], 1 << 20, (1 << 20) + (1 << 17)),
        (["told", "skipped", "told"], 2 << 20, 2 << 20),
        (["repeated", "raw", "repeated"], 200_300, 200_300),
        (["small"], 300, 1 << 17),
        ([], 0, 0),
    ],
)
def test_what_zstandard_unpacks_to_is_known_without_unpacking(
    kinds: list[str], least: int, most: int
) -> None:
    packed = frames(*kinds)
    found = unpacks_to_at_most(io.BytesIO(packed))
    assert found is not None
    assert least <= found <= most
    for end in range(0, len(packed), 7):  # whatever is cut off
        assert (unpacks_to_at_most(io.BytesIO(packed[:end])) or 0) <= most
    assert unpacks_to_at_most(io.BytesIO(packed + b"hello")) is None
    reserved = bytes.fromhex("28b52ffd 00 00") + (1 << 3 | 7).to_bytes(3, "little")
    assert unpacks_to_at_most(io.BytesIO(packed + reserved)) is None


def test_an_archive_of_zstandard_is_not_unpacked_to_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zipfile_zstd", reason="zipfile_zstd is not installed")
    monkeypatch.setenv(VARIABLE, f"{LIMIT}")
    fits, bomb = (tmp_path / f"{name}.eval" for name in ("fits", "bomb"))
    archive(fits, 9 << 20, ZSTANDARD)
    archive(bomb, 12 << 20, ZSTANDARD, declares=10)
    with pytest.raises(InvalidInputError, match="unpacks to"):
        check_archive(bomb)
    monkeypatch.setattr("evalbudget.untrusted._unpacked", None)
    check_archive(fits)


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
