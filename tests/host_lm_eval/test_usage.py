"""What calls use: at most before they are sent, and by what replies say."""

from __future__ import annotations

from typing import Any

import pytest

from evalbudget.prices import Usage
from evalbudget_lm_eval.host.usage import Size, shared, sizes_of, usage_of


@pytest.mark.parametrize(
    ("payload", "sizes"),
    [
        ({"prompt": "four", "max_tokens": 7}, [Size(36, 7)]),
        ({"prompt": "é", "max_completion_tokens": 7, "n": 3}, [Size(34, 21, 3)]),
        ({"prompt": [1, 2, 3], "max_tokens": 7}, [Size(3, 7)]),
        ({"prompt": [[1, 2], [3]], "max_tokens": 7}, [Size(2, 7), Size(1, 7)]),
        ({"prompt": ["a", "bc"]}, [Size(33, None), Size(34, None)]),
        ({"prompt": [[1, 2]], "max_tokens": 1, "echo": True}, [Size(2, 3)]),
        ({"messages": [{"role": "user", "content": "abc"}], "max_tokens": 1}, [Size(35, 1)]),
        ({"messages": [{"content": "a"}, {"content": "b"}], "system": "c", "max_tokens": 1}, [Size(69, 1)]),
    ],
)
def test_sizes_of_what_is_sent(payload: dict[str, Any], sizes: list[Size]) -> None:
    assert sizes_of(payload) == sizes


def test_what_nobody_knows_is_as_long_as_it_is() -> None:
    (size,) = sizes_of({"input": "x" * 1000, "max_tokens": 5})
    assert 1000 < size.input < 1100


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(9, 4)),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}},
            Usage(3, 4, 6),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cost": 0.25}, Usage(9, 4, cost=0.25)),
        (
            {
                "input_tokens": 3,
                "output_tokens": 4,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 6,
            },
            Usage(3, 4, 5, 6),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cost": "much"}, Usage(9, 4)),
        ({"prompt_tokens": 9}, Usage(9)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 913}, Usage(9, 904)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, Usage(9, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": "all"}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 9}, None),
        ({"prompt_tokens": -9, "completion_tokens": 4}, None),
        ({"prompt_tokens": 9, "completion_tokens": "many"}, None),
        ({"prompt_tokens": 9, "completion_tokens": float("nan")}, None),
        ({"prompt_tokens": True, "completion_tokens": 4}, None),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 10}}, None),
        ({"prompt_tokens": 9, "prompt_tokens_details": [1]}, None),
        ([], None),
        (None, None),
    ],
)
def test_usage_in_replies(said: Any, usage: Usage | None) -> None:
    assert usage_of({"usage": said}) == usage


@pytest.mark.parametrize(
    ("choice", "usage"),
    [
        ({"message": {"content": "words"}}, None),
        ({"text": "words"}, None),
        ({"text": "the prompt", "logprobs": {"tokens": ["the"]}}, Usage(9)),
        ({"message": {"content": None}}, Usage(9)),
        ({}, Usage(9)),
    ],
)
def test_a_reply_that_says_something_has_tokens(choice: dict[str, Any], usage: Usage | None) -> None:
    assert usage_of({"usage": {"prompt_tokens": 9}, "choices": [choice]}) == usage


@pytest.mark.parametrize("reply", [None, {}, "text", [{"usage": {"prompt_tokens": 1}}]])
def test_replies_without_usage(reply: Any) -> None:
    assert usage_of(reply) is None


def test_shares_of_a_batch_add_up() -> None:
    parts = [part for part in shared(Usage(10, 7, 5, 1, cost=0.3), 3) if part is not None]
    assert [sum(part.input for part in parts), sum(part.output for part in parts)] == [10, 7]
    assert sum(part.cached for part in parts) == 5
    assert sum(part.cost or 0.0 for part in parts) == pytest.approx(0.3)
    assert shared(None, 2) == [None, None]


def test_a_price_that_limits_a_reply_limits_each_of_several() -> None:
    (size,) = sizes_of({"prompt": "one", "n": 3})
    assert size.output is None
    assert size.within(10) == (size.input, 30)
    assert size.within(None) == (size.input, None)
    (size,) = sizes_of({"prompt": "one", "n": 3, "max_tokens": 5})
    assert size.within(10) == (size.input, 15)
