"""What every host makes its runs of."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalbudget.budget import Budget
from evalbudget.comparisons import GateConfig
from evalbudget.errors import InvalidInputError
from evalbudget.flags import said_in
from evalbudget.hosts import Spending, forecast_of_race
from evalbudget.prices import Price, Tariff, Usage
from evalbudget.races import RaceConfig
from evalbudget.repeats.flags import FLAGS
from evalbudget.run import Bill


def test_a_call_in_python_says_what_its_flags_say(tmp_path: Path) -> None:
    said = said_in({"budget": 5, "prices": tmp_path / "p.yaml", "task": object(), "seed": None}, FLAGS)
    assert said == {"budget": 5, "prices": str(tmp_path / "p.yaml"), "seed": None}


@pytest.mark.parametrize("budget", [100, "$5"])
def test_a_forecast_counts_every_answer_of_those_who_are_asked(tmp_path: Path, budget: int | str) -> None:
    table = tmp_path / "baseline.csv"
    table.write_text("item,score\na,1\nb,0\n")
    config = GateConfig.of(baseline=str(table), margin=0.1, budget=budget, repeats=3)
    found = forecast_of_race(config, "task", ["baseline", "new"], ["a", "b"], asked=1, repeats=3)
    assert (found.items, found.most, found.model) == (2, 6, "baseline, new")


def test_a_forecast_knows_the_arms_of_this_process_only(tmp_path: Path) -> None:
    config = RaceConfig.of(budget=10, store=str(tmp_path / "s.sqlite"), all_arms=3)
    with pytest.raises(InvalidInputError, match="drop --store, and name all"):
        forecast_of_race(config, "task", ["a"], ["1", "2"], asked=1)


@pytest.mark.parametrize(("seconds", "left"), [(20.0, "80 s"), (60.0, "4 min")])
def test_what_is_spent_is_said_with_how_long_the_rest_lasts(seconds: float, left: str) -> None:
    now = [100.0]
    cap = Budget.parse("$10")
    bill = Bill(cap, Tariff(cap.unit, {"m": Price(output=1e6)}))
    spending = Spending(bill, lambda: now[0])
    hold = bill.reserve("m", 0, 4)
    assert hold is not None
    assert str(spending) == "$0.00 of $10.00 is spent, $4.00 promised"
    bill.settle(hold, Usage(output=2))
    now[0] += seconds
    rate = f"${120 / seconds:.2f} a minute"
    assert str(spending) == f"$2.00 of $10.00 is spent, {rate}, about {left} left"
