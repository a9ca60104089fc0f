"""When whoever is asked counts as down, or has refused: one rule for models, servers and judges."""

from __future__ import annotations

DOWN_AFTER = 8
"""Failures without a success between them; one that fails half of the time gets there once in 256."""


_PASSED_ON = frozenset({408, 499, 504, 522, 524, 598})
"""Of whoever stands between: the model may be at work on the request all the same, and be billed."""


def is_refusal(status: int) -> bool:
    """Whether a reply of this HTTP status says that the request was not served, so that nothing is billed."""
    return status >= 400 and status not in _PASSED_ON


def is_down(failures: int, *, successes: int = 0) -> bool:
    """Whether a model, a server or a judge is down, rather than unable to answer single items.

    Whoever is down is asked nothing more for now: the caller gives it up, or ends the run.

    Args:
        failures: in a row; or all there were, where ``successes`` is told too.
        successes: how often it answered; one is enough for it to be up.
    """
    return failures >= DOWN_AFTER and not successes
