"""What the user asked of a budgeted run of one model, checked before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from evalbudget.budget import Budget
from evalbudget.design import Design
from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded._questions import Matched, match_questions
from evalbudget.repeats._repeat import Repeat
from evalbudget.repeats._variances import KnownVariances, in_order, read_variances
from evalbudget.repeats.samplers import RepeatSampler, Robin, Sample
from evalbudget.run._config import RunConfig
from evalbudget.sampler import Allocation
from evalbudget.until import Until, parse_until

if TYPE_CHECKING:
    from evalbudget.repeats.estimates import Estimator

DEFAULT_SAMPLER = "auto"
DEFAULT_SAMPLER_OF_PANELS = "uniform"
_TOLD = {
    "phases": "scores bought in phases that decide nothing about themselves, and sampler {sampler!r} has "
    "none; use --sampler auto",
    "even repeats": "every item asked equally often, and sampler {sampler!r} goes by scores; use --sampler "
    "uniform",
    "score range": "the smallest and the largest possible score; declare them, for example --score-range "
    "1..10",
}
_NOT_OPTIONS = ("design", "seed", "warmup", "budget", "variances")


@dataclass(frozen=True)
class RepeatConfig(RunConfig):
    """One budgeted run; hosts add what only they have.

    Attributes:
        estimators: names of further ones, whose rows are wanted.
        scorer: of a plugin, in place of the task's own; its range is declared with it. None for the task's.
        until: ``item±0.5`` to end once every item is known that well; None for when the budget is used up.
        strata: field of the items by whose values a sample of them is drawn in proportion; None for none.
        cluster: field of the items; those with the same value are of one cluster, and not independent of each
            other. None for what the task declares, or for independent items.
        variances: file, or log of earlier readings, that says how much each item's readings vary; None where
            that is not known. Unless somebody named a sampler it is ``robin``.
        store: where processes that share the budget meet; None where one process has it.
        repeat: what a repeat repeats.
        named: somebody named the sampler, so that no other one may take its place.

    Raises:
        UnknownNameError: no such sampler, scorer or estimator, or the sampler has no such option.
        BudgetError: the budget cannot be read.
        InvalidInputError: the sampler refuses an option's value, or has not what an estimator needs.
    """

    sampler: str = DEFAULT_SAMPLER
    estimators: tuple[str, ...] = ()
    scorer: str | None = None
    until: str | None = None
    strata: str | None = None
    cluster: str | None = None
    variances: str | None = None
    store: str | None = None
    repeat: Repeat = Repeat.GENERATION
    named: bool = True

    def __post_init__(self) -> None:
        if self.budget is None:
            self._check_without_budget()
        else:
            self.resolve_budget(1_000_000)
        self._check_money()
        if self.variances is not None and self.sampler != Robin.name:
            raise InvalidInputError(
                f"--variances {self.variances} says how much items vary, and sampler {self.sampler!r} learns "
                f"that itself; use --sampler {Robin.name}, or drop --variances"
            )
        self._check_options(plugins().sampler(self.sampler), _NOT_OPTIONS)
        if self.until is not None:
            self._check_until(parse_until(self.until))
        if self.strata is not None and not (self.draws or self.may_draw):
            raise InvalidInputError(
                f"--strata {self.strata} says how a sample of the items is drawn, and sampler "
                f"{self.sampler!r} reads every item; use --sampler {Sample.name}, or drop --strata"
            )
        self._trial  # noqa: B018  (refuse bad options now, not in the middle of a run)
        self._known_variances  # noqa: B018
        self._check_estimators()
        self._check_scorers()
        if self.store is not None:
            self._check_store(self.store)

    @classmethod
    def _of(cls, typed: Mapping[str, Any], **made: Any) -> Self:
        """See RunConfig."""
        if typed.get("store") is not None:
            typed = {**typed, "store": str(typed["store"])}
            if not typed["store"]:  # by a variable of the shell that is not set
                raise InvalidInputError(
                    "--store is empty, so that every process would spend the whole budget; write where they "
                    "meet, a file or postgresql://user@host/database#name, or drop --store"
                )
        if typed.get("variances"):
            typed = {**typed, "variances": str(Path(typed["variances"]).resolve())}
            typed["sampler"] = typed.get("sampler") or Robin.name
        if typed.get("repeat"):
            typed = {**typed, "repeat": Repeat.named(typed["repeat"])}
        name = typed.get("scorer")
        if name and not typed.get("score_range"):
            typed = {**typed, "score_range": plugins().scorer(name).score_range}
        return super()._of(typed, **{"named": bool(typed.get("sampler")), **made})

    @property
    def rotates(self) -> bool:
        """Whether judges take turns, which some hosts know how to do."""
        return False

    @property
    def as_json(self) -> dict[str, Any]:
        """See RunConfig; of what may be left out, what was not."""
        asked = {**super().as_json, "repeat": self.repeat.value}
        more = {"estimators": list(self.estimators), "strata": self.strata, "cluster": self.cluster}
        if not self.in_scores:
            asked |= {"prices": self.prices, "risk": self.risk}
        return asked | {name: value for name, value in (more | {"store": self.store}).items() if value}

    @property
    def draws(self) -> bool:
        """Whether a sample of the items is drawn."""
        return self.sampler == Sample.name

    @property
    def may_draw(self) -> bool:
        """Whether one is drawn where the budget does not pay for the first readings of all items."""
        return self._drawing is not None

    def for_items(self, n_items: int, readings: int | None = None) -> Self:
        """The same, drawing a sample if nobody named a sampler and the budget is too small for the default.

        Args:
            n_items: of the run.
            readings: what a reading of each of them takes of the budget; None for as many as there are items.
        """
        once = n_items if readings is None else readings
        drawing = self._drawing
        if drawing is None or self.resolve_budget(once).amount >= once * max(1, self.fixed_repeats):
            return self
        return drawing

    @cached_property
    def _drawing(self) -> Self | None:
        given = self.named or self.until is not None or bool(self.options)
        if given or self.draws or self.budget is None or not self.in_scores:
            return None
        try:
            return replace(self, sampler=Sample.name, options={})
        except EvalbudgetError:  # an estimator that needs phases, for example
            return None

    def _check_estimators(self) -> None:
        for estimator in self.further:
            missing = estimator.missing(self.allocation, self.score_range)
            if missing is not None:
                raise InvalidInputError(
                    f"estimator {estimator.name!r} needs {_TOLD[missing.value].format(sampler=self.sampler)}"
                )

    def _check_scorers(self) -> None:
        if self.scorer is not None and self.rotates:
            raise InvalidInputError("--scorer and --judges both score in place of the task's own; drop one")
        if self.scorer is not None and self.repeat is Repeat.JUDGE:
            raise InvalidInputError(
                "--repeat judge scores the same answer again, and a plugin's scorer says the same each time; "
                "drop --scorer or --repeat judge"
            )
        if self.estimators and self.rotates:
            raise InvalidInputError(
                "--estimators are of scores by one judge, and with judges that take turns scores differ by "
                "judge too; drop one of the two"
            )

    def _check_store(self, store: str) -> None:
        # it brings SQLAlchemy, which no other run needs
        from evalbudget.store import Address

        if not self.in_scores:
            raise BudgetError(
                "processes that share a budget (--store) count scores, since only the process that makes a "
                "call knows what it cost; write --budget 2000 or --budget 20x, or drop --store"
            )
        Address.parse(store).check_usable()
        for flag, given in self._alone().items():
            if given:
                raise InvalidInputError(
                    f"processes that share a budget (--store) take no {flag}; drop it, or run it in one "
                    "process"
                )

    def _alone(self) -> dict[str, bool]:
        """What was asked for that takes one process, by flag."""
        judged = {"--judges": self.rotates, "--repeat judge": self.repeat is Repeat.JUDGE}
        return {"--until": self.until is not None, **judged}

    def _check_until(self, until: Until) -> None:
        if not until.of_items:
            raise InvalidInputError(
                f"--until {self.until}: repeats of the same items make every item known, as in --until "
                "item±0.5, but not what items like them would score. evalbudget inspect race and evalbudget "
                f"lm-eval race have --until {self.until}: one model or more, on as few items as that takes"
            )
        if self.score_range is None:
            raise InvalidInputError(
                f"--until {self.until} goes by intervals that hold whenever one looks, and they need the "
                "smallest and the largest possible score; add for example --score-range 1..10"
            )
        if self.allocation is Allocation.FIXED:
            raise InvalidInputError(
                f"--until {self.until} ends a run by its scores, and the estimate of sampler "
                f"{self.sampler!r} is for numbers of repeats that do not depend on them; use --sampler auto, "
                "or drop --until"
            )

    def _check_without_budget(self) -> None:
        if self.rotates and self.allocation is Allocation.FIXED:
            return
        raise BudgetError(
            "no budget given; write a number of scores (2000), scores per item (20x) or money ('$5')"
        )

    def resolve_budget(self, n_items: int, *, without: int = 0) -> Budget:
        """The budget for this many items; ``without`` is what to allow, in scores, where none was given.

        Raises:
            BudgetError: it cannot be read.
        """
        return Budget.parse(without if self.budget is None else self.budget, n_items=n_items)

    def check_minimum(self, budget: Budget, least: int, why: str, fewer: str, *, judged: bool) -> None:
        """Refuse a budget that a run cannot start with.

        Args:
            budget: of the run.
            least: that it can start with.
            why: it is that.
            fewer: how to evaluate fewer items.
            judged: judges take turns, who all have to score an item.

        Raises:
            BudgetError: it is too small.
        """
        if budget.amount >= least:
            return
        sample = f"; or have a random sample of them read once each: --sampler {Sample.name}"
        sample += ", or no --sampler at all" if self.named else ""
        raise BudgetError(
            f"budget of {budget} is below the minimum of {least:,} here: {why}. Raise --budget to {least} or "
            f"more, or evaluate {fewer}{'' if self.draws or judged else sample}"
        )

    def make_sampler(
        self,
        design: Design,
        *,
        warmup: int | None = None,
        budget: int | None = None,
        questions: Mapping[str, str] | None = None,
    ) -> RepeatSampler:
        """A fresh sampler.

        Args:
            design: what to ask; its items are those of the file of variances, if there is one.
            warmup: raises the sampler's own first readings per item, never lowers them.
            budget: readings it may expect in all, for samplers that plan with it.
            questions: digest of what each item asks, by which known variances are paired; None: by the
                items' names.
        """
        known = self.variances_of(dict.fromkeys(design.items, "") if questions is None else questions)
        return self._made(design, warmup, budget, known)

    def variances_of(self, questions: Mapping[str, str]) -> tuple[float, ...] | None:
        """Known variances of items, in order; None where none are known.

        Args:
            questions: digest of what each item asks; empty where that is not known.

        Raises:
            InvalidInputError: an item has none.
        """
        if self.variances is None:
            return None
        matched = self._paired(questions)
        names = dict(zip(questions, matched.names[1].values(), strict=True))
        return in_order(self._known_variances, names, self.variances, matched.notes)

    def strange_variances(self, tasks: Collection[str], questions: Mapping[str, str]) -> list[str]:
        """Sentences where the known variances are of none of these tasks, or not of the same questions."""
        if self.variances is None:
            return []
        other = self._known_variances.of_another_task(tasks, self.variances)
        notes = [f"--variances {self.variances}: {note}" for note in self._paired(questions).notes]
        return notes if other is None else [other, *notes]

    def _paired(self, questions: Mapping[str, str]) -> Matched:
        asked = dict(zip(self._as_in_log(list(questions)), questions.values(), strict=True))
        known = self._known_variances.digests
        return match_questions([(str(self.variances), known), ("this run", asked)])

    def _as_in_log(self, items: Sequence[str]) -> Sequence[str]:
        """The names that a log has for these items, whatever they ask there."""
        return items

    def outline(self, n_items: int, *, warmup: int | None = None) -> RepeatSampler:
        """A sampler of so many items whose names are not known yet; to ask what it needs, not to run it."""
        known = None if self.variances is None else (1.0,) * n_items
        return RepeatConfig._made(self, Design.of_items(n_items), warmup, None, known)

    def _made(
        self, design: Design, warmup: int | None, budget: int | None, variances: tuple[float, ...] | None
    ) -> RepeatSampler:
        warmup = None if warmup is None else max(warmup, self.fixed_repeats)
        known = {"warmup": warmup, "budget": budget, "variances": variances}
        sampler = self._construct(self._class, design, known)
        if self.until is not None and self.score_range is not None:
            sampler.stop_when_known(parse_until(self.until).half_width, self.score_range)
        return sampler

    @property
    def _class(self) -> type[RepeatSampler]:
        cls = plugins().sampler(self.sampler)
        if not issubclass(cls, RepeatSampler):
            raise InvalidInputError(
                f"sampler {self.sampler!r} does not repeat items of one model; derive it from "
                "evalbudget.repeats.samplers.RepeatSampler, or use another one"
            )
        return cls

    @cached_property
    def _trial(self) -> RepeatSampler:
        return self.outline(2)

    @cached_property
    def _known_variances(self) -> KnownVariances:
        return KnownVariances() if self.variances is None else read_variances(self.variances, self.score)

    @property
    def further(self) -> list[type[Estimator]]:
        """Further estimators, in the order they were named."""
        return [plugins().estimator(name) for name in self.estimators]

    @property
    def allocation(self) -> Allocation:
        """What the estimators must know of the sampler."""
        return self._trial.allocation

    @property
    def fixed_repeats(self) -> int:
        """Readings every item gets whatever its scores are."""
        return self._trial.fixed_repeats
