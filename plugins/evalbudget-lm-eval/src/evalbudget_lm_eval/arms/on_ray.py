"""Arms whose models are loaded by Ray: each is an actor in a process of its own, where its resources are.

A model of the host's stands here for it, and hands every batch on to its actor. So nothing else differs:
tasks, scores, record and bill are where the command runs. A process of its own has random numbers of its own,
too: what a model samples is what it would sample if it were asked alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import get_model

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.host.seeds import seed_all

_ENGINE = "ray"
_EXAMPLE = "--arms_on ray:num_gpus=1"
_OF_RAY = {"num_cpus": "CPU", "num_gpus": "GPU"}
_PATIENCE = 120.0  # seconds until an actor has its place
_RESTARTS = 3  # of an actor whose process or machine was lost
_TOLD = ("pretrained", "model", "model_name", "base_url", "revision", "max_gen_toks", "max_length")


@dataclass(frozen=True)
class OnRay:
    """Loads arms on a cluster of Ray.

    Attributes:
        needs: what each model takes of it: ``num_cpus``, ``num_gpus``, or a resource of the cluster's own.
    """

    needs: Mapping[str, float]

    @classmethod
    def of(cls, text: str) -> OnRay:
        """Read ``ray`` or ``ray:num_gpus=1,num_cpus=4``.

        Raises:
            UnknownNameError: another engine.
            InvalidInputError: it cannot be read, or Ray is not installed.
        """
        engine, _, given = (part.strip() for part in text.partition(":"))
        if engine != _ENGINE:
            raise UnknownNameError("engine of --arms_on", engine, (_ENGINE,))
        needs: dict[str, float] = {}
        for part in filter(None, given.split(",")):
            name, _, amount = (piece.strip() for piece in part.partition("="))
            try:
                needs[name] = float(amount)
            except ValueError:
                needs[name] = math.nan
            if not name or not 0.0 < needs[name] < math.inf:
                raise InvalidInputError(
                    f"--arms_on {text}: {part!r} is no resource and an amount above 0; for example {_EXAMPLE}"
                )
        return cls(needs)

    def room(self) -> int | None:
        """How many models fit on the cluster; None where they need nothing of it.

        Raises:
            InvalidInputError: not a single one does.
        """
        total = _ray().cluster_resources()
        each = {name: total.get(_OF_RAY.get(name, name), 0.0) / amount for name, amount in self.needs.items()}
        short = [name for name, times in each.items() if times < 1.0]
        if short:
            asked = " and no ".join(f"{name}={self.needs[name]:g}" for name in short)
            there = ", ".join(f"{name} {amount:g}" for name, amount in sorted(total.items()))
            raise InvalidInputError(
                f"Ray's cluster has no {asked} (it has {there}); ask for less, or start Ray on more machines "
                "and set RAY_ADDRESS"
            )
        return min(map(int, each.values()), default=None)

    def load(self, arm: Arm, more: Mapping[str, Any]) -> RayModel:
        """The model of an arm, loaded by an actor.

        Args:
            arm: with the host's name of its kind.
            more: options of the host that are not among its arguments.

        Raises:
            Exception: whatever the host raises on loading it, or Ray if it has no place for it.
        """
        own = {name: amount for name, amount in self.needs.items() if name not in _OF_RAY}
        options = {name: amount for name, amount in self.needs.items() if name in _OF_RAY}
        actor = _ray().remote(_Held).options(**options, resources=own, max_restarts=_RESTARTS)
        return RayModel(actor.remote(get_model(str(arm.model)), dict(arm.args), dict(more)))


class RayModel(LM):  # type: ignore[misc]  # the host is untyped
    """Stands for a model that an actor has.

    Args:
        actor: of :class:`_Held`.

    Raises:
        Exception: whatever loading it raises.
    """

    def __init__(self, actor: Any) -> None:
        super().__init__()
        self._actor = actor
        self._seed_of_round: int | None = None
        _ray().get(actor.begin.remote(), timeout=_PATIENCE)
        facts = self._get("facts")
        self.__dict__.update(facts["told"])
        for name in facts["has"]:  # whoever looks whether there is one finds none, where there is none
            setattr(self, name, lambda *given, name=name, **named: self._get("call", name, given, named))

    def take_seed(self, number: int) -> None:
        """Of the next round."""
        self._seed_of_round = number

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        """Texts."""
        return self._ask("generate_until", requests)

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        """Log-likelihoods of continuations."""
        return self._ask("loglikelihood", requests)

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        """Log-likelihoods of whole texts."""
        return self._ask("loglikelihood_rolling", requests)

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """As the model's."""
        return str(self._get("call", "apply_chat_template", (chat_history, add_generation_prompt), {}))

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """As the model's."""
        found: str | None = self._get("call", "chat_template", (chat_template,), {})
        return found

    @property
    def tokenizer_name(self) -> str:
        """As the model's."""
        return str(self._get("attribute", "tokenizer_name"))

    def _ask(self, kind: str, requests: Sequence[Any]) -> list[Any]:
        asked = [(request.arguments, request.idx) for request in requests]
        replies: list[Any] = self._get("ask", kind, asked, self._seed_of_round)
        for request, reply in zip(requests, replies, strict=True):
            self.cache_hook.add_partial(kind, request.args, reply)
        return replies

    def _get(self, method: str, *given: Any) -> Any:
        ray = _ray()
        try:
            return ray.get(getattr(self._actor, method).remote(*given))
        except ray.exceptions.RayTaskError as ex:  # tells of the model's error in fifty lines
            raise ex.cause from None


class _Held:
    """Has one model, in a process of its own; a process that was lost is begun anew, and loads it again."""

    def __init__(self, kind: Any, args: Mapping[str, Any], more: Mapping[str, Any]) -> None:
        self._kind, self._args, self._more = kind, args, more
        self._loaded: Any = None

    @property
    def _lm(self) -> Any:
        if self._loaded is None:
            self._loaded = self._kind.create_from_arg_obj(dict(self._args), dict(self._more))
        return self._loaded

    def begin(self) -> None:
        """It has its place."""

    def facts(self) -> dict[str, Any]:
        """What there is to know of the model, and which further methods it has."""
        told = {name: getattr(self._lm, name, None) for name in _TOLD}
        return {
            "told": {name: value for name, value in told.items() if isinstance(value, str | int)},
            "has": [name for name in ("tok_encode", "get_model_info") if hasattr(self._lm, name)],
        }

    def attribute(self, name: str) -> Any:
        """One of the model."""
        return getattr(self._lm, name)

    def call(self, name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """What one of its methods returns."""
        return getattr(self._lm, name)(*given, **named)

    def ask(self, kind: str, asked: Sequence[tuple[Any, int]], seed: int | None) -> list[Any]:
        """Its replies to requests of the host."""
        model = self._lm
        if seed is not None:
            seed_all(seed)
        return list(getattr(model, kind)([Instance(kind, {}, arguments, idx) for arguments, idx in asked]))


def _ray() -> Any:
    """Ray, connected to the cluster of ``RAY_ADDRESS``, or to one of this machine.

    Raises:
        InvalidInputError: it is not installed, or there is no such cluster.
    """
    try:
        import ray
    except ImportError:
        raise InvalidInputError("--arms_on ray needs Ray: pip install 'evalbudget-lm-eval[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(log_to_driver=False, logging_level=logging.WARNING)
        except ConnectionError as ex:
            raise InvalidInputError(f"Ray cannot be reached: {ex}; see RAY_ADDRESS") from ex
    return ray
