"""What the calls of an audit may cost together, and the bill beside its store or in its database."""

from __future__ import annotations

import math
import shlex
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evalbudget.audits.store._schema import LAYOUT
from evalbudget.audits.store._settings import DEFAULT_SAMPLER, AuditSettings
from evalbudget.audits.store._store import AuditStore
from evalbudget.audits.store._store_verdict import Stage, Standing
from evalbudget.budget import Budget, Unit
from evalbudget.errors import AuditStoreError, BudgetError, InvalidInputError
from evalbudget.exit_codes import ExitCode
from evalbudget.prices import Tariff
from evalbudget.run import Bill, bill_in, bill_on_file, spent_in, spent_on, unit_in
from evalbudget.run._config import RunConfig
from evalbudget.store import Address, Database


def database_of(store: Address) -> Database:
    """Of an audit's store in PostgreSQL, for what a host keeps in tables of its own.

    Raises:
        AuditStoreError: there is no such store.
        StoreDownError: its database cannot be reached.
    """
    return Database.open(store, LAYOUT)


_OURS = ("budget", "prices", "risk")


@dataclass(frozen=True)
class AuditBudget(RunConfig):
    """A cap on what the calls of models, judges and scorers that label cost.

    It is no part of the audit's design: a store may be gone on with by a larger one.

    Raises:
        BudgetError: it cannot be read, or there are prices or a risk without one.
        InvalidInputError: the risk is no chance, or the price file cannot be read.
    """

    sampler: str = DEFAULT_SAMPLER

    def __post_init__(self) -> None:
        self._check_money()

    @classmethod
    def taken_from(cls, given: dict[str, Any], most_labels: str = "--max-labels N") -> AuditBudget | None:
        """What was typed of money, taken out of what was typed; None where nothing was.

        Args:
            given: is changed.
            most_labels: how a number of labels is limited here.

        Raises:
            BudgetError: as the class, or it counts scores.
            InvalidInputError: as the class.
        """
        typed = {name: given.pop(name, None) for name in _OURS}
        if not any(typed.values()):
            return None
        budget = typed["budget"]
        if budget and Budget.parse(budget, n_items=1_000_000, n_cells=1_000_000).unit is Unit.SCORES:
            raise BudgetError(
                f"--budget has no meaning in an audit; the labels it may ask for: {most_labels}; drop it, or "
                "write what calls may cost: '$5' or 2Mtok"
            )
        if typed["prices"]:
            typed["prices"] = str(Path(typed["prices"]).resolve())
        return cls.of(**typed)

    @property
    def cap(self) -> Budget:
        """In dollars or tokens."""
        return Budget.parse(self.budget or "")


def check_money(settings: AuditSettings, budget: AuditBudget | None, *, bought: bool = False) -> None:
    """Refuse what does not go together, before anything is asked.

    Args:
        settings: of the audit.
        budget: None where calls cost what they cost.
        bought: something was, whether there is a store or not.

    Raises:
        InvalidInputError: a label has a price in money, and the budget is none.
        AuditStoreError: the store was begun with a budget, and this run has none, or the other way round.
    """
    if settings.in_dollars and (budget is None or budget.unit is not Unit.USD):
        raise InvalidInputError(
            "--label-price in money is weighed against what the judge's calls cost, and only a --budget in "
            "dollars has these on a bill; add --budget '$5', or give it in scores of the judge (20)"
        )
    store = settings.store
    where = place_of_bill(store)
    begun = _is_begun(store)
    bought = bought or AuditStore.exists(store)
    if budget is None and begun:
        raise AuditStoreError(
            f"{store} was begun with a budget in money or tokens ({where}): give --budget again, the "
            "same or a larger one, or begin another audit"
        )
    if budget is not None and bought and not begun:
        raise AuditStoreError(
            f"{store} was begun without a budget in money or tokens, or its bill was moved "
            f"({where}): what it cost is not known. Go on without --budget, or begin another audit"
        )


def bill_beside(store: Path) -> Path:
    """Of the bill of an audit that is kept in a file."""
    return store.with_name(f"{store.stem}.bill.db")


def place_of_bill(store: Address) -> str:
    """Where the bill of an audit is: beside its file, or in its database."""
    return f"bill of {store}" if store.path is None else str(bill_beside(store.path))


def open_bill(store: Address, budget: AuditBudget, tariff: Tariff) -> Bill:
    """Begin the bill of an audit, or go on with it; what was under way at a kill counts at the most.

    Raises:
        JournalError: it is damaged, or another process writes it.
        BudgetError: it is in another unit.
        StoreDownError: the database of the audit cannot be reached.
    """
    if store.path is not None:
        return bill_on_file(bill_beside(store.path), budget.cap, tariff, risk=budget.risk)
    waits = not Database.exists(store, LAYOUT)
    return bill_in(partial(database_of, store), budget.cap, tariff, risk=budget.risk, waits=waits)


def begin_bill(store: Address, budget: AuditBudget | None) -> None:
    """Of an audit that was just begun in PostgreSQL, so that later runs know of its budget.

    Raises:
        StoreDownError: its database cannot be reached.
    """
    if budget is not None and store.path is None:
        open_bill(store, budget, budget.tariff()).close()


def close_bill(bill: Bill, store: Address) -> None:
    """Let it go; nothing is left of an audit that was never begun."""
    bill.close()
    if store.path is not None and bill.is_blank and not store.path.exists():
        bill_beside(store.path).unlink(missing_ok=True)


def spent_before(store: Address) -> tuple[Unit, float] | None:
    """What the calls of an audit cost so far; None where it has no bill yet.

    Raises:
        JournalError: the bill is damaged.
    """
    if not _is_begun(store):
        return None
    if store.path is not None:
        unit, costs = spent_on(bill_beside(store.path))
        return unit, math.fsum(costs.values())
    with closing(database_of(store)) as db:
        found = spent_in(db)
    return None if found is None else (found[0], math.fsum(found[1].values()))


def _is_begun(store: Address) -> bool:
    if store.path is not None:
        return bill_beside(store.path).exists()
    if not Database.exists(store, LAYOUT):
        return False
    with closing(database_of(store)) as db:
        return unit_in(db) is not None


def used_up(standing: Standing, store: Address, cap: Budget, lacking: int) -> tuple[str, ExitCode]:
    """What a run says whose budget ended before its batch did, and its exit code.

    Args:
        standing: of the audit.
        store: of it.
        cap: that is used up.
        lacking: answers of the batch that are not there.
    """
    missing = (
        f"{lacking:,} answer{'s' * (lacking != 1)} of this batch {'are' if lacking != 1 else 'is'} missing"
    )
    lines = [
        standing.as_sentence(standing.headline),
        f"The budget of {cap} is used up, and {missing}. The same command goes on with a larger --budget",
    ]
    if standing.stage is not Stage.LABELS:
        return "\n".join(lines), Stage.OVER.exit_code
    serve = f"  evalbudget audit serve {shlex.quote(str(store))}"
    return "\n".join([*lines, f"Meanwhile: {standing.next_step}", serve]), Stage.LABELS.exit_code
