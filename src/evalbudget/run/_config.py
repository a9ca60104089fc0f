"""What the user asked of a run: the settings that every run has, whatever it decides."""

from __future__ import annotations

import inspect as introspection
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self, TypeVar

from evalbudget.budget import Budget, Unit
from evalbudget.design import Design
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import plugins
from evalbudget.prices import Price, Tariff, read_prices
from evalbudget.sampler import Sampler
from evalbudget.scale import parse_range

S = TypeVar("S", bound=Sampler)


@dataclass(frozen=True)
class RunConfig:
    """One run with a budget.

    Attributes:
        budget: as the user wrote it; ``20x`` waits for the number of items. None where a run may go without.
        sampler: registered name.
        score: which score decides; None for the first.
        seed: of the sampler.
        score_range: the smallest and the largest possible score; None if not declared.
        prices: file of prices, for a budget in money; None where the host knows them.
        risk: the accepted chance that the last calls exceed a budget in money or tokens.
        options: further arguments of the sampler.
    """

    budget: str | int | None
    sampler: str
    score: str | None = None
    seed: int = 0
    score_range: tuple[float, float] | None = None
    prices: str | None = None
    risk: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, **typed: Any) -> Self:
        """From what a user typed; nothing typed means the default, and what is no setting is an option.

        Raises:
            BudgetError: no budget was given, and the run cannot go without.
            InvalidInputError: a score range that is none.
        """
        return cls._of(typed)

    @classmethod
    def _of(cls, typed: Mapping[str, Any], **made: Any) -> Self:
        """The same; ``made`` are settings that nobody types."""
        settings = {f.name for f in fields(cls)} - {"options", *made}
        options = {name: v for name, v in typed.items() if name not in settings and v is not None}
        # a flag given as an empty word, as by a variable of the shell that is not set, is not given
        given = {
            name: v
            for name, v in typed.items()
            if name in settings and v is not None and v is not False and not (isinstance(v, str) and not v)
        }
        given["seed"] = given.get("seed") or 0
        if "estimators" in given:
            named = given["estimators"]
            parts = named.split(",") if isinstance(named, str) else named
            given["estimators"] = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
        if "score_range" in given:
            given["score_range"] = parse_range(given["score_range"])
        return cls(**{"budget": None, **given, **made}, options=options)

    @property
    def as_json(self) -> dict[str, Any]:
        """What the user asked for, as JSON values."""
        return {
            "sampler": self.sampler,
            "budget": self.budget,
            "score": self.score,
            "score_range": list(self.score_range) if self.score_range else None,
            "seed": self.seed,
            "options": json.loads(json.dumps(dict(self.options), default=str)),
        }

    def _check_options(self, cls: type[Sampler], taken: tuple[str, ...]) -> None:
        """Refuse options that the sampler does not have; those in ``taken`` are not the user's."""
        known = [name for name in introspection.signature(cls).parameters if name not in taken]
        for option in self.options:
            if option not in known:
                raise UnknownNameError(f"option of sampler {self.sampler!r}", option, known)

    @cached_property
    def unit(self) -> Unit:
        """What the budget counts; scores where there is none."""
        return (
            Unit.SCORES
            if self.budget is None
            else Budget.parse(self.budget, n_items=1_000_000, n_cells=1_000_000).unit
        )

    @property
    def in_scores(self) -> bool:
        """Whether the budget counts scores, not money or tokens."""
        return self.unit is Unit.SCORES

    def tariff(self, beside: Callable[[str], Price | None] = lambda model: None) -> Tariff:
        """What calls cost, in the unit of the budget: by the price file, the host, a plugin, in this order.

        Args:
            beside: what the host knows of a model.

        Raises:
            InvalidInputError: the price file cannot be read.
        """
        return Tariff(
            self.unit, self._read_prices(), lambda model: beside(model) or plugins().price_of(model)
        )

    def _check_money(self) -> None:
        """Refuse what is said of money where none is budgeted, and prices that cannot be read."""
        if not 0.0 <= self.risk < 1.0:
            raise InvalidInputError(f"--risk is {self.risk:g}; write a chance, such as 0.01")
        for flag, given in {"--prices": self.prices is not None, "--risk": self.risk > 0.0}.items():
            if given and self.in_scores:
                raise BudgetError(
                    f"{flag} is for a budget in money or tokens; write --budget '$5' or --budget 2Mtok, or "
                    f"drop {flag}"
                )
        self._read_prices()

    def _read_prices(self) -> dict[str, Price]:
        if self.prices is None:
            return {}
        return read_prices(self.prices, in_tokens=self.unit is Unit.TOKENS)

    def _construct(self, cls: type[S], design: Design, known: Mapping[str, Any], **more: Any) -> S:
        """A fresh sampler; of what is ``known`` it is told what it has parameters for."""
        takes = introspection.signature(cls).parameters
        told = {name: value for name, value in known.items() if name in takes and value is not None}
        try:
            return cls(design, **{**self.options, **told, **more, "seed": self.seed})
        except TypeError as ex:
            raise InvalidInputError(f"sampler {self.sampler!r} refuses its options: {ex}") from ex
