"""What the offline models have in common: which cell is asked, and a reply that always states its usage."""

from __future__ import annotations

from dataclasses import dataclass

from inspect_ai.model import ModelOutput, ModelUsage

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


def asked_cell(model: str) -> AskedCell:
    """The sample in whose solver or scorer this is called.

    Raises:
        InvalidInputError: it is called outside of a sample.
    """
    state = sample_state() or scored_state.get()
    if state is None:
        raise InvalidInputError(f"model {model} answers per sample; it cannot be called outside of an eval")
    return AskedCell(str(state.sample_id), state.epoch, state.metadata)


def reply(model: str, template: str, value: float | None) -> ModelOutput:
    """A reply that states the value, or one that no scorer can parse.

    Usage is always set: inspect would otherwise download a tokenizer to count tokens.
    """
    content = UNPARSED if value is None else template.format(value=value, grade=_grade(value))
    output = ModelOutput.from_content(model=model, content=content)
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return output


def _grade(value: float) -> str:
    return {1.0: "C", 0.5: "P", 0.0: "I"}.get(value, "N")
