"""``--judge-prices judge=price,...``: what one call of each judge costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalbudget.statistics._bounds import FloatArray


def parse_prices(text: str, judges: tuple[str, ...]) -> FloatArray:
    """``judge=price,...`` in the order of the panel; ones if empty.

    Raises:
        UnknownNameError: a judge that is not in the panel.
        InvalidInputError: something that is not a price, a judge twice or without a price.
    """
    from evalbudget.judges.schedules import _panel as panel

    given = panel.parse_prices(
        filter(None, (part.strip() for part in text.split(","))),
        wrong="--judge-prices has {entry!r}; write JUDGE=PRICE, separated by commas, for example gpt=0.004",
        twice="--judge-prices has judge {judge!r} twice; give each once",
    )
    return panel.per_judge("--judge-prices", given or None, judges)
