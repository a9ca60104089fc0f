"""What is wrong in the PULSE paper, each with a check that takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evalbudget.races.prediction._coefficient import Coefficient, clipped
from judges_sections.found import Floats, Table
from papers_sections.authors_pulse import code_coefficient
from papers_sections.claims import Erratum
from places import data_file
from racing_sections.leaderboard import TEMPER
from references.pulse import freedman_half_width

BATCH = 64
_Rule = Callable[[float, float, float, float], float]
"""F, Phi, items left, mean correction -> lambda."""


def errata(off: Table, quick: bool) -> tuple[Erratum, ...]:
    """Run all checks; ``off`` is what :func:`lambdas` found."""
    return (
        *_signs(off),
        *_lemma_2(500 if quick else 20_000),
        _theorem_1(),
        _theorem_2(),
        _range(50 if quick else 1_000),
    )


@dataclass(frozen=True)
class _Batches:
    """Batches of one model: sums of S and f in each, what was left before it, sums of f and f^2 over that."""

    scores: Floats
    predictions: Floats
    left: Floats
    F: Floats
    Phi: Floats
    n: int
    best: float
    """Cov(S, f) / Var(f) over all items: the lambda of least variance, which no race can know."""

    @classmethod
    def drawn(cls, scores: Floats, f: Floats, count: int, rng: np.random.Generator) -> _Batches:
        """The first ``count`` batches of a random order."""
        n = scores.size
        order = rng.permutation(n)
        starts = np.arange(count) * BATCH
        s = scores[order[: count * BATCH]].reshape(count, BATCH).sum(axis=1)
        taken = f[order[: count * BATCH]].reshape(count, BATCH)
        p, squares = taken.sum(axis=1), (taken**2).sum(axis=1)
        F, Phi = f.sum() - np.cumsum(p) + p, (f**2).sum() - np.cumsum(squares) + squares
        spread = float(f.var())
        best = float(((scores - scores.mean()) * f).mean()) / spread if spread > 0.0 else 0.0
        return cls(s, p, (n - starts).astype(np.float64), F, Phi, n, best)

    def estimate(self, lam: Floats) -> float:
        """Mean of theta_t at these lambdas."""
        before = np.cumsum(self.scores) - self.scores
        correction = self.left / BATCH * (self.scores - lam * self.predictions)
        return float(((before + lam * self.F + correction) / self.n).mean())

    def lambdas(self, rule: _Rule, meaning: Coefficient, *, first_counts: bool) -> Floats:
        """Batch by batch; ``first_counts``: whether the first batch's correction is in the mean."""
        lam, total = np.empty(self.scores.size), 0.0
        for k in range(lam.size):
            past = k if first_counts else max(k - 1, 0)
            row = float(self.F[k]), float(self.Phi[k]), float(self.left[k])
            lam[k] = rule(*row, total / past if past else 0.0) if k else meaning.first
            if k or first_counts:
                total += meaning.correction(
                    float(self.scores[k]),
                    float(self.predictions[k]),
                    float(lam[k]),
                    float(self.left[k]) / BATCH,
                )
        return lam


def _by_code(F: float, Phi: float, left: float, mean: float) -> float:
    return code_coefficient(F, Phi, BATCH / left, mean)


_PUBLISHED, _CORRECTED = Coefficient.PUBLISHED, Coefficient.CORRECTED
RULES: dict[str, Callable[[_Batches], Floats]] = {
    "text": lambda b: b.lambdas(clipped, _PUBLISHED, first_counts=True),
    "text, first batch not in Zbar": lambda b: b.lambdas(clipped, _PUBLISHED, first_counts=False),
    "code": lambda b: b.lambdas(_by_code, _PUBLISHED, first_counts=False),
    "code with the first batch in Zbar": lambda b: b.lambdas(_by_code, _PUBLISHED, first_counts=True),
    "corrected": lambda b: b.lambdas(clipped, _CORRECTED, first_counts=True),
    "Cov(S, f) / Var(f)": lambda b: np.full(b.scores.size, b.best),
    "lambda = 1": lambda b: np.ones(b.scores.size),
    "lambda = 0": lambda b: np.zeros(b.scores.size),
}


