"""``paid/<name>``: a model that knows what its calls cost, in this process."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import anyio
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState

from evalbudget.prices import Price, Usage


class Till:
    """What all calls cost, by model, whatever was made of their replies."""

    def __init__(self, price: Price) -> None:
        self.price = price
        self.paid: list[tuple[str, float]] = []
        self.tokens = 0
        self.at_once = self.peak = 0
        self._chance: dict[str, random.Random] = {}

    def chance(self, seed: str) -> random.Random:
        """Of a model, which the host may keep for the next test: with a till of its own it starts anew."""
        return self._chance.setdefault(seed, random.Random(seed))

    @property
    def total(self) -> float:
        """In dollars."""
        return sum(cost for _, cost in self.paid)

    def calls(self, model: str) -> int:
        """Of it."""
        return sum(name == model for name, _ in self.paid)


tills: dict[str, Till] = {}


class PaidModel(ModelAPI):
    """Says some number of tokens of at most ``max_tokens``.

    Args:
        till: name of the till that it pays into.
        latency: seconds.
        fails: share of calls that are paid and fail.
        refuses: share of calls that the server refuses with status 500.
        said: of the usage: right, missing, nothing or negative.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
        *,
        till: str = "here",
        latency: float = 0.0,
        fails: float = 0.0,
        refuses: float = 0.0,
        said: str = "right",
        seed: int = 0,
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._till, self._latency, self._fails, self._refuses = till, latency, fails, refuses
        self._said, self._seed = said, f"{seed} {model_name}"

    def should_retry(self, ex: Exception) -> bool:
        return getattr(ex, "status_code", None) == 500

    def retry_wait(self) -> Any:
        return lambda state: 0.0

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002
        tools: Any,
        tool_choice: Any,
        config: GenerateConfig,
    ) -> ModelOutput:
        till = tills[self._till]
        chance = till.chance(self._seed)
        till.at_once += 1
        till.peak = max(till.peak, till.at_once)
        try:
            await anyio.sleep(self._latency * chance.random())
        finally:
            till.at_once -= 1
        if chance.random() < self._refuses:
            error = RuntimeError("overloaded")
            error.status_code = 500  # type: ignore[attr-defined]
            raise error
        given = max(1, sum(len(message.text) for message in input) // chance.randint(2, 5))
        reply = chance.randint(1, config.max_tokens or 1)
        till.paid.append((self.model_name, till.price.cost(Usage(given, reply))))
        till.tokens += given + reply
        if chance.random() < self._fails:
            raise RuntimeError("no reply")
        output = ModelOutput.from_content(self.model_name, f"RATING: {chance.randint(1, 9)}")
        said = {"right": (given, reply), "nothing": (0, 0), "negative": (-given, -reply)}.get(self._said)
        if said is not None:
            usage = ModelUsage(input_tokens=said[0], output_tokens=said[1], total_tokens=sum(said))
            output.usage = usage
        return output


@modelapi(name="paid")
def paid() -> type[ModelAPI]:
    return PaidModel


def paid_model(name: str, till: str, max_tokens: int | None = 40, **args: Any) -> Model:
    """One of them, with its own limit."""
    config = GenerateConfig(max_tokens=max_tokens)
    return get_model(f"paid/{name}", memoize=False, config=config, till=till, **args)


def _rating(text: str) -> float:
    return float(text.rpartition(" ")[2])


@scorer(metrics=[mean()])
def self_rated() -> Scorer:
    """What the answer says."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=_rating(state.output.completion))

    return score


def judged_by(model: Callable[[], Model], calls: int = 1) -> Scorer:
    """What a model says of the answer, asked several times."""

    @scorer(metrics=[mean()], name="judged")
    def judged() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            found = [await model().generate(state.output.completion) for _ in range(calls)]
            return Score(value=_rating(found[-1].completion))

        return score

    return judged()
