"""The bill of a run, beside its logs: all attempts at a task are on one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import fsspec  # type: ignore[import-untyped]

from evalbudget.budget import Budget
from evalbudget.errors import BudgetError
from evalbudget.prices import Tariff
from evalbudget.run import Bill, bill_on_file
from evalbudget_inspect.host.attempt_notes import folder_of
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.earlier_attempts import folders_of, holds_paid

_bills: dict[Path, Bill] = {}
"""Those begun by this process."""


def open_bill(run: Run, cap: Budget, tariff: Tariff, *, risk: float) -> Bill:
    """Begin the bill of a run, or go on with that of its earlier attempts.

    Args:
        run: that is about to make its first call.
        cap: in money or tokens.
        tariff: what calls cost.
        risk: as in :class:`~evalbudget.run.Bill`.

    Raises:
        BudgetError: its folder is none of this machine, or an earlier attempt was made without a bill.
        JournalError: it is damaged, cannot be written, or lacks what an attempt in another folder paid.
    """
    if not run.log_location:
        return Bill(cap, tariff, risk=risk)
    key = run.spec.task_id
    path = bill_path(folder_of(run.log_location), key)
    log = run.goes_on_from
    if log is None or not log.location:
        return _begun(path, cap, tariff, risk)
    earlier = bill_path(folder_of(log.location), key)
    if not earlier.exists() and not path.exists() and holds_paid(log.location):
        raise BudgetError(
            f"this run goes on from {log.location}, and the bill of what it paid is not beside it "
            f"({earlier}). Put it back, or begin anew"
        )
    return _begun(path, cap, tariff, risk, [bill_path(folder, key) for folder in folders_of(run)])


def open_common_bill(run: Run, key: str, cap: Budget, tariff: Tariff, *, risk: float, goes_on: bool) -> Bill:
    """The same, of several runs at once, which have one bill beside their logs.

    Args:
        run: one of them.
        key: by which they find it again.
        cap: in money or tokens.
        tariff: what calls cost.
        risk: as in :class:`~evalbudget.run.Bill`.
        goes_on: earlier attempts have bought something.
    """
    if not run.log_location:
        return Bill(cap, tariff, risk=risk)
    folder = folder_of(run.log_location)
    path = bill_path(folder, key)
    if goes_on and not path.exists():
        raise BudgetError(
            f"this run goes on from logs in {folder}, and the bill of what they paid is not beside them "
            f"({path}). Put it back, or begin anew in another folder"
        )
    return _begun(path, cap, tariff, risk)


def _begun(path: Path, cap: Budget, tariff: Tariff, risk: float, others: Sequence[Path] = ()) -> Bill:
    before = _bills.pop(path, None)
    if before is not None:  # of a task that the host tries again within one run
        before.close()
    known = [other for other in others if other.exists()]
    _bills[path] = bill = bill_on_file(path, cap, tariff, risk=risk, earlier=known)
    return bill


def is_here(folder: str) -> bool:
    """Whether a folder of logs is one of this machine."""
    system, _ = fsspec.core.url_to_fs(folder)
    return "file" in (system.protocol if isinstance(system.protocol, tuple) else (system.protocol,))


def bill_path(folder: str, key: str) -> Path:
    """Of the bill in a folder of logs.

    Raises:
        BudgetError: the folder is on another machine.
    """
    if not is_here(folder):
        raise BudgetError(
            f"a budget in money or tokens keeps its bill beside the logs, written before every call, and "
            f"{folder} is no folder of this machine. Use a local --log-dir and copy it afterwards, or a "
            "budget in scores"
        )
    return Path(fsspec.core.url_to_fs(folder)[1]) / f".evalbudget-{key}.bill"
