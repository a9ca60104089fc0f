"""The judges that take turns, as the user named them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalbudget.errors import InvalidInputError
from evalbudget.judges import DEFAULT_ROTATION, PanelConfig
from evalbudget.judges.estimates import same_models
from evalbudget.judges.schedules import parse_prices, per_judge
from evalbudget_inspect.judges.judge_names import JudgeModel, Judges, read_judges

DEFAULT_ROLE = "grader"

Prices = str | Sequence[str] | Mapping[str, float]

_NO_PRICE = (
    "judge prices {entry!r}: write each judge once as JUDGE=PRICE, for example "
    "openai/gpt-5=5,openai/gpt-5-mini=1"
)


@dataclass(frozen=True, eq=False)
class Panel(PanelConfig):
    """Judges of a run, and who of them scores what.

    Attributes:
        models: one per judge, in the same order; empty where the judges are scorers.
        role: the role by which the task's scorers ask for their judge.
        owner: the scorer that asks these judges by itself; None where they take turns in the role.
    """

    models: tuple[JudgeModel, ...] = ()
    role: str = DEFAULT_ROLE
    owner: object | None = None

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
        names = tuple(judge.name for judge in models)
        panel = cls(names, rotation or DEFAULT_ROTATION, models=models, role=role or DEFAULT_ROLE)
        return panel.at(prices)

    def at(self, prices: Prices | None) -> Panel:
        """The same panel at these prices.

        Raises:
            UnknownNameError: a price for a judge that is not in the panel.
            InvalidInputError: a judge without a price, or a price that is none.
        """
        if prices is None:
            return self
        if not isinstance(prices, Mapping):
            entries = prices.split(",") if isinstance(prices, str) else map(str, prices)
            prices = parse_prices(entries, wrong=_NO_PRICE, twice=_NO_PRICE)
        return replace(self, prices=tuple(per_judge("judge prices", prices, self.judges).tolist()))

    @property
    def model_names(self) -> dict[str, str]:
        """The model behind each judge, as inspect names it; empty where the judges are scorers."""
        return {judge.name: str(judge.model) for judge in self.models}

    @property
    def unused(self) -> str:
        """What to say where no scorer asks these judges."""
        return (
            f"no scorer of this task asks for the role {self.role!r}, so the judges {', '.join(self.judges)} "
            "score nothing and the estimate is not theirs. Name the role it asks for with --judge-role, or "
            "drop --judges; a scorer with a model of its own (model=...) cannot be rotated"
        )

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
