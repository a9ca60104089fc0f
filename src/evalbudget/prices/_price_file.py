"""The user's price file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.prices._price import Price

_EXAMPLE = "for example  openai/gpt-4o-mini: {input: 0.15, output: 0.60}  in dollars per million tokens"


def read_prices(path: str | Path) -> dict[str, Price]:
    """Prices by model, from a YAML (or JSON) file.

    ::

        openai/gpt-4o-mini:
          input: 0.15        # dollars per million tokens
          output: 0.60
          cached: 0.075
        google/*:            # any model of that name
          input: 1.25
          output: 10
          tiers:
            - {above: 200000, input: 2.50, output: 15}

    Args:
        path: of the file; its keys are model names, with ``*`` for any text.

    Raises:
        InvalidInputError: it cannot be read, or holds something else; names file and model.
        UnknownNameError: a model has a price of an unknown kind; the message suggests the nearest.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as ex:
        raise InvalidInputError(f"price file {path} cannot be read: {ex.strerror}") from ex
    except (UnicodeDecodeError, RecursionError, yaml.YAMLError) as ex:
        told = " ".join(str(ex).split())
        raise InvalidInputError(f"price file {path} is no YAML: {told}") from ex
    if not isinstance(content, dict) or not content:
        raise InvalidInputError(f"price file {path} holds no prices; write a line for each model, {_EXAMPLE}")
    return {str(model): _price(given, f"price file {path}, {model}") for model, given in content.items()}


def _price(given: Any, where: str) -> Price:
    if not isinstance(given, dict) or not given:
        raise InvalidInputError(f"{where}: {given!r} is no price; write {_EXAMPLE}")
    known = [each.name for each in fields(Price)]
    for name in given:
        if name in ("currency", "unit"):
            raise InvalidInputError(f"{where}: prices are in US dollars; convert them, and drop {name!r}")
        if name not in known:
            raise UnknownNameError(f"price in {where}:", str(name), known)
    tiers = given.get("tiers") or ()
    if not isinstance(tiers, list | tuple):
        raise InvalidInputError(f"{where}: tiers is {tiers!r}; write a list of prices, each with 'above'")
    try:
        return Price(**{**given, "tiers": tuple(_price(tier, f"{where}, tier") for tier in tiers)})
    except InvalidInputError as ex:
        if str(ex).startswith("price file"):
            raise
        raise InvalidInputError(f"{where}: {ex}") from None
