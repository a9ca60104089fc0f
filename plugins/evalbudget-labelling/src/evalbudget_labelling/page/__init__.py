"""The page on which humans label: loopback only, no network, no build step."""

from evalbudget_labelling.page._api import PageApi
from evalbudget_labelling.page._server import PageServer

__all__ = ["PageApi", "PageServer"]
