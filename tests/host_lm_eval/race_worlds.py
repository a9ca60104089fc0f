"""Models of known skill for races: what they were asked, and how many of them were alive at once."""

from __future__ import annotations

import random
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from lm_eval.api.registry import register_model
from lm_eval.tasks import TaskManager
from tests.host_lm_eval.worlds import TextModel, write_task

KIND = "evalbudget-test-racer"


def is_right(seed: int, skill: float, number: int) -> bool:
    """Whether a model of this skill answers this document, always the same."""
    return random.Random(f"{seed} {number}").random() < skill


def truth(seed: int, skill: float, n: int) -> float:
    """The mean score over the whole task."""
    return sum(is_right(seed, skill, i) for i in range(n)) / n


@register_model(KIND)
class Racer(TextModel):
    """Says the number it was asked for, with a given probability.

    Args:
        skill: share of right answers.
        seed: which ones.
        breaks: what fails: ``load``, ``always``, or the number of one document.
        stops_at: total of answers, of all racers, after which the user presses Ctrl-C; 0 for never.
        circle: whether it holds itself, as models of several parts do.
    """

    asked: ClassVar[list[tuple[int, int]]] = []
    loads: ClassVar[Counter[int]] = Counter()
    alive: ClassVar[weakref.WeakSet[Racer]] = weakref.WeakSet()
    most_alive: ClassVar[int] = 0

    def __init__(
        self,
        skill: float = 0.5,
        seed: int = 0,
        breaks: str = "",
        stops_at: int = 0,
        circle: bool = False,
        **_: Any,
    ) -> None:
        super().__init__()
        self.circle = self if circle else None
        if breaks == "load":
            raise RuntimeError("no such weights")
        self.skill, self.seed, self.breaks, self.stops_at = (
            float(skill),
            int(seed),
            str(breaks),
            int(stops_at),
        )
        Racer.loads[self.seed] += 1
        Racer.alive.add(self)
        Racer.most_alive = max(Racer.most_alive, len(Racer.alive))

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        number = int(prompt.rsplit("say ", 1)[1].split()[0])
        if self.stops_at and len(Racer.asked) >= self.stops_at:
            raise KeyboardInterrupt
        Racer.asked.append((self.seed, number))
        if self.breaks in ("always", str(number)):
            raise ConnectionError("the server went away")
        answer = f"{number}" if is_right(self.seed, self.skill, number) else "?"
        self.cache_hook.add_partial("generate_until", (prompt, kwargs), answer)
        return answer


@contextmanager
def fresh_racers() -> Iterator[type[Racer]]:
    """Nothing asked, nothing loaded."""
    Racer.asked.clear()
    Racer.loads.clear()
    Racer.alive.clear()  # garbage of an earlier test may not be collected yet
    Racer.most_alive = 0
    yield Racer


@contextmanager
def arms_at_once(most: int = 8, *, here: bool = False) -> Iterator[None]:
    """Within this block no more arms are asked side by side; if told, live models that compute here, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evalbudget_lm_eval.arms.places.AT_ONCE", most)
        if here:
            patch.setattr("evalbudget_lm_eval.arms.places.asks_server", lambda arm: True)
        yield


def manager(folder: Path, **task: Any) -> TaskManager:
    """The host's task manager with one task, ``numbers``, and without its own thousands."""
    return TaskManager(include_path=str(write_task(folder, **task)), include_defaults=False)


def racer(skill: float, seed: int, **more: Any) -> tuple[str, dict[str, Any]]:
    """An arm."""
    return KIND, {"skill": skill, "seed": seed, **more}
