"""Records that several processes share: an SQLite file, or a schema of a PostgreSQL database."""

from evalbudget.store._address import Address
from evalbudget.store._database import Database
from evalbudget.store._layout import Layout
from evalbudget.store._replica import Replica
from evalbudget.store._step_log import Step, StepLog
from evalbudget.store._terms import Terms

__all__ = ["Address", "Database", "Layout", "Replica", "Step", "StepLog", "Terms"]
