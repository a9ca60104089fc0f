"""Buying scores: a sampler with its budget and journal, and the way in for those without a host."""

from evalbudget.run.drive import Answer, drive
from evalbudget.run.journal_file import JournalFile, JournalReader, read_journal
from evalbudget.run.lines import LinesFile, read_line, whole_lines
from evalbudget.run.outage import DOWN_AFTER, is_down
from evalbudget.run.purchase import Flight, Purchase, Tally

__all__ = [
    "DOWN_AFTER",
    "Answer",
    "Flight",
    "JournalFile",
    "JournalReader",
    "LinesFile",
    "Purchase",
    "Tally",
    "drive",
    "is_down",
    "read_journal",
    "read_line",
    "whole_lines",
]
