from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student_t
from tests.judges.estimates.panels import NAMES, Panel, items, scored

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.estimate import Coverage, Random
from evalbudget.judges.estimates import (
    JudgeScores,
    Source,
    diagnose_scales,
    effective_votes,
    judge_biases,
    judge_mean_over_sampled_items,
    panel_mean,
    require_one_scale,
    self_preference,
    variance_components,
)
from evalbudget.judges.estimates._mixed import MixedFit
from evalbudget.judges.schedules import All, Cyclic, Priced
from evalbudget.sampler import Allocation
from evalbudget.statistics._judge_effects import judge_effects
from evalbudget.statistics._phase_means import item_shares
from references.anova import variance_components_literal


def of(item: object, judge: object, value: object, epoch: object = None, **more: object) -> JudgeScores:
    epochs = np.zeros(len(np.asarray(item))) if epoch is None else epoch
    return JudgeScores.of(item, epochs, judge, value, judges=more.pop("judges", NAMES), **more)  # type: ignore[arg-type]


# the container


def test_scores_are_sorted_and_failures_absent() -> None:
    s = of([2, 0, 1, 0], [1, 0, 2, 3], [5.0, 1.0, np.nan, 2.0], n_items=4)
    assert s.item.tolist() == [0, 0, 2]
    assert s.judge.tolist() == [0, 3, 1]
    assert s.failed.tolist() == [0, 0, 1, 0, 0]
    assert s.cost == 4.0
    assert s.silent == ("c", "e")
    shuffled = of([0, 2, 0, 1], [3, 1, 0, 2], [2.0, 5.0, 1.0, np.nan], n_items=4)
    assert shuffled.value.tolist() == s.value.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: of([0, 1], [0], [1.0]), "shapes"),
        (lambda: of([0], [5], [1.0]), "judges in 0..4"),
        (lambda: of([3], [0], [1.0], n_items=2), "items must lie in 0..1"),
        (lambda: of([0], [0], [np.inf]), "judge 'a' gave item 0, epoch 0 the score inf"),
        (lambda: of([0, 0], [1, 1], [1.0, 2.0]), "judge 'b' scores item 0, epoch 0 twice"),
        (lambda: of([0], [0], [1.0], judges=("a", "a")), "lists a judge twice: 'a'"),
        (lambda: of([0], [0], [1.0], judges=()), "no judges"),
        (lambda: JudgeScores.from_table(np.zeros((2, 3)), judges=("a",)), "has shape"),
    ],
)
def test_bad_scores(make: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()  # type: ignore[operator]


def test_table_round_trip() -> None:
    table = Panel().table(4, 2, np.random.default_rng(0))
    table[1, 2, 0] = np.nan
    back = JudgeScores.from_table(table, judges=NAMES).table()
    assert np.array_equal(back, table, equal_nan=True)


# the panel mean


def test_panel_mean_with_one_score_per_item_against_the_formula() -> None:
    rng = np.random.default_rng(1)
    s = scored(Panel().table(53, 1, rng), Cyclic(items(53), NAMES))
    groups = [s.value[s.judge == j] for j in range(5)]
    value = np.mean([g.mean() for g in groups])
    pooled = sum(((g - g.mean()) ** 2).sum() for g in groups) / (53 - 5)
    error = np.sqrt(pooled * sum(1 / g.size for g in groups)) / 5
    found = panel_mean(s)
    assert found.value == pytest.approx(value)
    assert found.standard_error == pytest.approx(error)
    half = student_t.ppf(0.95, 48) * error
    assert found.confidence_interval(0.9).half_width == pytest.approx(half)
    assert found.random == {Random.ITEMS, Random.REPEATS}
    assert "these 5 judges" in found.target


def test_panel_mean_of_several_scores_against_corrected_item_means() -> None:
    table = Panel().table(30, 2, np.random.default_rng(2))
    s = JudgeScores.from_table(table, judges=NAMES)
    gamma = table.mean(axis=(0, 2)) - table.mean()
    r = (table - gamma[None, :, None]).mean(axis=(1, 2))
    found = panel_mean(s)
    assert found.value == pytest.approx(table.mean())
    assert found.standard_error == pytest.approx(r.std(ddof=1) / np.sqrt(30))


def test_unequal_counts_do_not_bias_the_panel_mean() -> None:
    rng, ours, raw = np.random.default_rng(3), [], []
    for seed in range(200):
        schedule = Priced(items(100), NAMES, prices=[1, 2, 5, 15, 30], seed=seed)
        s = scored(Panel().table(100, 1, rng), schedule)
        ours.append(panel_mean(s).value)
        raw.append(judge_mean_over_sampled_items(s).value)
    assert abs(np.mean(ours)) < 4 * np.std(ours) / np.sqrt(200)
    assert np.mean(raw) < -10 * np.std(raw) / np.sqrt(200)


def test_a_judge_that_always_fails_is_left_out_and_said() -> None:
    s = scored(Panel().table(20, 1, np.random.default_rng(4)), Cyclic(items(20), NAMES))
    failing = of(s.item, s.judge, np.where(s.judge == 2, np.nan, s.value), n_items=20)
    found = panel_mean(failing)
    assert "4 of 5 judges" in found.target
    assert found.details["judges_silent"] == 1.0
    assert found.details["failed"] == 4.0
    assert np.isfinite(found.confidence_interval().low)
    assert judge_biases(failing).judges == ("a", "b", "d", "e")


def test_panel_mean_of_next_to_nothing() -> None:
    nothing = of([], [], [], n_items=3)
    assert np.isnan(panel_mean(nothing).value)
    assert panel_mean(nothing).n == 0
    one = panel_mean(of([0], [0], [2.0]))
    assert one.value == 2.0
    assert np.isnan(one.confidence_interval().low)
    equal = panel_mean(of([0, 1, 2, 3], [0, 0, 1, 1], [3.0] * 4))
    assert equal.standard_error == 0.0
    assert np.isnan(equal.confidence_interval().low)


# biases


def dense(s: JudgeScores, rho: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, V and the covariance of the judges' levels, as matrices."""
    X = (s.judge[:, None] == np.arange(s.n_judges)).astype(float)
    V = np.where(s.item[:, None] == s.item, rho, 0.0)
    np.fill_diagonal(V, 1.0)
    return X, V, np.linalg.inv(X.T @ np.linalg.inv(V) @ X)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_levels_against_generalised_least_squares(m: int) -> None:
    s = scored(Panel().table(17, m, np.random.default_rng(5)), Cyclic(items(17), NAMES, epochs=m))
    s = s.where(np.arange(s.value.size) % 11 != 0)
    fit = MixedFit.of(s)
    X, V, inverse = dense(s, fit.rho)
    mu = inverse @ X.T @ np.linalg.solve(V, s.value)
    assert np.allclose(fit.mu, mu)
    assert np.allclose(fit.inverse, inverse)
    left = s.value - X @ mu
    assert fit.variance == pytest.approx(left @ np.linalg.solve(V, left) / (s.value.size - 5))
    found = judge_biases(s)
    assert np.allclose(found.value, mu - mu.mean())
    assert found.value.sum() == pytest.approx(0)

    def loss(rho: float) -> float:
        X, V, inverse = dense(s, rho)
        P = np.linalg.inv(V) - np.linalg.solve(V, X) @ inverse @ X.T @ np.linalg.inv(V)
        dets = np.linalg.slogdet(V)[1] - np.linalg.slogdet(inverse)[1]
        prior = np.log(rho * (1 - rho))
        return float(dets + (s.value.size - 5) * np.log(s.value @ P @ s.value) - prior)

    if m > 1:  # REML with the prior: no rho on a grid does better
        assert loss(fit.rho) <= min(loss(rho) for rho in np.linspace(0.02, 0.98, 49)) + 1e-6


def test_biases_among_very_different_items_are_least_squares_within_them() -> None:
    world = Panel(item=1e6, generation=0.0)
    s = scored(world.table(17, 3, np.random.default_rng(5)), Cyclic(items(17), NAMES, epochs=3))
    assert np.allclose(judge_biases(s).value, judge_effects(s.item, s.judge, s.value, 5), atol=1e-3)


@pytest.mark.parametrize("allocation", [Allocation.FIXED, Allocation.PHASED])
def test_error_of_an_uneven_panel_mean_against_matrices(allocation: Allocation) -> None:
    s = scored(Panel().table(13, 4, np.random.default_rng(6)), Cyclic(items(13), NAMES, epochs=4))
    s = s.where((np.arange(s.value.size) % 3 != 0) | (s.judge == 2))
    rho = MixedFit.of(s).rho
    X, V, inverse = dense(s, rho)
    in_item = (s.item == np.arange(13)[:, None]).astype(float)
    weight = 1.0 / (13 * s.per_item[s.item])
    if allocation is Allocation.PHASED:
        phase = (s.epoch >= 2).astype(float)
        weight = item_shares(s.item, phase, 13) / 13
        shuffled = np.random.default_rng(7).permutation(s.value.size)  # of() sorts phases with the scores
        s = JudgeScores.of(
            *(column[shuffled] for column in (s.item, s.epoch, s.judge, s.value)),
            judges=s.judges,
            n_items=13,
            phase=phase[shuffled],
        )
        assert panel_mean(s, allocation=Allocation.FIXED).value != panel_mean(s, allocation=allocation).value
    levels = inverse @ X.T @ np.linalg.inv(V)
    deviations = levels - levels.mean(axis=0)
    c = weight - weight @ X @ deviations  # of every score in the mean of x - gammahat
    u = in_item * c
    W = u @ (V - X @ inverse @ X.T) @ u.T
    squares = float(((u @ (s.value - X @ levels @ s.value)) ** 2).sum())
    degrees = np.trace(W) ** 2 / (W**2).sum()
    found = panel_mean(s, allocation=allocation)
    assert found.value == pytest.approx(float(c @ s.value))
    assert found.details["degrees"] == pytest.approx(degrees)
    assert found.standard_error == pytest.approx(np.sqrt(squares * np.trace(u @ V @ u.T) / np.trace(W)))
    half_width = student_t.ppf(0.975, degrees) * found.standard_error
    assert found.confidence_interval().half_width == pytest.approx(half_width)


def test_constant_scores_claim_no_interval_of_biases() -> None:
    bounds = judge_biases(JudgeScores.from_table(np.ones((6, 5, 2)), judges=NAMES)).confidence_intervals()
    assert np.isnan(bounds.low).all()


def test_biases_of_a_crossed_design_are_means_of_deviations() -> None:
    table = Panel(interaction=0.5).table(40, 2, np.random.default_rng(6))
    found = judge_biases(JudgeScores.from_table(table, judges=NAMES))
    per_item = (table - table.mean(axis=1, keepdims=True)).mean(axis=2)
    assert np.allclose(found.value, per_item.mean(axis=0))
    # clustered by item: the same as the plain standard error of the items' deviations
    assert np.allclose(found.standard_error, per_item.std(axis=0, ddof=1) / np.sqrt(40))
    each = found.confidence_intervals(coverage=Coverage.EACH).width
    assert (found.confidence_intervals().width > each).all()


def test_judges_that_share_no_items_are_compared_all_the_same() -> None:
    s = of([0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 0, 1], np.arange(6.0), epoch=[0, 1, 0, 1, 0, 1])
    assert judge_biases(s).method == "generalised least squares, judges compared within and between items"
    once = judge_biases(s.where(s.epoch == 0))
    assert once.method == "generalised least squares, judge means over random items"
    with pytest.raises(InvalidInferenceError, match="1 judge gave scores"):
        judge_biases(of([0, 1], [0, 0], [1.0, 2.0]))


# components


def test_components_against_the_mean_squares() -> None:
    x = Panel(interaction=0.4).table(6, 3, np.random.default_rng(7))
    n, K, m = x.shape
    ms_w = ms_sj = ms_g = ms_s = 0.0
    for i in range(n):
        ms_s += m * K * (x[i].mean() - x.mean()) ** 2 / (n - 1)
        for j in range(m):
            ms_g += K * (x[i, :, j].mean() - x[i].mean()) ** 2 / (n * (m - 1))
        for k in range(K):
            d = x[i, k].mean() - x[i].mean() - x[:, k].mean() + x.mean()
            ms_sj += m * d**2 / ((n - 1) * (K - 1))
            for j in range(m):
                w = x[i, k, j] - x[i, :, j].mean() - x[i, k].mean() + x[i].mean()
                ms_w += w**2 / (n * (m - 1) * (K - 1))
    found = variance_components(JudgeScores.from_table(x, judges=NAMES))
    assert found.design == "crossed"
    assert found[Source.ITEM] == pytest.approx((ms_s - ms_g - ms_sj + ms_w) / (m * K))
    assert found[Source.GENERATION] == pytest.approx((ms_g - ms_w) / K)
    assert found[Source.INTERACTION] == pytest.approx((ms_sj - ms_w) / m)
    assert found[Source.RESIDUAL] == pytest.approx(ms_w)
    gamma = x.mean(axis=(0, 2)) - x.mean()
    assert found[Source.JUDGE] == pytest.approx((gamma**2).mean() - ms_sj / (n * m) * (K - 1) / K)
    literal, f = variance_components_literal(JudgeScores.from_table(x, judges=NAMES))
    ms_e = (ms_sj * (n - 1) * (K - 1) + ms_w * n * (m - 1) * (K - 1)) / ((n * m - 1) * (K - 1))
    assert literal[Source.GENERATION] == pytest.approx((ms_g - ms_e) / K)
    assert literal[Source.ITEM] == pytest.approx((ms_s - ms_g) / (m * K))
    assert literal[Source.RESIDUAL] == pytest.approx(ms_e)
    assert literal[Source.INTERACTION] == 0.0
    assert f == pytest.approx(n * m * (gamma**2).sum() / (K - 1) / ms_e)


def test_each_design_says_what_it_identifies() -> None:
    rng = np.random.default_rng(8)
    once = variance_components(scored(Panel().table(30, 1, rng), Cyclic(items(30), NAMES)))
    assert [c.identified for c in once.components] == [False, True]
    assert len(once.components[0].sources) == 4
    rotated = variance_components(scored(Panel().table(30, 3, rng), Cyclic(items(30), NAMES, epochs=3)))
    assert [c.name for c in rotated.components] == ["item", "generation + item x judge + residual", "judge"]
    with pytest.raises(InvalidInferenceError, match="variance of generation is needed"):
        rotated["generation"]
    with pytest.raises(InvalidInferenceError, match=r"variance of residual is needed.*rotation 'all'"):
        rotated["residual"]
    crossed_once = variance_components(scored(Panel().table(30, 1, rng), All(items(30), NAMES)))
    assert crossed_once.design == "crossed, one generation"
    with pytest.raises(InvalidInferenceError, match="two or more generations"):
        crossed_once["item"]
    with pytest.raises(InvalidInferenceError, match="paper's ANOVA needs"):
        variance_components_literal(scored(Panel().table(30, 3, rng), Cyclic(items(30), NAMES, epochs=3)))
    with pytest.raises(InvalidInferenceError, match="1 judges scored 2 items"):
        variance_components(of([0, 1], [0, 0], [1.0, 2.0]))


def test_negative_components_are_reported_and_truncated_only_for_planning() -> None:
    rng = np.random.default_rng(9)
    draws = [
        variance_components(JudgeScores.from_table(Panel(generation=0.0).table(10, 2, rng), judges=NAMES))
        for _ in range(20)
    ]
    negative = [d.components[1] for d in draws if d.components[1].negative]
    assert negative
    assert negative[0].value < 0 == negative[0].truncated
    assert all(sum(d.shares().values()) == pytest.approx(1) for d in draws)


def test_items_with_a_missing_score_are_dropped_from_crossed_designs() -> None:
    table = Panel().table(20, 2, np.random.default_rng(10))
    table[3, 1, 1] = np.nan
    found = variance_components(JudgeScores.from_table(table, judges=NAMES))
    assert (found.design, found.n_items, found.items_dropped) == ("crossed", 19, 1)
    whole = variance_components(JudgeScores.from_table(np.delete(table, 3, axis=0), judges=NAMES))
    assert [c.value for c in found.components] == [c.value for c in whole.components]
    first = np.concatenate([np.full((20, 5, 1), np.nan), table], axis=2)  # every first generation failed
    assert variance_components(JudgeScores.from_table(first, judges=NAMES)).n_items == 19


def test_constant_scores_have_no_variance() -> None:
    found = variance_components(JudgeScores.from_table(np.ones((4, 5, 2)), judges=NAMES), bootstrap=5)
    assert all(c.value == 0.0 for c in found.components)
    assert all(np.isnan(share) for share in found.shares().values())


# votes, self-preference, scales


def test_effective_votes_against_theory() -> None:
    rng = np.random.default_rng(13)
    n, K, rho = 4000, 5, 0.5
    truth = rng.normal(size=n)
    errors = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, K))
    s = JudgeScores.from_table((truth[:, None] + errors)[:, :, None], judges=NAMES)
    found = effective_votes(s, truth=truth)
    assert found.value == pytest.approx(K / (1 + (K - 1) * rho), rel=0.05)
    assert found.correlation == pytest.approx(rho, abs=0.05)
    # what all share does not show without the truth
    assert effective_votes(s).value == pytest.approx(K, rel=0.05)
    assert effective_votes(s).upper_bound
    twins = np.repeat(truth[:, None] + rng.normal(size=(n, 2)), 2, axis=1)
    among = effective_votes(JudgeScores.from_table(twins[:, :, None], judges="wxyz"))
    assert among.value == pytest.approx(2, rel=0.01)
    assert np.isnan(among.correlation)


