"""Running a sampler against something that answers: the only asynchronous part of the core."""

from evalbudget.run.drive import Answer, drive
from evalbudget.run.journal_file import JournalFile, read_journal
from evalbudget.run.lines import LinesFile, read_line, whole_lines

__all__ = ["Answer", "JournalFile", "LinesFile", "drive", "read_journal", "read_line", "whole_lines"]
