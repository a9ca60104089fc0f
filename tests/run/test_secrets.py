"""What is named like a key or a password is neither written nor compared."""

from __future__ import annotations

import pytest

from evalbudget.run import cleaned, is_secret, without_secrets


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model=m,api_key=sk-1,seed=2", "model=m,api_key=***,seed=2"),
        ("OPENAI_API_KEY='a b' run", "OPENAI_API_KEY=*** run"),
        ('{"hf_token": "x", "n": 1}', '{"hf_token": ***, "n": 1}'),
        ("base_url=https://me:word@host/v1", "base_url=https://***@host/v1"),
        ("https://word@host/v1", "https://***@host/v1"),
        ("postgresql://me:word@host/db#a", "postgresql://***@host/db#a"),
        ("postgresql://me@host/db#a", "postgresql://me@host/db#a"),
        ("max_tokens=5,tokenizer=t,key=value", "max_tokens=5,tokenizer=t,key=value"),
    ],
)
def test_texts(text: str, told: str) -> None:
    assert without_secrets(text) == told


def test_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment")
    monkeypatch.setenv("OTHER_API_KEY", "unused")  # a word like any other
    assert without_secrets("401: from-the-environment is unused") == "401: *** is unused"


def test_values_by_their_names() -> None:
    given = {"model_args": {"auth_token": "t", "header": {"X": "k"}, "n": 1}, "words": ["password=p", None]}
    assert cleaned(given) == {
        "model_args": {"auth_token": "***", "header": "***", "n": 1},
        "words": ["password=***", None],
    }
    assert not any(map(is_secret, ("tokenizer", "max_gen_toks", "max_tokens", "key", "seed")))