def test_votes_without_truth_in_small_samples() -> None:
    rng = np.random.default_rng(17)
    for K, n in ((20, 30), (60, 40)):
        draws = [
            effective_votes(JudgeScores.from_table(rng.normal(size=(n, K, 1)), judges=items(K))).value
            for _ in range(40)
        ]
        assert 0.9 * K < np.median(draws) <= K
    same = rng.normal(6.0, 1.0, size=(50, 1, 1)).repeat(3, axis=1) + np.array([0.1, 0.7, 1.3])[:, None]
    assert effective_votes(JudgeScores.from_table(same, judges="abc")).value == pytest.approx(1.0, abs=1e-12)


def test_votes_need_items_scored_by_all() -> None:
    with pytest.raises(InvalidInferenceError, match="rotation 'all'"):
        effective_votes(scored(Panel().table(20, 1, np.random.default_rng(0)), Cyclic(items(20), NAMES)))
    with pytest.raises(InvalidInferenceError, match="a single judge"):
        effective_votes(of([0, 1], [0, 0], [1.0, 2.0]))
    with pytest.raises(InvalidInputError, match="truth has shape"):
        effective_votes(JudgeScores.from_table(np.ones((4, 5, 1)), judges=NAMES), truth=[1.0])


def test_self_preference_is_found_and_leniency_is_not() -> None:
    rng = np.random.default_rng(14)
    x = rng.normal(0, 0.3, (3, 300, 3))
    x += np.array([0.0, 1.0, 2.0])[:, None, None] + np.array([0.5, -1.0, 0.0])[None, None, :]
    x[1, :, 1] += 0.4  # model and judge "b" are the same
    found = self_preference(x, ["org/a", "org/b", "z"], ["a", "b", "c"])
    assert found.judges == ("a", "b")
    assert found.models == ("org/a", "org/b")
    bounds = found.confidence_intervals()
    assert bounds.low[1] > 0.2
    assert bounds.contains([0.4 * -0.25, 0.4]).tolist()[1]
    with pytest.raises(InvalidInferenceError, match="none of the judges"):
        self_preference(x, ["p", "q", "r"], ["a", "b", "c"])
    with pytest.raises(InvalidInputError, match="has shape"):
        self_preference(x[0], ["org/a"], ["a", "b", "c"])


