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

    Of one that is open, or was not closed, the latest changes stand beside it: then a copy is read.

    Raises:
        StoreError: or what the layout names: it cannot be read, or is something else.
    """
    whole = path.resolve()  # what stands beside it stands beside the file, not beside a link to it
    with TemporaryDirectory(prefix="evalbudget-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / whole.name
        place = whole
        try:
            place = copy if _copied(whole, copy) else whole
            with closing(Database.open(Address(path=place), layout)) as db:
                yield db
        except OSError as ex:
            where = f", or not be copied into {folder} (TMPDIR says where)" if _beside(whole) else ""
            raise layout.error(f"{path} cannot be read{where}: {reason(ex)}") from ex
        except layout.error as ex:
            raise layout.error(str(ex).replace(str(place), str(path))) from ex


def _copied(path: Path, copy: Path) -> bool:
    """Whether something stands beside a file, and a copy of both was made, of one moment."""
    for _ in range(_TRIES):
        for each in copy.parent.iterdir():
            each.unlink()
        if not (beside := _beside(path)):
            return False
        before = path.stat()
        shutil.copyfile(path, copy)
        try:
            for each in beside:
                shutil.copyfile(each, copy.with_name(each.name))
        except FileNotFoundError:  # its process has just closed it
            continue
        after = path.stat()
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
            break  # nothing of what was beside it was moved into it meanwhile
    return copy.exists()


def _beside(path: Path) -> list[Path]:
    """What another process has, or left, of a file's latest changes."""
    found = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-journal"))
    return [each for each in found if each.exists()]
