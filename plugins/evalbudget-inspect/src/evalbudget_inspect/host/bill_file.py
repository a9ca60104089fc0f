"""The bill of a run, beside its logs: all attempts at a task are on one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalbudget.budget import Budget
from evalbudget.errors import BudgetError
from evalbudget.prices import Tariff
from evalbudget.run import Bill, bill_on_file
from evalbudget_inspect.host.book_file import BILL, book_path, folder_of, folders_of, is_here, say_where
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.earlier_attempts import holds_paid

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
        InvalidInputError: the folder that has it is gone.
        JournalError: it is damaged, or cannot be written.
    """
    if not run.log_location:
        return Bill(cap, tariff, risk=risk)
    folders, log = folders_of(run), run.goes_on_from
    path = path_of_bill(folders, run.spec.task_id)
    if log is not None and log.location and not path.exists() and holds_paid(log.location):
        raise BudgetError(
            f"this run goes on from {log.location}, and the bill of what it paid is not beside it "
            f"({path_of_bill(folders[-1:], run.spec.task_id)}). Put it back, or begin anew"
        )
    say_where(path, folders[0], run.spec.task_id)
    return _begun(path, cap, tariff, risk)


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
    path = path_of_bill([folder], key)
    if goes_on and not path.exists():
        raise BudgetError(
            f"this run goes on from logs in {folder}, and the bill of what they paid is not beside them "
            f"({path}). Put it back, or begin anew in another folder"
        )
    return _begun(path, cap, tariff, risk)


def _begun(path: Path, cap: Budget, tariff: Tariff, risk: float) -> Bill:
    before = _bills.pop(path, None)
    if before is not None:  # of a task that the host tries again within one run
        before.close()
    _bills[path] = bill = bill_on_file(path, cap, tariff, risk=risk)
    return bill


def path_of_bill(folders: Sequence[str], key: str) -> Path:
    """Of the bill of a task or a race, beside the book that it would have if it counted scores.

    Args:
        folders: of logs of its attempts, the latest first.
        key: the same for all attempts.

    Raises:
        BudgetError: a folder is on another machine.
        InvalidInputError: the folder that has it is gone.
    """
    for folder in folders:
        if not is_here(folder):
            raise BudgetError(
                f"a budget in money or tokens keeps its bill beside the logs, written before every call, and "
                f"{folder} is no folder of this machine. Use a local --log-dir and copy it afterwards, or a "
                "budget in scores"
            )
    return book_path(folders, key).with_suffix(BILL)
