"""Labelling elsewhere: draws to label as files, and labels read back."""

from evalbudget.audit_store.exchange.exporting import FORMATS, export
from evalbudget.audit_store.exchange.importing import Imported, import_labels
from evalbudget.audit_store.exchange.reading import format_of

__all__ = ["FORMATS", "Imported", "export", "format_of", "import_labels"]
