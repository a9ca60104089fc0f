"""What the user asked of a race, checked before anything runs."""

from __future__ import annotations

import inspect as introspection
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalbudget import Budget, Design, Unit
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import get_sampler
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import RacingSampler
from evalbudget.sampler import Kind
from evalbudget.scale import parse_range

DEFAULT_SAMPLER = "race"
DELTA = 0.05
"""Probability of naming a wrong model as the best, where the user gave none."""
_NOT_OPTIONS = ("design", "seed", "score_range", "predictor", "budget")


@dataclass(frozen=True)
class RaceConfig:
    """One race.

    Attributes:
        budget: as the user wrote it; ``20x`` and ``5%`` wait for the numbers of items and models. None, with
            ``until_proved`` only, for the whole grid.
        sampler: registered name, of a sampler of models.
        score: which scorer decides; None for the first.
        seed: of the sampler.
        score_range: the smallest and the largest possible score; None means 0 to 1.
        history: file or folder of earlier scores; None for none.
        options: further arguments of the sampler.

    Raises:
        UnknownNameError: no such sampler of models, or it has no such option.
        BudgetError: the budget cannot be read, or is not counted in scores.
        InvalidInputError: the sampler refuses an option, or the history does not exist.
    """

    budget: str | int | None
    sampler: str = DEFAULT_SAMPLER
    score: str | None = None
    seed: int = 0
    score_range: tuple[float, float] | None = None
    history: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.budget is None and not self.until_proved:
            raise BudgetError(
                "a race needs a budget: the scores to buy, of all models together (5000), or per item (20x); "
                "or --until-proved, which goes on until the best is proved"
            )
        self.resolve_budget(1_000_000, 1_000_000)
        known = [name for name in self._parameters if name not in _NOT_OPTIONS]
        for option in self.options:
            if option not in known:
                raise UnknownNameError(f"option of sampler {self.sampler!r}", option, known)
        if self.history is not None and not Path(self.history).exists():
            raise InvalidInputError(
                f"--history {self.history} does not exist (looked from {Path.cwd()}); give a folder of logs, "
                "a file of recorded scores or a file of factors"
            )
        if "predictor" not in self._parameters or self.history is None:
            self.make_sampler(Design(items=("a", "b"), models=("a", "b")))  # refuse bad options now

    @property
    def _class(self) -> type[RacingSampler]:
        cls = get_sampler(self.sampler, Kind.MODELS)
        if not issubclass(cls, RacingSampler):
            raise InvalidInputError(
                f"sampler {self.sampler!r} is no RacingSampler, so a race cannot tell what it has decided; "
                "derive it from evalbudget.repeats.samplers.RacingSampler"
            )
        return cls

    @property
    def _parameters(self) -> Mapping[str, introspection.Parameter]:
        return introspection.signature(self._class).parameters

    @property
    def uses_history(self) -> bool:
        """Whether the sampler can do anything with predictions."""
        return "predictor" in self._parameters

    @property
    def until_proved(self) -> bool:
        """Whether the sampler goes on until the best model is proved, within the budget."""
        return bool(self.options.get("until_proved", False))

    @property
    def level(self) -> float:
        """Of what is said about the best model: 1 - delta."""
        return 1.0 - float(self.options.get("delta") or DELTA)

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible score."""
        return self.score_range or (0.0, 1.0)

    def resolve_budget(self, n_items: int, n_models: int) -> Budget:
        """The budget in scores: ``x`` multiplies the items, ``%`` is a share of all models x items."""
        if self.budget is None:
            return Budget(n_items * n_models)
        budget = Budget.parse(self.budget, n_items=n_items, n_cells=n_items * n_models)
        if budget.unit is not Unit.SCORES:
            raise BudgetError(
                f"budget {self.budget!r} is counted in {budget.unit.value}, but a race is budgeted in scores "
                "so far; write a number of scores (5000), scores per item (20x) or a share of all (5%)"
            )
        return budget

    def make_sampler(
        self, design: Design, *, budget: int | None = None, predictor: FactorModel | None = None
    ) -> RacingSampler:
        """A fresh sampler.

        Args:
            design: the models, or arms, and the items.
            budget: readings in all, for samplers that plan for it.
            predictor: learned from history.
        """
        arguments: dict[str, Any] = dict(self.options)
        if budget is not None and "budget" in self._parameters:
            arguments["budget"] = budget
        if predictor is not None and self.uses_history:
            arguments["predictor"] = predictor
        try:
            return self._class(design, seed=self.seed, score_range=self.bounds, **arguments)
        except TypeError as ex:
            raise InvalidInputError(f"sampler {self.sampler!r} refuses its options: {ex}") from ex

    @classmethod
    def of(
        cls,
        *,
        budget: str | int | None = None,
        sampler: str | None = None,
        score: str | None = None,
        seed: int | None = None,
        score_range: str | Sequence[float] | None = None,
        history: str | None = None,
        **options: Any,
    ) -> RaceConfig:
        """From what a user typed; None means the default.

        Raises:
            BudgetError: no budget was given.
            InvalidInputError: a score range that is none.
        """
        return cls(
            budget=budget,
            sampler=sampler or DEFAULT_SAMPLER,
            score=score,
            seed=seed or 0,
            score_range=None if score_range is None else parse_range(score_range),
            history=None if history is None else str(history),
            # "not until proved" is what every sampler does that knows nothing of it
            options={k: v for k, v in options.items() if v is not None and (k, v) != ("until_proved", False)},
        )
