"""The rows of a run whose items come in clusters: what the task declares, not how many items there are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.claims import binomial_claim, replications, variant
from tests.repeats.estimates.worlds import of

from evalbudget import Allocation
from evalbudget.repeats._mean_rows import BenchmarkMean, describe_mean
from evalbudget.repeats.estimates import ItemReadings, Strata
from evalbudget.statistics._exact_share import exact_share


def rows_of(
    rows: list[list[float]], clusters: list[int] | None, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> BenchmarkMean:
    return describe_mean(
        of(rows), allocation=Allocation.FIXED, fixed_repeats=1, bounds=bounds, clusters=clusters
    )


def test_the_error_is_between_clusters_and_repeats_are_of_these_items() -> None:
    rows = [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]] * 3 + [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]] * 3
    plain, clustered = rows_of(rows, None), rows_of(rows, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    assert clustered.rows["estimate"] == plain.rows["estimate"]
    assert clustered.rows["stderr"] > 1.2 * plain.rows["stderr"]
    for row in ("repeats_stderr", "repeats_lower", "repeats_upper", "items", "readings"):
        assert clustered.rows[row] == plain.rows[row]
    assert clustered.clusters == 4
    assert plain.clusters is None


@pytest.mark.parametrize(
    ("clusters", "why"),
    [
        ([5, 5, 5, 5], "an interval needs at least 3 clusters, and the items are all of 1 cluster"),
        ([5, 5, 6, 6], "an interval needs at least 3 clusters, and the items are of 2 clusters"),
    ],
)
def test_few_clusters_speak_for_these_items_only(clusters: list[int], why: str) -> None:
    found = rows_of([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]], clusters)
    assert found.no_interval == why
    assert "stderr" not in found.rows
    assert "repeats_lower" in found.rows


def test_equal_scores_have_an_exact_interval_and_no_standard_error() -> None:
    found = rows_of([[0.0]] * 25, None)
    assert found.rows["lower"] == 0.0
    assert round(found.rows["upper"], 3) == 0.137
    assert "stderr" not in found.rows
    assert found.no_interval is None
    wide = rows_of([[10.0]] * 25, None, (1.0, 10.0))
    assert wide.rows["lower"] == pytest.approx(1 + 9 * exact_share(25, 25, 0.95)[0])
    assert rows_of([[0.0]] * 25, None, None).no_interval is not None
    clustered = rows_of([[0.0]] * 25, [i // 5 for i in range(25)])
    assert clustered.rows["upper"] == exact_share(0, 5, 0.95)[1]


@pytest.mark.parametrize("drawn", [False, True])
def test_clusters_with_equal_means_are_not_said_to_have_equal_items(drawn: bool) -> None:
    clusters = [i // 4 for i in range(48)]
    how = {
        "allocation": Allocation.FIXED,
        "fixed_repeats": 1,
        "clusters": clusters,
        "strata": Strata(np.zeros(48, dtype=np.int64), np.array([96])) if drawn else None,
    }
    readings = of([[float(i % 4 == 0)] for i in range(48)])
    found = describe_mean(readings, bounds=(0.0, 1.0), **how)
    assert found.no_interval is None
    assert "stderr" not in found.rows
    alike = rows_of([[0.25]] * 12, None)
    assert (found.rows["lower"], found.rows["upper"]) == (alike.rows["lower"], alike.rows["upper"])
    why = "all clusters have the same mean score, and the range of the scores is not declared"
    assert describe_mean(readings, bounds=None, **how).no_interval == why


def test_a_sample_in_strata_has_the_error_between_clusters_too() -> None:
    rng = np.random.default_rng(4)
    n, whole = 60, 600
    stratum, cluster = np.arange(n) % 3, np.arange(n) // 5
    p = rng.beta(0.5, 0.5, 12)[cluster]
    value = (rng.random(n) < p).astype(float)
    readings = ItemReadings.of(np.arange(n), np.zeros(n, dtype=int), value, n_items=n)
    strata = Strata(stratum, np.full(3, whole // 3))
    how = {"allocation": Allocation.FIXED, "fixed_repeats": 1, "bounds": (0.0, 1.0)}
    drawn = describe_mean(readings, strata=strata, clusters=cluster, **how)
    plain = describe_mean(readings, clusters=cluster, **how)
    assert drawn.rows["stderr"] == pytest.approx(plain.rows["stderr"], rel=1e-9)  # drawn in proportion
    alone = describe_mean(readings, strata=strata, **how)
    assert drawn.rows["stderr"] > 1.3 * alone.rows["stderr"]
    # which of the benchmark's items were drawn has nothing to do with clusters
    assert (drawn.rows["full_lower"], drawn.rows["full_upper"]) == (
        alone.rows["full_lower"],
        alone.rows["full_upper"],
    )


@pytest.mark.claim
@pytest.mark.parametrize(
    ("n_clusters", "repeats", "even"),
    [
        (8, 1, False),
        (8, 4, True),
        (20, 4, False),
        (100, 1, True),
        *(variant(8, *how) for how in ((1, True), (4, False))),
        *(variant(20, *how) for how in ((1, True), (1, False), (4, True))),
        *(variant(100, *how) for how in ((1, False), (4, True), (4, False))),
    ],
)
def test_intervals_over_clusters_cover(n_clusters: int, repeats: int, even: bool) -> None:
    """At least .93 cover, at a width of at most 1.15 of Student's t with the true error."""
    rng = np.random.default_rng(n_clusters + repeats)
    trials = replications(90, 5_000)
    missed, widths, values = 0, [], []
    for _ in range(trials):
        sizes = np.full(n_clusters, 5) if even else rng.integers(2, 9, n_clusters)
        cluster = np.repeat(np.arange(n_clusters), sizes)
        p = np.clip(rng.beta(2, 2, n_clusters)[cluster] + rng.uniform(-0.05, 0.05, cluster.size), 0, 1)
        rows = (rng.random((cluster.size, repeats)) < p[:, None]).astype(float)
        found = rows_of(rows.tolist(), cluster.tolist()).rows
        missed += not found["lower"] <= 0.5 <= found["upper"]
        widths.append(found["upper"] - found["lower"])
        values.append(found["estimate"])
    binomial_claim(missed, trials, at_most=0.07)
    right = 2 * float(stats.t.ppf(0.975, n_clusters - 1)) * float(np.std(values))
    assert np.mean(widths) <= 1.15 * right
    assert math.isclose(np.mean(values), 0.5, abs_tol=5 * np.std(values) / math.sqrt(trials))
