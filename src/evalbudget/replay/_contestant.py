"""Contestants: sampler classes with the arguments a backtest gives them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError, UnknownNameError, did_you_mean
from evalbudget.hooks._plugins import plugins
from evalbudget.sampler import Kind, Sampler

if TYPE_CHECKING:
    from evalbudget.repeats.backtest._pool import Pool

_OURS = ("design", "seed")


@dataclass(frozen=True, slots=True)
class Contestant:
    """One sampler class, and what its constructor can take.

    A constructor always gets ``design`` and ``seed``. By the names of its parameters it also gets
    ``objective``; ``variances``, the true variance of each item, for samplers that are meant to know it
    (robin); and ``budget``, the number of readings, for samplers that plan with it, unless the budget is in
    money. Options given by the user replace all of these.

    Attributes:
        sampler: the class.
        options: keyword arguments for it.
        accepts: names of its parameters.
    """

    sampler: type[Sampler]
    options: Mapping[str, Any] = field(default_factory=dict)
    accepts: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Of the sampler."""
        return self.sampler.name

    @property
    def plans_with_budget(self) -> bool:
        """Whether a run to a larger budget says nothing of smaller ones."""
        return "budget" in self.accepts and "budget" not in self.options

    def groups(self, amounts: Iterable[int]) -> list[tuple[int, ...]]:
        """Budgets that one run serves."""
        increasing = tuple(sorted(set(amounts)))
        return [(amount,) for amount in increasing] if self.plans_with_budget else [increasing]

    def build(self, pool: Pool, *, objective: str, seed: int, budget: int | None) -> Sampler:
        """A fresh sampler for one replay."""
        known: dict[str, Any] = {"objective": objective, "variances": pool.variances.tolist()}
        if budget is not None:
            known["budget"] = budget
        return self.construct(pool.design, seed=seed, known=known)

    def construct(self, design: Design, *, seed: int, known: Mapping[str, Any]) -> Sampler:
        """A fresh sampler that is given what it has parameters for."""
        given = {name: value for name, value in known.items() if name in self.accepts}
        return self.sampler(design, **{**given, "seed": seed, **self.options})


def contestants(
    samplers: Sequence[str | type[Sampler]],
    options: Mapping[str, Mapping[str, Any]],
    kind: Kind = Kind.REPEATS,
) -> tuple[Contestant, ...]:
    """Look names up and check options.

    Args:
        samplers: names or classes.
        options: further arguments by name of sampler.
        kind: what the samplers spread their budget over.

    Raises:
        UnknownNameError: no such sampler, or options for one that does not take part.
        InvalidInputError: no sampler, one twice, or an option that its constructor does not have.
    """
    classes = [plugins().sampler(s, kind) if isinstance(s, str) else s for s in samplers]
    require_entrants([cls.name for cls in classes], options)
    return tuple(_contestant(cls, options.get(cls.name, {})) for cls in classes)


def require_entrants(names: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a list of names that is empty or has one twice, and options of others.

    Raises:
        UnknownNameError: options for one that does not take part.
        InvalidInputError: no name, or one twice.
    """
    if not names:
        raise InvalidInputError(
            "no samplers to compare; give at least one, for example uniform and eb-bernstein"
        )
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"sampler {name!r} is listed {names.count(name)} times; list it once")
    for name in options:
        if name not in names:
            raise UnknownNameError("sampler in sampler_options", name, names)


def require_options(
    sampler: str, options: Collection[str], accepts: Collection[str], ours: Collection[str]
) -> None:
    """Refuse options that a backtest sets itself or that do not exist.

    Raises:
        InvalidInputError: says which.
    """
    for name in options:
        if name in ours:
            raise InvalidInputError(
                f"sampler_options[{sampler!r}] sets {name!r}, which the backtest sets itself"
            )
        if name not in accepts:
            hint = did_you_mean(name, set(accepts) - set(ours))
            raise InvalidInputError(f"sampler {sampler!r} has no option {name!r}.{hint}")


def _contestant(cls: type[Sampler], options: Mapping[str, Any]) -> Contestant:
    parameters = inspect.signature(cls).parameters.values()
    accepts = frozenset(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    require_options(cls.name, options, {*accepts, *(options if anything else ())}, _OURS)
    return Contestant(cls, dict(options), accepts)


_MOST = 1_000_000


def checked_seeds(seeds: Iterable[int] | int) -> list[int]:
    """The seeds of all replays; InvalidInputError if there are none, or not of the kind."""
    if isinstance(seeds, int) and seeds < 1:
        raise InvalidInputError(f"seeds is {seeds}; give at least 1")
    if isinstance(seeds, int) and seeds > _MOST:
        raise InvalidInputError(f"seeds is {str(seeds)[:20]}...; give at most {_MOST:,}, one replay each")
    result = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not result:
        raise InvalidInputError("there are no seeds; give at least 1")
    if min(result) < 0 or len(set(result)) != len(result):
        raise InvalidInputError("seeds must be different integers of at least 0")
    return result
