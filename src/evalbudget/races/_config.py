"""What the user asked of a race, checked before anything runs."""

from __future__ import annotations

import inspect as introspection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from evalbudget import Budget, Design
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.missing import Missing, as_missing
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import RacingSampler
from evalbudget.run._config import RunConfig
from evalbudget.sampler import Kind
from evalbudget.until import parse_until

DEFAULT_SAMPLER = "race"
TO_A_WIDTH = "visit"
"""The sampler that goes on until means are known."""
DELTA = 0.05
"""Probability of naming a wrong model as the best, where the user gave none."""
_NOT_OPTIONS = ("design", "seed", "score_range", "missing", "predictor", "budget")


@dataclass(frozen=True)
class RaceConfig(RunConfig):
    """One race.

    Attributes:
        budget: ``20x`` and ``5%`` wait for the numbers of items and models. None, with ``until_proved`` only,
            for the whole grid.
        score_range: None means 0 to 1.
        history: file or folder of earlier scores; None for none.
        until: ``±0.02`` to go on until every model's mean is known that well; None for another end.
        store: where processes that run some arms each meet; None where one process runs all arms.
        all_arms: how many arms race, over all these processes.
        missing: what an item that was given up for a model counts as (:class:`~evalbudget.missing.Missing`).
        lower_is_better: of the score; samplers are told scores turned round in their range.

    Raises:
        UnknownNameError: no such sampler of models, or it has no such option.
        BudgetError: the budget cannot be read.
        InvalidInputError: the sampler refuses an option, or the history does not exist.
    """

    sampler: str = DEFAULT_SAMPLER
    history: str | None = None
    until: str | None = None
    store: str | None = None
    all_arms: int | None = None
    missing: str = Missing.WORST.value
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if self.budget is None and not self.until_proved and self.until is None:
            raise BudgetError(
                "a race needs a budget: the scores to buy, of all models together (5000), or per item (20x); "
                "or --until-proved, which goes on until the best is proved"
            )
        if self.until is not None and self.until_proved:
            raise InvalidInputError(
                "--until goes on until scores are known, and --until-proved until it is known who is best; "
                "give one of them"
            )
        as_missing(self.missing)
        self.resolve_budget(1_000_000, 1_000_000)
        self._check_money()
        self._check_store()
        self._check_options(self._class, _NOT_OPTIONS)
        if self.history is not None and not Path(self.history).exists():
            raise InvalidInputError(
                f"--history {self.history} does not exist (looked from {Path.cwd()}); give a folder of logs, "
                "a file of recorded scores or a file of factors"
            )
        if not self.uses_history or self.history is None:
            self.make_sampler(Design(items=("a", "b"), models=("a", "b")))  # refuse bad options now

    def _check_store(self) -> None:
        """Refuse what processes that share a race cannot do."""
        if (self.store is None) != (self.all_arms is None):
            raise InvalidInputError(
                "--store and --all-arms go together: where the processes meet, and how many arms race over "
                "all of them"
            )
        if self.store is None or self.all_arms is None:
            return
        # it brings SQLAlchemy, which no other race needs
        from evalbudget.store import Address

        if self.all_arms < 2:
            raise InvalidInputError(f"--all-arms is {self.all_arms}; a race needs 2 arms or more")
        Address.parse(self.store).check_usable()
        if self.history is not None:
            raise InvalidInputError("processes that share a race take no --history; drop one of the two")

    @property
    def _class(self) -> type[RacingSampler]:
        cls = plugins().sampler(self.sampler, Kind.MODELS)
        if not issubclass(cls, RacingSampler):
            raise InvalidInputError(
                f"sampler {self.sampler!r} is no RacingSampler, so a race cannot tell what it has decided; "
                "derive it from evalbudget.races.samplers.RacingSampler"
            )
        return cls

    @property
    def uses_history(self) -> bool:
        """Whether the sampler can do anything with predictions."""
        return "predictor" in introspection.signature(self._class).parameters

    @property
    def until_proved(self) -> bool:
        """Whether the sampler goes on until the best model is proved, within the budget."""
        return bool(self.options.get("until_proved", False))

    @property
    def takes_one(self) -> bool:
        """Whether a single model in this process is enough."""
        return self.store is not None or self._class.takes_one

    @property
    def level(self) -> float:
        """Of what is said about the best model: 1 - delta."""
        return 1.0 - float(self.options.get("delta") or DELTA)

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible score."""
        return self.score_range or (0.0, 1.0)

    def turned(self, score: float) -> float:
        """A score of the task as samplers have it, the larger the better; and back."""
        return sum(self.bounds) - score if self.lower_is_better else score

    def resolve_budget(self, n_items: int, n_models: int) -> Budget:
        """The budget: ``x`` multiplies the items, ``%`` is a share of all models x items."""
        if self.budget is None:
            return Budget(n_items * n_models)
        return Budget.parse(self.budget, n_items=n_items, n_cells=n_items * n_models)

    def make_sampler(
        self, design: Design, *, budget: int | None = None, predictor: FactorModel | None = None
    ) -> RacingSampler:
        """A fresh sampler.

        Args:
            design: the models, or arms, and the items.
            budget: readings in all, for samplers that plan for it.
            predictor: learned from history.
        """
        known = {"budget": budget, "predictor": predictor}
        return self._construct(self._class, design, known, score_range=self.bounds, missing=self.missing)

    @classmethod
    def of(cls, **typed: Any) -> Self:
        """See RunConfig; "not until proved" is what every sampler does that knows nothing of it."""
        history = typed.get("history")
        if typed.get("until"):
            goal = parse_until(typed["until"])
            if goal.of_items:
                raise InvalidInputError(
                    f"--until {typed['until']} is about single items, which a race asks once; it is for "
                    "evalbudget inspect eval and evalbudget lm-eval run, and here --until ±0.02 for means"
                )
            typed = {"sampler": TO_A_WIDTH, **{k: v for k, v in typed.items() if v is not None}}
            typed["half_width"] = goal.half_width
        changed = {
            "until_proved": typed.get("until_proved") or None,
            "history": None if history in (None, False) else str(history),
        }
        return cls._of({**typed, **changed})
