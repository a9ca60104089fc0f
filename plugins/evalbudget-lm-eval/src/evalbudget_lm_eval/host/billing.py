"""What a provider may bill."""

from __future__ import annotations

import math
from typing import Any

from evalbudget.outage import is_refusal
from evalbudget_lm_eval.host.identity import is_api

_NOBODY_THERE = (
    "ClientConnectorError",
    "ConnectTimeout",
    "NewConnectionError",
)  # of aiohttp, requests, urllib3
_BEFORE_IT_IS_SENT = (AttributeError, LookupError, NotImplementedError, TypeError, ValueError)


def at_a_kill(lm: Any) -> int:
    """How many requests may be on their way, and billed, when the run is killed; local models bill nobody."""
    if not is_api(lm):
        return 0
    sizes = (getattr(lm, name, 1) for name in ("_concurrent", "_batch_size"))
    return math.prod(max(1, size) for size in sizes if isinstance(size, int))


def may_be_billed(error: BaseException, *, sent: bool = False) -> bool:
    """Whether a server may have answered a request that failed so: it was reached, and did not refuse it.

    Args:
        error: that the host's API class raised.
        sent: it is known that the request was sent; otherwise that is told by the error.
    """
    if _nobody_was_there(error):
        return False
    response = getattr(error, "response", None)
    status = getattr(error, "status", None) or getattr(response, "status_code", None)
    if isinstance(status, int) and is_refusal(status):
        return False
    # no key, no payload: what the network raises is an OSError too
    return sent or isinstance(error, OSError) or not isinstance(error, _BEFORE_IT_IS_SENT)


def _nobody_was_there(error: BaseException) -> bool:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "ClientConnectionError" in kinds and str(error).startswith("Connector is closed"):
        return True  # another request broke the round off before this one had a connection
    if type(error) is RuntimeError and str(error) == "Session is closed":
        return True  # or before this one looked for one
    reason = getattr(error.args[0], "reason", None) if error.args else None  # requests wraps urllib3's
    return not kinds.union(kind.__name__ for kind in type(reason).__mro__).isdisjoint(_NOBODY_THERE)
