"""Variances that are known: read from a file or from earlier scores, and what ROBIN makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.asking import Asking

from evalbudget import Allocation, Design, Reading
from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import RepeatConfig
from evalbudget.repeats._variances import read_variances
from evalbudget.repeats.samplers import Robin
from evalbudget.statistics._shrinkage import VariancePrior

ITEMS = ("a", "b", "c", "task:7")
FILE = "a: 4\nb: 1\nc: 0\ntask:7: .5\nz: 9\n"


def written(folder: Path, text: str = FILE) -> str:
    path = folder / "variances.yaml"
    path.write_text(text)
    return str(path)


def recorded(models: int = 1, repeats: int = 6) -> RecordedScores:
    rng = np.random.default_rng(3)
    scores = rng.normal(5.0, [[[0.1]], [[1.0]], [[2.0]], [[0.5]]], (models, 4, 2, repeats))
    scores[0, 1, 0, 3:] = np.nan
    return RecordedScores(scores, tuple(f"m{i}" for i in range(models)), ITEMS, ("r", "s"))


def test_counts_are_those_of_robin_wherever_it_stops(tmp_path: Path) -> None:
    """One reading each, and then one at a time to the largest variance over readings."""
    config = RepeatConfig.of(budget=200, variances=written(tmp_path))
    assert (config.sampler, config.allocation) == ("robin", Allocation.FIXED)
    sampler = config.make_sampler(Design(items=ITEMS))
    assert isinstance(sampler, Robin)
    variances, n, book = [4.0, 1.0, 0.0, 0.5], [1] * 4, Asking(sampler)
    book.tell([Reading(request, 1.0) for request in book.ask(4)])
    for _ in range(4, 60):
        assert list(book.counts()) == n
        item = max(range(4), key=lambda i: (variances[i] / n[i], -n[i]))
        n[item] += 1
        book.tell([Reading(request, 1.0) for request in book.ask(1)])
    assert n[2] == 1


def test_items_are_called_what_is_written_and_small_numbers_are_numbers(tmp_path: Path) -> None:
    text = "1: 1\n010: 2\n1:30: 3\nyes: 1e-3\n2024-01-01: 0\na:b: 1.5\n"
    found = read_variances(written(tmp_path, text))
    assert found == {"1": 1.0, "010": 2.0, "1:30": 3.0, "yes": 0.001, "2024-01-01": 0.0, "a:b": 1.5}


def test_earlier_scores_say_the_posterior_variances(tmp_path: Path) -> None:
    scores = recorded()
    path = tmp_path / "scores.npz"
    scores.save(path)
    degrees, squares = [], []
    for of_item in scores.scores[0]:
        kept = [one[np.isfinite(one)] for one in of_item]
        degrees.append(sum(one.size - 1 for one in kept))
        squares.append(sum(((one - one.mean()) ** 2).sum() for one in kept))
    prior = VariancePrior.fit(np.array(squares) / degrees, degrees)
    expected = [prior.posterior_mean(s, d) for s, d in zip(squares, degrees, strict=True)]
    found = read_variances(path)
    assert list(found) == list(ITEMS)
    assert list(found.values()) == pytest.approx(expected, rel=1e-6)


def test_of_several_metrics_the_one_that_decides_counts(tmp_path: Path) -> None:
    one, path = recorded(), tmp_path / "scores.npz"
    replace(one, one_measure=False).save(path)
    with pytest.raises(InvalidInputError, match=r"several metrics \(r, s\).* with --score"):
        RepeatConfig.of(budget=200, variances=path)
    found = RepeatConfig.of(budget=200, variances=path, score="s").variances_of(dict.fromkeys(ITEMS, ""))
    one.select(rater="s").save(path)
    assert found == tuple(read_variances(path).values())


def test_items_without_a_variance_are_named(tmp_path: Path) -> None:
    config = RepeatConfig.of(budget=200, variances=written(tmp_path))
    with pytest.raises(InvalidInputError, match=r"no variance of 2 of 3 items \(d, e\)"):
        config.make_sampler(Design(items=("d", "a", "e")))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no variances"),
        ("- 1\n", "holds no variances"),
        ("a: -1\n", "a: -1 is no variance"),
        ("a: .nan\n", "a: nan is no variance"),
        ("a: true\n", "a: True is no variance"),
        ("a: much\n", "a: much is no variance"),
        (f"a: 1{'0' * 350}\n", "is no variance"),
        ("a: [1]\n", "is no variance"),
        ("a: 1\nb: 2\n'a': 3\n", "a stands there twice"),
    ],
)
def test_what_is_no_variance_is_refused_before_anything_is_paid(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        RepeatConfig.of(budget=200, variances=written(tmp_path, text))


def test_scores_that_say_nothing_of_variances_are_refused(tmp_path: Path) -> None:
    for scores, told in ((recorded(models=2), "2 models"), (recorded(repeats=1), "one reading of each item")):
        path = tmp_path / "scores.npz"
        scores.save(path)
        with pytest.raises(InvalidInputError, match=told):
            RepeatConfig.of(budget=200, variances=path)


def test_a_sampler_that_learns_them_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="use --sampler robin, or drop --variances"):
        RepeatConfig.of(budget=200, variances=written(tmp_path), sampler="auto")
    with pytest.raises(InvalidInputError, match=r"is not here|not exist|no such"):
        RepeatConfig.of(budget=200, variances=tmp_path / "nothing.npz")
