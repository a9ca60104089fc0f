"""A PostgreSQL server of one's own for tests: in a folder, on a socket there, gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


def binaries() -> Path | None:
    """Where initdb and postgres are; None if they are not."""
    there = shutil.which("initdb")
    if there is not None:
        return Path(there).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


def why_not() -> str | None:
    """Why there is no server to test with; None if there is."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed: pip install 'evalbudget[postgresql]'"
    if binaries() is None:
        return "PostgreSQL is not installed (initdb is not found)"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL refuses to run as root, and there is no runuser"
    return None


class Server:
    """A server that can be stopped and started again.

    Attributes:
        url: of a database of it, without a name of a store.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        where = binaries()
        assert where is not None
        self._bin = where
        self._user = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
        self.url = f"postgresql://evalbudget@/postgres?host={folder}"
        self._call(
            "initdb", "-D", f"{folder}/data", "-U", "evalbudget", "-A", "trust", "--no-sync", "-E", "UTF8"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once it answers."""
        settings = ("listen_addresses=", f"unix_socket_directories={self._folder}", "max_connections=60")
        flags = [flag for setting in settings for flag in ("-c", setting)]
        command = [*self._user, f"{self._bin}/postgres", "-D", f"{self._folder}/data", *flags]
        log = (self._folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(600):
            if not self._call("pg_isready", "-h", str(self._folder), "-q", check=False):
                return
            time.sleep(0.05)
        raise RuntimeError((self._folder / "log").read_text())

    def stop(self) -> None:
        """At once, as when it is pulled out."""
        if self._process is not None:
            self._call("pg_ctl", "stop", "-D", f"{self._folder}/data", "-m", "immediate", "-s", check=False)
            self._process.wait()
            self._process = None

    def _call(self, name: str, *arguments: str, check: bool = True) -> int:
        command = [*self._user, f"{self._bin}/{name}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        if check and done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")
        return done.returncode


@contextmanager
def server() -> Iterator[Server]:
    """One that runs."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # the path of a socket is short
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        there = Server(folder)
        there.start()
        try:
            yield there
        finally:
            there.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
