"""Judges as a user types them beside a command: model strings in a row, YAML, or a file of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lm_eval.models  # noqa: F401  (the host's models register themselves)
from lm_eval.api.registry import model_registry

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges import split_entries
from evalbudget.judges.schedules import parse_prices
from evalbudget.secrets import quoted, without_secrets
from evalbudget.yaml_text import parsed_yaml, read_yaml
from evalbudget_lm_eval.judges.panel import JudgePanel

_START = re.compile(r"\s*(?:(?P<name>[\w./-]+)=)?(?P<kind>[\w-]+)(?::(?!//).*)?", re.DOTALL)
_KIND = re.compile(r"\s*(?:[\w./-]+=)?([\w-]+):[^=,]*=")
_NO_PRICE = "judge prices {entry!r}: write each judge once as JUDGE=PRICE, for example gpt-5=5,gpt-5-mini=1"


def typed_panel(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``CyclicJudgeFilter``, from what stands beside a command.

    Args:
        asked: ``judges``, and optionally ``rotation`` and ``judge_prices``. Judges are
            ``kind:args,kind:args`` with the host's kinds of models, ``name=kind:args`` to give one a name;
            YAML of a list as in the filter; or a file of that, which may as well hold all options of the
            filter, ``judges`` among them.

    Raises:
        InvalidInputError: it cannot be read, or cannot be used.
        UnknownNameError: an option, a rotation or a kind of model that does not exist.
    """
    options = _options(asked["judges"])
    if asked.get("rotation") is not None:
        options["rotation"] = asked["rotation"]
    prices = asked.get("judge_prices")
    if prices is not None:
        entries = prices.split(",") if isinstance(prices, str) else prices
        if not isinstance(entries, Mapping | Sequence):
            raise InvalidInputError(_NO_PRICE.format(entry=prices))
        if not isinstance(entries, Mapping):
            entries = parse_prices(map(str, entries), wrong=_NO_PRICE, twice=_NO_PRICE)
        options["prices"] = dict(entries)
    JudgePanel.of(options)
    return options


def _options(judges: Any) -> dict[str, Any]:
    if not isinstance(judges, str):
        return _of_parsed(judges, f"judges {quoted(judges)}")
    text = judges.strip()
    if text.endswith((".yaml", ".yml", ".json")):
        return _of_parsed(read_yaml(Path(text), "file of judges"), text)
    if text[:1] in ("[", "{"):
        where = without_secrets(text)
        return _of_parsed(parsed_yaml(text, f"judges {where!r}"), where)
    return {"judges": _in_a_row(text)}


def _of_parsed(found: Any, where: str) -> dict[str, Any]:
    if isinstance(found, Mapping) and "judges" in found:
        return dict(found)
    if isinstance(found, Mapping):
        return {"judges": [found] if "model" in found else [_named(*entry) for entry in found.items()]}
    if isinstance(found, Sequence) and not isinstance(found, str):
        return {"judges": list(found)}
    raise InvalidInputError(f"{where} holds no list of judges; write - MODEL:ARGS on a line for each")


def _in_a_row(text: str) -> list[Any]:
    """``a:x=1,y=2,b:x=1``: a part that begins with a kind of model begins another judge."""
    judges: list[Any] = []
    for part in split_entries(text):
        name, _, rest = (piece.strip() for piece in part.partition("="))
        if rest.startswith("{"):
            judges.append(_named(name, parsed_yaml(rest, f"judges {without_secrets(part.strip())!r}")))
            continue
        begins = _START.fullmatch(part)
        if begins and begins["kind"] in model_registry:
            model = part.strip().removeprefix(f"{begins['name']}=")
            judges.append(model if begins["name"] is None else {"name": begins["name"], "model": model})
        elif judges and "=" in part and not _KIND.match(part):
            last = judges[-1]
            if isinstance(last, str):
                judges[-1] = f"{last},{part}" if ":" in last else f"{last}:{part}"
            else:
                last["model"] += f",{part}"
        else:
            kind = _KIND.match(part)
            raise UnknownNameError(
                "model of a judge:", kind[1] if kind else without_secrets(part.strip()), model_registry.keys()
            )
    return judges


def _named(name: Any, judge: Any) -> dict[str, Any]:
    return {"name": str(name), **(judge if isinstance(judge, Mapping) else {"model": judge})}
