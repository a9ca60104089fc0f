"""A panel's numbers as rows of a host's table: one name and one number each."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates._bias import judge_biases
from evalbudget.judges.estimates._components import variance_components
from evalbudget.judges.estimates._scores import JudgeScores


def short_names(judges: Sequence[str]) -> list[str]:
    """Names for metrics: without the provider where that is unique, and without brackets and slashes."""
    last = [name.rsplit("/", 1)[-1] for name in judges]
    times = Counter(last)
    chosen = [short if times[short] == 1 else name for name, short in zip(judges, last, strict=True)]
    plain = [re.sub(r"[^\w.:-]+", "_", name) for name in chosen]
    times = Counter(plain)
    return [name if times[name] == 1 else f"{name}_{i + 1}" for i, name in enumerate(plain)]


def count_rows(scores: JudgeScores) -> dict[str, float]:
    """``judges``, ``items`` and ``readings``: how many there are with a score."""
    return {
        "judges": float(np.count_nonzero(scores.counts)),
        "items": float(np.count_nonzero(scores.per_item)),
        "readings": float(scores.value.size),
    }


def cost_rows(
    scores: JudgeScores, *, calls: Sequence[int] | None = None, prices: Sequence[float] | None = None
) -> dict[str, dict[str, float]]:
    """By judge: ``calls``, ``failed`` and, where prices are known, the ``price`` of the calls.

    Args:
        scores: of one model.
        calls: of each judge, shape (K,), whatever came of them; None: those that ``scores`` knows of.
        prices: of one call of each judge, shape (K,).
    """
    made = (scores.counts + scores.failed).tolist() if calls is None else [int(n) for n in calls]
    rows: dict[str, dict[str, float]] = {}
    for j, name in enumerate(scores.judges):
        rows[name] = {"calls": made[j], "failed": int(scores.failed[j])}
        if prices is not None:
            rows[name]["price"] = prices[j] * made[j]
    return rows


class Bias(NamedTuple):
    """A judge's deviation from the panel's mean, and its standard error; nan where not defined."""

    value: float
    standard_error: float


def biases_by_judge(scores: JudgeScores) -> dict[str, Bias]:
    """Of every judge of the panel, in its order; undefined where fewer than two judges scored."""
    found = dict.fromkeys(scores.judges, Bias(math.nan, math.nan))
    with suppress(InvalidInferenceError):  # a single judge has nobody to differ from
        biases = judge_biases(scores)
        pairs = map(Bias, biases.value.tolist(), biases.standard_error.tolist())
        found |= dict(zip(biases.judges, pairs, strict=True))
    return found


def component_rows(scores: JudgeScores, *, one_generation: bool = False) -> dict[str, float]:
    """``variance_<source>`` and ``share_<source>``, as far as the design tells sources apart.

    Args:
        scores: of one model.
        one_generation: an item's scores are all of one answer.
    """
    try:
        components = variance_components(scores, one_generation=one_generation)
    except InvalidInferenceError:
        return {}  # too few scores yet
    named = {c.name: re.sub(r"\W+", "_", c.name.replace("+", "and")) for c in components.components}
    shares = components.shares()
    return {f"variance_{named[c.name]}": c.value for c in components.components} | {
        f"share_{slug}": shares[name] for name, slug in named.items()
    }
