"""Several logs of one model as one array: shares of readings, against literal sums."""

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
WEIGHTED = HowBought(Allocation.WEIGHTED, 2, cost=7.0)
FIXED = HowBought(cost=4.0)

# item -> scores and weights, nan held out; the second reading of "b" failed
A = {"a": ([1.0, 0.0, 1.0], [NAN, 0.5, 0.125]), "b": ([0.0, NAN, 1.0, 1.0], [NAN, 0.3, 0.25, 0.25])}
B = {"a": ([0.0, 1.0], [NAN, 0.25]), "b": ([1.0, 0.0], [0.25, NAN]), "c": ([0.5], [NAN])}
PLAIN = {"a": ([1.0, 1.0], [NAN, NAN]), "b": ([0.0, 1.0], [NAN, NAN])}
Log = dict[str, tuple[list[float], list[float]]]


def columns(**logs: Log) -> LogColumns:
    found = LogColumns()
    for name, log in logs.items():
        for item, (scores, weights) in log.items():
            for epoch, (score, weight) in enumerate(zip(scores, weights, strict=True), start=1):
                found.items.append(item)
                found.scores.append(score)
                found.models.append("m")
                found.raters.append("r")
                found.repeats.append((name, epoch))
                found.generations.append((name, epoch))
                found.logs.append(name)
                found.epochs.append(epoch)
                found.weights.append(weight)
    return found


def literal_mean(log: Log, item: str) -> float:
    scored = [(x, w) for x, w in zip(*log[item], strict=True) if x == x]
    given = sum(w for _, w in scored if w == w)
    held = sum(w != w for _, w in scored)
    return sum(x * ((1 - given) / held if w != w else w) for x, w in scored)


def n_scored(log: Log) -> int:
    return sum(x == x for scores, _ in log.values() for x in scores)


def means(recorded: RecordedScores) -> list[float]:
    assert recorded.weights is not None
    _, item, _, place = np.nonzero(np.isfinite(recorded.scores))
    readings = ItemReadings.of(
        item,
        place,
        recorded.scores[0, item, 0, place],
        n_items=len(recorded.items),
        weight=recorded.weights[0, item, 0, place],
    )
    return [float(mean) for mean in readings.weighted_means]


def test_one_log_keeps_the_mean_of_its_weights() -> None:
    recorded = columns(one=A).recorded({"m": {"one": Bought(WEIGHTED, 4)}})
    assert means(recorded) == pytest.approx([literal_mean(A, "a"), literal_mean(A, "b")])
    assert recorded.purchases is not None
    assert recorded.purchases[0].allocation is Allocation.WEIGHTED
    assert recorded.purchases[0].cost == 7.0


@pytest.mark.parametrize(("other", "purchase"), [(B, WEIGHTED), (PLAIN, FIXED)])
def test_two_logs_of_a_model_weigh_what_they_have_of_its_readings(other: Log, purchase: HowBought) -> None:
    if purchase is FIXED:  # equal shares where nothing was weighted
        literal = {item: sum(scores) / len(scores) for item, (scores, _) in other.items()}
    else:
        literal = {item: literal_mean(other, item) for item in other}
    recorded = columns(one=A, two=other).recorded(
        {"m": {"one": Bought(WEIGHTED, 4), "two": Bought(purchase, 2)}}
    )
    m, n = n_scored(A), n_scored(other)
    expected = [(m * literal_mean(A, item) + n * literal[item]) / (m + n) for item in "ab"]
    expected += [literal[item] for item in recorded.items[2:]]  # read in one of them only
    assert means(recorded) == pytest.approx(expected)
    assert recorded.purchases is not None
    assert recorded.purchases[0].allocation is Allocation.WEIGHTED


def test_logs_bought_whatever_the_scores_have_no_weights() -> None:
    assert columns(one=PLAIN).recorded({"m": {"one": Bought(FIXED, 2)}}).weights is None


def test_weights_survive_the_file_and_follow_the_selection(tmp_path: Path) -> None:
    recorded = columns(one=A, two=B).recorded({"m": {"one": Bought(WEIGHTED, 4), "two": Bought(WEIGHTED, 2)}})
    recorded.save(tmp_path / "scores.npz")
    loaded = RecordedScores.load(tmp_path / "scores.npz")
    np.testing.assert_array_equal(loaded.weights, recorded.weights)
    assert loaded.purchases == recorded.purchases
    selected = loaded.part(items=np.arange(2))
    assert selected.items == ("a", "b")
    assert means(selected) == means(recorded)[:2]
    with pytest.raises(InvalidInputError, match="weights has shape"):
        replace(recorded, weights=np.zeros((1, 2, 1, 1)))


def test_scores_of_one_answer_share_its_weight_where_they_are_of_judges() -> None:
    # two answers to one item, the first held out; one judge of the second has no score
    scores = {("a", 1): 1.0, ("b", 1): 0.0, ("a", 2): 1.0, ("b", 2): NAN}
    for shared, literal in ((True, [0.4 / 2, 0.4 / 2, 0.6]), (False, [0.4, 0.4, 0.6])):
        found = LogColumns(shared=shared)
        for (rater, epoch), score in scores.items():
            found.items.append("x")
            found.scores.append(score)
            found.models.append("m")
            found.raters.append(rater)
            found.repeats.append(epoch)
            found.generations.append(epoch)
            found.logs.append("one")
            found.epochs.append(epoch)
            found.weights.append(NAN if epoch == 1 else 0.6)
        recorded = found.recorded({"m": {"one": Bought(WEIGHTED, 2)}})
        assert recorded.weights is not None
        own = recorded.weights[0, 0, [0, 1, 0], [0, 0, 1]]
        assert own / own[2] == pytest.approx(np.array(literal) / literal[2])
