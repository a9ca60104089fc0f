"""The sampler of gates: its contract, its order, its verdicts; wrong verdicts by simulation."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.claims import binomial_claim, only, pinned, replications, variant

from evalbudget import Design, Sampler
from evalbudget.comparisons import GateSampler, Verdict
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.sampler import Kind
from evalbudget.testing import SamplerContract
from evalbudget.testing._contract import SCORES

ROOT = Path(__file__).resolve().parents[2]


class GateContract(SamplerContract):
    n_models = 2
    n_items = 20
    asks_everything = False
    score_range = (0.0, 1.0)
    options: ClassVar[dict[str, Any]] = {"batch": 3}

    def make(self, design: Design, seed: int) -> Sampler:
        return GateSampler(design, seed=seed, **self.options)

    @pytest.mark.parametrize("score", only({"all-equal", "late-surprise", "huge-and-tiny"}, SCORES))
    def test_any_finite_scores_are_taken(self, score: Any) -> None:
        super().test_any_finite_scores_are_taken(score)


class TestGate(GateContract):
    asks_everything = True


class TestGateOfThreeOnAnotherScale(GateContract):
    n_models = 4
    score_range = (-10.0, 10.0)
    options: ClassVar[dict[str, Any]] = {"margin": 2.0, "score_range": (-10.0, 10.0), "delta": 0.3}


class TestGateOnTheseItems(GateContract):
    options: ClassVar[dict[str, Any]] = {"these_items": True, "margin": 0.3}


class TestGateOfClusters(GateContract):
    asks_everything = True

    def design(self, n_items: int | None = None) -> Design:
        plain = super().design(n_items)
        labels = tuple(str(i // 3) for i in range(plain.n_items))
        return Design(plain.items, plain.models, plain.raters, labels)


def design(n: int, models: int = 2, labels: list[int] | None = None) -> Design:
    return Design(
        items=tuple(map(str, range(n))),
        models=tuple("bcde"[:models]),
        categories=None if labels is None else tuple(map(str, labels)),
    )


def played(sampler: GateSampler, table: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """Cells in the order asked."""
    asked = []
    while (cells := sampler.next_cells()) is not None:
        asked += list(zip(cells.model.tolist(), cells.item.tolist(), strict=True))
        sampler.learn(cells, table[cells.model, cells.item])
    return asked


def test_it_is_registered() -> None:
    assert plugins().sampler("gate", Kind.MODELS) is GateSampler


def test_a_candidate_that_fails_everything_is_worse_soon() -> None:
    sampler = GateSampler(design(500), margin=0.1)
    asked = played(sampler, np.array([np.ones(500), np.zeros(500)]))
    assert sampler.evidence(1).verdict is Verdict.WORSE
    assert sampler.stop_reason == "every candidate is decided"
    assert len(asked) < 60


def rounds_of(sampler: GateSampler, table: np.ndarray[Any, Any]) -> list[int]:
    """Items of the candidate in each round."""
    sizes = []
    while (cells := sampler.next_cells()) is not None:
        sizes.append(int((cells.model == 1).sum()))
        sampler.learn(cells, table[cells.model, cells.item])
    return sizes


def test_rounds_shrink_towards_a_verdict_and_grow_where_none_is_near() -> None:
    same = np.ones(500)
    assert rounds_of(GateSampler(design(500), margin=0.05, seed=0), np.array([same, same])) == [
        24,
        18,
        12,
        12,
        12,
    ]
    noise = np.random.default_rng(0).integers(0, 2, (2, 500)).astype(float)
    noise[1] = noise[0]
    order = GateSampler(design(500), seed=0).order(0)
    noise[1, order[::2]] = 1.0 - noise[0, order[::2]]  # every other answer is the opposite
    sizes = rounds_of(GateSampler(design(500), margin=0.01, seed=0), noise)
    assert sizes[:3] == [24, 18, 31]
    assert sum(sizes) == 500
    assert len(sizes) < 12


def test_the_same_answers_are_not_worse_on_enough_items() -> None:
    same = np.ones(500)
    sampler = GateSampler(design(500), margin=0.1)
    played(sampler, np.array([same, same]))
    found = sampler.evidence(1)
    assert found.verdict is Verdict.NOT_WORSE
    assert found.interval[0] > -0.1
    assert found.items < 100
    few = GateSampler(design(20), margin=0.1)
    played(few, np.array([same[:20], same[:20]]))
    assert few.evidence(1).verdict is None
    assert few.evidence(1).items_needed() > 20  # type: ignore[operator]


def test_these_items_are_known_once_all_are_read() -> None:
    table = np.zeros((2, 40))
    table[0, :3] = 1.0  # .075 below
    for margin, verdict in ((0.08, Verdict.NOT_WORSE), (0.075, Verdict.WORSE), (0.07, Verdict.WORSE)):
        sampler = GateSampler(design(40), margin=margin, these_items=True, batch=40)
        played(sampler, table)
        found = sampler.evidence(1)
        assert (found.verdict, found.difference) == (verdict, pytest.approx(-0.075))


def test_clusters_are_read_as_a_whole() -> None:
    labels = [i // 4 for i in range(40)]
    sampler = GateSampler(design(40, labels=labels), margin=0.2, batch=3)
    asked = played(sampler, np.random.default_rng(0).random((2, 40)))
    of_candidate = [labels[item] for model, item in asked if model == 1]
    changes = sum(a != b for a, b in pairwise(of_candidate))
    assert changes == len(set(of_candidate)) - 1
    assert sampler.evidence(1).clusters == len(set(of_candidate))
    assert sampler.evidence(1).draws.size.tolist() == [4] * len(set(of_candidate))


def test_a_cluster_that_is_not_read_to_its_end_says_nothing_yet() -> None:
    sampler = GateSampler(design(40, labels=[i // 4 for i in range(40)]), margin=0.2, batch=8)
    cells = sampler.next_cells(10)
    assert cells is not None
    sampler.learn(cells, np.ones(10))
    assert sampler.evidence(1).items == 4


def test_items_on_which_one_failed_are_left_out() -> None:
    table = np.random.default_rng(1).integers(0, 2, (2, 60)).astype(float)
    table[1, ::3] = np.nan
    sampler = GateSampler(design(60), margin=0.05)
    played(sampler, table)
    found = sampler.evidence(1)
    assert (found.failed, found.items) == (20, 40)
    assert found.difference == pytest.approx(np.nanmean(table[1] - table[0]))


def test_several_candidates_share_the_error_and_leave_when_decided() -> None:
    n = 400
    table = np.array([np.ones(n), np.zeros(n), np.ones(n)])
    sampler = GateSampler(design(n, 3), margin=0.1)
    played(sampler, table)
    assert [sampler.evidence(c).alpha for c in (1, 2)] == [0.025, 0.025]
    assert sampler.evidence(1).verdict is Verdict.WORSE
    assert sampler.evidence(2).verdict is Verdict.NOT_WORSE
    assert sampler.evidence(1).items < sampler.evidence(2).items


def test_a_baseline_that_is_down_ends_the_gate() -> None:
    table = np.array([np.full(100, np.nan), np.ones(100)])
    sampler = GateSampler(design(100), margin=0.1)
    played(sampler, table)
    assert sampler.stop_reason == "the baseline can be asked no more"


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0, float("nan")])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(InvalidInputError, match="may be worse by, above 0 and below 1"):
        GateSampler(design(10), margin=margin)


@pytest.fixture
def sections() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("comparisons_sections.gates")


WRONG = {
    ("pass or fail", 0): 0,
    ("pass or fail", -1): 1,
    ("ratings", 0): 1,
    ("ratings", -1): 0,
    ("skewed", 0): 0,
    ("skewed", -1): 1,
    ("clustered", 0): 0,
    ("clustered", -1): 0,
    ("noisy judge", 0): 1,
    ("noisy judge", -1): 1,
}
PLAYED = {("pass or fail", 0), ("ratings", -1), ("skewed", -1), ("clustered", 0)}


@pytest.mark.claim
@pytest.mark.parametrize(("world", "times"), [case if case in PLAYED else variant(*case) for case in WRONG])
def test_wrong_verdicts_at_any_moment(sections: Any, world: str, times: int) -> None:
    R = replications(11, 2000)
    drawn = sections.WORLDS[world]
    rng = np.random.default_rng(7)
    wrong = Verdict.WORSE if times == 0 else Verdict.NOT_WORSE
    failed = sum(
        sections.play(drawn.draw(rng, 500, times * drawn.margin), drawn.margin, run).verdict is wrong
        for run in range(R)
    )
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, WRONG[world, times])
