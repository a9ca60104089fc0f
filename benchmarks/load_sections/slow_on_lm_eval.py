"""Runs on lm-eval, on a model that takes its time."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from load_sections.slow_calls import Latency, Pair

os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import lm_eval
from lm_eval.models.openai_completions import LocalChatCompletion
from lm_eval.tasks import TaskManager

from evalbudget_lm_eval import budgeted
from lm_eval_overhead import write_task


class _Chat(LocalChatCompletion):  # type: ignore[misc]  # the host ships no types
    """An API model whose calls only take time."""

    def __init__(self, concurrent: int, latency: Latency) -> None:
        super().__init__(model="slow", base_url="http://localhost/v1", num_concurrent=concurrent)
        self._latency = latency

    async def amodel_call(
        self, session: Any, sem: asyncio.Semaphore, messages: Any, *, cache_keys: Any, **_: Any
    ) -> list[str]:
        await sem.acquire()
        try:
            said = "42" if await self._latency.wait() else "7"
        finally:
            sem.release()
        self.cache_hook.add_partial("generate_until", cache_keys[0], said)  # as the host's own does
        return [said]


def runs(folder: Path, concurrent: int, items: int, repeats: int) -> Pair:
    """A task with so many repeats, and the same calls as a budget."""
    latency = Latency(lambda rng: rng.uniform(0.1, 0.4))
    plain, own = write_task(folder, items), f"echo_{items}_repeated"
    text = (folder / f"{plain}.yaml").read_text()
    (folder / f"{own}.yaml").write_text(
        text.replace(f'"task": "{plain}"', f'"task": "{own}", "repeats": {repeats}')
    )
    manager = TaskManager(include_path=str(folder), include_defaults=False)

    def run(name: str) -> None:
        latency.restart(1)
        lm_eval.simple_evaluate(
            model=_Chat(concurrent, latency),
            tasks=[name],
            task_manager=manager,
            bootstrap_iters=0,
            apply_chat_template=True,
            gen_kwargs="seed=None",
        )

    def ours() -> None:
        for each in folder.glob("journal*"):
            each.unlink()
        with budgeted(budget=items * repeats, journal=folder / "journal.db"):
            run(plain)

    return lambda: run(own), ours
