"""Labelling elsewhere: draws to label as files, and labels read back."""

from evalbudget.audits.store.exchange._exporting import FORMATS, export
from evalbudget.audits.store.exchange._importing import Imported, format_of, import_labels
from evalbudget.audits.store.exchange._label_studio_server import LabelStudio, Synced, sync

__all__ = ["FORMATS", "Imported", "LabelStudio", "Synced", "export", "format_of", "import_labels", "sync"]