def test_self_preference_of_one_judge_does_not_accuse_another() -> None:
    rng = np.random.default_rng(16)
    x = rng.normal(0, 0.3, (3, 400, 3))
    x[0, :, 0] += 1.0  # "a" favours itself, "b" does not
    found = self_preference(x, ["a", "b", "m"], ["a", "b", "c"])
    assert np.allclose(found.value, [1.0, 0.0], atol=0.1)
    double = 0.0
    for m, k in ((1, 2), (2, 1), (2, 2)):  # every pair of others but "b" on itself
        double = double + ((x[0, :, 0] - x[0, :, k]) - (x[m, :, 0] - x[m, :, k])) / 3
    assert found.value[0] == pytest.approx(double.mean())
    error = double.std(ddof=1) / np.sqrt(400)
    assert found.confidence_intervals().width[0] == pytest.approx(
        2 * student_t.ppf(1 - 0.025 / 2, 399) * error
    )
    with pytest.raises(InvalidInferenceError, match="judges that score themselves"):
        self_preference(x[:2, :, :2], ["a", "b"], ["a", "b"])


def test_judges_that_are_merely_different_are_on_one_scale() -> None:
    rng = np.random.default_rng(18)

    def panel(draws: np.ndarray) -> JudgeScores:
        K, n = draws.shape
        return of(np.arange(K * n), np.repeat(np.arange(K), n), draws.ravel(), judges=items(K))

    for K in (3, 20, 123):
        refused = sum(
            not diagnose_scales(panel(np.clip(np.rint(rng.normal(6, 1.5, (K, 10))), 1, 10))).one_scale
            for _ in range(40)
        )
        assert refused <= 1
    require_one_scale(panel(rng.normal(0, 0.3, (2, 50)) + np.array([[3.0], [5.0]])))  # bias
    require_one_scale(
        panel((rng.random((2, 200)) < np.array([[0.05], [0.5]])).astype(float))
    )  # harsh, yes or no
    require_one_scale(panel(rng.normal(0, 1, (2, 50)) * [[0.5], [1.5]] + [[8.0], [6.0]]))  # lenient
    for low, high in ((1, 10), (1, 100)):
        unit = rng.random((4, 10))
        assert not diagnose_scales(panel(np.vstack([unit, low + (high - low) * unit]))).one_scale
    likert = np.vstack([rng.integers(1, 6, (2, 15)), rng.integers(1, 101, (2, 15))]).astype(float)
    assert diagnose_scales(panel(likert)).odd == ("0", "1")


def test_scales_are_told_apart() -> None:
    rng = np.random.default_rng(15)
    five, ten = rng.integers(1, 6, 50), rng.integers(1, 11, 50)
    s = of(np.arange(100), np.repeat([0, 1], 50), np.concatenate([five, ten]), judges=("a", "b"))
    assert diagnose_scales(s).odd == ("a",)
    with pytest.raises(InvalidInferenceError, match=r"a 1 to 5, b 1 to 10; a does not fit.*rescale"):
        require_one_scale(s)
    same = of(np.arange(100), np.repeat([0, 1], 50), np.concatenate([ten, rng.permutation(ten)]), judges="ab")
    require_one_scale(same)
    constant = of(np.arange(100), np.repeat([0, 1], 50), np.concatenate([ten, np.full(50, 4)]), judges="ab")
    require_one_scale(constant)
    require_one_scale(of([], [], [], judges="ab"))
