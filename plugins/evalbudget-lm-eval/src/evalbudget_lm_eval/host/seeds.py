"""Seeds: each round of a local model has its own, and to a server each call sends its own.

The host seeds Python, NumPy and torch with the same numbers at every start. A run that was broken off and
goes on would draw the random numbers of its first round again, and buy copies of answers that it has. To
servers the host sends the same seed with every request.
"""

from __future__ import annotations

import hashlib
import json
import random
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance

from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.owners import NOBODY, Owners
from evalbudget_lm_eval.host.patched import patched
from evalbudget_lm_eval.host.responses import answering

_LARGEST = 2**31


def name_of_run(record: Path | None) -> str:
    """Whose seeds are sent to servers: the name of a run's record; without one, another name each time."""
    return secrets.token_hex(8) if record is None else record.name


def seeds_of_host() -> str:
    """What the host seeded random numbers with (``--seed``), as far as they were used since; a short text."""
    torch = sys.modules.get("torch")
    state = (random.getstate(), np.random.get_state()[1].tolist(), torch and torch.initial_seed())  # type: ignore[index]  # noqa: NPY002
    return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


def seed_round(seed: str, cells: Sequence[Asked]) -> None:
    """Seed what local models sample with, by the run's seed and the cells that are about to be asked."""
    about = json.dumps([seed, sorted(cells)]).encode()
    number = int.from_bytes(hashlib.sha256(about).digest()[:4], "big")
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002  (what models of the host draw from)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(number)


class OwnSeeds:
    """Has every call ask a server with a seed of its own.

    The host sends one seed with all of them. On a server that honours it the answers to all documents draw
    the same random numbers, and their noise does not average out, whatever an interval says. A seed among
    gen_kwargs stands. Where requests share a call, none is sent; nor where they have pictures, since none can
    be added on the way then, and the host does not send requests with different gen_kwargs at once.

    Args:
        lm: the host's model object.
        run: whose calls they are. Another run in the same folder buys other answers, and both count; the same
            one begun anew elsewhere has the same seeds.
    """

    def __init__(self, lm: Any, run: str = "") -> None:
        self._lm = getattr(lm, "lm", lm)  # behind the host's cache
        self._run = run
        self._first = seed_sent(self._lm)

    def in_request(self, request: Instance) -> dict[str, None]:
        """What the gen_kwargs of a request must have besides."""
        return {"seed": None} if self.differs(request) and len(request.args) > 2 else {}

    @contextmanager
    def sending(self, owners: Owners) -> Iterator[None]:
        """Within this block it is added to the others on their way; ``owners`` know whose they are."""
        call, acall = self._lm.model_call, self._lm.amodel_call

        def seeded(messages: Any, more: dict[str, Any]) -> dict[str, Any]:
            whose, seed = owners.of(messages), None
            answering.set(list(whose))  # the reply is the cell's whose seed is sent, whoever else waits
            options = more.get("gen_kwargs")  # which only asks for text have
            if options is None or not self._varies(options) or whose[0] == NOBODY:
                return more
            if len(messages) == 1:
                seed = seed_of(self._first, self._run, whose[0], owners.number_of(messages))
            return {**more, "gen_kwargs": options | {"seed": seed}}

        def one(messages: Any, **more: Any) -> Any:
            return call(messages, **seeded(messages, more))

        async def one_of_several(session: Any, sem: Any, messages: Any, **more: Any) -> Any:
            answers = await acall(session, sem, messages, **seeded(messages, more))
            owners.answered(messages)
            return answers

        with patched(iter([(self._lm, {"model_call": one, "amodel_call": one_of_several})])):
            yield

    def differs(self, request: Instance) -> bool:
        """Whether a request is sent with a seed of its own."""
        return request.request_type == "generate_until" and self._varies(request.args[1])

    def _varies(self, options: Mapping[str, Any]) -> bool:
        sampled = "seed" not in options and float(options.get("temperature") or 0) > 0
        return sampled and self._first is not None


def seed_of(*about: object) -> int:
    """The seed of what this tells of; of something else another one, but for one in two thousand million."""
    digest = hashlib.sha256(json.dumps(about).encode()).digest()
    return int.from_bytes(digest[:4], "big") % _LARGEST


def seed_sent(lm: Any) -> int | None:
    """What the host's class sends as the seed; None where it sends none."""
    asked = [{"role": "user", "content": ""}]
    try:
        return int(lm._create_payload(asked, generate=True, gen_kwargs={}, seed=lm._seed)["seed"])
    except Exception:  # of a class that asks no server, sends no seed, or makes its requests in another way
        return None
