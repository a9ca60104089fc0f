"""Buys preferences of a judge under a budget, and goes on where a purchase was cut off."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.book import Bought, drive, spent_in
from evalbudget.budget import USED_UP, Budget
from evalbudget.design import Reading, Request
from evalbudget.errors import BudgetError
from evalbudget.exit_codes import ExitCode
from evalbudget.outage import DOWN_AFTER
from evalbudget.pairwise._answers import Answers
from evalbudget.pairwise._config import PairwiseConfig
from evalbudget.pairwise._preferences import Preference, Preferences
from evalbudget.pairwise._prompt import parse_verdict, prompt_of
from evalbudget.pairwise._reading import PairwiseReading, read_preferences
from evalbudget.pairwise.samplers import PairSampler, duels
from evalbudget.replay._rows import AsJson
from evalbudget.run import Tally
from evalbudget.statistics._bounds import check_level
from evalbudget.store import Address

Ask = Callable[[str, int], Awaitable[str]]
"""Has the judge reply to a prompt: one call, and its number, which no other call of the record has.

Whatever it raises is a call that failed."""

_SHOWN = 80
"""Characters of a reply without a verdict that are kept."""
_DOWN = 3 * DOWN_AFTER
"""Calls in a row without a verdict: the judge is down. One that fails half of the time hardly gets there."""


@dataclass(frozen=True, repr=False)
class PairwisePurchase(AsJson):
    """What was bought.

    Attributes:
        rows: judgements with a verdict, every pair's in the order of its items.
        reading: what they say; None if there is none, or if they leave models unconnected.
        budget: calls that were allowed.
        calls: that were paid.
        failures: how often each reason occurred to pay a call and get no verdict.
        stopped: why nothing more was asked.
        left_out: items that some model has no answer to.
        until_proved: the purchase was to end once a winner is proved.
    """

    rows: tuple[Preference, ...]
    reading: PairwiseReading | None
    budget: Budget
    calls: int
    failures: dict[str, int]
    stopped: str
    left_out: int
    until_proved: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """0 with verdicts to read, 3 without the winner that was to be proved, 4 if the judge gave none."""
        if self.reading is None:
            return ExitCode.FAILED
        return ExitCode.UNDECIDED if self.until_proved and self.reading.winner is None else ExitCode.DONE

    def _told(self) -> dict[str, Any]:
        """The reading's, if there is one, and what it cost."""
        reading = {} if self.reading is None else self.reading.to_dict()
        return reading | {"calls": self.calls, "failures": self.failures, "stopped": self.stopped}

    def lines(self) -> list[str]:
        """What was bought, in sentences."""
        told = [f"{self.calls:,} of {self.budget.amount:,.0f} calls of the judge. Stopped: {self.stopped}."]
        failed = sum(self.failures.values())
        if failed:
            reason, times = next(iter(self.failures.items()))
            told.append(f"{failed:,} of them brought no verdict; most often ({times:,} times): {reason}")
        if self.left_out:
            told.append(f"{self.left_out:,} items that not every model answered were left out.")
        if self.until_proved:
            told.append(
                "It was to stop once a winner is proved. What is proved holds whenever one looks; intervals "
                "of win rates and strengths are for a fixed number of calls, and somewhat too narrow then."
            )
        if self.reading is None:
            told.insert(0, "No verdict: there is nothing to read.")
        return told


def sampler_of(config: PairwiseConfig, answers: Answers, judge: str) -> PairSampler:
    """The sampler of a purchase; its configuration names everything that was shown.

    Raises:
        EvalbudgetError: there are fewer than two models.
    """
    template = hashlib.sha256(config.template.encode()).hexdigest()[:16]
    marks = {"answers": answers.fingerprint, "template": template}
    return config.make(duels(answers.items, answers.models, judge), marks)


def record_name(config: PairwiseConfig, answers: Answers, judge: str) -> str:
    """The name of the file in which the same purchase, and no other, finds what it bought."""
    sampler = sampler_of(config, answers, judge)
    told = f"{sampler.design.fingerprint}{sorted(sampler.config.items())}"
    return f"pairwise-{hashlib.sha256(told.encode()).hexdigest()[:12]}.db"


