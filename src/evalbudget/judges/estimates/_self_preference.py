"""Do judges favour themselves? For panels whose judges are also among the models judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.statistics._bounds import Bounds, FloatArray, IntArray, check_level
from evalbudget.statistics._means import mean_of_known
from evalbudget.statistics._shrinkage import t_quantile


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """One row per judge that is also a model.

    Attributes:
        judges: names in the panel.
        models: the model each of them is.
        value: how much more the judge gives itself than the other judges give it, beyond what it gives the
            other models more than they do.
        standard_error: over items, shape (rows,).
        n: items that the contrast rests on.
    """

    judges: tuple[str, ...]
    models: tuple[str, ...]
    value: FloatArray
    standard_error: FloatArray
    n: IntArray

    def confidence_intervals(self, level: float = 0.95) -> Bounds:
        """For all rows at once (Bonferroni t); nan where fewer than two items are known."""
        alpha = (1.0 - check_level(level)) / max(len(self.judges), 1)
        degrees = np.maximum(self.n - 1, 1)
        half = t_quantile(1 - alpha, degrees) * self.standard_error
        return Bounds(self.value - half, self.value + half)


def self_preference(scores: ArrayLike, models: Sequence[str], judges: Sequence[str]) -> SelfPreference:
    r"""Self-preference of every judge that is also a judged model, from paired items.

    .. math:: \Delta_l = \operatorname*{mean}_{(m, k)} \; (x_{ll} - x_{lk}) - (x_{ml} - x_{mk})

    where the first index is the model and the second the judge, over the other models m and other judges k
    that are not the same; per item, then averaged. A lenient judge and a strong model cancel in every term,
    and no other judge's score of itself is in any.

    Args:
        scores: shape (models, items, judges) or (models, items, judges, repeats), NaN where missing.
        models: names.
        judges: names; one is a model whose name is equal, see :func:`same_models`.

    Raises:
        InvalidInferenceError: no judge is among the models, there is only one model or judge, or every
            comparison would rest on another judge's score of itself.
        InvalidInputError: scores of another shape.
    """
    x = np.asarray(scores, dtype=np.float64)
    if x.ndim == 3:
        x = x[..., None]
    if x.ndim != 4 or x.shape[0] != len(models) or x.shape[2] != len(judges):
        raise InvalidInputError(
            f"scores has shape {x.shape}; it must be ({len(models)} models, items, {len(judges)} judges, ...)"
        )
    pairs = _pairs(models, judges)
    if len(models) < 2 or len(judges) < 2:
        raise InvalidInferenceError(
            f"{len(models)} models and {len(judges)} judges: self-preference is a contrast with other models "
            "and other judges; give two or more of each"
        )
    cell = mean_of_known(x, 3)
    rows = []
    for judge, model in pairs:
        others = [
            (m, k)
            for m in range(len(models))
            for k in range(len(judges))
            if m != model and k != judge and (k, m) not in pairs and (k, model) not in pairs
        ]
        if not others:
            raise InvalidInferenceError(
                f"judge {judges[judge]!r} can only be compared with judges that score themselves; add a "
                "model that is not a judge, or a judge that is not a model"
            )
        at_models, at_judges = (list(index) for index in zip(*others, strict=True))
        own = cell[model, :, judge] - cell[at_models, :, judge]
        theirs = cell[model][:, at_judges].T - cell[at_models, :, at_judges]
        contrast = mean_of_known(own - theirs, 0)
        contrast = contrast[~np.isnan(contrast)]
        n = contrast.size
        error = float(contrast.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        rows.append((float(contrast.mean()) if n else float("nan"), error, n))
    value, error_, count = (np.array(column) for column in zip(*rows, strict=True))
    return SelfPreference(
        tuple(judges[j] for j, _ in pairs), tuple(models[m] for _, m in pairs), value, error_, count
    )


def same_models(judges: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Judges that are also judged, and the model each is: equal names, also without a provider's prefix."""
    short = [name.rsplit("/", 1)[-1] for name in models]
    found: dict[str, str] = {}
    for judge in judges:
        if judge in models:
            found[judge] = judge
        elif short.count(judge.rsplit("/", 1)[-1]) == 1:
            found[judge] = models[short.index(judge.rsplit("/", 1)[-1])]
    return found


def _pairs(models: Sequence[str], judges: Sequence[str]) -> list[tuple[int, int]]:
    """Numbers of the judges that are also judged, and of the models that they are."""
    found = same_models(judges, models)
    if not found:
        raise InvalidInferenceError(
            f"none of the judges ({', '.join(judges)}) is among the models ({', '.join(models)}); "
            "give a judge the name of the model that it is"
        )
    return [(tuple(judges).index(judge), tuple(models).index(model)) for judge, model in found.items()]
