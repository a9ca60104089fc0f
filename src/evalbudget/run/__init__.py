"""Running a sampler against something that answers: the only asynchronous part of the core."""

from evalbudget.run.drive import Answer, drive
from evalbudget.run.journal_file import JournalFile, read_journal

__all__ = ["Answer", "JournalFile", "drive", "read_journal"]
