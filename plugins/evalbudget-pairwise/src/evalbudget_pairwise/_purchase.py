"""Buys preferences of a judge under a budget, and goes on where a purchase was cut off."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from evalbudget.book import Bought, drive, spent_in
from evalbudget.budget import USED_UP, Budget
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.exit_codes import ExitCode
from evalbudget.hooks import plugins
from evalbudget.outage import DOWN_AFTER
from evalbudget.report import AsJson
from evalbudget.run import Tally
from evalbudget.store import Address
from evalbudget_pairwise._answers import Answers
from evalbudget_pairwise._config import PairwiseConfig
from evalbudget_pairwise._preferences import Preference, Preferences
from evalbudget_pairwise._prompt import parse_verdict, prompt_of
from evalbudget_pairwise._read import read_preferences
from evalbudget_pairwise._reading import PairwiseReading
from evalbudget_pairwise.samplers import PAIRS, PairSampler, duels

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


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons that a judge is to make.

    Attributes:
        config: what was asked for.
        answers: to compare.
        judge: its name.

    Raises:
        BudgetError: the budget is below one comparison of every pair in both orders.
    """

    config: PairwiseConfig
    answers: Answers
    judge: str

    def __post_init__(self) -> None:
        least, budget = self.sampler.minimum_readings, self.budget
        if budget.amount < least:
            raise BudgetError(
                f"--budget {budget.amount:,.0f} is below {least:,}, one comparison of every two models in "
                f"each order; give {least:,} or more"
            )

    @cached_property
    def budget(self) -> Budget:
        """Calls of the judge."""
        return self.config.resolve_budget(len(self.answers.items), len(self.answers.models))

    @cached_property
    def sampler(self) -> PairSampler:
        """Its configuration names everything that is shown."""
        config, cls = self.config, plugins().sampler(self.config.sampler, PAIRS)
        template = hashlib.sha256(config.template.encode()).hexdigest()[:16]
        given: dict[str, Any] = {
            "seed": config.seed,
            "delta": 1.0 - config.level,
            "until_proved": config.until_proved,
            "options": {"answers": self.answers.fingerprint, "template": template},
        }
        made = cls(duels(self.answers.items, self.answers.models, self.judge), **given, **config.options)
        return cast(PairSampler, made)

    def record_beside(self, log: str) -> Path:
        """The file beside a log in which the same purchase, and no other, finds what it bought.

        Raises:
            InvalidInputError: the log is not on this machine.
        """
        told = f"{self.sampler.design.fingerprint}{sorted(self.sampler.config.items())}"
        return folder_of(log) / f"pairwise-{hashlib.sha256(told.encode()).hexdigest()[:12]}.db"

    def foreseen(self, record: Path) -> str:
        """What would be bought, for a dry run.

        Args:
            record: where what is bought is kept; what it has counts, if it exists.

        Raises:
            StoreError: the record is of another purchase, or cannot be read.
        """
        every = len(self.answers.items) * self.sampler.design.n_models
        most = int(self.budget.amount)
        least = f"{self.sampler.minimum_readings:,} to " if self.config.until_proved else ""
        told = [
            f"{', '.join(self.answers.models)}: {len(self.answers.items):,} items that all have answered, "
            f"and {every:,} comparisons of every pair in both orders.",
            f"{least}{min(every, most):,} calls of {self.judge}, and two more at most if one fails, never "
            f"more than {most:,} in all.",
        ]
        if record.exists():
            had = round(spent_in(self.sampler, Address.parse(record)))
            told.append(
                f"{record} has {had:,} calls already, which count: at most {max(most - had, 0):,} more would "
                "be made."
            )
        return "\n".join([*told, "No call was made."])

    async def buy(self, ask: Ask, *, record: Path, concurrency: int = 10) -> PairwisePurchase:
        """Have the judge compare answers until the budget is used up, or a winner is proved.

        A reply without a verdict and a call that failed cost as any other, and are asked again up to twice.
        Calls that were under way when a process was killed are lost, and count.

        Args:
            ask: one call of the judge.
            record: where what is bought is kept; continued if it exists.
            concurrency: calls at once.

        Raises:
            StoreError: the record is of another purchase, or cannot be written.
        """
        in_vain = 0  # calls in a row

        def down() -> str | None:
            if in_vain < _DOWN:
                return None
            return f"the judge gave no verdict in {_DOWN} calls in a row; the same command goes on from here"

        async def answer(request: Request) -> Reading:
            nonlocal in_vain
            try:
                reply = await ask(self._prompt(request.cell), request.id)
            finally:
                in_vain += 1  # as long as no verdict is read
            value = parse_verdict(reply)
            if value is not None:
                in_vain = 0
                return Reading(request, value)
            ends = " ".join(reply.split())[-_SHOWN:]
            return Reading(request, None, 1.0, f"no verdict in the reply: {ends!r}")

        return self._told(
            await drive(
                self.sampler, answer, budget=self.budget, concurrency=concurrency, book=record, until=down
            )
        )

    def _prompt(self, cell: Cell) -> str:
        """Its token hangs on all answers, so that none of them can have it in it."""
        first, second = self.sampler.shown(cell)
        parts = (str(self.config.seed), self.answers.fingerprint, self.answers.items[cell.item])
        token = "\0".join((*parts, str(first), str(second))).encode("utf-8", "surrogatepass")
        return prompt_of(
            self.config.template,
            request=self.answers.requests[cell.item],
            first=self.answers.texts[first][cell.item],
            second=self.answers.texts[second][cell.item],
            token=hashlib.sha256(token).hexdigest()[:12],
        )

    def _told(self, bought: Bought) -> PairwisePurchase:
        rows, models = [], self.answers.models
        tally = Tally()
        # along the sequences of the pairs, as the sampler looks at them, also where a call was repeated
        for reading in sorted(bought.readings, key=lambda each: self.sampler.place(each.request.cell)):
            tally.count(reading)
            if reading.value is not None:
                first, second = self.sampler.shown(reading.request.cell)
                item = self.answers.items[reading.request.cell.item]
                rows.append(Preference(item, models[first], models[second], reading.value, self.judge))
        found = None
        with suppress(InvalidInputError):  # there is no verdict, or no chain of them connects all models
            preferences = Preferences.of(rows, models=models)
            found = read_preferences(preferences, level=self.config.level, in_order=True)
        return PairwisePurchase(
            tuple(rows),
            found,
            self.budget,
            round(bought.spent),
            tally.failures,
            "the budget is used up" if bought.stopped == USED_UP else bought.stopped,
            self.answers.left_out,
            self.config.until_proved,
        )


def folder_of(log: str) -> Path:
    """Where what is bought is kept if nobody says where.

    Raises:
        InvalidInputError: the log is not on this machine.
    """
    if "://" in log:
        raise InvalidInputError(
            f"what is bought would be kept beside {log}, and a record is a local file; give --record FILE.db"
        )
    path = Path(log).resolve()
    return path if path.is_dir() else path.parent
