"""Labelling elsewhere: draws to label as files, and labels read back."""

from evalbudget.audits.store.exchange.exporting import FORMATS, export
from evalbudget.audits.store.exchange.importing import Imported, import_labels
from evalbudget.audits.store.exchange.reading import format_of

__all__ = ["FORMATS", "Imported", "export", "format_of", "import_labels"]
