"""What a finished sample was asked, as people read it."""

from __future__ import annotations

from inspect_ai.log import EvalSample


def request_of(sample: EvalSample) -> str:
    """One text; several messages with their roles."""
    if isinstance(sample.input, str):
        return sample.input
    if len(sample.input) == 1:
        return sample.input[0].text
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in sample.input)
