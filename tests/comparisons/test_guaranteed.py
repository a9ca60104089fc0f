"""Guaranteed comparisons: what they cost, what they are for, and what they need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.claims import binomial_claim, pinned, replications
from tests.comparisons.test_compare import recorded

from evalbudget.cli.main import cli
from evalbudget.comparisons import Outcome, compare
from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray


def catastrophes(rng: np.random.Generator, n: int = 100) -> FloatArray:
    """Scores of two models, shape (2, n): small gains on 98% of items, and losses that undo them on 2%."""
    lost = rng.random(n) < 0.02
    gain = 0.9 * 0.02 / 0.98 * rng.uniform(0.5, 1.5, n)
    return np.stack([np.where(lost, 0.0, 0.9 + gain), np.full(n, 0.9)])


@pytest.mark.claim
def test_rare_catastrophes_mislead_the_asymptotic_form_only() -> None:
    """The true difference is 0."""
    trials, rng = replications(8, 500), np.random.default_rng(21)
    asymptotic = guaranteed = 0
    for _ in range(trials):
        scores = recorded(catastrophes(rng))
        asymptotic += compare(scores).rows[0].outcome is not Outcome.UNDECIDED
        found = compare(scores, guaranteed=True, score_range=(0.0, 1.0))
        guaranteed += found.rows[0].outcome is not Outcome.UNDECIDED
    binomial_claim(guaranteed, trials, at_most=0.05)
    pinned(guaranteed, 0)
    assert asymptotic > 0.05 * trials


def test_it_is_wider_and_says_so() -> None:
    rng = np.random.default_rng(22)
    scores = recorded((rng.random((2, 200)) < np.array([[0.9], [0.5]])).astype(float))
    plain, sure = compare(scores), compare(scores, guaranteed=True)
    assert plain.rows[0].outcome is sure.rows[0].outcome is Outcome.FIRST
    assert sure.rows[0].high - sure.rows[0].low > plain.rows[0].high - plain.rows[0].low
    assert "asymptotic" in plain.label
    assert "--guaranteed gives wider ones" in plain.label
    assert "guaranteed: any of them is wrong with a probability of at most 5%" in sure.label
    assert (plain.to_dict()["interval"], sure.to_dict()["interval"]) == ("asymptotic", "guaranteed")


def test_clusters_are_drawn_whole() -> None:
    rng = np.random.default_rng(23)
    labels = tuple(str(i // 10) for i in range(400))
    scores = recorded((rng.random((2, 400)) < np.array([[0.9], [0.4]])).astype(float), categories=labels)
    one, ten = compare(scores, guaranteed=True), compare(scores, guaranteed=True, cluster="document")
    assert ten.rows[0].high - ten.rows[0].low > one.rows[0].high - one.rows[0].low
    assert ten.rows[0].outcome is Outcome.FIRST


def test_it_needs_the_range_of_the_scores() -> None:
    rated = recorded(1.0 + np.random.default_rng(24).integers(0, 5, (2, 50)))
    with pytest.raises(InvalidInputError, match=r"that of r0 is not declared.*--score-range 1\.\.10"):
        compare(rated, guaranteed=True)
    assert len(compare(rated, guaranteed=True, score_range=(1.0, 5.0)).rows) == 1
    with pytest.raises(InvalidInputError, match="is outside of 1 to 3"):
        compare(rated, score_range=(1.0, 3.0))


def test_it_is_one_option(tmp_path: Path) -> None:
    rows = [f"q{i},{model},{int(model == 'a' or i % 3 == 0)}" for i in range(90) for model in "ab"]
    (tmp_path / "scores.csv").write_text("\n".join(["item,model,score", *rows]))
    told = CliRunner().invoke(cli, ["compare", str(tmp_path / "scores.csv"), "--guaranteed"])
    assert told.exit_code == 0
    assert told.output.startswith("a is better")
    assert "as of evalbudget gate" in " ".join(told.output.split())
