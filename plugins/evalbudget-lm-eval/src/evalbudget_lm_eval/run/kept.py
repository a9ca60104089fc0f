"""One model in a record: what was bought of it, and what is under way."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalbudget.secrets import cleaned, without_secrets
from evalbudget_lm_eval.host.answers import SCORED, Answered, Asked, Sample, numbers_of
from evalbudget_lm_eval.judges.readings import Reading

NO_CELL = Asked("", 0, 0)

Said = dict[int, list[Any]]
"""What a model said to each of a document's requests."""


@dataclass(frozen=True, slots=True)
class Bought:
    """One cell that was asked of one model.

    Attributes:
        asked: the cell.
        cost: evaluations paid for.
        samples: the host's records; None if it failed.
        calls: of the model, for an answer.
        error: why it failed.
        alone: it failed when it was asked by itself, not with a round that was cut off.
    """

    asked: Asked
    cost: float
    samples: Sequence[Sample] | None = None
    calls: int = 0
    error: str | None = None
    alone: bool = False

    @property
    def answer(self) -> Answered | None:
        """What came back; None if it failed."""
        return None if self.samples is None else Answered.of(self.asked, self.samples, self.calls)


class Kept:
    """One model in a record: what earlier runs bought of it, and what is under way.

    Args:
        write: appends a row.

    Attributes:
        model: its description; None if it was never loaded.
        opened: what the host said of its run.
        bought: in earlier runs and this one, in order; of an answer that was scored again, the last scores.
        said: what it said to cells that are not scored yet.
        at_once: how many of those asked last may be under way at the same time.
        unanswered: calls that may be billed, and brought no answer.
        order: what a gate's order of items goes by; empty where there is none.
        known: answers of its baseline that were there before it.
    """

    def __init__(self, write: Callable[[str, Any, Asked], object]) -> None:
        self._write = write
        self.model: dict[str, Any] | None = None
        self.opened: dict[str, Any] = {}
        self.bought: list[Bought] = []
        self.said: dict[Asked, Said] = {}
        self.at_once = 0
        self.unanswered = 0
        self.order = ""
        self.known = 0
        self._asked: dict[Asked, int] = {}
        self._scored: dict[Asked, int] = {}  # places of answers in what was bought
        self._judging: Counter[tuple[Asked, str]] = Counter()

    def open(self, model: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Note which model it is, and what the host says of its run."""
        self._note("opened", [model, cleaned(facts)])

    def begin_gate(self, known: int = 0) -> str:
        """What the order of items goes by: its own of every gate, and the same when it goes on.

        Args:
            known: answers of the baseline that are there, if it is begun now.
        """
        if not self.order:
            self._note("order", [secrets.token_hex(8), known])
        return self.order

    def ask(self, calls: Mapping[Asked, int], at_once: int) -> None:
        """Note which cells a round is about to ask, and how many calls each takes."""
        what = [[[*asked, n] for asked, n in calls.items()], at_once]
        if at_once:
            self._note("asked", what)
        else:
            self.take("asked", what)

    def lend(self, asked: Asked, said: Mapping[int, Sequence[Any]]) -> None:
        """Have an earlier answer stand for this cell's, with what judges said of the cell so far."""
        heard = self.said.get(asked, {}).get(SCORED)
        self.said[asked] = {number: list(texts) for number, texts in said.items()}
        if heard is not None:
            self.said[asked][SCORED] = heard

    def hear(self, asked: Asked, request: int, said: Any) -> None:
        """Note what a model, or a judge, says as it says it."""
        self._note("said", [request, said], asked)

    def begin(self, asked: Asked, judge: str) -> None:
        """Note that a judge is about to be asked; its reply is heard, or was lost."""
        self._note("asks", judge, asked)

    def lose_judging(self) -> None:
        """The process that asked judges is gone: whose reply is not on record brought none."""
        self.unanswered += self._judging.total()
        self._judging.clear()

    def answer(self, answer: Answered) -> None:
        """Note what the host made of it."""
        self._note("came", [answer.records, answer.requests], answer.asked)

    def fail(self, asked: Asked, cost: float, error: str, *, alone: bool = False) -> None:
        """Note that a cell failed, by itself or with a round that was cut off."""
        self._note("failed", [without_secrets(error), cost, alone], asked)

    def pay(self, calls: int) -> None:
        """Note that so many calls brought no answer, and may be billed."""
        self._note("unanswered", calls)

    def stop(self) -> None:
        """Note that nothing is under way any more."""
        self._note("stopped", None)

    def settle(self, asked: Asked) -> None:
        """Forget what was said to a cell: it is scored, or failed."""
        self.said.pop(asked, None)
        self._asked.pop(asked, None)

    @property
    def took_part(self) -> bool:
        """Whether anything was ever asked."""
        return bool(self.bought or self.said or self._asked)

    @property
    def under_way(self) -> list[Asked]:
        """Cells of the last round that were not answered in full, in the order they were asked."""
        return [asked for asked in self._asked if self.unheard(asked)]

    def unheard(self, asked: Asked) -> int:
        """Calls of a cell of the last round that were not answered."""
        said = self.said.get(asked, {})
        heard = sum(len(texts) for number, texts in tuple(said.items()) if number >= 0)
        return max(0, self.calls_of(asked) - heard)

    def calls_of(self, asked: Asked) -> int:
        """How many calls a cell of the last round takes."""
        return self._asked[asked]

    def take(self, kind: str, what: Any, asked: Asked = NO_CELL) -> None:
        """Take in a row: of an earlier run, or of this one as it is written."""
        match kind:
            case "order":
                self.order, self.known = str(what[0]), int(what[1])
            case "opened":
                self.model, self.opened = map(dict, what)
            case "asked":
                self._asked = {Asked(*cell): int(n) for *cell, n in what[0]}
                self.at_once = int(what[1])
            case "said":
                request, said = int(what[0]), what[1]
                self.said.setdefault(asked, {}).setdefault(request, []).append(said)
                if request == SCORED and (reading := Reading.parse(said)) is not None:
                    self._judging -= Counter([(asked, reading.judge)])
            case "asks":
                self._judging[asked, str(what)] += 1
            case "came":
                numbers_of(what[0])  # lest it is damaged
                self._take_in(Bought(asked, 1.0, what[0], int(what[1])))
            case "failed":
                self._take_in(Bought(asked, float(what[1]), error=str(what[0]), alone=bool(what[2])))
            case "unanswered":
                self.unanswered += int(what)
            case "stopped":
                self._asked.clear()
            case _:
                raise ValueError(f"a row of {kind!r}")

    def _take_in(self, bought: Bought) -> None:
        if not 0.0 <= bought.cost < math.inf:
            raise ValueError(f"a cost of {bought.cost}")
        came = bought.samples is not None
        if came and bought.asked in self._scored:
            self.bought[self._scored[bought.asked]] = bought
        else:
            self.bought.append(bought)
        if came:
            self._scored.setdefault(bought.asked, len(self.bought) - 1)
        self.settle(bought.asked)

    def _note(self, kind: str, what: Any, asked: Asked = NO_CELL) -> None:
        self._write(kind, what, asked)
        self.take(kind, what, asked)
