"""``--judge-prices judge=price,...``: what one call of each judge costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalbudget.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from evalbudget.statistics.bounds import FloatArray


def parse_prices(text: str, judges: tuple[str, ...]) -> FloatArray:
    """``judge=price,...`` in the order of the panel; ones if empty.

    Raises:
        UnknownNameError: a judge that is not in the panel.
        InvalidInputError: something that is not a price, a judge twice or without a price.
    """
    from evalbudget.judges.schedules.panel import per_judge

    given: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = part.rpartition("=")
        try:
            if not equals:
                raise ValueError
            price = float(number)
        except ValueError:
            raise InvalidInputError(
                f"--judge-prices has {part!r}; write JUDGE=PRICE, separated by commas, for example gpt=0.004"
            ) from None
        if name not in judges:
            raise UnknownNameError("judge in --judge-prices", name, judges)
        if name in given:
            raise InvalidInputError(f"--judge-prices has judge {name!r} twice; give each once")
        given[name] = price
    return per_judge("--judge-prices", given or None, judges)
