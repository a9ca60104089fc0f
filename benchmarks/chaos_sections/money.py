"""The same commands with a budget in money: calls of random prices and lengths, replies without usage."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos_sections import inspect_side, lm_eval_side
from chaos_sections.plan import Cap, Capability, Plan, Prepare
from evalbudget.prices import Price, input_tokens_at_most
from loopback import Server

PROMPT, JUDGED = 60, 400
"""Bytes of what models, and judges, are asked here, at most."""


def in_money(
    prepare: Prepare,
    name_of: Callable[[str], str],
    limit: Callable[[int], list[str]],
    again: Callable[[Path, list[str]], list[str]],
) -> Prepare:
    """A command with ``--budget '$X'`` in place of a number of calls.

    Args:
        prepare: the command.
        name_of: how the host names a model of the server.
        limit: flags that limit the length of replies.
        again: the command that goes on in a folder, given the first one.
    """

    def prepared(folder: Path, server: Server, rng: random.Random) -> Plan:
        plan = prepare(folder, server, rng)
        models = dict.fromkeys(model for group in plan.billed for model in group)
        longest = rng.choice((256, 512, 1024))
        prices = {model: _price(rng) for model in models}
        asked = input_tokens_at_most(["x" * (JUDGED if len(plan.billed) > 1 else PROMPT)])
        call = max(price.most(asked, longest) for price in prices.values())
        dollars = call * (rng.uniform(105, 140) if rng.random() < 0.5 else rng.uniform(8, 60))
        usual = sum(price.most(120, longest // 2) for price in prices.values()) / len(prices)
        file = folder / "prices.yaml"
        file.write_text(
            json.dumps(
                {
                    name_of(model): {
                        "input": price.input,
                        "output": price.output,
                        "call": price.call,
                        "max_output": longest,
                    }
                    for model, price in prices.items()
                }
            )
        )
        server.latency = rng.choice((0.002, 0.01))
        server.meter = _metered(longest, rng.random())
        server.said = _forgetful(rng.choice((0.0, 0.0, 0.03)), rng.random())
        command = [*plan.command, "--prices", str(file), *limit(longest)]
        command[command.index("--budget") + 1] = f"${dollars:.8f}"
        return replace(
            plan,
            command=command,
            again=lambda: again(folder, command),
            billed={},
            cap=Cap(round(dollars, 8), prices, call, calls=max(4, round(0.7 * dollars / usual))),
        )

    return prepared


def _price(rng: random.Random) -> Price:
    return Price(
        input=round(10 ** rng.uniform(-1, 1), 4),
        output=round(10 ** rng.uniform(-1, 1.5), 4),
        call=rng.choice((0.0, 0.0, round(10 ** rng.uniform(-5, -4), 7))),
    )


def _metered(longest: int, seed: float) -> Callable[[dict[str, Any], str, str], tuple[int, int]]:
    """Random lengths, up to what the request allows."""
    rng, lock = random.Random(seed), threading.Lock()

    def meter(body: dict[str, Any], prompt: str, text: str) -> tuple[int, int]:
        allowed = int(body.get("max_tokens") or body.get("max_completion_tokens") or longest)
        with lock:
            written = min(allowed, max(1, round(allowed * rng.lognormvariate(-0.7, 0.8))))
            return max(1, round(len(prompt.encode()) * rng.uniform(0.2, 1.0))), written

    return meter


def _forgetful(share: float, seed: float) -> Callable[[dict[str, int]], dict[str, int] | None]:
    rng, lock = random.Random(seed), threading.Lock()

    def said(usage: dict[str, int]) -> dict[str, int] | None:
        with lock:
            return None if rng.random() < share else usage

    return said


def _limited_on_lm_eval(longest: int) -> list[str]:
    return ["--gen_kwargs", f"temperature=1.0,max_gen_toks={longest}"]


def _limited_on_inspect(longest: int) -> list[str]:
    return ["--max-tokens", str(longest)]


def _same(folder: Path, command: list[str]) -> list[str]:
    return command


def _on_lm_eval(one: Capability) -> Prepare:
    return in_money(one.prepare, str, _limited_on_lm_eval, _same)


def _on_inspect(one: Capability) -> Prepare:
    again = _same if one.name == "race" else inspect_side.retry
    return in_money(one.prepare, inspect_side.name_of, _limited_on_inspect, again)


MONEY = tuple(
    Capability(one.host, f"{one.name} in money", prepared(one))
    for capabilities, prepared in ((lm_eval_side.LM_EVAL, _on_lm_eval), (inspect_side.INSPECT, _on_inspect))
    for one in capabilities
    if one.name in ("run", "race", "judges")
)
