"""FAQ against naive loops, and what its interval promises by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from references.faq import Posterior, faq

V = np.random.default_rng(5).normal(size=(7, 2))
MEAN, COVARIANCE = np.array([0.2, -0.1]), np.array([[1.0, 0.3], [0.3, 0.5]])
SCORES = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])


def posterior(n_models: int = 1, factors: np.ndarray = V) -> Posterior:
    return Posterior(factors, MEAN, COVARIANCE, n_models)


def naive(
    luck: list[float], rho: float, tau: float, replacement: bool, second_sum: bool = True
) -> tuple[float, float]:
    """Middle and half-width, item by item; u and Sigma by inverting the information."""
    T, N = len(luck), len(V)
    u, information, read = MEAN.copy(), np.linalg.inv(COVARIANCE), set[int]()
    phi, gaps, plain, sums = [], [], [], []
    for t, chance in enumerate(luck, start=1):
        p = [1 / (1 + math.exp(-float(v @ u))) for v in V]
        w = [x * (1 - x) for x in p]
        left = [j for j in range(N) if replacement or j not in read]
        a = sum(w[j] * V[j] for j in range(N)) / N
        sigma = np.linalg.inv(information)
        told = [
            w[j] * float(a @ sigma @ V[j]) ** 2 / (1 + w[j] * float(V[j] @ sigma @ V[j])) for j in range(N)
        ]
        alpha = max(0.0, 1 - t / (rho * T)) if rho else 0.0
        q = [0.0] * N
        for j in left:
            near = math.sqrt(w[j]) / sum(math.sqrt(w[i]) for i in left)
            far = told[j] / sum(told[i] for i in left)
            q[j] = (1 - tau) * ((1 - alpha) * near + alpha * far) + tau / len(left)
        j = next(j for j in range(N) if sum(q[: j + 1]) >= chance)
        sums.append(sum(SCORES[i] if not replacement and i in read else p[i] for i in range(N)))
        gaps.append((SCORES[j] - p[j]) / q[j])
        plain.append(SCORES[j] / q[j])
        phi.append(sums[-1] + gaps[-1])
        read.add(j)
        information = information + w[j] * np.outer(V[j], V[j])
        u = u + np.linalg.inv(information) @ V[j] * (SCORES[j] - p[j])
    level = sum(plain) / T
    variance = sum(g**2 for g in gaps) / T - second_sum * sum((level - s) ** 2 for s in sums) / T
    if not replacement:
        variance = float(np.var(phi, ddof=1))
    return sum(phi) / T / N, 1.959963984540054 * math.sqrt(max(variance, 0.0) / T) / N


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("rho", "tau"), [(0.0, 0.25), (0.8, 0.05), (0.4, 1.0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_against_a_naive_loop(rho: float, tau: float, replacement: bool, seed: int) -> None:
    luck = np.random.default_rng(seed).random(5).tolist()
    middle, half = naive(luck, rho, tau, replacement)
    rng = np.random.default_rng(seed)
    found = faq(SCORES[None], posterior(), 5, rng, rho=rho, tau=tau, replacement=replacement)
    assert found.low[0] == pytest.approx(max(middle - half, 0.0))
    assert found.high[0] == pytest.approx(min(middle + half, 1.0))


def test_without_the_second_sum_it_is_wider() -> None:
    middle, half = naive(np.random.default_rng(0).random(30).tolist(), 0.0, 0.25, True, second_sum=False)
    found = faq(SCORES[None], posterior(), 30, np.random.default_rng(0), second_sum=False)
    assert (found.low[0], found.high[0]) == pytest.approx((max(middle - half, 0.0), min(middle + half, 1.0)))
    whole = faq(SCORES[None], posterior(), 30, np.random.default_rng(0))
    assert whole.high[0] - whole.low[0] < found.high[0] - found.low[0]


def test_an_item_tells_as_much_of_the_mean_as_it_lowers_its_variance() -> None:
    state = posterior()
    p = state.predict()[0]
    a = (p * (1 - p)) @ V / len(V)
    for j, told in enumerate(state.told_of_mean(p[None])[0]):
        after = np.linalg.inv(np.linalg.inv(COVARIANCE) + p[j] * (1 - p[j]) * np.outer(V[j], V[j]))
        assert told == pytest.approx(a @ COVARIANCE @ a - a @ after @ a)


def test_models_do_not_know_of_one_another_and_skip_items_that_are_not_theirs() -> None:
    missing = np.where(np.arange(7) < 3, np.nan, SCORES)
    together = faq(np.stack([SCORES, missing]), posterior(2), 4, np.random.default_rng(1), replacement=False)
    assert together.distinct.tolist() == [4.0, 4.0]
    assert not np.isnan(together.low).any()
    alone = faq(SCORES[None], posterior(), 6, _first_of_two(1))
    pair = faq(np.stack([SCORES, 1 - SCORES]), posterior(2), 6, np.random.default_rng(1))
    assert (alone.low[0], alone.high[0]) == pytest.approx((pair.low[0], pair.high[0]))


def _first_of_two(seed: int) -> np.random.Generator:
    """Hands out what a model would get as the first of two."""

    class First:
        rng = np.random.default_rng(seed)

        def random(self, shape: tuple[int, int]) -> np.ndarray:
            return self.rng.random((2, 1))[:1]

    return First()  # type: ignore[return-value]


@pytest.mark.parametrize("replacement", [True, False])
def test_covers_in_most_worlds_and_is_shorter_than_without_predictions(replacement: bool) -> None:
    rng = np.random.default_rng(7)
    factors = np.column_stack([np.ones(400), 2.0 * rng.normal(size=400)])
    u = rng.multivariate_normal(MEAN, COVARIANCE, size=300)
    scores = (rng.random((300, 400)) < 1 / (1 + np.exp(-u @ factors.T))).astype(float)
    truth = scores.mean(axis=1)
    found = faq(scores, posterior(300, factors), 80, rng, replacement=replacement)
    covered = ((found.low <= truth) & (truth <= found.high)).mean()
    # 300 models: a standard error of .013 about .95
    assert 0.90 <= covered <= 0.99
    left = 1.0 if replacement else 1 - 80 / 400
    plain = 1.96 * np.sqrt(truth * (1 - truth) / 80 * left).mean()
    assert ((found.high - found.low) / 2).mean() < 0.92 * plain
    assert abs(((found.high + found.low) / 2 - truth).mean()) < 0.006
