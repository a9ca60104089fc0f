"""What calls of many models cost, in the unit of a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from evalbudget.budget import Unit
from evalbudget.errors import BudgetError
from evalbudget.prices._price import Price, Usage

_PER_MESSAGE = 16
"""Tokens that a template adds to a message at most, beside its text."""


def input_tokens_at_most(texts: Iterable[str]) -> int:
    """How many tokens these messages can be: no token is shorter than a byte.

    Args:
        texts: of the messages and of the descriptions of tools, one each.
    """
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    return sum(sizes) + _PER_MESSAGE * (1 + len(sizes))


@dataclass(frozen=True)
class Tariff:
    """What calls cost, in the unit of a budget: US dollars, or tokens.

    Attributes:
        unit: usd or tokens. In tokens every model costs the same, and no price is needed.
        prices: by model, with ``*`` for any text; the longest name that fits counts.
        beside: asked for models that ``prices`` does not name: what the host or a plugin knows.
    """

    unit: Unit
    prices: Mapping[str, Price] = field(default_factory=dict)
    beside: Callable[[str], Price | None] = lambda model: None

    def price(self, model: str) -> Price | None:
        """Of a model; None if nobody knows it."""
        if model in self.prices:
            return self.prices[model]
        fitting = [name for name in self.prices if fnmatchcase(model, name)]
        if fitting:
            return self.prices[max(fitting, key=len)]
        return self.beside(model)

    def check(self, models: Iterable[str]) -> None:
        """Refuse models without a price, before the first call.

        Raises:
            BudgetError: names them, with the lines to add.
        """
        if self.unit is Unit.TOKENS:
            return
        missing = [model for model in dict.fromkeys(models) if self.price(model) is None]
        if missing:
            lines = "".join(f"\n  {model}: {{input: ..., output: ...}}" for model in missing)
            raise BudgetError(
                f"no price is known for {', '.join(missing)}, so that a budget in dollars cannot be kept. "
                f"Add to a file, in dollars per million tokens, and give it by --prices:{lines}"
            )

    def told_of(self, models: Iterable[str]) -> dict[str, str]:
        """Prices of models as texts, which processes with the same prices have in common; none in tokens."""
        return {} if self.unit is Unit.TOKENS else {model: str(self.price(model)) for model in models}

    def cost(self, model: str, usage: Usage) -> float:
        """Of one call, in the unit of the budget.

        Raises:
            BudgetError: nobody knows its price.
        """
        if self.unit is Unit.TOKENS:
            return float(usage.tokens)
        if usage.cost is not None:
            return usage.cost
        return self._known(model).cost(usage)

    def most(self, model: str, input_tokens: int, output_tokens: int | None, seconds: float = 0.0) -> float:
        """What a call costs at most, in the unit of the budget.

        Args:
            model: that is asked.
            input_tokens: that the call has at most.
            output_tokens: that its reply has at most; None for what the price says.
            seconds: that it takes at most, as far as anybody knows; for prices of time.

        Raises:
            BudgetError: nobody knows the price, or nothing limits the reply.
        """
        price = self.price(model) if self.unit is Unit.TOKENS else self._known(model)
        if output_tokens is None and price is not None:
            output_tokens = price.max_output
        if output_tokens is None:
            raise BudgetError(
                f"nothing limits the length of replies of {model}, so that no budget can be kept. Limit it "
                f"(--max-tokens on inspect, --gen_kwargs max_gen_toks=... on lm-eval), or add max_output to "
                f"its line in the file of --prices"
            )
        if self.unit is Unit.TOKENS or price is None:
            return float(input_tokens + output_tokens)
        return price.most(input_tokens, output_tokens, seconds)

    def _known(self, model: str) -> Price:
        price = self.price(model)
        if price is None:
            self.check([model])
            raise AssertionError(model)
        return price
