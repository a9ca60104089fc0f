"""Writes docs/api.md: every public name, with the first sentence of what it says of itself."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

FACES = (
    "evalbudget",
    "evalbudget.repeats",
    "evalbudget.repeats.samplers",
    "evalbudget.repeats.estimates",
    "evalbudget.repeats.backtest",
    "evalbudget.judges",
    "evalbudget.judges.schedules",
    "evalbudget.judges.estimates",
    "evalbudget.races",
    "evalbudget.races.samplers",
    "evalbudget.races.estimates",
    "evalbudget.races.prediction",
    "evalbudget.comparisons",
    "evalbudget.doctor",
    "evalbudget.plans",
    "evalbudget.frames",
    "evalbudget.audits.policies",
    "evalbudget.audits.store",
    "evalbudget.prices",
    "evalbudget.book",
    "evalbudget.hosts",
    "evalbudget.run",
    "evalbudget.store",
    "evalbudget.backtest",
    "evalbudget.statistics",
    "evalbudget.report",
    "evalbudget.hooks",
    "evalbudget.cli",
    "evalbudget.testing",
    "evalbudget_pairwise",
    "evalbudget_pairwise.inspect",
    "evalbudget_pairwise.lm_eval",
    "evalbudget_pairwise.samplers",
    "evalbudget_labelling",
)
"""Packages whose names people may build on."""

MODULES = (
    *("budget", "cells", "closing", "design", "errors", "estimate", "exit_codes", "flags"),
    *("missing", "outage", "spreadsheets", "untrusted", "yaml_text"),
    *("sampler", "scale", "scorer", "secrets", "shown", "tables", "until"),
    *("comparisons.flags", "audits.flags", "judges.flags", "races.flags"),
    *("repeats.flags", "cli.flags"),
)
"""Single files that are public too; all others begin with an underscore."""

PAGE = Path(__file__).with_name("api.md")


def page() -> str:
    """The whole page."""
    parts = [
        "# Public names",
        "What is listed here may be built on. Modules that begin with an underscore may change at any time. "
        "Written by `python docs/write_api.py` from the packages themselves.",
    ]
    for face in FACES:
        module = import_module(face)
        parts.append(f"## `{face}`")
        parts.append(_first_sentence(module.__doc__))
        rows = [f"| `{name}` | {_told(getattr(module, name))} |" for name in sorted(module.__all__)]
        parts.append("\n".join(["| name | |", "|---|---|", *rows]))
    parts.append("## Single modules")
    rows = [
        f"| `evalbudget.{name}` | {_first_sentence(import_module(f'evalbudget.{name}').__doc__)} |"
        for name in MODULES
    ]
    parts.append("\n".join(["| module | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _told(value: object) -> str:
    if inspect.isclass(value) or inspect.isroutine(value):
        return _first_sentence(value.__doc__)
    return f"`{value!r}`" if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _first_sentence(text: str | None) -> str:
    words = " ".join((text or "").split("\n\n")[0].split())
    return re.sub(r":\w+:(?=`)", "", words).replace("|", "\\|").replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
