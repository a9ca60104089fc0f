"""What the user asked of comparisons that are bought, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Self

from evalbudget.budget import Budget, Unit
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.hooks import plugins
from evalbudget.statistics import check_level
from evalbudget_pairwise._prompt import TEMPLATE, check_template, read_template
from evalbudget_pairwise.samplers import PAIRS, PairSampler

SAMPLER = "duel"
_OWN = ("design", "seed", "options", "delta", "until_proved")


@dataclass(frozen=True)
class PairwiseConfig:
    """One purchase of preferences.

    Attributes:
        budget: calls of the judge; None for all comparisons, with ``until_proved``.
        sampler: registered name of a sampler of pairs.
        seed: of the order of items.
        until_proved: stop once a winner is proved.
        level: of intervals, and of all that is proved.
        template: what the judge is asked.
        options: of the sampler.

    Raises:
        InvalidInputError: no budget, or one in money; a template without the answers; see also the sampler.
        UnknownNameError: no such sampler, or it has no such option.
    """

    budget: str | int | None = None
    sampler: str = SAMPLER
    seed: int = 0
    until_proved: bool = False
    level: float = 0.95
    template: str = TEMPLATE
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.budget is None and not self.until_proved:
            raise InvalidInputError(
                "give --budget, the number of comparisons to buy, for example --budget 400, or --until-proved"
            )
        if self.budget is not None:
            self.resolve_budget(1_000_000, 1_000)
        check_level(self.level)
        check_template(self.template)
        cls = plugins().sampler(self.sampler, PAIRS)
        if not issubclass(cls, PairSampler):
            raise InvalidInputError(
                f"sampler {self.sampler!r} is of pairs but no PairSampler, so it cannot say what it proves; "
                "subclass evalbudget_pairwise.samplers.PairSampler"
            )
        known = [name for name in (*signature(cls).parameters, "orders", "batch") if name not in _OWN]
        for name in self.options:
            if name not in known:
                raise UnknownNameError(f"option of sampler {self.sampler!r}", name, set(known))

    @classmethod
    def of(cls, /, **typed: Any) -> Self:
        """From what was typed: None was not given, and names of no field are options of the sampler.

        Args:
            typed: as the attributes, but ``template`` is the path of a file.
        """
        given = {name: value for name, value in typed.items() if value is not None}
        names = cls.__dataclass_fields__.keys() - {"options"}
        own = {name: given.pop(name) for name in tuple(given) if name in names}
        if "template" in own:
            own["template"] = read_template(own["template"])
        return cls(**own, options=given)

    def resolve_budget(self, n_items: int, n_models: int) -> Budget:
        """Calls of the judge.

        Raises:
            BudgetError: it is no number of calls.
        """
        most = n_models * (n_models - 1) * n_items
        if self.budget is None:
            return Budget(max(most, 1))
        found = Budget.parse(self.budget, n_items=n_items, n_cells=max(most, 1))
        if found.unit is not Unit.SCORES:
            raise BudgetError(
                f"--budget {self.budget}: comparisons are bought by number, not by money or tokens; give the "
                "number of calls of the judge, for example 400"
            )
        return found
