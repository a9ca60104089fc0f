"""Buying scores: a sampler with its budget and journal, and the way in for those without a host."""

from evalbudget.run._bill import Bill, BillRow, Hold, spent_on
from evalbudget.run._drive import Answer, drive
from evalbudget.run._forecast import Forecast, at_most
from evalbudget.run._journal_file import JournalFile, JournalReader, read_journal
from evalbudget.run._json_lines import LinesFile, read_line, whole_lines
from evalbudget.run._purchase import RUN_AGAIN, UNANSWERED, Flight, Purchase, Tally
from evalbudget.run._secrets import cleaned, is_secret, said_by, shown, without_secrets

__all__ = [
    "RUN_AGAIN",
    "UNANSWERED",
    "Answer",
    "Bill",
    "BillRow",
    "Flight",
    "Forecast",
    "Hold",
    "JournalFile",
    "JournalReader",
    "LinesFile",
    "Purchase",
    "Tally",
    "at_most",
    "cleaned",
    "drive",
    "is_secret",
    "read_journal",
    "read_line",
    "said_by",
    "shown",
    "spent_on",
    "whole_lines",
    "without_secrets",
]