def lambdas(n_models: int) -> Table:
    """Mean lambda after the first batch, and the spread of estimates, by rule and by how predictions err."""
    archive = np.load(data_file("leaderboard_factors"))
    chosen = np.random.default_rng(0).permutation(len(archive["U"]))[:n_models]
    logits = archive["U"][chosen].astype(np.float64) @ archive["V"].astype(np.float64).T / TEMPER
    logits = np.clip(logits, -30.0, 30.0)
    count = min(20, logits.shape[1] // BATCH)
    told: dict[str, list[str]] = {rule: [] for rule in RULES}
    for off in (-1.0, 0.0, 1.0):
        rng = np.random.default_rng(1)
        lam: dict[str, list[float]] = {rule: [] for rule in RULES}
        error: dict[str, list[float]] = {rule: [] for rule in RULES}
        for row in logits:
            scores = (rng.random(row.size) < 1.0 / (1.0 + np.exp(-row))).astype(np.float64)
            batches = _Batches.drawn(scores, 1.0 / (1.0 + np.exp(-row - off)), count, rng)
            for rule, of in RULES.items():
                found = of(batches)
                lam[rule].append(float(found[1:].mean()))
                error[rule].append(batches.estimate(found) - float(scores.mean()))
        for rule in RULES:
            told[rule].append(f"{np.mean(lam[rule]):.2f}, {1e3 * np.std(error[rule]):.2f}")
    return Table(
        "Lambda: mean after the first batch, and 1,000 x standard deviation of the estimate",
        ("rule", "logits 1 too low", "right", "1 too high"),
        tuple((rule, *cells) for rule, cells in told.items()),
        (
            f"{len(logits)} models of the leaderboard, {logits.shape[1]:,} items, {count} batches of "
            f"{BATCH}; predictions are the true chances with logits moved by one.",
        ),
    )


def _signs(off: Table) -> list[Erratum]:
    """What the table of lambdas shows."""
    cells = {row[0]: row[1:] for row in off.rows}

    def told(*rules: str) -> str:
        return "; ".join(f"{rule}: {' / '.join(cells[rule])}" for rule in rules)

    check = "the table of lambdas (too low / right / too high): "
    return [
        Erratum(
            "Lambda goes by 1 - F Zbar / (|U| Phi), Zbar the mean of sum (S - lambda f) / pi",
            "the sign is wrong: lambda falls where predictions are too low, and less or not at all where "
            "they are too high. Turned round (corrected) it falls where they are too high: a slope through "
            "the origin, while the best, a slope with an intercept, is near 1 in both",
            check + told("text", "text, first batch not in Zbar", "corrected", "Cov(S, f) / Var(f)"),
        ),
        Erratum(
            "Zbar is the mean over the model's steps",
            "in the code over the loop's only: with the first batch lambda would start, and by its formula "
            "stay, near 0",
            check + told("code", "code with the first batch in Zbar"),
        ),
        Erratum(
            "The bonus is sqrt(a/|O|)",
            "at the same |O| estimates are surer where predictions are good",
            check + told("lambda = 1", "lambda = 0"),
        ),
    ]


def _lemma_2(runs: int) -> list[Erratum]:
    """Without predictions: the variance of the equal-weight mean of theta_t over that of the plain mean."""
    n, b = 1200, 60
    scores = (np.arange(n) % 2).astype(np.float64)
    rng = np.random.default_rng(0)
    drawn = rng.permuted(np.tile(scores, (runs, 1)), axis=1).reshape(runs, n // b, b).sum(axis=2)
    before = np.cumsum(drawn, axis=1) - drawn
    left = n - b * np.arange(n // b)
    theta = (before + left / b * drawn) / n
    equal, weighted = [], []
    for share in (0.1, 0.25, 0.5, 0.75, 0.95):
        k = round(share * n / b)
        plain = (before + drawn)[:, k - 1] / (k * b)
        weights = b / (left[:k] * (left[:k] - b))
        equal.append(f"{theta[:, :k].mean(axis=1).var() / plain.var():.2f}")
        weighted.append(f"{(theta[:, :k] @ weights / weights.sum()).var() / plain.var():.2f}")
    check = (
        f"Var / Var(mean) after 10, 25, 50, 75, 95% of {n:,} items, batches of {b}, no predictions, "
        f"{runs:,} orders: "
    )
    return [
        Erratum(
            "Lemma 2: the variance is no larger than the plain mean's, even with useless predictions",
            "shown of the last step given the past; false of the estimate",
            check + ", ".join(equal),
        ),
        Erratum(
            "Theta_t are averaged with equal weights",
            "later ones are surer: weights b / (|U| (|U| - b)) give the whole factor of a finite pool",
            check + ", ".join(weighted),
        ),
    ]


def _theorem_1() -> Erratum:
    widths = ", ".join(f"{freedman_half_width(0.0, K, 0.95):.3f}" for K in (10, 50, 100, 188))
    return Erratum(
        "Theorem 1 is the interval to print",
        "without any variance it is wider than the smaller gaps studied at any budget",
        f"95% half-width at variance 0 after 10, 50, 100 and 188 batches (all of 12,000 items): {widths}",
    )


def _theorem_2() -> Erratum:
    """Sum over models and K of 2 exp(-eps^2 / (2 (v / (K n^2) + 2 eps / (3K)))), eps = sqrt(a/K)/5."""
    told = []
    for what, most, size in (("batches", 12_000 // BATCH + 1, BATCH), ("single items", 12_000, 1)):
        K = np.arange(1, most + 1)
        eps = np.sqrt(1.0 / (size * K)) / 5.0
        terms = 2.0 * np.exp(-(eps**2) / (2.0 * (0.25 / size / K + 2.0 * eps / (3.0 * K))))
        told.append(f"{1000 * terms.sum():.1e} in {what} (smallest term {terms.min():.2f})")
    return Erratum(
        "Theorem 2 bounds the probability of failure",
        "it says nothing at the paper's settings: 1,000 models, 12,000 items, a = 1, the largest variance",
        "the bound: " + "; ".join(told),
    )


def _range(runs: int) -> Erratum:
    """How far one theta_t of a batch really is from the mean."""
    n = 9_600
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(runs):
        scores = (rng.random(n) < 0.5).astype(np.float64)
        batches = _Batches.drawn(scores, np.full(n, 0.5), 20, rng)
        before = np.cumsum(batches.scores) - batches.scores
        correction = batches.left / BATCH * (batches.scores - batches.predictions)
        theta = (before + batches.F + correction) / n
        largest = max(largest, float(np.abs(theta - scores.mean()).max()))
    return Erratum(
        "The linear term of the interval: theta_t has a range of 2 (stated for single draws)",
        f"it holds in batches too, {2.0 / largest:.0f} times too wide",
        f"largest |theta_t - mean| in {runs:,} x 20 batches of {BATCH} coin flips: {largest:.2f}",
    )
