"""Records that several processes share: an SQLite file, or a schema of a PostgreSQL database."""

from evalbudget.store._address import Address
from evalbudget.store._database import Database
from evalbudget.store._layout import Layout
from evalbudget.store._look import looked_into
from evalbudget.store._terms import Terms

__all__ = ["Address", "Database", "Layout", "Terms", "looked_into"]
