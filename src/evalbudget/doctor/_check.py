"""One thing that is looked for, and what was found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from evalbudget.doctor._case import Case


class Kind(StrEnum):
    """What a finding is about; the worst first."""

    PROBLEM = "problem"
    """A conclusion that people would draw does not stand."""
    BEWARE = "beware"
    """It stands, if something holds that these scores do not show."""
    SAVING = "saving"
    """The same for less money."""
    FINE = "fine"
    """It was looked for, and is not so."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        check: name of it, filled in by the diagnosis.
        kind: what it is about.
        title: a few words.
        text: sentences, with the numbers that show it.
        remedy: what to do; empty where there is nothing to do.
        numbers: those in the text, by name.
        score: the metric it is about, where there are several.
    """

    check: str = field(default="", kw_only=True)
    kind: Kind
    title: str
    text: str
    remedy: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    score: str = ""


def saving(
    worth: bool, title: str, otherwise: str, text: str, remedy: str, numbers: Mapping[str, float]
) -> Finding:
    """What would be saved, with its remedy; or, where it is not worth it, that nothing would be."""
    if worth:
        return Finding(Kind.SAVING, title, text, remedy, numbers)
    return Finding(Kind.FINE, otherwise, text, "", numbers)


class Check(ABC):
    """Looks for one thing in scores.

    A plugin brings its own with the hook ``evalbudget_register_checks``.
    """

    name: ClassVar[str]

    @abstractmethod
    def examine(self, case: Case) -> Iterable[Finding]:
        """What is found; nothing where the scores are not such that it could be.

        Raises:
            EvalbudgetError: the scores do not show it; the diagnosis then says why, in place of a finding.
        """
