"""The price of one model, and what a call used."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from evalbudget.errors import InvalidInputError

_MILLION = 1e6
_MOST = 1e15


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call used, as its provider reports it.

    Attributes:
        input: tokens charged at the full rate; those read from or written to a cache are not among them.
        output: tokens, reasoning included.
        cached: input tokens read from a cache.
        written: input tokens written to a cache.
        seconds: that the call took, where time is what is paid for.
        cost: in US dollars, where the provider or the host says so itself; it stands above any price.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    seconds: float = 0.0
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input + self.output + self.cached + self.written

    @property
    def is_plausible(self) -> bool:
        """No negative or infinite number, and not nothing at all: a call that was answered read something."""
        numbers = (self.input, self.output, self.cached, self.written, self.seconds, self.cost or 0.0)
        return all(math.isfinite(n) and n >= 0 for n in numbers) and (self.tokens > 0 or bool(self.cost))


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs, in US dollars.

    Attributes:
        input: of a million input tokens.
        output: of a million output tokens, reasoning included.
        cached: of a million input tokens read from a cache; None for that of ``input``.
        written: of a million input tokens written to a cache; None for that of ``input``.
        call: of every call, whatever its length.
        second: of a second of computing, for models on one's own machines.
        max_output: output tokens that a reply has at most, where the call does not limit them.
        above: number of input tokens, cached ones included, above which this price holds; for tiers.
        tiers: prices of long contexts; of those whose ``above`` is passed, the last holds for the whole call.

    Raises:
        InvalidInputError: a price is no number, negative or above 1e15, or the tiers do not ascend.
    """

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    written: float | None = None
    call: float = 0.0
    second: float = 0.0
    max_output: int | None = None
    above: int = 0
    tiers: tuple[Price, ...] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, tuple) or (value is None and each.default is None):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidInputError(f"{each.name} is {value!r}; write a number")
            if not 0 <= value <= _MOST:
                raise InvalidInputError(
                    f"{each.name} is {str(value)[:20]}; write a number of zero or more, up to {_MOST:g}"
                )
        starts = [0, *(tier.above for tier in self.tiers)]
        if starts != sorted(set(starts)):
            raise InvalidInputError(
                f"tiers begin above {starts[1:]} input tokens; write them in ascending order, each once"
            )

    def cost(self, usage: Usage) -> float:
        r"""Of one call, in US dollars.

        .. math:: c = p_{call} + p_{second} t + 10^{-6}
                  (p_{in} n_{in} + p_{cached} n_{cached} + p_{written} n_{written} + p_{out} n_{out})
        """
        if usage.cost is not None:
            return usage.cost
        price = self._at(usage.input + usage.cached + usage.written)
        cached = price.input if price.cached is None else price.cached
        written = price.input if price.written is None else price.written
        tokens = (
            price.input * usage.input
            + cached * usage.cached
            + written * usage.written
            + price.output * usage.output
        )
        return self.call + self.second * usage.seconds + tokens / _MILLION

    def most(self, input_tokens: int, output_tokens: int, seconds: float = 0.0) -> float:
        """What a call costs at most, in US dollars.

        Args:
            input_tokens: that it has at most.
            output_tokens: that its reply has at most.
            seconds: that it takes at most, as far as anybody knows.
        """
        held = [self, *(tier for tier in self.tiers if tier.above < input_tokens)]
        dearest = max(max(tier.input, tier.cached or 0.0, tier.written or 0.0) for tier in held)
        reply = max(tier.output for tier in held)
        tokens = dearest * input_tokens + reply * output_tokens
        return self.call + self.second * seconds + tokens / _MILLION

    def _at(self, input_tokens: int) -> Price:
        return [self, *(tier for tier in self.tiers if tier.above < input_tokens)][-1]
