"""Tokens of models on one's own machines, by their own tokenizer."""

from __future__ import annotations

from typing import Any

from evalbudget.errors import BudgetError
from evalbudget.prices import Usage, input_tokens_at_most
from evalbudget_lm_eval.host.usage import Size

_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_length")
_REMOTE = frozenset({"AnthropicLM", "GGUFLM", "TextSynthLM", "WatsonxLLM"})
"""The host's classes that ask a server by themselves: what they send, and how often, cannot be seen."""


def check_local(lm: Any) -> None:
    """Refuse models that are none of one's own machines, and are not asked through the host's API class.

    Raises:
        BudgetError: names it.
    """
    for kind in type(lm).__mro__:
        if kind.__name__ in _REMOTE:
            raise BudgetError(
                f"{kind.__name__} of the host asks a server in a way that nobody can stand before, so that "
                "no budget in money or tokens can be kept. Use a model of the host's chat or completions "
                "APIs (local-chat-completions, openai-chat-completions, anthropic-chat), or a budget in calls"
            )


def size_of_local(lm: Any, request: Any) -> Size:
    """What one of the host's requests uses at most; without a tokenizer no token is shorter than a byte."""
    if request.request_type == "generate_until":
        options = request.args[1] if len(request.args) > 1 and isinstance(request.args[1], dict) else {}
        limit = next((options[name] for name in _LIMITS if type(options.get(name)) is int), None)
        if limit is None:
            own = getattr(lm, "max_gen_toks", None)
            limit = own if type(own) is int else None
        return Size(_at_most(lm, request.args[0]), limit)
    return Size(sum(_at_most(lm, part) for part in request.args if isinstance(part, str)), 0)


def usage_of_local(lm: Any, request: Any, reply: Any, most: Size) -> Usage | None:
    """What it used by the tokenizer's count; None where there is none."""
    if request.request_type != "generate_until":
        counted = [tokens_in(lm, part) for part in request.args if isinstance(part, str)]
        return None if None in counted else Usage(max(1, sum(n for n in counted if n is not None)))
    read, said = tokens_in(lm, request.args[0]), tokens_in(lm, str(reply))
    if read is None or said is None:
        return None
    # what ends a reply is a token too, and is cut off
    output = said + 1 if most.output is None else min(said + 1, most.output)
    return Usage(max(1, read), output)


def tokens_in(lm: Any, text: Any) -> int | None:
    """How many tokens this is; None without a tokenizer."""
    encode = getattr(lm, "tok_encode", None)
    if encode is None or not isinstance(text, str):
        return None
    try:
        found = encode(text)
        return len(found) if not isinstance(found, str) else None
    except Exception:  # whatever a tokenizer raises
        return None


def _at_most(lm: Any, text: Any) -> int:
    counted = tokens_in(lm, text)
    return input_tokens_at_most([str(text)]) if counted is None else counted
