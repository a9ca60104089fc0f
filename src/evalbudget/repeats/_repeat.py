"""What a repeat repeats."""

from __future__ import annotations

from enum import StrEnum

from evalbudget.errors import UnknownNameError


class Repeat(StrEnum):
    """What a repeat repeats."""

    GENERATION = "generation"
    """Everything: a fresh answer, scored."""
    JUDGE = "judge"
    """The scoring only: the item's first answer is kept and scored again."""

    @classmethod
    def named(cls, name: str) -> Repeat:
        """The repeat of that name; UnknownNameError if there is none."""
        try:
            return cls(name)
        except ValueError:
            raise UnknownNameError("repeat", name, [r.value for r in cls]) from None
