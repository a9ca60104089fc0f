r"""Variance components of the paper's model, which has no item x judge interaction.

.. math:: \hat\sigma^2_\beta = (MS_G - MS_E)/K, \quad \hat\sigma^2_\alpha = (MS_S - MS_G)/(mK), \quad
          F = MS_J / MS_E

with MS_E on (nm-1)(K-1) degrees of freedom. An interaction, if there is one, is taken for residual:
sigma^2_beta is too small by about 1/K of it.

References:
    Zhu et al. (2026), arXiv 2603.01865, Eqs. (23)-(28).
"""

from __future__ import annotations

from dataclasses import replace

from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates import (
    Component,
    JudgeScores,
    Source,
    VarianceComponents,
    variance_components,
)
from evalbudget.judges.estimates._components import _prepare, _Squares


def variance_components_literal(scores: JudgeScores) -> tuple[VarianceComponents, float]:
    """Components, that of the interaction taken for 0, and F.

    Raises:
        InvalidInferenceError: not a crossed design with two or more generations.
    """
    _, table, _ = _prepare(scores)
    if table is None or table.shape[2] < 2:
        raise InvalidInferenceError(
            "the paper's ANOVA needs two or more generations of each item, scored by all judges; "
            "use variance_components, which says what other designs identify"
        )
    n, K, m = table.shape
    ss = _Squares.of(table)
    ms_s, ms_g = ss.item / (n - 1), ss.generation / (n * (m - 1))
    ms_e = (ss.interaction + ss.within) / ((n * m - 1) * (K - 1))
    ms_j = n * m * float((ss.gamma**2).sum()) / (K - 1)
    components = (
        Component((Source.ITEM,), (ms_s - ms_g) / (m * K)),
        Component((Source.GENERATION,), (ms_g - ms_e) / K),
        Component((Source.INTERACTION,), 0.0),
        Component((Source.RESIDUAL,), ms_e),
        Component((Source.JUDGE,), float((ss.gamma**2).mean()) - ms_e / (n * m) * (K - 1) / K),
    )
    method = "ANOVA without interaction (paper)"
    return replace(variance_components(scores), components=components, method=method), ms_j / ms_e
