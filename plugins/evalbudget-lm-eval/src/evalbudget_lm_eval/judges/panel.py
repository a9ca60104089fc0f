"""The panel of a judged task, from the options of its filter."""

from __future__ import annotations

import inspect as introspection
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.hooks.plugins import plugins
from evalbudget.judges.schedules import JudgeSchedule
from evalbudget.judges.schedules.panel import per_judge
from evalbudget_lm_eval.host.identity import telling_args
from evalbudget_lm_eval.judges.grading import Grading
from evalbudget_lm_eval.judges.spec import JudgeSpec, read_judges

OPTIONS: dict[str, Any] = {
    "judges": None,
    "rotation": "cyclic",
    "prompt": None,
    "scale": (1, 5),
    "pattern": None,
    "gen_kwargs": None,
    "seed": 0,
    "category": "category",
    "prices": None,
}
"""Of the filter, with their defaults."""


@dataclass(frozen=True, eq=False)
class JudgePanel:
    """Judges, who of them scores what, and how.

    Attributes:
        judges: in the order given.
        rotation: registered schedule.
        grading: prompt and scale.
        seed: of the schedule.
        category: field of the document within which judges are balanced, where it has one.
        prices: of one call of each judge, for the rotation ``priced``.
        key: the same for the same options.
    """

    judges: tuple[JudgeSpec, ...]
    rotation: str
    grading: Grading
    seed: int
    category: str
    prices: tuple[float, ...] | None
    key: str

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> JudgePanel:
        """From the options in a YAML.

        Raises:
            UnknownNameError: an option, a rotation, or a judge with a price, that does not exist.
            InvalidInputError: too few judges for the rotation, or a value that cannot be used.
        """
        for option in options:
            if option not in OPTIONS:
                raise UnknownNameError("option of CyclicJudgeFilter", str(option), OPTIONS)
        given = {**OPTIONS, **options}
        if given["judges"] is None:
            raise InvalidInputError(
                "CyclicJudgeFilter has no judges; add judges: [local-chat-completions:model=...,base_url=...,"
                " ...] below function:"
            )
        judges = read_judges(given["judges"], given["gen_kwargs"])
        seed = given["seed"]
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InvalidInputError(f"seed is {seed!r}; give a whole number, 0 or more")
        prices = given["prices"]
        names = [judge.name for judge in judges]
        panel = cls(
            judges,
            str(given["rotation"]),
            Grading.of(given["prompt"], given["scale"], given["pattern"]),
            seed,
            str(given["category"]),
            None if prices is None else tuple(per_judge("prices", prices, names).tolist()),
            json.dumps(given, sort_keys=True, default=repr),
        )
        panel.schedule(["any"])  # refuse what is no good now
        return panel

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the scores, as JSON values: those of another panel cannot be mixed with them."""
        prompt = self.grading.prompt
        named = getattr(prompt, "__qualname__", "a function")
        told: dict[str, Any] = {
            "judges": [[j.name, j.kind, telling_args(j.args), j.gen_kwargs, j.is_chat] for j in self.judges],
            "rotation": [self.rotation, self.seed, self.category, self.prices],
            "prompt": sha256(str(prompt if isinstance(prompt, str) else named).encode()).hexdigest()[:8],
            "scale": [self.grading.low, self.grading.high, self.grading.pattern.pattern],
        }
        return dict(json.loads(json.dumps(told, default=str)))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the judges."""
        return tuple(judge.name for judge in self.judges)

    @property
    def weighs_judges(self) -> bool:
        """Whether every judge weighs the same in the estimate."""
        return plugins().schedule(self.rotation).weighs_judges

    @property
    def is_stochastic(self) -> bool:
        """Whether judges may say something else of the same answer again."""
        return any(judge.temperature > 0 for judge in self.judges)

    def schedule(
        self, items: Sequence[str], *, categories: Sequence[str] | None = None, epochs: int = 1
    ) -> JudgeSchedule:
        """Who scores what, for these documents."""
        cls = plugins().schedule(self.rotation)
        more = {"prices": self.prices} if "prices" in introspection.signature(cls).parameters else {}
        return cls(items, self.names, categories=categories, epochs=epochs, seed=self.seed, **more)

    def schedule_of(self, docs: Sequence[Mapping[str, Any]], epochs: int) -> JudgeSchedule:
        """Who scores what, balanced within the documents' categories."""
        labels = [str(doc.get(self.category, "")) for doc in docs]
        return self.schedule([str(i) for i in range(len(docs))], categories=labels, epochs=max(epochs, 1))
