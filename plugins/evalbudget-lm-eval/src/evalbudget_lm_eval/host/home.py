"""Where a task's own code runs: in the thread that began, whichever thread waits for the model.

Tasks of the host time answers out by SIGALRM, which only the main thread may set; elsewhere some of them take
the refusal for a wrong answer (minerva_math). Others keep something between two calls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any

at_home: ContextVar[Callable[[Callable[[], Any]], Any] | None] = ContextVar("at_home", default=None)
"""In a thread that waits for a model: has something done in the thread that began; None in that one."""


def call_at_home(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a function returns that is called in the thread that began, and sees what this one sees."""
    do = at_home.get()
    if do is None:
        return function(*given, **named)
    here = copy_context()
    here.run(at_home.set, None)
    return do(partial(here.run, function, *given, **named))
