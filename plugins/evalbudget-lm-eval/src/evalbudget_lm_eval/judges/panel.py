"""The panel of a judged task, from the options of its filter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges import DEFAULT_ROTATION, PanelConfig, check_seed
from evalbudget.judges.schedules import JudgeSchedule, per_judge
from evalbudget_lm_eval.host.identity import telling_args
from evalbudget_lm_eval.judges.grading import Grading
from evalbudget_lm_eval.judges.judge_models import JudgeSpec, read_judges

OPTIONS: dict[str, Any] = {
    "judges": None,
    "rotation": DEFAULT_ROTATION,
    "prompt": None,
    "scale": (1, 5),
    "pattern": None,
    "gen_kwargs": None,
    "seed": 0,
    "category": "category",
    "prices": None,
}
"""Of the filter, with their defaults."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgePanel(PanelConfig):
    """Judges of a task, who of them scores what, and how.

    Attributes:
        specs: how each judge is asked.
        grading: prompt and scale.
        seed: of the schedule.
        category: field of the document within which judges are balanced, where it has one.
        key: the same for the same options.
    """

    specs: tuple[JudgeSpec, ...]
    grading: Grading
    seed: int
    category: str
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
        specs = read_judges(given["judges"], given["gen_kwargs"])
        seed = check_seed(given["seed"])
        prices = given["prices"]
        names = tuple(spec.name for spec in specs)
        grading = Grading.of(given["prompt"], given["scale"], given["pattern"])
        return cls(
            judges=names,
            rotation=str(given["rotation"]),
            prices=None if prices is None else tuple(per_judge("prices", prices, names).tolist()),
            specs=specs,
            grading=grading,
            seed=seed,
            category=str(given["category"]),
            key=json.dumps(given, sort_keys=True, default=repr),
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the scores, as JSON values: those of another panel cannot be mixed with them."""
        prompt = self.grading.prompt
        named = getattr(prompt, "__qualname__", "a function")
        told: dict[str, Any] = {
            "judges": [[j.name, j.kind, telling_args(j.args), j.gen_kwargs, j.is_chat] for j in self.specs],
            "rotation": [self.rotation, self.seed, self.category, self.prices],
            "prompt": sha256(str(prompt if isinstance(prompt, str) else named).encode()).hexdigest()[:8],
            "scale": [self.grading.low, self.grading.high, self.grading.pattern.pattern],
        }
        return dict(json.loads(json.dumps(told, default=str)))

    @property
    def is_stochastic(self) -> bool:
        """Whether judges may say something else of the same answer again."""
        return any(judge.temperature > 0 for judge in self.specs)

    def schedule_of(self, docs: Sequence[Mapping[str, Any]], epochs: int) -> JudgeSchedule:
        """Who scores what, balanced within the documents' categories."""
        labels = [str(doc.get(self.category, "")) for doc in docs]
        items = [str(i) for i in range(len(docs))]
        return self.schedule(items, categories=labels, epochs=max(epochs, 1), seed=self.seed)
