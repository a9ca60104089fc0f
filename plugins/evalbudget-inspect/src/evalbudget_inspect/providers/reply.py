"""What the offline models have in common: which cell is asked, and a reply that always states its usage."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import anyio
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, ModelUsage
from inspect_ai.tool import ToolChoice, ToolInfo

from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.current_run import scored_state
from evalbudget_inspect.host.private import sample_state

TEMPLATE = "RATING: {value:g}"
UNPARSED = "I cannot rate this."


@dataclass(frozen=True, slots=True)
class AskedCell:
    """The sample a model is asked about."""

    item: str
    epoch: int
    metadata: dict[str, object]


class OfflineModel(ModelAPI):
    """Gives the sample that it is called for a rating; an author writes :meth:`_rating`.

    Args:
        model_name: after the slash.
        base_url: not used.
        api_key: not used.
        config: not used.
        template: of the reply; ``{value}`` is the rating, ``{grade}`` C, P or I for 1, 0.5 or 0.
        latency: seconds to wait before replying.
    """

    provider: ClassVar[str]

    def __init__(
        self,
        model_name: str,
        base_url: str | None,
        api_key: str | None,
        config: GenerateConfig,
        template: str,
        latency: float,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._template, self._latency = template, latency

    @abstractmethod
    def _rating(self, cell: AskedCell) -> float | None:
        """Of this sample; None for a reply that no scorer can parse."""

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Reply with a rating of the sample in whose solver or scorer this is called.

        Usage is always set: inspect would otherwise download a tokenizer to count tokens.

        Raises:
            InvalidInputError: it is called outside of a sample.
        """
        state = sample_state() or scored_state.get()
        if state is None:
            raise InvalidInputError(
                f"model {self.provider}/{self.model_name} answers per sample; it cannot be called outside of "
                "an eval"
            )
        await anyio.sleep(self._latency)
        value = self._rating(AskedCell(str(state.sample_id), state.epoch, state.metadata))
        content = UNPARSED if value is None else self._template.format(value=value, grade=_grade(value))
        output = ModelOutput.from_content(model=self.model_name, content=content)
        output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
        return output


def _grade(value: float) -> str:
    return {1.0: "C", 0.5: "P", 0.0: "I"}.get(value, "N")
