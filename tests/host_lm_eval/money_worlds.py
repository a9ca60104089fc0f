"""A server that keeps its own bill, and runs of the host on it under a budget in money."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lm_eval.evaluator
from lm_eval.tasks import TaskManager

from evalbudget.prices import Price, Usage
from evalbudget_lm_eval import budgeted
from loopback import Asked, Served, Server

PRICES = {
    "m": Price(input=100.0, output=1000.0),
    "j1": Price(input=50.0, output=200.0),
    "j2": Price(10.0, 20.0),
}
"""Dollars per million tokens; more than anybody asks, so that cents are spent."""

GENERATION = {"temperature": 1.0, "do_sample": True, "seed": None, "max_gen_toks": 20}


@dataclass
class PaidServer(Server):
    """Says what a call used, and knows what it bills for it.

    Attributes:
        usage: what replies say of it: as it is; ``none``, or something ``wrong``.
        dollars: billed, by model.
    """

    usage: str = "right"
    dollars: Counter[str] = field(default_factory=Counter)

    def reply(self, path: str, body: dict[str, Any]) -> tuple[Served, dict[str, Any]]:
        served, said = super().reply(path, body)
        if served.billed and "usage" in said:
            usage = said["usage"]
            used = Usage(usage["prompt_tokens"], usage["completion_tokens"])
            with self._lock:
                self.dollars[served.model] += PRICES[served.model].cost(used)  # type: ignore[assignment]
            if self.usage == "none":
                del said["usage"]
            elif self.usage == "wrong":
                said["usage"] = {"prompt_tokens": -5, "completion_tokens": "many"}
        return served, said

    def _completion(self, path: str, body: dict[str, Any], instead: str | None) -> dict[str, Any]:
        said = super()._completion(path, body, instead)
        texts = [choice.get("text") or choice["message"]["content"] for choice in said["choices"]]
        limit = int(body.get("max_tokens") or 16)
        prompts = len(json.dumps(body.get("messages") or body.get("prompt")).split())
        said["usage"] = {
            "prompt_tokens": prompts,
            "completion_tokens": sum(min(len(text) // 2 + 1, limit) for text in texts),
        }
        return said

    @property
    def bill(self) -> float:
        """All dollars."""
        with self._lock:
            return sum(self.dollars.values())


def price_file(folder: Path, *models: str) -> Path:
    """Prices of these models, of all by default."""
    path = folder / "prices.yaml"
    lines = [
        f"{name}: {{input: {PRICES[name].input}, output: {PRICES[name].output}}}\n"
        for name in models or PRICES
    ]
    path.write_text("".join(lines))
    return path


def args_of(url: str) -> Callable[..., str]:
    """As ``Server.chat_args``, of a server in another process."""
    return lambda **more: ",".join(f"{n}={v}" for n, v in {"model": "m", "base_url": url, **more}.items())


def luck(asked: Asked) -> str:
    """The number asked for, or the next; the unlucky say more."""
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    if asked.luck < 0.3:
        return f"{number}" + "?" * int(asked.luck * 60)
    return f"{number}"


def run(
    folder: Path,
    server: Any,
    budget: str,
    *,
    concurrent: int = 1,
    tasks: str = "numbers",
    model: str = "local-chat-completions",
    chat: bool = True,
    gen: dict[str, Any] | None = None,
    args: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The host's results of one run with ``--budget``; the block is in ``["evalbudget"]``."""
    more: dict[str, Any] = {"num_concurrent": concurrent, "max_retries": 3, **(args or {})}
    given = server.chat_args(**more) if chat else server.completions_args(**more)
    with budgeted(budget=budget, **{"sampler": "uniform", "journal": "j.db", **options}):
        found = lm_eval.evaluator.simple_evaluate(
            model=model,
            model_args=given,
            tasks=tasks.split(","),
            apply_chat_template=chat,
            gen_kwargs={
                "temperature": 1.0,
                "do_sample": True,
                "seed": None,
                "max_gen_toks": 20,
                **(gen or {}),
            },
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            bootstrap_iters=0,
        )
    assert found is not None
    return dict(found)
