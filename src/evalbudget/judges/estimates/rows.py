"""A panel's numbers as rows of a host's table: one name and one number each."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates.bias import judge_biases
from evalbudget.judges.estimates.components import variance_components
from evalbudget.judges.estimates.scores import JudgeScores


def short_names(judges: Sequence[str]) -> list[str]:
    """Names for metrics: without the provider where that is unique, and without brackets and slashes."""
    last = [name.rsplit("/", 1)[-1] for name in judges]
    chosen = [short if last.count(short) == 1 else name for name, short in zip(judges, last, strict=True)]
    plain = [re.sub(r"[^\w.:-]+", "_", name) for name in chosen]
    return [name if plain.count(name) == 1 else f"{name}_{i + 1}" for i, name in enumerate(plain)]


def count_rows(scores: JudgeScores) -> dict[str, float]:
    """``judges``, ``items`` and ``readings``: how many there are with a score."""
    return {
        "judges": float(np.count_nonzero(scores.counts)),
        "items": float(np.count_nonzero(scores.per_item)),
        "readings": float(scores.value.size),
    }


def bias_rows(scores: JudgeScores) -> dict[str, float]:
    """``bias_<judge>``: deviation of each judge from the panel's mean; none where fewer than two scored."""
    try:
        biases = judge_biases(scores)
    except InvalidInferenceError:
        return {}  # a single judge has nobody to differ from
    short = dict(zip(scores.judges, short_names(scores.judges), strict=True))
    pairs = zip(biases.judges, biases.value.tolist(), strict=True)
    return {f"bias_{short[name]}": value for name, value in pairs}


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
