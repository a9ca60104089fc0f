"""Seeds: each round of a local model has its own, and to a server each repeat sends its own.

The host seeds Python, NumPy and torch with the same numbers at every start. A run that was broken off and
goes on would draw the random numbers of its first round again, and buy copies of answers that it has. To
servers the host sends the same seed with every request.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance

from evalbudget_lm_eval.host.answers import Asked, key_of
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.owners import Owners
from evalbudget_lm_eval.host.patched import patched
from evalbudget_lm_eval.host.responses import Responses, answering
from evalbudget_lm_eval.host.task_requests import Sent

_OF_HOST = 1234
_APART, _LARGEST = 2**20, 2**31


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


class OwnSeeds:
    """Has every repeat ask a server with a seed of its own; first answers have that of a stock run.

    A seed among gen_kwargs stands. The host does not send requests with different gen_kwargs at once, so a
    seed is put there only where it cannot be added on the way: if requests share a call, or have pictures.

    Args:
        lm: the host's model object.
    """

    def __init__(self, lm: Any) -> None:
        self._lm = getattr(lm, "lm", lm)  # behind the host's cache
        self._first = _seed_sent(self._lm)

    def in_request(self, request: Instance, epoch: int) -> dict[str, int]:
        """What the gen_kwargs of a request must have besides; the epoch is that of the repeat, from 0."""
        found = self._of(request, epoch)
        return found if found and (self._lm._batch_size > 1 or len(request.args) > 2) else {}

    @contextmanager
    def sending(self, sent: Sequence[Sent], said: Responses, owners: Owners | None) -> Iterator[None]:
        """Within this block it is added to the others on their way; ``owners``, if any, expect this round."""
        own = {key_of(one.asked): seed for one in sent if (seed := self._of(one.instance, one.asked.epoch))}
        if not own:
            yield
            return
        if owners is None:
            owners = Owners()
            owners.expect(self._lm, sent, said)
        call, acall = self._lm.model_call, self._lm.amodel_call

        def seeded(messages: Any, more: dict[str, Any]) -> dict[str, Any]:
            if len(messages) > 1 or more.get("gen_kwargs") is None:  # which only asks for text have
                return more
            whose = owners.of(messages)
            answering.set(list(whose))  # the reply is the cell's whose seed is sent, whoever else waits
            seed = own.get(whose[0])
            return {**more, "gen_kwargs": more["gen_kwargs"] | seed} if seed else more

        def one(messages: Any, **more: Any) -> Any:
            return call(messages, **seeded(messages, more))

        async def one_of_several(session: Any, sem: Any, messages: Any, **more: Any) -> Any:
            return await acall(session, sem, messages, **seeded(messages, more))

        with patched(iter([(self._lm, {"model_call": one, "amodel_call": one_of_several})])):
            yield

    def _of(self, request: Instance, epoch: int) -> dict[str, int]:
        if self._first is None or not epoch or request.request_type != "generate_until":
            return {}
        options = request.args[1]
        differs = "seed" not in options and float(options.get("temperature") or 0) > 0
        return {"seed": seed_of_repeat(self._first, epoch)} if differs else {}


def seed_of_repeat(first: int, epoch: int) -> int:
    """What a repeat sends: from 1234, the host's own, they count up.

    Those of other first seeds lie far apart, so that processes and attempts with seeds of their own do not
    ask for the same answer twice; of the host's own and one right above it they may.

    Args:
        first: what first answers send.
        epoch: of the repeat, from 1.
    """
    return (first + epoch + (first - _OF_HOST) * _APART) % _LARGEST


def _seed_sent(lm: Any) -> int | None:
    """What the host's class sends as the seed; None where it sends none."""
    asked = [{"role": "user", "content": ""}]
    try:
        return int(lm._create_payload(asked, generate=True, gen_kwargs={}, seed=lm._seed)["seed"])
    except Exception:  # of a class that asks no server, sends no seed, or makes its requests in another way
        return None
