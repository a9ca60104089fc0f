"""One new model's mean from few answers, given the history of others: FAQ beside random items."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates import benchmark_mean
from evalbudget.races.prediction import FactorModel
from judges_sections.found import Floats, Found, Target
from places import data_file
from references.faq import Interval, Posterior, faq

SHARES = (0.02, 0.05, 0.1, 0.2)
SEEDS = 10
FOLDS = 5
BATCH = 16
NORMAL = 1.959963984540054

Method = Callable[[FactorModel, Floats, int, np.random.Generator], Interval]


def by_faq(
    history: FactorModel,
    scores: Floats,
    count: int,
    rng: np.random.Generator,
    *,
    rho: float = 0.0,
    tau: float = 0.25,
    replacement: bool = True,
    second_sum: bool = True,
) -> Interval:
    """The published interval, with history's factors and prior as ours has them."""
    posterior = Posterior(history.V, history.prior_mean, history.prior_covariance, len(scores))
    return faq(
        scores,
        posterior,
        count,
        rng,
        rho=rho,
        tau=tau,
        replacement=replacement,
        second_sum=second_sum,
    )


def drawn(history: FactorModel | None, scores: Floats, count: int, rng: np.random.Generator) -> ModelDraws:
    """Random items of one model; predictions from its own earlier answers, renewed after each batch."""
    order = rng.permutation(np.flatnonzero(~np.isnan(scores)))
    f, total, squares = np.zeros(count), [], []
    for begin in range(0, count, BATCH):
        end, left = min(begin + BATCH, count), order[begin:]
        p = np.full(left.size, 0.5)
        if history is not None:
            p = history.predict(history.fit(order[:begin], scores[order[:begin]]), left)
        f[begin:end] = p[: end - begin]
        total.append(p.sum())
        squares.append((p * p).sum())
    return ModelDraws(
        n_items=order.size,
        known=np.zeros(0),
        value=scores[order[:count]],
        item=order[:count],
        batch=np.arange(count) // BATCH,
        prediction=f,
        unseen_prediction_sum=np.array(total),
        unseen_prediction_sum_sq=np.array(squares),
    )


def at_random(
    history: FactorModel,
    scores: Floats,
    count: int,
    rng: np.random.Generator,
    *,
    predict: bool,
    betting: bool,
) -> Interval:
    """Random items without replacement: a normal interval by the standard error, or the guaranteed one."""
    ends = []
    for one in scores:
        estimate = benchmark_mean(drawn(history if predict else None, one, count, rng))
        if betting:
            found = estimate.confidence_interval(0.95)
            ends.append((found.low, found.high))
        else:
            half = NORMAL * estimate.standard_error
            ends.append((max(estimate.value - half, 0.0), min(estimate.value + half, 1.0)))
    low, high = np.array(ends).T
    return Interval(low, high, np.full(len(scores), float(count)))


METHODS: dict[str, Method] = {
    "random items, normal": partial(at_random, predict=False, betting=False),
    "random items with predictions, normal": partial(at_random, predict=True, betting=False),
    "faq (tau .25)": by_faq,
    "the same, variance without its second sum": partial(by_faq, second_sum=False),
    "faq (tau .05)": partial(by_faq, tau=0.05),
    "faq (tau .25, rho .25)": partial(by_faq, rho=0.25),
    "faq without replacement (tau .25)": partial(by_faq, replacement=False),
    "the same, tau 1: all items alike": partial(by_faq, replacement=False, tau=1.0),
    "random items, betting": partial(at_random, predict=False, betting=True),
    "random items with predictions, betting": partial(at_random, predict=True, betting=True),
}
OURS = "random items with predictions, normal"
RIVALS = ("faq (tau .25)", "faq without replacement (tau .25)")


def measured(scores: Floats, share: float, runs: int) -> dict[str, Floats]:
    """Coverage, half-width and items read of each interval, by method, shape (models x runs, 3)."""
    fold = np.random.default_rng(0).permutation(len(scores)) % min(FOLDS, len(scores) // 2)
    found: dict[str, list[Floats]] = {name: [] for name in METHODS}
    for k in range(int(fold.max()) + 1):
        history, new = FactorModel.train(scores[fold != k]), scores[fold == k]
        truth = np.nanmean(new, axis=1)
        count = int(share * (~np.isnan(new)).sum(axis=1).min())
        for seed in range(runs):
            for name, method in METHODS.items():
                low, high, distinct = method(history, new, count, np.random.default_rng([seed, k]))
                held = (low - 1e-12 <= truth) & (truth <= high + 1e-12)
                found[name].append(np.column_stack([held, (high - low) / 2.0, distinct]))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def new_model(quick: bool, seeds: int | None = None) -> Found:
    """Coverage and half-width of 95% intervals; each model is the new one once, other folds are history."""
    runs = 2 if quick else seeds or SEEDS
    rows, targets = [], []
    for file in ("cruxeval_models", "alpacaeval_models"):
        scores = RecordedScores.load(data_file(file)).scores[:, :, 0, 0].astype(np.float64)
        for share in SHARES[-1:] if quick else SHARES:
            found = measured(scores, share, runs)
            half = {name: float(each[:, 1].mean()) for name, each in found.items()}
            for name, each in found.items():
                held = each[:, 0]
                noise = held.std(ddof=1) / np.sqrt(held.size)
                cells = (f"{held.mean():.3f} ± {noise:.3f}", f"{100 * half[name]:.2f}")
                beside = f"{half[name] / half['random items, normal']:.2f}"
                rows.append((file, f"{share:.0%}", name, *cells, beside, f"{each[:, 2].mean():.0f}"))
            for rival in RIVALS:
                ratio = half[OURS] / half[rival]
                targets.append(
                    Target(
                        f"{file} at {share:.0%}: random items with predictions no wider than {rival}",
                        f"ratio of half-widths {ratio:.2f}, coverage {found[OURS][:, 0].mean():.3f} and "
                        f"{found[rival][:, 0].mean():.3f}",
                        ratio <= 1.0,
                    )
                )
    return Found(
        f"95% intervals of one model's mean over the benchmark, with the models of other folds ({FOLDS} in "
        f"all) as history: every model of the matrix, {runs} draws each. Normal intervals are asymptotic and "
        "hold at one number of draws, fixed beforehand; betting ones hold at every number at once, without a "
        "condition. `faq` (arXiv 2601.20251) draws with replacement and pays for each draw; items read are "
        "counted once. Its settings here are those that its authors' selection took most often with a full "
        "history; theirs are selected for each budget on history.",
        (
            "file",
            "answers",
            "interval",
            "coverage",
            "half-width, points",
            "/ random items, normal",
            "items read",
        ),
        tuple(rows),
        tuple(targets),
    )
