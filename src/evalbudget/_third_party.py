"""Code that others wrote, and that runs inside of ours: whatever it raises must not end the rest."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evalbudget.errors import EvalbudgetError

log = logging.getLogger(__name__)


@contextmanager
def third_party(leave_out: Callable[[str], None], *passes: type[BaseException]) -> Iterator[None]:
    """Within this block, code of others may raise anything, ``SystemExit`` too; Ctrl-C ends all the same.

    Args:
        leave_out: is told why the code failed, in one line.
        passes: what is raised on.
    """
    try:
        yield
    except BaseException as ex:
        if isinstance(ex, (KeyboardInterrupt, *passes)):
            raise
        log.debug("code of others failed", exc_info=True)
        reason = str(ex) if isinstance(ex, EvalbudgetError) else "".join(traceback.format_exception_only(ex))
        leave_out(" ".join(reason.split()))


def is_ours(cls: type) -> bool:
    """Whether a class came with evalbudget, so that what it raises is a fault to be shown as it is."""
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]
