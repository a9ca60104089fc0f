"""Several logs of one model as one array: phases one after another, folded by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalbudget import Allocation
from evalbudget.backtest import HowBought, RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.recorded._log_columns import Bought, LogColumns
from evalbudget.repeats.estimates import ItemReadings

NAN = float("nan")
PHASED = HowBought(Allocation.PHASED, 2, cost=7.0)
FIXED = HowBought(cost=4.0)

# item -> scores and phases; the second reading of "b" failed
A = {"a": ([1.0, 0.0, 1.0], [0.0, 0.0, 1.0]), "b": ([0.0, NAN, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0])}
B = {"a": ([0.0, 1.0], [0.0, 0.0]), "b": ([1.0, 0.0], [0.0, 1.0]), "c": ([0.5], [0.0])}
PLAIN = {"a": ([1.0, 1.0], [NAN, NAN]), "b": ([0.0, 1.0], [NAN, NAN])}
Log = dict[str, tuple[list[float], list[float]]]


def columns(**logs: Log) -> LogColumns:
    found = LogColumns()
    for name, log in logs.items():
        for item, (scores, phases) in log.items():
            for epoch, (score, phase) in enumerate(zip(scores, phases, strict=True), start=1):
                found.items.append(item)
                found.scores.append(score)
                found.models.append("m")
                found.raters.append("r")
                found.repeats.append((name, epoch))
                found.generations.append((name, epoch))
                found.logs.append(name)
                found.epochs.append(epoch)
                found.phases.append(phase)
    return found


def means(recorded: RecordedScores) -> list[float]:
    assert recorded.phases is not None
    assert recorded.purchases is not None
    _, item, _, place = np.nonzero(np.isfinite(recorded.scores))
    readings = ItemReadings.of(
        item,
        place,
        recorded.scores[0, item, 0, place],
        n_items=len(recorded.items),
        phase=recorded.phases[0, item, 0, place],
        phase_sizes=recorded.purchases[0].phase_sizes,
    )
    assert readings.knows_phases
    return [float(mean) for mean in readings.item_means]


def test_one_log_keeps_its_phases() -> None:
    recorded = columns(one=A).recorded({"m": {"one": Bought(PHASED, 4)}})
    # 3 readings of 2 items, then 3 again: phases weigh the same
    assert means(recorded) == pytest.approx([(0.5 + 1.0) / 2, (0.0 + 1.0) / 2])
    assert recorded.purchases == (PHASED,)


def test_phases_of_a_second_log_come_after_those_of_the_first() -> None:
    recorded = columns(one=A, two=B).recorded({"m": {"one": Bought(PHASED, 4), "two": Bought(PHASED, 2)}})
    assert recorded.phases is not None
    assert [np.unique(own[~np.isnan(own)]).tolist() for own in recorded.phases[0, :, 0]] == [
        [0.0, 1.0, 2.0],
        [0.0, 1.0, 2.0, 3.0],
        [2.0],
    ]
    # 3 items read 3, 3, 4 and 1 times: the third phase weighs 4/10, the fourth 1/(10/3 + 1)
    a, b = 0.6 * 0.75 + 0.4 * 0.5, 0.6 * 0.5 + 0.4 * 1.0
    assert means(recorded) == pytest.approx([a, b * 10 / 13, 0.5])
    assert recorded.purchases == (HowBought(Allocation.PHASED, 2, cost=14.0),)


def test_phases_of_a_second_log_come_after_those_of_the_whole_first_run() -> None:
    log = {item: ([1.0], [0.0]) for item in "ij"}
    first = HowBought(Allocation.PHASED, phase_sizes=(1.0, 0.5))  # its second phase is of other items
    second = HowBought(Allocation.PHASED, phase_sizes=(1.25,))
    found = columns(x=log, y=log).recorded({"m": {"x": Bought(first, 1), "y": Bought(second, 1)}})
    assert found.phases is not None
    assert found.phases[0, :, 0].tolist() == [[0.0, 2.0]] * 2
    assert found.purchases is not None
    assert found.purchases[0].phase_sizes == (1.0, 0.5, 1.25)


def test_plain_epochs_are_one_phase_beside_a_log_of_phases() -> None:
    bought = {"one": Bought(FIXED, 2), "two": Bought(PHASED, 4)}
    recorded = columns(one=PLAIN, two=A).recorded({"m": bought})
    # 2 items read 4, 3 and 3 times: the second phase weighs 3/7, the third 3/10
    assert means(recorded) == pytest.approx(
        [0.7 * (4 / 7 * 1.0 + 3 / 7 * 0.5) + 0.3, 0.7 * (4 / 7 * 0.5) + 0.3]
    )
    assert recorded.purchases == (HowBought(Allocation.PHASED, 2, cost=11.0),)


def test_logs_bought_whatever_the_scores_have_no_phases() -> None:
    assert columns(one=PLAIN).recorded({"m": {"one": Bought(FIXED, 2)}}).phases is None


@pytest.mark.parametrize("phase", [-1.0, 0.5, 1e300, float("inf")])
def test_what_is_no_phase_is_refused(phase: float) -> None:
    log = {"a": ([1.0, 0.0], [0.0, phase])}
    with pytest.raises(InvalidInputError, match="is not a whole number from 0 to 9999"):
        columns(one=log).recorded({"m": {"one": Bought(PHASED, 2)}})
    with pytest.raises(InvalidInputError, match=r"not a whole number from 0|phases is infinite"):
        RecordedScores(np.ones((1, 1, 1, 1)), ("m",), ("a",), ("r",), phases=np.full((1, 1, 1, 1), phase))


def test_phases_survive_the_file_and_follow_the_selection(tmp_path: Path) -> None:
    recorded = columns(one=A, two=B).recorded({"m": {"one": Bought(PHASED, 4), "two": Bought(PHASED, 2)}})
    recorded.save(tmp_path / "scores.npz")
    loaded = RecordedScores.load(tmp_path / "scores.npz")
    assert recorded.phases is not None
    np.testing.assert_array_equal(loaded.phases, recorded.phases)
    assert loaded.purchases == recorded.purchases
    selected = loaded.part(items=np.arange(2))
    assert selected.items == ("a", "b")
    assert selected.purchases is not None
    assert selected.purchases[0].phase_sizes == (1.0, 1.0, 4 / 3, 1 / 3)  # of all three items
    assert means(selected) == means(recorded)[:2]
    np.testing.assert_array_equal(selected.phases, recorded.phases[:, :2])
    with pytest.raises(InvalidInputError, match="phases has shape"):
        replace(recorded, phases=np.zeros((1, 2, 1, 1)))
