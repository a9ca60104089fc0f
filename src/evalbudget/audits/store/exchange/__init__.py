"""Labelling elsewhere: draws to label as files, and on a Label Studio server."""

from evalbudget.audits.store.exchange._exporting import FORMATS, export
from evalbudget.audits.store.exchange._label_studio_server import LabelStudio, Synced, sync

__all__ = ["FORMATS", "LabelStudio", "Synced", "export", "sync"]
