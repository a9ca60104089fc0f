"""What preferences prove: the capital, by hand; which values go into it; how the error is divided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evalbudget.errors import InvalidInputError
from evalbudget_pairwise import PairEvidence, read_preferences
from evalbudget_pairwise._proof import beats, winner
from pairwise_sections.worlds import World


def capital(d: list[float]) -> float:
    """The largest log capital against "the mean of d is at most 0", bet by bet."""
    gaps, weights = (0.1, 0.2, 0.4, None), (0.3, 0.4, 0.1, 0.2)
    total, spread, logs, best = 0.0, 0.25, [math.log(w) for w in weights], 0.0
    for n, x in enumerate(d):
        variance = spread / (n + 1)
        for j, gap in enumerate(gaps):
            g = max(total / (n + 10.0), 0.0) if gap is None else gap
            logs[j] += math.log1p(min(g / (variance + g * g), 0.9) * x)
        spread += (x - total / (n + 1)) * (x - (total + x) / (n + 1 + 1))
        total += x
        best = max(best, float(np.logaddexp.reduce(logs)))
    return best


def turns(values: list[float]) -> PairEvidence:
    """Fresh items, A and B first in turn; values are for A."""
    return PairEvidence.of(list(range(len(values))), [n % 2 == 0 for n in range(len(values))], values)


def test_two_fresh_items_in_opposite_orders_are_one_value() -> None:
    found = turns([1.0, 0.5, 0.0, 1.0, 1.0])
    assert found.fresh.total.tolist() == [0.5, 0.0]
    assert found.swapped.total.size == 0
    assert found.share == 0.75


def test_the_other_orders_of_items_go_into_the_second_proof_alone() -> None:
    found = PairEvidence.of(
        [0, 1, 2, 3, 2, 0], [True, False, True, False, False, False], [1.0, 0.5, 1.0, 0.0, 0.5, 1.0]
    )
    assert found.fresh.total.tolist() == [0.5, 0.0]
    assert found.swapped.total.tolist() == [0.5, 1.0]
    assert found.share == 0.75


def test_items_in_both_orders_at_once_have_the_larger_part_of_the_error() -> None:
    item = [n // 2 for n in range(40)]
    first = [n % 2 == 0 for n in range(40)]
    assert PairEvidence.of(item, first, [0.5] * 40).share == 0.25
    assert PairEvidence.of(item, first, [0.5] * 40, unordered=True).share == 0.25
    one_in_ten = [*range(40), *range(0, 40, 10)]
    assert PairEvidence.of(one_in_ten, [True] * 40 + [False] * 4, [0.5] * 44, unordered=True).share == 0.75


def test_the_evidence_is_the_capital_times_its_part_of_the_error() -> None:
    value = World((0.8, 0.0), 0.4, 0.2).values(160, 3)
    values = [float(value[0, 1, n] if n % 2 == 0 else 1.0 - value[1, 0, n]) for n in range(160)]
    found = turns(values)
    d = [values[n] + values[n + 1] - 1.0 for n in range(0, 160, 2)]
    for_a, for_b = found.both
    assert for_a == pytest.approx(capital(d) + math.log(0.75))
    assert for_a > math.log(10.0)
    assert for_b == pytest.approx(max(capital([-x for x in d]) + math.log(0.75), 0.0))
    both = PairEvidence.of(
        [n // 2 for n in range(160)], [n % 2 == 0 for n in range(160)], [values[n] for n in range(160)]
    )
    assert both.both[0] == pytest.approx(
        max(capital(d) + math.log(0.75), capital(both.fresh.total.tolist()) + math.log(0.25))
    )


def test_the_interval_is_what_is_not_rejected() -> None:
    found = turns([1.0, 1.0, 1.0, 0.0] * 30)
    low, high = found.interval(0.95)
    assert low < 0.75 < high
    assert low > 0.5
    wider = found.interval(0.999)
    assert wider[0] < low
    assert wider[1] >= high
    assert turns([]).interval(0.95) == (0.0, 1.0)


def test_each_of_all_statements_has_its_part_of_the_error() -> None:
    aim = math.log(6.0 / 0.05)
    log = np.array([[0.0, aim, aim - 0.01], [0.0, 0.0, aim + 0.01], [0.0, 0.0, 0.0]])
    proved = beats(log, 0.05)
    assert proved.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert winner(proved) is None
    assert winner(beats(log + 0.02, 0.05)) == 0
    with pytest.raises(InvalidInputError, match="no probability"):
        beats(log, 1.5)


def test_a_constant_position_bias_proves_nothing() -> None:
    """A judge who always names the first, on any number of items, in any of the schedules."""
    n = 400
    assert turns([float(k % 2 == 0) for k in range(n)]).both == (0.0, 0.0)
    item = [k // 2 for k in range(n)]
    first = [k % 2 == 0 for k in range(n)]
    assert PairEvidence.of(item, first, [float(f) for f in first]).both == (0.0, 0.0)


def test_judges_are_paired_with_themselves() -> None:
    """Items by judge 0 with A first, by judge 1 with B first: no position cancels."""
    found = PairEvidence.of([0, 1, 2, 3], [True, False, True, False], [1.0, 0.5, 1.0, 0.5], [0, 1, 0, 1])
    assert found.fresh.total.size == found.swapped.total.size == 0
    # nor where both judge every item
    item, order, judge = [0, 0, 1, 1], [True, False, True, False], [0, 1, 0, 1]
    for unordered in (False, True):
        found = PairEvidence.of(item, order, [1.0, 0.5, 1.0, 0.5], judge, unordered=unordered)
        assert found.fresh.total.size == found.swapped.total.size == 0


def test_a_panel_of_judges_is_one_value_per_two_items() -> None:
    item, judge = [0, 0, 1, 1, 2, 2], [0, 1] * 3
    order, value = [True, True, False, False, True, False], [1.0, 0.5, 0.5, 0.0, 1.0, 1.0]
    found = PairEvidence.of(item, order, value, judge, unordered=True)
    assert found.fresh.total.tolist() == [0.75 + 0.25 - 1.0]
    found = PairEvidence.of(item, order, value, judge)
    assert found.fresh.total.tolist() == [1.0 + 0.5 - 1.0], "the first judge alone"


def test_a_panel_in_both_orders_is_one_value_per_item() -> None:
    item, judge = [0] * 4, [0, 0, 1, 1]
    order, value = [True, False, True, False], [1.0, 1.0, 0.5, 0.0]
    assert PairEvidence.of(item, order, value, judge, unordered=True).swapped.total.tolist() == [0.25]
    assert PairEvidence.of(item, order, value, judge).swapped.total.tolist() == [1.0]


def test_in_order_a_later_verdict_changes_nothing_that_was_looked_at() -> None:
    item, order, value = [0, 1, 0, 0, 0], [True, False, True, False, False], [1.0, 1.0, 0.0, 0.5, 0.0]
    found = PairEvidence.of(item, order, value)
    assert (found.fresh.total.tolist(), found.swapped.total.tolist()) == ([1.0], [0.5])
    mean = PairEvidence.of(item, order, value, unordered=True)
    assert (mean.fresh.total.tolist(), mean.swapped.total.tolist()) == ([0.5], [-0.25])


def test_evidence_of_a_pair_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    kept = PairEvidence.of

    def counted(*given: Any, **named: Any) -> PairEvidence:
        asked.append(1)
        return kept(*given, **named)

    monkeypatch.setattr(PairEvidence, "of", counted)
    read_preferences(World((1.0, 0.0, -1.0)).preferences(20, 1))
    assert len(asked) == 3
