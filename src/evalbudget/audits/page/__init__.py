"""The page on which humans label: loopback only, no network, no build step."""

from evalbudget.audits.page._api import PageApi
from evalbudget.audits.page._server import PageServer

__all__ = ["PageApi", "PageServer"]
