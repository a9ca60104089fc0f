"""How much may be spent."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from evalbudget.errors import BudgetError


class Unit(StrEnum):
    """What a budget counts."""

    SCORES = "scores"
    USD = "usd"
    TOKENS = "tokens"

    @property
    def said(self) -> str:
        """As people say it."""
        return "dollars" if self is Unit.USD else self.value


USED_UP = "budget used up"
"""Why nothing more is asked, where nothing else ended it."""

_REMEDY = "write a number of scores (2000), scores per item (20x), money ('$20') or tokens (5Mtok)"
_FOREIGN = re.compile(r"[€£¥₹]|\b(?:EUR|GBP|JPY|CHF|CAD|AUD|CNY|INR)\b", re.IGNORECASE)
_SHARE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?%")
# a comma separates thousands; 1,5 is refused rather than read as 15
_NUMBER = r"(?P<number>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?:\.[0-9]*)?|\.[0-9]+)"
_LARGEST = 1e15  # more than any budget, and still a whole number
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
_FORMS = (
    (re.compile(rf"{_NUMBER}(?P<scale>[kKmM]?)"), Unit.SCORES, False),
    (re.compile(rf"{_NUMBER}(?P<scale>)[xX×]"), Unit.SCORES, True),
    (re.compile(rf"(?:\$|USD ?){_NUMBER}(?P<scale>[kKmM]?)"), Unit.USD, False),
    (re.compile(rf"{_NUMBER}(?P<scale>) ?USD"), Unit.USD, False),
    (re.compile(rf"{_NUMBER} ?(?P<scale>[kKmMgGbB]?) ?[tT][oO][kK](?:[eE][nN][sS]?)?"), Unit.TOKENS, False),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount that is never exceeded, requests in flight included.

    Attributes:
        amount: in units of ``unit``, more than zero.
        unit: scores (judge calls), usd or tokens.

    Raises:
        BudgetError: the amount is not a finite number above zero, or not whole for scores.
    """

    amount: float
    unit: Unit = Unit.SCORES

    def __post_init__(self) -> None:
        if not math.isfinite(self.amount) or self.amount <= 0:
            raise BudgetError(f"budget {self.amount:g} must be above zero; {_REMEDY}")
        if self.unit is Unit.SCORES and self.amount != int(self.amount):
            raise BudgetError(f"budget {self.amount:g} must be a whole number of scores; {_REMEDY}")

    @classmethod
    def parse(
        cls, text: str | int | float | Budget, *, n_items: int | None = None, n_cells: int | None = None
    ) -> Budget:
        """Read ``2000``, ``2k``, ``20x`` (per item), ``5%`` (of all cells), ``$20`` or ``5Mtok``.

        Args:
            text: what the user wrote.
            n_items: how many items ``x`` multiplies.
            n_cells: how many cells (models x items) ``%`` is a share of.

        Raises:
            BudgetError: the text is none of these forms, not above zero, or ``x`` has no items to multiply.
        """
        if isinstance(text, Budget):
            return text
        if isinstance(text, bool):
            raise BudgetError(f"budget {text!r} is not an amount; {_REMEDY}")
        if isinstance(text, int | float):
            return cls(float(text) if abs(text) < _LARGEST else math.inf)
        stripped = text.strip()
        for form, unit, per_item in _FORMS:
            match = form.fullmatch(stripped)
            if match is None:
                continue
            number = match["number"].replace("_", "").replace(",", "")
            amount = float(number) * _SCALE[match["scale"].lower()]
            if per_item and amount < _LARGEST:
                if n_items is None:
                    raise BudgetError(
                        f"budget {text!r} is per item, but the number of items is not known here; "
                        "write a number of scores"
                    )
                amount = math.floor(amount * n_items + 1e-9)
            return cls(amount, unit)
        share = _SHARE.fullmatch(stripped)
        if share is not None:
            if n_cells is None:
                raise BudgetError(
                    f"budget {text!r} is a share of all models x items, but nothing is raced here; {_REMEDY}"
                )
            if float(share["number"]) > 100.0:
                raise BudgetError(f"budget {text!r} is more than there is; {_REMEDY}")
            return cls(math.floor(float(share["number"]) * n_cells / 100.0 + 1e-9))
        if _FOREIGN.search(stripped):
            raise BudgetError(f"budget {text!r} is not in US dollars, as prices are; {_REMEDY}")
        if re.fullmatch(r"\$?-.*", stripped):
            raise BudgetError(f"budget {text!r} must be above zero; {_REMEDY}")
        raise BudgetError(f"budget {text!r} is not an amount; {_REMEDY}")

    def __str__(self) -> str:
        return shown_amount(self.amount, self.unit)


def shown_amount(amount: float, unit: Unit, *, counts: str = "scores") -> str:
    """An amount as people read it: ``$4.93``, ``$0.0042``, ``12,000 tokens``, ``500 scores``.

    Args:
        amount: in units of ``unit``.
        unit: of it.
        counts: what a score is called, in the plural.
    """
    if unit is Unit.USD:
        places = 2 if amount == 0 or abs(amount) >= 1 else min(8, 1 - math.floor(math.log10(abs(amount))))
        return f"${amount:,.{max(2, places)}f}"
    return f"{amount:,.0f} {'tokens' if unit is Unit.TOKENS else counts}"


def cut_off(wasted: float, paid: float | None, unit: str) -> str:
    """A clause on what was paid for calls that brought nothing; empty where nothing was."""
    if not wasted or paid is None:
        return ""
    shown = [shown_amount(amount, Unit(unit)) for amount in (wasted, paid)]
    return f"{shown[0]} of the {shown[1]} paid was for evaluations that were cut off, which have no score"
