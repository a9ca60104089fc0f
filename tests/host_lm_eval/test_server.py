"""The server of these tests, asked through the host's own API model classes."""

from __future__ import annotations

import json
from typing import Any

import lm_eval.models  # noqa: F401  registers the host's models
import pytest
import requests
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from tests.claims import variant

from loopback import Server, rating


def ask(kind: str, args: str, prompts: list[str], **options: Any) -> list[str]:
    lm = get_model(kind).create_from_arg_string(args)
    chat = kind.endswith("chat-completions")
    instances = []
    for i, prompt in enumerate(prompts):
        context = lm.apply_chat_template([{"role": "user", "content": prompt}]) if chat else prompt
        instances.append(Instance("generate_until", {}, (context, {"until": ["\n"], **options}), i))
    return list(lm.generate_until(instances))


PROMPTS = [f"Question {i}?" for i in range(30)]


@pytest.mark.parametrize(
    ("kind", "concurrent"),
    [
        ("local-chat-completions", 8),
        ("local-completions", 1),
        variant("local-chat-completions", 1),
        variant("local-completions", 8),
    ],
)
def test_answers_depend_on_model_prompt_seed_and_temperature_alone(
    server: Server, kind: str, concurrent: int
) -> None:
    args = server.chat_args if "chat" in kind else server.completions_args

    def said(model: str = "m", temperature: float = 0.7, **more: Any) -> list[str]:
        return ask(kind, args(model, num_concurrent=concurrent, **more), PROMPTS, temperature=temperature)

    first = said()
    assert all(text.startswith("Answer: ") for text in first)
    assert first == said()
    assert first != said(seed=5)
    assert first != said(model="other")
    assert said(temperature=0.0) == said(temperature=0.0, seed=5)
    assert server.calls() == 6 * len(PROMPTS)
    assert {s.body["seed"] for s in server.served} == {1234, 5}


def test_a_request_without_a_seed_is_another_draw(server: Server) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Q?"}], "temperature": 1.0}
    said = {requests.post(server.chat, json=body, timeout=300).text for _ in range(20)}
    assert len(said) > 1


def test_host_retries_what_failed_and_requests_overlap(server: Server) -> None:
    server.gather(3)
    server.fail(429)
    server.fail(None)
    server.answer = rating()
    said = ask("local-chat-completions", server.chat_args(num_concurrent=8), PROMPTS[:16])
    assert len(said) == 16
    assert server.count() == {"m": 16}
    assert server.count(429) == server.count(None) == {"m": 1}
    assert server.most_at_once > 2


def test_failures_may_be_of_one_model_and_come_later(server: Server) -> None:
    server.fail(500, model="weak", after=2, times=3)

    def status(model: str) -> int:
        body = {"model": model, "prompt": ["a", "b"], "stop": ["e"]}
        answer = requests.post(server.completions, json=body, timeout=300)
        if answer.ok:
            assert [c["text"] for c in json.loads(answer.text)["choices"]] == ["Answ", "Answ"]
        return answer.status_code

    assert [status("weak") for _ in range(6)] == [200, 200, 500, 500, 500, 200]
    assert status("strong") == 200
