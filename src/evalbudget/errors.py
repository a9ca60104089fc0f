"""Every error evalbudget raises on purpose; each says what is wrong, where, and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import FrameType
from typing import Any, Self

from evalbudget.shown import shown_lines

_MOST = 4000  # characters of a message, whatever it quotes


class EvalbudgetError(Exception):
    """Base of all errors raised on purpose; commands print it without a traceback and exit with 2.

    Whatever the message quotes is shown, not obeyed (:mod:`evalbudget.shown`).
    """

    def __str__(self) -> str:
        return shown_lines(super().__str__(), _MOST)


class InvalidInputError(EvalbudgetError, ValueError):
    """An argument, file or score that cannot be used, with the remedy in the message."""


class BudgetError(InvalidInputError):
    """A budget that cannot be parsed or that is too small for what was asked."""


class UnknownNameError(EvalbudgetError, LookupError):
    """A name that is not registered; the message suggests the nearest ones.

    Args:
        kind: what was looked up, for example ``sampler``.
        name: the name that was not found.
        known: the names that exist.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(f"unknown {kind} {name!r}.{did_you_mean(name, self.known)}")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        # rebuilt from these when it crosses processes; args would give it the message alone
        return type(self), (self.kind, self.name, self.known)


class Choice(StrEnum):
    """An option with few values."""

    @classmethod
    def named(cls, name: str) -> Self:
        """The value of that name.

        Raises:
            UnknownNameError: there is none; the message suggests the nearest.
        """
        try:
            return cls(name)
        except ValueError:
            raise UnknownNameError(cls.__name__.lower(), name, [each.value for each in cls]) from None


class JournalError(EvalbudgetError):
    """A journal that cannot be read, or that another version, seed or design wrote."""


class HeldError(JournalError):
    """A journal that another process writes."""


class ReplayError(JournalError):
    """Feeding a journal again gave another answer than the one recorded."""


class StoreError(EvalbudgetError):
    """A store that cannot be read, written or reached, or that holds something else."""


class StoreDownError(StoreError):
    """The database of a store cannot be reached; whether what was being written is in it is not known.

    Attributes:
        readings: what came back from models and is not in the store.
    """

    readings: tuple[Any, ...] = ()


class AuditStoreError(StoreError):
    """A store of audits that cannot be read or written, or that belongs to another audit."""


class SamplerError(EvalbudgetError, RuntimeError):
    """A sampler broke its contract, for example stopped asking without a reason."""


class InvalidInferenceError(EvalbudgetError, ValueError):
    """An estimator was given readings that do not support the claim it would make."""


class PluginError(EvalbudgetError):
    """A plugin that clashes with another one or registers something unusable."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean ...?`` or the list of what exists, ready to append to a message."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    if close:
        best = _likeness(name, close[0])
        close = [each for each in close if _likeness(name, each) > best - _AS_NEAR]
        return " Did you mean " + " or ".join(repr(c) for c in close) + "?"
    if not names:
        return " None are registered."
    return " Available: " + ", ".join(names) + "."


_AS_NEAR = 0.3  # names this much less like what was written are not meant


def _likeness(name: str, other: str) -> float:
    return difflib.SequenceMatcher(None, name.lower(), other).ratio()


def reason(error: OSError) -> str:
    """Why a file or folder cannot be used, with the remedy where that is a matter of permissions."""
    why = error.strerror or str(error)
    if isinstance(error, PermissionError):
        why += ". Have its owner, or that of its folder, let you read and write it, or work on a copy"
    return why


def innermost(error: BaseException) -> FrameType | None:
    """Where an error was raised; None if it never was."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Field by field, what a file was written with and what it is not the same as; empty if nothing is."""
    differing = sorted(k for k in there.keys() | here.keys() if there.get(k) != here.get(k))
    return ", ".join(f"{k} = {there.get(k)!r} there, {here.get(k)!r} here" for k in differing)
