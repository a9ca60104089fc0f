"""How many tokens a call is at most: whatever providers make of its messages."""

import json

import pytest
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ContentText, GenerateConfig
from inspect_ai.tool import ToolCall, ToolCallError

from evalbudget_inspect.host.call_bounds import input_at_most

SAID = "д" * 1_000 + "😀" * 1_000


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (
            ChatMessageAssistant(
                content="", tool_calls=[ToolCall(id="1", function="f", arguments={"x": SAID})]
            ),
            json.dumps({"x": SAID}),
        ),
        (ChatMessageTool(content="", error=ToolCallError("unknown", SAID)), f"Error: {SAID}"),
    ],
)
def test_arguments_and_errors_of_tools_are_counted_as_they_are_sent(message: ChatMessage, sent: str) -> None:
    assert input_at_most("m", [message], [], GenerateConfig()) >= len(sent.encode())


@pytest.mark.parametrize("odd", ["half of an emoji: \ud83d", float("nan"), object()])
def test_whatever_a_model_says_is_measured(odd: object) -> None:
    call = ToolCall(id="1", function="f", arguments={"x": odd})
    message = ChatMessageAssistant(content=[ContentText(text="\ud83d")], tool_calls=[call])
    assert input_at_most("m", [message], [], GenerateConfig()) > 50
