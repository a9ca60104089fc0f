"""The judges that take turns, as the user named them."""

from __future__ import annotations

import inspect as introspection
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalbudget.errors import InvalidInputError
from evalbudget.hooks.plugins import plugins
from evalbudget.judges.estimates import same_models
from evalbudget.judges.schedules import JudgeSchedule
from evalbudget.judges.schedules.panel import per_judge
from evalbudget_inspect.judges.judges import JudgeModel, Judges, read_judges

DEFAULT_ROTATION = "cyclic"
DEFAULT_ROLE = "grader"

Prices = str | Sequence[str] | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Panel:
    """Judges, and who of them scores what.

    Attributes:
        judges: names.
        models: one per judge, in the same order; empty where the judges are scorers.
        rotation: registered schedule.
        role: the role by which the task's scorers ask for their judge.
        prices: of one call of each judge, in the same order; None if not given.
        owner: the scorer that asks these judges by itself; None where they take turns in the role.

    Raises:
        UnknownNameError: no such rotation, or a price for a judge that is not in the panel.
        InvalidInputError: too few judges for the rotation, one listed twice, or without a price.
    """

    judges: tuple[str, ...]
    models: tuple[JudgeModel, ...]
    rotation: str = DEFAULT_ROTATION
    role: str = DEFAULT_ROLE
    prices: tuple[float, ...] | None = None
    owner: object | None = None

    def __post_init__(self) -> None:
        self.schedule(["any"])  # refuse what is no good now, not in the middle of a run

    def schedule(
        self, items: Sequence[str], *, categories: Sequence[str] | None = None, epochs: int = 1, seed: int = 0
    ) -> JudgeSchedule:
        """Who scores what, for these items."""
        cls = plugins().schedule(self.rotation)
        if "prices" in introspection.signature(cls).parameters:
            return cls(  # type: ignore[call-arg]  # the protocol has no prices; this schedule does
                items, self.judges, categories=categories, epochs=epochs, seed=seed, prices=self.prices
            )
        return cls(items, self.judges, categories=categories, epochs=epochs, seed=seed)

    @property
    def weighs_judges(self) -> bool:
        """Whether every judge weighs the same in the estimate, whatever its number of calls."""
        return plugins().schedule(self.rotation).weighs_judges

    @property
    def calls_per_generation(self) -> int:
        """How many judges the rotation wants to score the same generation."""
        return self.schedule(["any"]).calls_per_generation

    @classmethod
    def of(
        cls,
        judges: Judges | None,
        *,
        rotation: str | None = None,
        prices: Prices | None = None,
        role: str | None = None,
    ) -> Panel | None:
        """From what a user typed; None without judges.

        Raises:
            InvalidInputError: an option of a panel without a panel.
        """
        if judges is None:
            given = {"--rotation": rotation, "--judge-prices": prices, "--judge-role": role}
            for flag, value in given.items():
                if value is not None:
                    raise InvalidInputError(
                        f"{flag} is for judges that take turns; name them with --judges a,b,c"
                    )
            return None
        models = read_judges(judges)
        panel = cls(
            tuple(judge.name for judge in models), models, rotation or DEFAULT_ROTATION, role or DEFAULT_ROLE
        )
        return panel.at(prices)

    def at(self, prices: Prices | None) -> Panel:
        """The same panel at these prices.

        Raises:
            UnknownNameError: a price for a judge that is not in the panel.
            InvalidInputError: a judge without a price, or a price that is none.
        """
        if prices is None:
            return self
        paid = per_judge("judge prices", parse_prices(prices), self.judges).tolist()
        return replace(self, prices=tuple(paid))

    @property
    def model_names(self) -> dict[str, str]:
        """The model behind each judge, as inspect names it; empty where the judges are scorers."""
        return {judge.name: str(judge.model) for judge in self.models}

    def judging_itself(self, model: str) -> str | None:
        """A warning if the model judged is among the judges."""
        names = self.model_names
        same = same_models(list(names.values()), [model])
        own = [judge for judge, behind in names.items() if behind in same]
        if not own:
            return None
        return (
            f"judge {', '.join(map(repr, own))} is the model judged ({model}) and may favour itself: its "
            "bias_ row shows how far it is from the others, on this model alone; compare with other models"
        )


def parse_prices(prices: Prices) -> Mapping[str, float]:
    """Read ``a=1,b=5``.

    Raises:
        InvalidInputError: an entry that is not JUDGE=NUMBER, or a judge twice.
    """
    if isinstance(prices, Mapping):
        return prices
    found: dict[str, float] = {}
    for entry in prices.split(",") if isinstance(prices, str) else prices:
        name, _, number = str(entry).strip().rpartition("=")
        try:
            price = float(number)
        except ValueError:
            name, price = "", 0.0
        if not name or name in found:
            raise InvalidInputError(
                f"judge prices {entry!r}: write each judge once as JUDGE=PRICE, for example "
                "openai/gpt-5=5,openai/gpt-5-mini=1"
            )
        found[name] = price
    return found
