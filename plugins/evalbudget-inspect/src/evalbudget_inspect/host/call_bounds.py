"""What one call can be at most: tokens that are sent, and tokens of the reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from inspect_ai.model import ChatMessage, GenerateConfig, get_model_info, model_roles
from inspect_ai.tool import ToolInfo
from pydantic import BaseModel

from evalbudget.errors import BudgetError
from evalbudget.prices import Price, input_tokens_at_most

_FOR_TOOLS = 2_048
"""Tokens that a provider, or the host for models without tools, adds where a call has any."""
_MEDIA = frozenset({"image", "audio", "video", "document"})
_BY_SERVER = frozenset({"code_execution", "web_search"})
"""Tools that some providers run by themselves: what these read is billed too, and nobody knows how much."""


def input_at_most(
    model: str, messages: Sequence[ChatMessage], tools: Sequence[ToolInfo], config: GenerateConfig
) -> int:
    """Tokens of the input: no token is shorter than a byte.

    Raises:
        BudgetError: nothing bounds them.
    """
    for tool in tools:
        if tool.options is not None and (tool.name in _BY_SERVER or tool.name.startswith("mcp_server_")):
            raise BudgetError(
                f"{model} may run the tool {tool.name!r} on its provider's side, and nobody knows before how "
                "much it reads there, so that no budget in money or tokens can be kept. Use a tool that runs "
                "here, or a budget in scores"
            )
    if any(_has_media(message) for message in messages):
        info = get_model_info(model)
        if info is None or not info.context_length:
            raise BudgetError(
                f"nobody knows how many tokens an image or another file is for {model}, so that no budget in "
                "money or tokens can be kept. Tell inspect the length of its context "
                "(set_model_info(..., ModelInfo(context_length=...))), or use a budget in scores"
            )
        return info.context_length
    texts = [*map(_text, messages), *map(_as_json, tools)]
    texts += [_as_json(given) for given in (config.response_schema, config.extra_body) if given is not None]
    return input_tokens_at_most(texts) + (_FOR_TOOLS if tools else 0)


def output_at_most(model: str, config: GenerateConfig, price: Price | None) -> int:
    """Tokens of the reply, all choices and reasoning included.

    Args:
        model: that is asked.
        config: of the call, the provider's own limit on top.
        price: of the model, which may know the longest reply.

    Raises:
        BudgetError: nothing bounds them.
    """
    one = config.max_tokens
    if one is not None:
        one += config.reasoning_tokens or 0  # some providers count them beside max_tokens
    elif price is not None:
        one = price.max_output
    if one is None:
        raise BudgetError(
            f"nothing limits the length of replies of {model}, so that no budget in money or tokens can be "
            "kept. Limit them: --max-tokens for the model that is evaluated, --model-role "
            f"'grader={{model: {model}, max_tokens: 1000}}' for one with a role, or max_output in its line "
            "of the file of --prices"
        )
    return one * max(1, config.num_choices or 1, config.best_of or 1)


def check_roles(price: Callable[[str], Price | None]) -> None:
    """Refuse models with a role whose replies nothing limits, before anything is asked.

    Args:
        price: of a model.

    Raises:
        BudgetError: names the first one.
    """
    for models in model_roles().values():
        for model in models if isinstance(models, list) else [models]:
            config = model.config.model_copy()
            if config.max_tokens is None:
                config.max_tokens = model.api.max_tokens_for_config(config) or model.api.max_tokens()
            output_at_most(str(model), config, price(str(model)))


def _has_media(message: ChatMessage) -> bool:
    return not isinstance(message.content, str) and any(part.type in _MEDIA for part in message.content)


def _text(message: ChatMessage) -> str:
    calls = getattr(message, "tool_calls", None)
    # a tool's error is sent in place of what it returned
    if isinstance(message.content, str) and not calls and not getattr(message, "error", None):
        return message.content
    # providers are sent the arguments of calls as JSON in ASCII, where a letter may take six bytes
    return _as_json(message, in_ascii=bool(calls))


def _as_json(given: object, *, in_ascii: bool = False) -> str:
    """Whatever it holds, halves of letters included."""
    if isinstance(given, BaseModel):
        given = given.model_dump(exclude_none=True)
    return json.dumps(given, default=str, ensure_ascii=in_ascii)
