"""What a call uses: at most, by what is about to be sent; and in fact, by what the server replied."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evalbudget.prices import Usage, input_tokens_at_most

_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens", "max_gen_toks")


class Size(NamedTuple):
    """What a call uses at most, in tokens.

    Attributes:
        input: that it has.
        output: of all its replies; None where nothing in the request limits one.
        copies: replies that it asks for.
    """

    input: int
    output: int | None
    copies: int = 1

    def within(self, longest: int | None) -> tuple[int, int | None]:
        """Input and output, where a reply that the request does not limit has so many tokens at most."""
        if self.output is not None or longest is None:
            return self.input, self.output
        return self.input, longest * self.copies


def sizes_of(payload: Mapping[str, Any]) -> list[Size]:
    """Of the prompts of one request, as it is sent to an OpenAI-compatible server.

    A prompt of tokens has so many; one of text has no more than bytes. With ``echo`` the prompt is sent back,
    and may be billed as output as well.
    """
    limits = [payload[name] for name in _LIMITS if type(payload.get(name)) is int]
    copies = max([1, *(payload[name] for name in ("n", "best_of") if type(payload.get(name)) is int)])
    found = []
    for tokens in _inputs(payload):
        limit = max(limits) * copies if limits else None
        if limit is not None and payload.get("echo"):
            limit += tokens * copies
        found.append(Size(tokens, limit, copies))
    return found


def _inputs(payload: Mapping[str, Any]) -> Iterator[int]:
    prompt = payload.get("prompt")
    beside = [json.dumps(payload[name]) for name in ("tools", "system", "functions") if payload.get(name)]
    if isinstance(payload.get("messages"), list):
        texts = [_text(message) for message in payload["messages"]]
        yield input_tokens_at_most([*texts, *beside])
    elif isinstance(prompt, str):
        yield input_tokens_at_most([prompt, *beside])
    elif isinstance(prompt, Sequence) and prompt and all(type(token) is int for token in prompt):
        yield len(prompt)
    elif isinstance(prompt, Sequence) and prompt:
        for one in prompt:
            yield from _inputs({**payload, "prompt": one})
    else:
        yield input_tokens_at_most([json.dumps(payload, ensure_ascii=False, default=str)])


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, Mapping) else message
    return content if isinstance(content, str) else json.dumps(message, ensure_ascii=False, default=str)


def usage_of(reply: Any) -> Usage | None:
    """What a reply says it used; None if it says nothing, or nothing that can be.

    Known are the words of OpenAI (and OpenRouter's ``cost``, in dollars) and of Anthropic. Some servers leave
    reasoning out of the completion, and none out of the total. A reply that says something has tokens.
    """
    said = reply.get("usage") if isinstance(reply, Mapping) else None
    if not isinstance(said, Mapping):
        return None
    try:
        if "input_tokens" in said and "prompt_tokens" not in said:
            cached, written = (
                _count(said, "cache_read_input_tokens"),
                _count(said, "cache_creation_input_tokens"),
            )
            whole, output = _count(said, "input_tokens") + cached + written, _count(said, "output_tokens")
        else:
            details = said.get("prompt_tokens_details") or {}
            cached, written = _count(details, "cached_tokens"), 0
            whole, output = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
            output = max(output, _count(said, "total_tokens") - whole)
    except (AttributeError, TypeError, ValueError):
        return None
    if whole <= 0 or cached + written > whole:
        return None  # every call reads something
    if output == 0 and _says_something(reply):
        return None
    return Usage(whole - cached - written, output, cached, written, cost=_dollars(said.get("cost")))


def _says_something(reply: Mapping[str, Any]) -> bool:
    """Whether it has a text that is not the prompt, sent back for its log-likelihood."""
    choices = reply.get("choices") or reply.get("content")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, Mapping) and not choice.get("logprobs"):
            message = choice.get("message")
            if choice.get("text") or (isinstance(message, Mapping) and message.get("content")):
                return True
    return False


def _count(said: Mapping[str, Any], name: str) -> int:
    value = said.get(name) or 0
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return int(value)


def _dollars(cost: Any) -> float | None:
    known = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if known and math.isfinite(cost) and cost >= 0 else None


def shared(usage: Usage | None, among: int) -> list[Usage | None]:
    """The usage of a request, over its prompts; the sum is the same."""
    if usage is None or among == 1:
        return [usage] * among

    def part(tokens: int, place: int) -> int:
        return tokens * (place + 1) // among - tokens * place // among

    return [
        Usage(
            part(usage.input, place),
            part(usage.output, place),
            part(usage.cached, place),
            part(usage.written, place),
            usage.seconds / among,
            None if usage.cost is None else usage.cost / among,
        )
        for place in range(among)
    ]
