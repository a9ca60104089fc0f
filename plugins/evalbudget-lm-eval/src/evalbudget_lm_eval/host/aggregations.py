"""What an aggregation of a task's own does, by its code: a mean is one whatever it is called."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import warnings
from functools import lru_cache
from typing import Any

_CODE = 20_000  # characters of a function that are read


def named_by_code(text: str) -> str:
    """The name of a function of the task, or mean or nanmean if that is what its code does; else nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd in that code is of no use here
            return _of_code(textwrap.dedent(text[:_CODE]).strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of deep brackets
        return ""


@lru_cache
def mean_by_code(function: Any) -> str:
    """``mean`` or ``nanmean``, if the code of a function says no more; else nothing."""
    try:
        found = named_by_code(inspect.getsource(function))
    except (OSError, TypeError):  # it is written nowhere, or no function
        return ""
    return found if found in ("mean", "nanmean") else ""


def _of_code(text: str) -> str:
    made = next((node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)), None)
    if made is None:
        return ""
    steps = [step for step in made.body if not _is_text(step)]
    returned = steps[0].value if len(steps) == 1 and isinstance(steps[0], ast.Return) else None
    return _mean_of(returned, made.args.args[0].arg if made.args.args else "") or f"{made.name} of the task"


def _is_text(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)


def _mean_of(code: ast.expr | None, values: str) -> str:
    """``mean`` or ``nanmean``, if the code is that of its argument; else nothing."""
    told = "" if code is None else ast.unparse(code).replace(" ", "")
    told = told.removeprefix("float(").removesuffix(")") if told.startswith("float(") else told
    if told == f"sum({values})/len({values})":
        return "mean"
    match = re.fullmatch(rf"(?:\w+\.)?(f?mean|nanmean)\({re.escape(values)}\)(?:\.item\(\))?", told)
    return "" if match is None else match[1].removeprefix("f")
