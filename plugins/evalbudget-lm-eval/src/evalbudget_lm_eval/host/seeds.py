"""Random numbers of local models: each round has its own, so that a run that goes on replays none.

The host seeds Python, NumPy and torch with the same numbers at every start. A run that was broken off and
goes on would draw the random numbers of its first round again, and buy copies of answers that it has.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.identity import is_api


def seeds_of_host() -> str:
    """What the host seeded random numbers with (``--seed``), as far as they were used since; a short text."""
    torch = sys.modules.get("torch")
    state = (random.getstate(), np.random.get_state()[1].tolist(), torch and torch.initial_seed())  # type: ignore[index]  # noqa: NPY002
    return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


def seed_round(lm: Any, seed: str, cells: Sequence[Asked]) -> None:
    """Seed what local models sample with, by the run's seed and the cells that are about to be asked.

    Args:
        lm: the host's model object; nothing is done for one that asks a server.
        seed: of the run.
        cells: of the round.
    """
    if is_api(lm):
        return
    about = json.dumps([seed, sorted(cells)]).encode()
    number = int.from_bytes(hashlib.sha256(about).digest()[:4], "big")
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002  (what models of the host draw from)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(number)
