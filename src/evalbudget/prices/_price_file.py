"""The user's price file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.prices._price import Price
from evalbudget.yaml_text import read_yaml

_SMALL = re.compile(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+")
_OF_TOKENS = ("input", "output")
_NOT_IN_TIERS = ("call", "second", "max_output", "tiers")
_EXAMPLE = "for example  openai/gpt-4o-mini: {input: 0.15, output: 0.60}  in dollars per million tokens"


def read_prices(path: str | Path, *, in_tokens: bool = False) -> dict[str, Price]:
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

    What a tier says nothing of, input or output, costs there what it does below it.

    Args:
        path: of the file; its keys are model names, with ``*`` for any text.
        in_tokens: the budget is: a line may say ``max_output`` only, since nobody asks what tokens cost.

    Raises:
        InvalidInputError: it cannot be read, holds something else, or does not say what input and output
            cost; names file and model.
        UnknownNameError: a model has a price of an unknown kind; the message suggests the nearest.
    """
    content = read_yaml(Path(path), "price file")
    if not isinstance(content, dict) or not content:
        raise InvalidInputError(f"price file {path} holds no prices; write a line for each model, {_EXAMPLE}")
    found = {}
    for model, given in content.items():
        where = f"price file {path}, {model}"
        found[str(model)] = _price(given, where)
        _check_whole(given, where, in_tokens=in_tokens)
    return found


def _check_whole(given: Mapping[str, Any], where: str, *, in_tokens: bool) -> None:
    """What is not said would cost nothing, and the cap would not hold."""
    if "above" in given:
        raise InvalidInputError(f"{where}: 'above' is for tiers; drop it, or write it in a list 'tiers'")
    if in_tokens:
        return
    missing = [name for name in _OF_TOKENS if name not in given]
    if len(missing) == 1 or (missing and not any(name in given for name in ("call", "second"))):
        raise InvalidInputError(
            f"{where}: it does not say what {' and '.join(missing)} cost; add "
            f"{' and '.join(missing)}, 0 for what is free"
        )


def _number(value: Any) -> Any:
    """YAML takes 1e-05, which Python and people write, for text."""
    if isinstance(value, str) and _SMALL.fullmatch(value):
        return float(value)
    return value


def _price(given: Any, where: str, below: Mapping[str, Any] | None = None) -> Price:
    if not isinstance(given, dict) or not given:
        raise InvalidInputError(f"{where}: {given!r} is no price; write {_EXAMPLE}")
    given = {name: _number(value) for name, value in given.items()}
    known = [each.name for each in fields(Price)]
    for name in given:
        if name in ("currency", "unit"):
            raise InvalidInputError(f"{where}: prices are in US dollars; convert them, and drop {name!r}")
        if name not in known:
            raise UnknownNameError(f"price in {where}:", str(name), known)
        if below is not None and name in _NOT_IN_TIERS:
            raise InvalidInputError(f"{where}: {name!r} holds for calls of any length; move it out of tiers")
    tiers = given.get("tiers") or ()
    if not isinstance(tiers, list | tuple):
        raise InvalidInputError(f"{where}: tiers is {tiers!r}; write a list of prices, each with 'above'")
    own = {name: given[name] for name in _OF_TOKENS if name in given}
    try:
        whole = {**(below or {}), **given}
        return Price(**{**whole, "tiers": tuple(_price(tier, f"{where}, tier", own) for tier in tiers)})
    except InvalidInputError as ex:
        if str(ex).startswith("price file"):
            raise
        raise InvalidInputError(f"{where}: {ex}") from None
