"""The page on which humans label: loopback only, no network, no build step."""

from evalbudget.audit_page.api import PageApi
from evalbudget.audit_page.server import PageServer

__all__ = ["PageApi", "PageServer"]
