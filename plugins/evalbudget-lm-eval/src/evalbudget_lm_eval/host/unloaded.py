"""Stands for a model that is not asked: all its answers are known."""

from __future__ import annotations

from typing import Any

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

RECORDED = "recorded"
"""Its name among the host's kinds of models."""


@register_model(RECORDED)
class Unloaded(LM):  # type: ignore[misc]  # the host ships no types
    """Stands for a model whose answers are all known.

    Args:
        args: as of the model; they only tell its name.
    """

    def __init__(self, **args: Any) -> None:
        super().__init__()
        self.model = args.get("model")

    def loglikelihood(self, requests: Any) -> Any:
        """Never asked."""
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: Any) -> Any:
        """Never asked."""
        raise NotImplementedError

    def generate_until(self, requests: Any) -> Any:
        """Never asked."""
        raise NotImplementedError

    def apply_chat_template(self, chat_history: Any, add_generation_prompt: bool = True) -> str:
        """Any text: no prompt is sent."""
        return str(chat_history)

    @property
    def tokenizer_name(self) -> str:
        """Of no model."""
        return "unloaded"
