"""Marked keys: what a command is given must be in nothing that it writes or says."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from click.testing import CliRunner, Result

from evalbudget.cli.main import cli

_MARKED = re.compile(rb"marked-[\w-]+")


def found_in(said: bytes | bytearray | str) -> set[str]:
    """The marked keys in it."""
    said = said.encode(errors="replace") if isinstance(said, str) else said
    return {found.decode() for found in _MARKED.findall(said)}


def leaks(folder: Path, *, but: str = "\0") -> dict[str, set[str]]:
    """The marked keys in all files but those whose names begin so, by the name of the file."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(but))
    return {name: found for name, data in _contents(files) if (found := found_in(data))}


def _contents(files: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for path in files:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as members:
                yield from ((f"{path} {name}", members.read(name)) for name in members.namelist())
        else:
            yield str(path), path.read_bytes()


def command(*words: object, **options: object) -> Result:
    """What it says holds no key."""
    done = CliRunner().invoke(cli, list(map(str, words)), **options)  # type: ignore[arg-type]
    assert not found_in(done.output), done.output
    return done


@contextmanager
def terminal() -> Iterator[tuple[int, bytearray]]:
    """A terminal to print to, and what was printed; all of it once nobody prints any more."""
    ours, its = os.openpty()
    said = bytearray()

    def read() -> None:
        with suppress(OSError):  # nobody prints any more
            while piece := os.read(ours, 1 << 16):
                said.extend(piece)

    reads = Thread(target=read)
    reads.start()
    try:
        yield its, said
    finally:
        os.close(its)
        reads.join(60)
        os.close(ours)


def read_by_every_command(old: Path, new: Path, out: Path) -> None:
    """What the commands that read scores make of them holds no key.

    Args:
        old: scores of one model.
        new: scores of another one, of the same items.
        out: a folder for what they write.
    """
    out.mkdir()
    both, gate = [old, new], ["gate", "--baseline", old, "--margin", 0.9, "--candidate", new]
    for words, codes in (
        (["report", *both, "--html", out / "page.html", "--picture", out / "drawn.svg"], (0,)),
        (["report", *both, "--json", out / "report.json"], (0,)),
        (["compare", *both, "--json", out / "compared.json"], (0,)),
        (["doctor", *both, "--json", out / "doctor.json"], (0,)),
        (["plan", old, "--half-width", 0.1, "--json", out / "plan.json"], (0,)),
        ([*gate[:3], "--save-baseline", out / "baseline.csv"], (0,)),
        ([*gate, "--markdown", out / "gate.md", "--junit", out / "gate.xml"], (0, 1, 3)),
        ([*gate, "--json", out / "gate.json", "--missing", "drop"], (0, 1, 3)),
        (["gate", "--baseline", out / "baseline.csv", *gate[3:]], (0, 1, 3)),
    ):
        done = command(*words)
        assert done.exit_code in codes, done.output
    assert len(list(out.iterdir())) == 10
    assert not leaks(out)
