"""What a file holds that another process may have open, or left when it was killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from evalbudget.errors import reason
from evalbudget.store._address import Address
from evalbudget.store._database import Database
from evalbudget.store._layout import Layout

_TRIES = 10


@contextmanager
def looked_into(path: Path, layout: Layout) -> Iterator[Database]:
    """A file's store, to be read; nothing of it changes, and nothing comes to stand beside it.

    A copy is read, with what stands beside it: while its process has it open, the file alone lacks the
    latest changes, and may be locked.

    Raises:
        StoreError: or what the layout names: it cannot be read, or is something else.
    """
    whole = path.resolve()  # what stands beside it stands beside the file, not beside a link to it
    with TemporaryDirectory(prefix="evalbudget-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / whole.name
        try:
            place = _copied(whole, copy) if whole.is_file() else whole
            with closing(Database.open(Address(path=place), layout)) as db:
                yield db
        except OSError as ex:
            raise layout.error(
                f"{path} cannot be read, or not be copied into {folder} (TMPDIR says where): {reason(ex)}"
            ) from ex
        except layout.error as ex:
            raise layout.error(str(ex).replace(str(copy), str(path))) from ex


def _copied(path: Path, copy: Path) -> Path:
    """The copy of a file, and of what stands beside it, of one moment."""
    for _ in range(_TRIES):
        for each in copy.parent.iterdir():
            each.unlink()
        before = _moment(path)
        shutil.copyfile(path, copy)
        try:
            for each in _beside(path):
                shutil.copyfile(each, copy.with_name(each.name))
        except FileNotFoundError:  # its process has just closed it
            continue
        if _moment(path) == before:
            break  # nothing of what was beside it was moved into it meanwhile
    return copy


def _moment(path: Path) -> tuple[int, int, list[Path]]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, _beside(path)


def _beside(path: Path) -> list[Path]:
    """What another process has, or left, of a file's latest changes."""
    found = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-journal"))
    return [each for each in found if each.exists()]
