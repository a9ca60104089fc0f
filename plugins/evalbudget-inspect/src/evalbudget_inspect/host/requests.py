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


def unreadable_parts(sample: EvalSample) -> list[str]:
    """Kinds of what was asked that :func:`request_of` has no text for: image, audio, document and others."""
    messages = [] if isinstance(sample.input, str) else sample.input
    parts = [part for message in messages if not isinstance(message.content, str) for part in message.content]
    return sorted({part.type for part in parts} - {"text", "reasoning"})
