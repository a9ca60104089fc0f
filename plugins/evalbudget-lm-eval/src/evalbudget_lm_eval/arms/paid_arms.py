"""Arms whose calls have one budget in money or tokens: their prices, and asking them within it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from lm_eval.api.registry import get_model

from evalbudget.prices import Tariff
from evalbudget.run import Bill
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import is_api, short_name
from evalbudget_lm_eval.host.local_usage import check_local
from evalbudget_lm_eval.host.paid_calls import PaidCalls
from evalbudget_lm_eval.host.used_up import check_pays
from evalbudget_lm_eval.judges.at_most import dearest_answer, judgings_of_answer
from evalbudget_lm_eval.judges.filter import judges_of, panel_of
from evalbudget_lm_eval.run.rounds import Rounds

_PAUSE = 0.02  # seconds between two looks at whether something came back


class PaidArms:
    """What the calls of all arms cost.

    Args:
        bill: that keeps the cap.
        arms: names.

    Attributes:
        bill: that keeps the cap.
        paid: stands before the calls, by arm.
    """

    def __init__(self, bill: Bill, arms: Sequence[str]) -> None:
        self.bill = bill
        self.paid = {name: PaidCalls(bill, name) for name in arms}
        self._dearest: dict[str, float] = {}
        self._cut: dict[str, list[Asked]] = {}

    def ask(
        self,
        arm: str,
        primed: PrimedTasks,
        rounds: Rounds,
        cells: Sequence[Asked],
        going: Callable[[], bool],
    ) -> list[Asked]:
        """Have cells answered; those are returned that a model on one's own machine was not given.

        It is given whole rounds, and no more of them than what is left certainly pays.

        Args:
            arm: its name.
            primed: its tasks.
            rounds: that ask it.
            cells: to be asked.
            going: whether the arm is still in the race.

        Raises:
            BudgetError: the cap is below one call.
        """
        self.check(arm, primed)
        paid, left = self.paid[arm], list(cells)
        # other arms ask the same judges: nobody stands before them but while its own answers are judged
        primed.judging = lambda: paid.before(judges_of(primed))
        with paid.before([primed.lm]):
            if is_api(primed.lm):
                rounds.ask(left)
                return []
            while left and going():
                under_way = self.bill.under_way  # before: other threads may end theirs meanwhile
                models, judgings = (primed.lm, *judges_of(primed)), judgings_of_answer(primed)
                fits = paid.fits(models, self._dearest[arm], judgings, len(left))
                if not fits and self._waits(arm, under_way):
                    continue
                if not fits:
                    return left
                self._cut[arm] = []
                rounds.ask(left[:fits])
                left[:fits] = self._cut.pop(arm)
        return []

    def check(self, arm: str, primed: PrimedTasks) -> None:
        """Refuse a cap that does not pay for one answer of an arm and its judging.

        Raises:
            BudgetError: the cap is below that.
            InvalidInputError: a judge's prompt asks for a field that documents lack.
        """
        if arm not in self._dearest:
            self._dearest[arm] = self._checked(self.paid[arm], primed)

    def takes_back(self, arm: str, cells: Sequence[Asked]) -> bool:
        """Whether these are asked in smaller rounds: meanwhile others took the room that they needed."""
        if arm not in self._cut or len(cells) < 2:
            return False
        self._cut[arm].extend(cells)
        return True

    def _checked(self, paid: PaidCalls, primed: PrimedTasks) -> float:
        """What one answer and its judging cost at most."""
        for judge in judges_of(primed):
            if not is_api(judge):
                check_local(judge)
        name, (call, answer) = short_name(primed.lm), dearest_answer(paid, primed)
        check_pays(self.bill.cap, f"one call of {name}", call)
        if judges_of(primed):
            check_pays(self.bill.cap, f"one answer of {name} and its judging", answer)
        return answer

    def _waits(self, arm: str, under_way: int) -> bool:
        """For what others have under way, if that may leave room for an answer; whether it did."""
        bill = self.bill
        is_quiet = not (under_way or bill.under_way or self.paid[arm].about_to_be(under_way))
        if is_quiet or self._dearest[arm] > bill.cap.amount - bill.spent:
            return False
        time.sleep(_PAUSE)
        bill.look()
        return True


def check_prices(tariff: Tariff, arms: Sequence[Arm], tasks: Sequence[Any]) -> list[str]:
    """Refuse arms and judges without a price.

    Returns:
        Names of all of them, as the price file has them.

    Raises:
        BudgetError: names them.
    """
    panels = [panel for task in tasks if (panel := panel_of(task))]
    judges = [short_name(judge.load()) for panel in panels for judge in panel.specs]
    models = [*map(name_of, arms), *judges]
    tariff.check(models)
    return models


def name_of(arm: Arm) -> str:
    """What the price file calls the model of an arm, which is not loaded for that."""
    if not isinstance(arm.model, str):
        return short_name(arm.model)
    named = arm.args.get("pretrained"), arm.args.get("model"), arm.args.get("model_name")
    found = next((each for each in named if isinstance(each, str) and each), None)
    if found is not None:
        return found
    try:
        return str(get_model(arm.model).__name__)
    except Exception:  # of a package that is missing: loading the model will say so
        return arm.model
