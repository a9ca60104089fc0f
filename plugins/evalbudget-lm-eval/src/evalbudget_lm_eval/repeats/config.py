"""What the user asked for, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats import DEFAULT_SAMPLER, DEFAULT_SAMPLER_OF_PANELS, Repeat, RepeatConfig

NO_JOURNAL = "none"
_OF_JUDGES = ("judges", "rotation", "judge_prices")


@dataclass(frozen=True)
class Config(RepeatConfig):
    """One budgeted run of lm-eval.

    Attributes:
        budget: calls of the model; ``20x`` is 20 answers per document; or money or tokens, of the model and
            its judges. None, for judges only: the host's own run, and no more.
        score: ``metric`` or ``metric,filter`` that drives the sampler; None for the first of each task.
        journal: path of the journal; None to choose one, ``none`` for no journal.
        dry_run: say what would be bought, and ask nobody.
        judges: what the user said of judges that score in place of the tasks' own metrics: ``judges``, and
            perhaps ``rotation`` and ``judge_prices``; None for the tasks' own.

    Raises:
        UnknownNameError: no such sampler, or it has no such option.
        BudgetError: the budget cannot be read.
        InvalidInputError: the sampler races models or refuses an option.
    """

    journal: str | None = None
    dry_run: bool = False
    judges: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        # here, since the command line is read long before the host is imported
        from evalbudget.hooks import plugins

        if plugins().question(self.sampler) == "races":
            raise InvalidInputError(
                f"sampler {self.sampler!r} races models and repeats nothing; use evalbudget lm-eval race "
                f"--arm name=model:args ..., or --sampler {DEFAULT_SAMPLER}"
            )
        super().__post_init__()

    @property
    def rotates(self) -> bool:
        """See RepeatConfig."""
        return self.judges is not None

    def _as_in_log(self, items: Sequence[str]) -> Sequence[str]:
        """See RepeatConfig; logs call documents task/number, or by the number alone if there is one task."""
        tasks, _, numbers = zip(*(item.rpartition(":") for item in items), strict=True)
        in_log = [f"{task}/{number}" for task, number in zip(tasks, numbers, strict=True)]
        names = (items, in_log, numbers) if len(set(tasks)) == 1 else (items, in_log)
        known = self._known_variances.keys()
        return next((each for each in names if known & set(each)), items)

    def _check_without_budget(self) -> None:
        super()._check_without_budget()
        of_budgets = {
            "--repeat judge": self.repeat is Repeat.JUDGE,
            "--score": self.score is not None,
            "--cluster": self.cluster is not None,
            "--journal": self.journal is not None,
            "--sampler_seed": self.seed != 0,
            "--sampler_option": bool(self.options),
        }
        for flag, given in of_budgets.items():
            if given:
                raise BudgetError(
                    f"{flag} needs a --budget: without one, judges score each answer of the host's own run, "
                    "and once"
                )

    @classmethod
    def of(cls, **typed: Any) -> Self:
        """See RunConfig."""
        judges = {name: typed.pop(name, None) for name in _OF_JUDGES}
        if not judges["judges"]:
            for name in _OF_JUDGES[1:]:
                if judges[name]:
                    raise InvalidInputError(
                        f"--{name} is for judges that take turns; name them with --judges MODEL:ARGS,..., or "
                        "say it in the task's YAML"
                    )
        elif not typed.get("sampler"):
            typed["sampler"] = DEFAULT_SAMPLER_OF_PANELS
        journal = typed.get("journal")
        changed = {
            "journal": None if journal is None else NO_JOURNAL if journal is False else str(journal),
            "dry_run": bool(typed.get("dry_run")),
        }
        return cls._of({**typed, **changed}, judges=judges if judges["judges"] else None)

    @classmethod
    def of_block(cls, block: Mapping[str, Any] | None, where: str) -> Config:
        """From the ``evalbudget:`` block of a task's YAML.

        Raises:
            InvalidInputError: the block is no mapping; and whatever :meth:`of` raises.
        """
        if not isinstance(block, Mapping):
            raise InvalidInputError(
                f"{where} has the block evalbudget: {block!r}; write "
                "evalbudget: {sampler: ..., budget: ...}"
            )
        return cls.of(**{str(name).replace("-", "_"): value for name, value in block.items()})
