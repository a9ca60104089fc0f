"""How answers are scored, in short: whether a task was edited since they were given."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lm_eval

from evalbudget.hooks import plugins
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks

_SETTINGS = ("metric_list", "filter_list", "process_results", "doc_to_target", "doc_to_choice", "unsafe_code")


def scoring_of(primed: PrimedTasks, scorer: str | None = None) -> str:
    """Short hash of what makes scores of answers: documents, targets, filters, metrics, the task's own code.

    Code counts by the whole file it stands in; what that imports from elsewhere does not.

    Args:
        primed: the tasks.
        scorer: name of the plugin's scorer that scores in place of the tasks' own metrics.
    """
    found: dict[str, Any] = {"lm_eval": lm_eval.__version__}
    if scorer is not None:
        found["scorer"] = _told(plugins().scorer(scorer))
    for name in primed.names:
        task = primed.task(name)
        settings = {setting: _told(getattr(task.config, setting, None)) for setting in _SETTINGS}
        documents = [primed.question(name, doc) for doc in primed.documents(name)]
        found[f"task {name}"] = [_told(type(task)), settings, documents]
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def _told(value: object) -> Any:
    """The same for the same setting, in every process."""
    if isinstance(value, Mapping):
        return {str(key): _told(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    if isinstance(value, partial):
        return [_told(value.func), _told(value.args), _told(value.keywords)]
    if not callable(value):
        return value if isinstance(value, str | int | float | bool | None) else repr(value)
    name = getattr(value, "__qualname__", type(value).__name__)
    try:
        source = inspect.getsourcefile(inspect.unwrap(value))
        code = b"" if source is None else Path(source).read_bytes()
    except (OSError, TypeError):  # of a notebook, or none of Python's own
        code = b""
    return [name, hashlib.sha256(code).hexdigest()]