def foreseen(config: PairwiseConfig, answers: Answers, judge: str, record: Path) -> str:
    """What would be bought, for a dry run.

    Args:
        config: what was asked for.
        answers: to compare.
        judge: its name.
        record: where what is bought is kept; what it has counts, if it exists.

    Raises:
        BudgetError: the budget is below one comparison of every pair in both orders.
        StoreError: the record is of another purchase, or cannot be read.
    """
    sampler = sampler_of(config, answers, judge)
    budget = config.resolve_budget(len(answers.items), len(answers.models))
    check_least(sampler, budget)
    every = len(answers.items) * sampler.design.n_models
    least = f"{sampler.minimum_readings:,} to " if config.until_proved else ""
    told = [
        f"{', '.join(answers.models)}: {len(answers.items):,} items that all have answered, and {every:,} "
        "comparisons of every pair in both orders.",
        f"{least}{min(every, int(budget.amount)):,} calls of {judge}, and two more at most if one fails, "
        f"never more than {budget.amount:,.0f} in all.",
    ]
    if record.exists():
        had = round(spent_in(sampler, Address.parse(record)))
        told.append(
            f"{record} has {had:,} calls already, which count: at most {max(int(budget.amount) - had, 0):,} "
            "more would be made."
        )
    return "\n".join([*told, "No call was made."])


def check_least(sampler: PairSampler, budget: Budget) -> None:
    """Refuse a budget that does not show every pair in both orders.

    Raises:
        BudgetError: it does not.
    """
    least = sampler.minimum_readings
    if budget.amount < least:
        raise BudgetError(
            f"--budget {budget.amount:,.0f} is below {least:,}, one comparison of every two models in each "
            f"order; give {least:,} or more"
        )


async def buy_preferences(
    config: PairwiseConfig,
    answers: Answers,
    judge: str,
    ask: Ask,
    *,
    record: Path,
    concurrency: int = 10,
) -> PairwisePurchase:
    """Have a judge compare answers until the budget is used up, or a winner is proved.

    A reply without a verdict and a call that failed cost as any other, and are asked again up to twice.
    Calls that were under way when a process was killed are lost, and count.

    Args:
        config: what was asked for.
        answers: to compare.
        judge: its name.
        ask: one call of it.
        record: where what is bought is kept; continued if it exists.
        concurrency: calls at once.

    Raises:
        BudgetError: the budget is below one comparison of every pair in both orders.
        StoreError: the record is of another purchase, or cannot be written.
    """
    sampler = sampler_of(config, answers, judge)
    budget = config.resolve_budget(len(answers.items), len(answers.models))
    check_least(sampler, budget)

    in_vain = 0  # calls in a row

    def told(value: float | None) -> None:
        nonlocal in_vain
        in_vain = 0 if value is not None else in_vain + 1

    def down() -> str | None:
        if in_vain < _DOWN:
            return None
        return f"the judge gave no verdict in {_DOWN} calls in a row; the same command goes on from here"

    async def answer(request: Request) -> Reading:
        first, second = sampler.shown(request.cell)
        item = request.cell.item
        prompt = prompt_of(
            config.template,
            request=answers.requests[item],
            first=answers.texts[first][item],
            second=answers.texts[second][item],
            token=_token(config.seed, answers, item, first, second),
        )
        try:
            reply = await ask(prompt, request.id)
        except Exception:
            told(None)
            raise
        value = parse_verdict(reply)
        told(value)
        if value is not None:
            return Reading(request, value)
        ends = " ".join(reply.split())[-_SHOWN:]
        return Reading(request, None, 1.0, f"no verdict in the reply: {ends!r}")

    bought = await drive(sampler, answer, budget=budget, concurrency=concurrency, book=record, until=down)
    return _told(config, answers, judge, sampler, bought, budget)


def _token(seed: int, answers: Answers, item: int, first: int, second: int) -> str:
    """Of one comparison; it hangs on all answers, so that none of them can have it in it."""
    told = "\0".join((str(seed), answers.fingerprint, answers.items[item], *map(str, (first, second))))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _told(
    config: PairwiseConfig,
    answers: Answers,
    judge: str,
    sampler: PairSampler,
    bought: Bought,
    budget: Budget,
) -> PairwisePurchase:
    rows = []
    tally = Tally()
    # along the sequences of the pairs, as the sampler looks at them, also where a call was repeated
    for reading in sorted(bought.readings, key=lambda each: sampler.place(each.request.cell)):
        tally.count(reading)
        if reading.value is not None:
            first, second = sampler.shown(reading.request.cell)
            item = answers.items[reading.request.cell.item]
            names = answers.models[first], answers.models[second]
            rows.append(Preference(item, *names, reading.value, judge))
    found = None
    if rows and _all_met(rows, answers.models):
        preferences = Preferences.of(rows, models=answers.models)
        found = read_preferences(preferences, level=check_level(config.level), in_order=True)
    return PairwisePurchase(
        tuple(rows),
        found,
        budget,
        round(bought.spent),
        tally.failures,
        "the budget is used up" if bought.stopped == USED_UP else bought.stopped,
        answers.left_out,
        config.until_proved,
    )


def _all_met(rows: list[Preference], models: tuple[str, ...]) -> bool:
    """Whether a chain of comparisons connects all models."""
    known = {models[0]}
    while (
        grown := {name for row in rows for name in (row.first, row.second) if {row.first, row.second} & known}
        - known
    ):
        known |= grown
    return known == set(models)
