"""The page on which humans label: loopback only, no network, no build step."""

from evalbudget.audits.page.api import PageApi
from evalbudget.audits.page.server import PageServer

__all__ = ["PageApi", "PageServer"]
