"""Buying scores: a sampler with its budget and journal, and the way in for those without a host."""

from evalbudget.run.drive import Answer, drive
from evalbudget.run.journal_file import JournalFile, JournalReader, read_journal
from evalbudget.run.lines import LinesFile, read_line, whole_lines
from evalbudget.run.purchase import Flight, Purchase, Tally

__all__ = [
    "Answer",
    "Flight",
    "JournalFile",
    "JournalReader",
    "LinesFile",
    "Purchase",
    "Tally",
    "drive",
    "read_journal",
    "read_line",
    "whole_lines",
]
