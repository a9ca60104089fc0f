"""Every section of benchmarks/costs.py runs at a tiny size; loops that spend money are checked by hand."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.quick import check_table, written

from evalbudget import Cell, Design
from evalbudget.repeats.samplers import Uniform

SECTIONS = ["repeats", "bound", "races", "validity", "stopping"]


@pytest.mark.variant
def test_every_section_at_a_tiny_size(tmp_path: Path) -> None:
    kept, page, _ = written("costs", "all", docs=tmp_path)
    assert list(kept) == SECTIONS
    for section, entry in kept.items():
        assert f"`python benchmarks/costs.py {section} --quick --write-docs`" in page
        check_table(entry, page)
        assert entry["targets"]
    for section in ("repeats", "races"):
        (equal,) = (t for t in kept[section]["targets"] if "costs are equal" in t["text"])
        assert equal["reached"] is True


def by_epoch(*costs: float) -> Any:
    """Epoch e of any item costs the e-th of these, and scores as much."""
    return lambda cell: (costs[cell.epoch], costs[cell.epoch])


def test_one_at_a_time_keeps_the_largest_cost_free() -> None:
    money = importlib.import_module("costs_sections.money")
    runs = money.one_at_a_time(Uniform(Design.of_items(1)), by_epoch(1.0, 3.0, 1.0, 1.0, 1.0), [5.0, 8.0])
    # after 1 + 3 the largest, 3, no longer fits into 5; after 1 + 3 + 1 + 1 not into 8
    assert [len(run.readings) for run in runs] == [2, 4]
    assert [run.spent for run in runs] == [4.0, 6.0]


def test_readings_at_once_take_as_long_as_they_cost() -> None:
    money = importlib.import_module("costs_sections.money")
    two = Uniform(Design.of_items(2))

    def priced(cell: Cell) -> tuple[float, float]:
        return 0.0, (1.0, 4.0)[cell.item]

    kept = money.at_once(two, priced, 12.0, 2)
    # once 4 was seen, that is kept free for each of the two under way
    assert kept.spent == 10.0
    assert kept.cut == 0
    cut = money.at_once(Uniform(Design.of_items(2)), priced, 3.0, 2, None)
    # at time 1 item 0 is back and item 1 has used 1; half a unit later nothing is left
    assert (len(cut.readings), cut.spent, cut.cut) == (1, 3.0, 2)


def test_costs_spread_over_two_decades() -> None:
    prices = importlib.import_module("costs_sections.prices")
    low, high = np.quantile(prices.spread(200_000, 0), [0.025, 0.975])
    assert high / low == pytest.approx(100.0, rel=0.03)
    along = np.linspace(0.0, 1.0, 20_000)
    assert np.corrcoef(along, np.log(prices.spread(20_000, 0, along, 0.8)))[0, 1] == pytest.approx(
        0.8, abs=0.05
    )


def test_the_money_of_plain_epochs_is_what_they_cost() -> None:
    prices = importlib.import_module("costs_sections.prices")
    pool = importlib.import_module("repeats_sections.distributions").bernoulli(20, 2.0, 0.7)
    made = prices.Prices(prices.spread(20, 1), noise=0.5, slope=2.0)
    priced, typical = made.priced(pool, 0)
    paid = np.mean([[priced(Cell(item=i, epoch=e))[1] for i in range(20)] for e in range(2000)])
    assert paid == pytest.approx(typical, rel=0.03)


def test_the_largest_of_two_normal_errors() -> None:
    bound = importlib.import_module("costs_sections.bound")
    assert bound._largest(np.array([1.0])) == pytest.approx(np.sqrt(2.0 / np.pi), rel=1e-3)
    assert bound._largest(np.array([2.0, 2.0])) == pytest.approx(2.0 * 2.0 / np.sqrt(np.pi), rel=1e-3)
